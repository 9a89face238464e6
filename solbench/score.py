"""The score S of a solution on a workload, and what the scores of an entry add up to.

Everything here is arithmetic on recorded samples and stored bounds: no PyTorch, no device, and the same last bit on
every machine (sums by ``math.fsum``, logarithms by ``decimal``; a processor's ``log`` may differ).
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from solbench.errors import InputError
from solbench.model.configuration import load_selection
from solbench.model.record import Descriptor as Reference
from solbench.model.score import ENTRY_SCHEMA, SCHEMA, Entry, Estimate, HeadroomClass, ProblemScore, Score, State
from solbench.model.trace import Omission, SampleSet, SetHeader, Status, Timing, Trace
from solbench.store import Descriptor, Store

# Coverage that an interval of order statistics aims at; with fewer than six values it states the less that it has.
COVERAGE: Final = (19, 20)
# Smallest headroom, in timing errors, at which S = 0.5 can be told from 0.53: (0.5 + 0.03) / (2 * 0.03).
HEADROOM_IN_TIMING_ERRORS: Final = 8.8
# The states whose S enters a mean.
COUNTED: Final = ("scored", "failed")

Artifact = tuple[str, str, dict[str, Any]]
Sections = Mapping[str, Mapping[str, Descriptor]]
Load = Callable[[str, Descriptor], dict[str, Any]]


def estimate(sets: Sequence[SampleSet], side: str) -> Estimate:
    """Point and interval (s) of one side's samples: ``event_s``, one set a process.

    Point: median over process medians. Interval: order statistics of the process medians, or, with one process, of its
    samples; the narrowest symmetric pair that covers the median with at least 95 %, else [min, max]. Six values give
    [min, max] 96.9 %, three 75 %, one 0 %. :class:`InputError` names ``side`` where a process has no samples.
    """
    if not sets or not all(samples.event_s for samples in sets):
        raise InputError(side, "a process without samples")
    values = sorted(sets[0].event_s if len(sets) == 1 else [median(samples.event_s) for samples in sets])
    low, high = interval(values)
    return Estimate(
        point_s=median(values),
        low_s=low,
        high_s=high,
        coverage=order_statistics(len(values))[1],
        processes=len(sets),
        samples=sum(len(samples.event_s) for samples in sets),
    )


def median(values: Iterable[float]) -> float:
    """Middle value, or the mean of the two middle ones."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def order_statistics(n: int) -> tuple[int, float]:
    """Rank r of the interval [x_(r), x_(n+1-r)] for a median, and its coverage 1 - 2 * sum_{i<r} C(n, i) / 2^n.

    The largest r that covers at least 95 %, else 1. Distribution-free, for independent values of one continuous
    distribution (e.g. David and Nagaraja, Order Statistics, 7.1).
    """
    wanted, of = COVERAGE
    total = 2**n
    rank, outside, choices = 1, 2, n
    while rank < n // 2 and (total - outside - 2 * choices) * of >= wanted * total:
        outside += 2 * choices
        choices = choices * (n - rank) // (rank + 1)
        rank += 1
    return rank, max(total - outside, 0) / total


def sol_score(t_k: float, t_b: float, t_sol: float) -> float:
    """S = (T_b - T_SOL) / ((T_k - T_SOL) + (T_b - T_SOL)), SOL-ExecBench eq. 3; all three in s.

    For ends of intervals as well: a T_b at or below T_SOL gives 0, a T_k at or below it 1, so that S stays in [0, 1].
    """
    gained = t_b - t_sol
    if gained <= 0:
        return 0.0
    return gained / (max(t_k - t_sol, 0.0) + gained)


