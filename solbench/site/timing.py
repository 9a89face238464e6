"""One solution's time on one workload: the score with its numbers put in, the checks, both witnesses by process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solbench.model.score import Score
from solbench.model.trace import CheckResult, Omission, SampleSet, Timing, Trace
from solbench.score.statistics import median
from solbench.site import text
from solbench.site.cells import Cell, estimate, headroom_cell, missing, number, ref, score_cell
from solbench.site.links import Links
from solbench.site.records import Book, Record, Unread
from solbench.site.samples import strip
from solbench.store import Descriptor

METHODS = {
    "cpu_clock": "the process’s own clock",
    "cuda_event": "CUDA events",
    "hip_event": "HIP events",
}


def timed(
    book: Book, links: Links, record: Record[Score], solution_href: str, name: str, series: str
) -> dict[str, Any]:
    """What is known of one score: its state, and where a trace stands behind it, what that observed.

    ``name`` and ``series`` are those of the plot of its samples.
    """
    score = record.value
    trace = None if score.trace is None else book.traces[score.trace.digest]
    observed = trace.value if trace is not None and isinstance(trace.value, Trace) else None
    source = trace.descriptor if trace is not None else record.descriptor
    return {
        "solution": score.solution,
        "href": solution_href,
        "state": score.state,
        "score": score_cell(links, record),
        "formula": _formula(score),
        "t_b": estimate(links, score.t_b, source) if score.t_b is not None else missing("not measured"),
        "t_k": estimate(links, score.t_k, source) if score.t_k is not None else missing("not measured"),
        "headroom": headroom_cell(links, record),
        "labels": [*([score.trust] if score.trust is not None else []), *(observed.labels if observed else ())],
        "status": observed.status.value if observed else ("not attempted" if trace is not None else "no record"),
        "reason": (observed.reason or "") if observed else _omitted(trace),
        "log": text.Lines(observed.log) if observed and observed.log else "",
        "rounds": text.grouped(observed.correctness.rounds) if observed and observed.correctness else "",
        "checks": [check_row(links, source, c) for c in observed.correctness.checks]
        if observed and observed.correctness
        else [],
        "samples": strip(
            f"samples-{name}",
            f"Samples of {score.solution} and of the baseline on {score.target}",
            observed.timing,
            score.solution,
            series,
            score.t_sol_s,
        )
        if observed and observed.timing
        else None,
        "witnesses": _witnesses(links, source, observed.timing) if observed and observed.timing else None,
        "objects": [
            ref(links, f"score of {score.solution}", record.descriptor),
            *([ref(links, f"trace of {score.solution}", trace.descriptor)] if trace is not None else []),
        ],
    }


def _omitted(trace: Unread[Trace | Omission] | None) -> str:
    return trace.value.reason if trace is not None and isinstance(trace.value, Omission) else ""


def _formula(score: Score) -> str:
    """The score with the numbers in, as the method page writes it; "" where there is none to put in."""
    if score.s is None or score.state != "scored" or None in (score.t_k, score.t_b, score.t_sol_s):
        return ""
    assert score.t_k is not None and score.t_b is not None and score.t_sol_s is not None
    t_k, t_b, t_sol = (text.quantity(t, "s", 4) for t in (score.t_k.point_s, score.t_b.point_s, score.t_sol_s))
    return f"S = 1 / (1 + ({t_k} − {t_sol}) / ({t_b} − {t_sol})) = {text.score(score.s)}"


def check_row(links: Links, source: Descriptor, check: CheckResult) -> dict[str, Any]:
    """What one output came to, with its numbers linked to ``source``."""

    def error(value: float | None) -> Cell:
        return missing("—") if value is None else number(links, value, text.significant(value), source)

    odd = [word for word, there in (("NaN", check.has_nan), ("infinity", check.has_inf)) if there]
    return {
        "output": check.output,
        "type": check.type.replace("_", " "),
        "verdict": "passed" if check.passed else "failed",
        "compared": number(links, check.compared, text.grouped(check.compared), source),
        "mismatched": number(links, check.mismatched, text.grouped(check.mismatched), source),
        "absolute": error(check.max_absolute_error),
        "relative": error(check.max_relative_error),
        "odd": text.listed(odd),
    }


def _witnesses(links: Links, source: Descriptor, timing: Timing) -> dict[str, Any]:
    """For each process the median by both witnesses, of candidate and baseline, and what the device told."""

    def cell(values: Sequence[float]) -> Cell:
        middle = median(values)
        return number(links, middle, text.quantity(middle, "s"), source)

    rows: list[dict[str, Any]] = []
    for candidate, baseline in zip(timing.candidate, timing.baseline):
        rows.append(
            {
                "process": str(candidate.process),
                "samples": text.grouped(len(candidate.event_s)),
                "warmups": text.grouped(candidate.warmups),
                "times": [
                    cell(values)
                    for side in (candidate, baseline)
                    for values in (side.event_s, side.clock_s)
                ],
                "batch": _batch(links, source, candidate),
                "clocks": _clocks(candidate),
            }
        )  # fmt: skip
    return {
        "rows": rows,
        "batches": any(row["batch"].sort for row in rows),
        "clocks": any(row["clocks"] for row in rows),
        "facts": [
            ("event", METHODS[timing.method]),
            ("cache", f"{timing.cache_state}; {text.capacity(timing.flush_bytes)} written before each sample"),
            ("stopped", timing.stop_reason),
        ],
    }


def _batch(links: Links, source: Descriptor, samples: SampleSet) -> Cell:
    """Seconds a call of the quickest batch, its floor taken off."""
    if samples.batch is None:
        return missing("—")
    each = (min(samples.batch.clock_s) - samples.batch.floor_s) / samples.batch.calls
    return number(links, each, text.quantity(each, "s"), source, f"{text.grouped(samples.batch.calls)} calls")


def _clocks(samples: SampleSet) -> str:
    """``1.98 GHz before, 1.97 GHz after``; "" where nothing was told."""
    if samples.observed is None:
        return ""
    shown = []
    for moment, look in (("before", samples.observed.before), ("after", samples.observed.after)):
        hertz = look.graphics_hz if look.graphics_hz is not None else look.cpu_hz
        parts = [text.quantity(hertz, "Hz")] if hertz is not None else []
        parts += [text.listed(look.throttle)] if look.throttle else []
        if parts:
            shown.append(f"{text.listed(parts)} {moment}")
    return text.listed(shown)
