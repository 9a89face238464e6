"""S of one trace, and when it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from solbench.model.record import Descriptor
from solbench.model.score import SCHEMA, HeadroomClass, Score
from solbench.model.trace import Status, Timing, Trace
from solbench.score.statistics import estimate, interval, median, pairs, timing_error

# Smallest headroom, in timing errors, at which S = 0.5 can be told from 0.53: (0.5 + 0.03) / (2 * 0.03).
HEADROOM_IN_TIMING_ERRORS: Final = 8.8


def sol_score(t_k: float, t_b: float, t_sol: float) -> float:
    """S = (T_b - T_SOL) / ((T_k - T_SOL) + (T_b - T_SOL)), SOL-ExecBench eq. 3; all three in s.

    For ends of intervals as well: a T_b at or below T_SOL gives 0, a T_k at or below it 1, so that S stays in [0, 1].
    """
    gained = t_b - t_sol
    if gained <= 0:
        return 0.0
    return gained / (max(t_k - t_sol, 0.0) + gained)


def headroom_class(headroom: float) -> HeadroomClass:
    """T_b / T_SOL below 2 is narrow, up to 15 good, up to 100 loose, above that vacuous."""
    if headroom < 2:
        return "narrow"
    if headroom <= 15:
        return "good"
    return "loose" if headroom <= 100 else "vacuous"


@dataclass(frozen=True)
class References:
    """Objects that a score was derived from, so that every number leads to its evidence."""

    trace: Descriptor | None = None
    bound: Descriptor | None = None
    measurement_set: Descriptor | None = None


NO_REFERENCES: Final = References()


def score_workload(
    trace: Trace,
    bound: Mapping[str, Any] | None,
    floor_s: float,
    references: References = NO_REFERENCES,
    *,
    no_bound: str = "no bound",
) -> Score:
    """S of one trace.

    ``bound``: a ``solar.bound.v1`` result, or None for the reason ``no_bound``. ``floor_s``: time of an empty launch on
    that device. The first state that applies: a verdict that is no pass is ``failed`` (S = 0), except UNSUPPORTED and
    INVALID_REFERENCE, which judge nothing (``not_attempted``); ``not_timed``; ``audit`` where a time is impossible
    (also without a bound); ``no_bound``; ``audit`` where time and bound contradict each other; ``too_narrow`` where
    the relative headroom (T_b - T_SOL) / T_b is under 8.8 timing errors; else ``scored``.
    """
    base = unscored(trace.definition, trace.workload, trace.solution, trace.target, bound, floor_s, references)
    if trace.status in (Status.UNSUPPORTED, Status.INVALID_REFERENCE):
        return changed(base, state="not_attempted", reason=f"{trace.status}: {trace.reason}")
    if trace.status is not Status.PASSED:
        return changed(base, state="failed", reason=f"{trace.status}: {trace.reason}", s=0.0, s_low=0.0, s_high=0.0)
    timing = trace.timing
    if timing is None or not (timing.candidate and timing.baseline):
        return changed(base, state="not_timed", reason="passed its checks; not timed")
    impossible = _impossible_samples(timing)
    if impossible is not None:
        return changed(base, state="audit", reason=impossible)
    t_k, t_b = estimate(timing.candidate, "candidate"), estimate(timing.baseline, "baseline")
    base = changed(base, t_k=t_k, t_b=t_b)
    t_sol = base.t_sol_s
    if bound is None or t_sol is None or t_sol <= 0:
        return changed(base, state="no_bound", reason=no_bound if t_sol is None else "the bound is zero")
    headroom = t_b.point_s / t_sol
    base = changed(base, headroom=headroom, headroom_class=headroom_class(headroom))
    contradiction = _contradiction(t_k.point_s, t_b.point_s, t_sol, bound)
    if contradiction is not None:
        return changed(base, state="audit", reason=contradiction)
    # An interval holds whatever its width; only the point is withheld where it would say more than is known. The S of
    # two medians may lie outside the order statistics of the pairs' S, which are widened to hold it.
    measured = pairs(timing)
    s = sol_score(t_k.point_s, t_b.point_s, t_sol)
    s_low, s_high = interval([sol_score(one_k, one_b, t_sol) for one_k, one_b in measured])
    base = changed(base, s_low=min(s, s_low), s_high=max(s, s_high))
    relative = (t_b.point_s - t_sol) / t_b.point_s
    needed = HEADROOM_IN_TIMING_ERRORS * timing_error(measured)
    if relative < needed:
        reason = f"headroom {relative:.3g} of T_b, under {needed:.3g} = 8.8 timing errors"
        return changed(base, state="too_narrow", reason=reason)
    return changed(base, state="scored", s=s)


def unscored(
    definition: str,
    workload: str,
    solution: str,
    target: str,
    bound: Mapping[str, Any] | None,
    floor_s: float,
    references: References,
) -> Score:
    t_sol = float(bound["t_sol_s"]) if bound is not None else None
    return Score(
        schema=SCHEMA,
        definition=definition,
        workload=workload,
        solution=solution,
        target=target,
        state="not_attempted",
        t_sol_s=t_sol,
        launch_bound=t_sol < floor_s if t_sol is not None else None,
        trace=references.trace,
        bound=references.bound,
        measurement_set=references.measurement_set,
    )


def changed(score: Score, **changes: Any) -> Score:
    return score.model_copy(update=changes)


def _impossible_samples(timing: Timing) -> str | None:
    """Why these samples cannot be times, or None."""
    for side, sets in (("candidate", timing.candidate), ("baseline", timing.baseline)):
        for samples in sets:
            where = f"{side}, process {samples.process}"
            if not samples.event_s:
                return f"{where}: no samples"
            if min(samples.event_s) <= 0 or min(samples.clock_s) <= 0:
                return f"{where}: a sample is not positive"
            for event, clock in zip(samples.event_s, samples.clock_s, strict=True):
                if event > clock:
                    return f"{where}: event time {event:.4g} s exceeds the outer clock's {clock:.4g} s"
            batch = samples.batch
            if batch is not None and batch.limit_s is not None:
                took, said = min(batch.clock_s) - batch.floor_s, batch.calls * median(samples.event_s)
                if took > said + batch.limit_s:
                    return f"{where}: {batch.calls} calls in a row took {took:.4g} s, the samples say {said:.4g} s"
    return None


def _contradiction(t_k: float, t_b: float, t_sol: float, bound: Mapping[str, Any]) -> str | None:
    """Why times and bound cannot both be true, or None."""
    memory = bound["memory"]
    for name, time in (("T_k", t_k), ("T_b", t_b)):
        implied = memory["live_bytes"] / time
        if implied > memory["bandwidth_bytes_per_s"]:
            peak = memory["bandwidth_bytes_per_s"]
            return f"{name} {time:.4g} s implies {implied:.4g} B/s, above the memory's peak {peak:.4g} B/s"
    if t_k < t_sol:
        return f"T_k {t_k:.4g} s is below T_SOL {t_sol:.4g} s"
    if t_b <= t_sol:
        return f"T_b {t_b:.4g} s is not above T_SOL {t_sol:.4g} s"
    return None