def pairs(timing: Timing) -> list[tuple[float, float]]:
    """(T_k, T_b) in s of what was measured together: the process medians, or, with one process, its samples.

    Both sides of a pair ran moments apart, so what slows a whole process or round slows both, and cancels in a ratio.
    """
    sides = (timing.candidate, timing.baseline)
    if len(timing.candidate) == 1:
        return list(zip(*(side[0].event_s for side in sides), strict=True))
    return list(zip(*([median(samples.event_s) for samples in side] for side in sides), strict=True))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Ends of the order-statistic interval for the median of ``values``; see :func:`order_statistics`."""
    ordered = sorted(values)
    rank, _ = order_statistics(len(ordered))
    return ordered[rank - 1], ordered[-rank]


def timing_error(measured: Sequence[tuple[float, float]]) -> float:
    """Relative error of T_k / T_b: half the width of its interval over its median."""
    ratios = [t_k / t_b for t_k, t_b in measured]
    low, high = interval(ratios)
    return (high - low) / (2 * median(ratios))


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

    trace: Reference | None = None
    bound: Reference | None = None
    measurement_set: Reference | None = None


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
    base = _unscored(trace.definition, trace.workload, trace.solution, trace.target, bound, floor_s, references)
    if trace.status in (Status.UNSUPPORTED, Status.INVALID_REFERENCE):
        return _with(base, state="not_attempted", reason=f"{trace.status}: {trace.reason}")
    if trace.status is not Status.PASSED:
        return _with(base, state="failed", reason=f"{trace.status}: {trace.reason}", s=0.0, s_low=0.0, s_high=0.0)
    timing = trace.timing
    if timing is None or not (timing.candidate and timing.baseline):
        return _with(base, state="not_timed", reason="passed its checks; not timed")
    impossible = _impossible_samples(timing)
    if impossible is not None:
        return _with(base, state="audit", reason=impossible)
    t_k, t_b = estimate(timing.candidate, "candidate"), estimate(timing.baseline, "baseline")
    base = _with(base, t_k=t_k, t_b=t_b)
    t_sol = base.t_sol_s
    if bound is None or t_sol is None or t_sol <= 0:
        return _with(base, state="no_bound", reason=no_bound if t_sol is None else "the bound is zero")
    headroom = t_b.point_s / t_sol
    base = _with(base, headroom=headroom, headroom_class=headroom_class(headroom))
    contradiction = _contradiction(t_k.point_s, t_b.point_s, t_sol, bound)
    if contradiction is not None:
        return _with(base, state="audit", reason=contradiction)
    # An interval holds whatever its width; only the point is withheld where it would say more than is known. The S of
    # two medians may lie outside the order statistics of the pairs' S, which are widened to hold it.
    measured = pairs(timing)
    s = sol_score(t_k.point_s, t_b.point_s, t_sol)
    s_low, s_high = interval([sol_score(one_k, one_b, t_sol) for one_k, one_b in measured])
    base = _with(base, s_low=min(s, s_low), s_high=max(s, s_high))
    relative = (t_b.point_s - t_sol) / t_b.point_s
    needed = HEADROOM_IN_TIMING_ERRORS * timing_error(measured)
    if relative < needed:
        reason = f"headroom {relative:.3g} of T_b, under {needed:.3g} = 8.8 timing errors"
        return _with(base, state="too_narrow", reason=reason)
    return _with(base, state="scored", s=s)


def aggregate(
    name: str,
    target: str,
    protocol: str,
    problems: Mapping[str, Sequence[Score]],
    missing: Collection[str] = (),
    withheld: str | None = None,
) -> Entry:
    """A leaderboard row from the scores of all scored problems (problem key -> one score a workload).

    Mean over the workloads of a problem that count (scored, failed), then equal-weight mean over problems. A problem of
    which nothing counts is left out of the mean, one in ``missing`` (the entry has no solution for it) counts 0. An
    audit withholds every aggregate, and so does ``withheld``. ``fast_p``: share that is faster than p times the
    baseline, means taken the same way; geometric mean speed-up over the scored workloads only, problems equal-weight.
    """
    rows = [score for key in sorted(problems) for score in problems[key]]
    count = {state: sum(score.state == state for score in rows) for state in get_args(State)}
    reasons = [withheld] if withheld else []
    if count["audit"]:
        reasons.append(f"{count['audit']} of {len(rows)} workloads under audit")

    def mean(
        value: Callable[[Score], float | None], keep: Callable[[Score], bool] = lambda score: True
    ) -> float | None:
        return None if reasons else _mean_over_problems(problems, missing, value, keep)

    return Entry(
        schema=ENTRY_SCHEMA,
        name=name,
        target=target,
        protocol=protocol,
        s=mean(lambda score: score.s),
        s_low=mean(lambda score: score.s_low),
        s_high=mean(lambda score: score.s_high),
        s_without_launch_bound=mean(lambda score: score.s, lambda score: not score.launch_bound),
        withheld="; ".join(reasons) or None,
        **count,
        workloads=len(rows),
        problems=tuple(_problem_score(key, problems[key], key in missing) for key in sorted(problems)),
        problem_n=sum(any(score.state in COUNTED for score in scores) for scores in problems.values()),
        problem_total=len(problems),
        geometric_mean_speedup=None if reasons else _geometric_mean_speedup(problems),
        fast_1=mean(lambda score: float(_speedup(score) > 1)),
        fast_2=mean(lambda score: float(_speedup(score) > 2)),
    )


def score_release(store: Store) -> list[Artifact]:
    """Every score and entry of a store that has the stages corpus, workloads, bounds and timings.

    (logical name, kind, artifact) in name order: ``<target>/<entry>`` and ``<problem>/<uuid>@<target>/<solution>``.
    """
    stages = ("corpus", "workloads", "bounds", "timings")
    return score_sections({stage: store.index(stage) for stage in stages}, store.load)


def score_sections(sections: Sections, load: Load) -> list[Artifact]:
    """As :func:`score_release`, from the indexes of the stages and a function that loads an artifact of one.

    A target gets scores when the release holds a measurement set of it, and an entry for every solution name in those
    sets that the corpus knows. A record of another version of its workload or solution is stale and counts as not
    attempted.
    :class:`InputError` where records contradict their names, or one workload of a solution is measured twice.
    """
    problems = _problems(sections, load)
    selection = load_selection(sections["workloads"], load)
    measured = _measured(sections, load)
    bounds = {
        name: (entry, load("bounds", entry)) for name, entry in sections["bounds"].items() if entry.kind == "bound"
    }
    artifacts: list[Artifact] = []
    for (target, solution), records in sorted(measured.items()):
        if not any(f"{problem.key}/solutions/{solution}" in sections["corpus"] for problem in problems):
            continue
        rows: dict[str, list[Score]] = {}
        sets = sorted({record.set_name: record.header for record in records.values()}.items())
        for problem in problems:
            has_solution = f"{problem.key}/solutions/{solution}" in sections["corpus"]
            counted = []
            for uuid in problem.workloads:
                name = f"{problem.key}/{uuid}"
                if not selection.includes(name, target):
                    continue
                case = _Case(problem, uuid, solution, target, bounds.get(f"{name}@{target}"))
                score = _score_case(case, records.get((problem.key, uuid)), sets[0][1].floor_s, sections)
                if has_solution:
                    artifacts.append((f"{name}@{target}/{solution}", "score", score.as_dict()))
                if selection.counts(name, target):
                    counted.append(score)
            if problem.role == "scored" and counted:
                rows[problem.key] = counted
        missing = {key for key in rows if f"{key}/solutions/{solution}" not in sections["corpus"]}
        protocol = "+".join(sorted({header.protocol.name for _, header in sets}))
        entry = aggregate(solution, target, protocol, rows, missing, _incomparable([header for _, header in sets]))
        artifacts.append((f"{target}/{solution}", "entry", entry.as_dict()))
    return sorted(artifacts, key=lambda artifact: artifact[0])


@dataclass(frozen=True)
class _Problem:
    key: str
    definition: str
    role: str
    workloads: tuple[str, ...]


@dataclass(frozen=True)
class _Record:
    set_name: str
    header: SetHeader
    header_reference: Descriptor
    reference: Descriptor
    value: Trace | Omission


@dataclass(frozen=True)
class _Case:
    problem: _Problem
    uuid: str
    solution: str
    target: str
    bound: tuple[Descriptor, dict[str, Any]] | None


def _problems(sections: Sections, load: Load) -> list[_Problem]:
    workloads: dict[str, list[str]] = {}
    for name, entry in sorted(sections["workloads"].items()):
        if entry.kind != "workload":
            continue
        key, _, uuid = name.rpartition("/")
        workloads.setdefault(key, []).append(uuid)
    problems = []
    for key, entry in sorted(sections["corpus"].items()):
        if entry.kind == "definition":
            definition = load("corpus", entry)
            uuids = tuple(workloads.pop(key, ()))
            problems.append(_Problem(key, definition["name"], definition["role"], uuids))
    for key in workloads:
        raise InputError(f"workloads: {key}", "belongs to no definition of the corpus")
    return problems


def _measured(sections: Sections, load: Load) -> dict[tuple[str, str], dict[tuple[str, str], _Record]]:
    """(target, solution) -> (problem, uuid) -> record, over all measurement sets."""
    timings = sections["timings"]
    headers = {
        name.removesuffix("header"): (entry, SetHeader.load(_body(load("timings", entry)), f"timings: {name}"))
        for name, entry in timings.items()
        if entry.kind == "measurement-set"
    }
    result: dict[tuple[str, str], dict[tuple[str, str], _Record]] = {}
    for name, entry in sorted(timings.items()):
        if entry.kind == "measurement-set":
            continue
        where = f"timings: {name}"
        prefix = max((prefix for prefix in headers if name.startswith(prefix)), key=len, default=None)
        if prefix is None:
            raise InputError(where, "belongs to no measurement set")
        reference, header = headers[prefix]
        fields = _body(load("timings", entry))
        value: Trace | Omission
        if entry.kind == "trace":
            value = Trace.load(fields, where)
        else:
            value = Omission.load({k: v for k, v in fields.items() if k != "schema"}, where)
        place, _, solution = name.removeprefix(prefix).rpartition("/")
        key, _, uuid = place.rpartition("/")
        if (value.workload, value.solution) != (uuid, solution) or (
            isinstance(value, Trace) and value.target != header.target
        ):
            raise InputError(where, "says that it is of another workload, solution or target")
        records = result.setdefault((header.target, solution), {})
        if (key, uuid) in records:
            raise InputError(where, f"is measured twice, also in {records[key, uuid].set_name}; a release takes one")
        records[key, uuid] = _Record(prefix.rstrip("/"), header, reference, entry, value)
    return result


def _score_case(case: _Case, record: _Record | None, floor_s: float, sections: Sections) -> Score:
    """Score of one workload of an entry, with or without a record of it."""
    bound = case.bound[1]["result"] if case.bound else None
    references = References(bound=_reference(case.bound[0]) if case.bound else None)
    reason: str
    if record is None:
        reason = "no record of it in the measurement sets"
        if f"{case.problem.key}/solutions/{case.solution}" not in sections["corpus"]:
            reason = f"{case.solution} has no solution for this problem"
    else:
        references = replace(
            references, trace=_reference(record.reference), measurement_set=_reference(record.header_reference)
        )
        floor_s = record.header.floor_s
        name = f"{case.problem.key}/{case.uuid}"
        if record.value.definition != case.problem.definition:
            raise InputError(f"timings: {name}", f"says that it is of definition {record.value.definition!r}")
        stale = _stale(record.value, name, sections)
        if stale is None and isinstance(record.value, Trace):
            no_bound = (case.bound[1]["reason"] if case.bound else None) or "no bound"
            return score_workload(record.value, bound, floor_s, references, no_bound=no_bound)
        reason = stale or getattr(record.value, "reason", None) or "not attempted"
    base = _unscored(case.problem.definition, case.uuid, case.solution, case.target, bound, floor_s, references)
    return _with(base, reason=reason)


def _stale(record: Trace | Omission, name: str, sections: Sections) -> str | None:
    if record.workload_digest != sections["workloads"][name].digest:
        return "stale: measured on another version of this workload"
    solution = sections["corpus"].get(f"{name.rpartition('/')[0]}/solutions/{record.solution}")
    if isinstance(record, Trace) and (solution is None or record.solution_digest != solution.digest):
        return "stale: measured with another version of this solution"
    return None


def _incomparable(headers: Sequence[SetHeader]) -> str | None:
    """Why the sets of one entry may not be added up, or None. One card, one environment, one protocol."""
    differing = [
        field
        for field in ("protocol", "harness", "environment", "device", "clocks")
        if any(getattr(header, field) != getattr(headers[0], field) for header in headers[1:])
    ]
    return f"its measurement sets differ in {', '.join(differing)}" if differing else None


def _unscored(
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


def _with(score: Score, **changes: Any) -> Score:
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


def _speedup(score: Score) -> float:
    """T_b / T_k of a scored workload; 0 for one that failed."""
    if score.state != "scored" or score.t_k is None or score.t_b is None:
        return 0.0
    return score.t_b.point_s / score.t_k.point_s


def _mean_over_problems(
    problems: Mapping[str, Sequence[Score]],
    missing: Collection[str],
    value: Callable[[Score], float | None],
    keep: Callable[[Score], bool],
) -> float | None:
    means: list[float] = []
    counted = 0
    for key in sorted(problems):
        kept = [score for score in problems[key] if keep(score)]
        values = [value(score) or 0.0 for score in kept if score.state in COUNTED]
        if values:
            counted += 1
            means.append(math.fsum(values) / len(values))
        elif key in missing and kept:
            means.append(0.0)
    return math.fsum(means) / len(means) if counted else None


def _problem_score(key: str, scores: Sequence[Score], missing: bool) -> ProblemScore:
    values = [score.s or 0.0 for score in scores if score.state in COUNTED]
    s: float | None = 0.0 if missing else None
    if values and not any(score.state == "audit" for score in scores):
        s = math.fsum(values) / len(values)
    return ProblemScore(definition=key, s=s, n=len(values), total=len(scores))


def _geometric_mean_speedup(problems: Mapping[str, Sequence[Score]]) -> float | None:
    with decimal.localcontext(decimal.Context(prec=40)):
        logarithms = []
        for key in sorted(problems):
            ratios = [decimal.Decimal(_speedup(score)).ln() for score in problems[key] if score.state == "scored"]
            if ratios:
                logarithms.append(sum(ratios, decimal.Decimal(0)) / len(ratios))
        if not logarithms:
            return None
        return float((sum(logarithms, decimal.Decimal(0)) / len(logarithms)).exp())


def _body(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in value.items() if name != "kind"}


def _reference(descriptor: Descriptor) -> Reference:
    return Reference(kind=descriptor.kind, digest=descriptor.digest, size=descriptor.size)
