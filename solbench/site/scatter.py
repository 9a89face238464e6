"""Achieved times against their bounds: every T_b and T_k over the T_SOL of its workload, on two log axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from solbench.model.score import Entry, Estimate
from solbench.site import text
from solbench.site.axis import log_axis
from solbench.site.plot import Dot, Guide, Plot, draw, joined, positive
from solbench.site.records import Book, ProblemRecords, Record, WorkloadRecords

TIMES = (1, 2, 10, 100)


def scatter(
    name: str, title: str, dots: Sequence[Dot], legend: Sequence[tuple[str, str]], note: str = ""
) -> Plot | None:
    """Times (s) over their bounds T_SOL (s), with the lines of 1, 2, 10 and 100 times the bound.

    A dot with an ``x`` or ``y`` that is not positive is counted in words. ``note``: a sentence about what the caller
    left out. ``None`` where there is nothing to draw. Raises :class:`SolbenchError` for a NaN or an infinity.
    """
    drawn, left_out = positive(dots)
    if not drawn:
        return None
    x = log_axis(_at_least_a_decade([dot.x for dot in drawn]), "s")
    # The bounds are on both axes, so that the line of the bound begins in the corner or on the left.
    y = log_axis([x.low * 1.15, x.high / 1.15, *_heights(drawn)], "s")
    ends = ((factor, (x.low, factor * x.low), (x.high, factor * x.high)) for factor in TIMES)
    guides = [
        Guide("bound", start, end, "the bound", title="T = T_SOL")
        if factor == 1
        else Guide("times", start, end, f"{factor}×", title=f"T = {factor} T_SOL")
        for factor, start, end in ends
    ]
    description = (
        "Across is the bound T_SOL of a workload, up are the times measured on it: rings are the baseline T_b, filled "
        "shapes the solutions' T_k, with the interval as a vertical line where it is longer than the mark. The solid "
        "line is the bound itself, below which no time may lie; the broken lines are 2, 10 and 100 times the bound."
    )
    if left_out:
        description += f" {left_out} of {text.plural(len(dots), 'time')} not drawn: time or bound is not above 0."
    words = (name, title, joined(description, note), "bound T_SOL, log axis", "time T, log axis")
    return draw(words, (x, y), drawn, guides, legend, 90)


def problem_scatter(
    problem: ProblemRecords, target: str, labels: Mapping[str, str], series: Mapping[str, str], name: str
) -> Plot | None:
    """Every time of a problem on ``target``. ``labels``: of the workloads by uuid; ``series`` by solution."""
    times = [time for w in problem.workloads for time in _times(w, target, labels[w.uuid], series)]
    legend = [("base", "T_b, baseline"), *((found, f"T_k, {solution}") for solution, found in series.items())]
    return scatter(name, f"Times against the bound on {target}", times, legend)


def entry_scatter(book: Book, entry: Record[Entry], series: str, name: str) -> Plot | None:
    """Every workload that an entry has a score for; the others are counted in words."""
    target, solution = entry.value.target, entry.value.name
    dots, scored = [], 0
    for problem, workload in book.workloads():
        if any(r.value.solution == solution and r.value.state == "scored" for r in workload.scores.get(target, ())):
            scored += 1
            label = f"{problem.record.value.name} {workload.uuid}"
            dots += list(_times(workload, target, label, {solution: series}))
    note = f"{text.grouped(scored)} of {text.plural(entry.value.workloads, 'workload')} have a score and are drawn."
    legend = [("base", "T_b, baseline"), (series, f"T_k, {solution}")]
    return scatter(name, f"Times of {solution} against the bound on {target}", dots, legend, note)


def _times(workload: WorkloadRecords, target: str, label: str, series: Mapping[str, str]) -> Iterator[Dot]:
    """Baseline and candidate of every solution in ``series`` that has both a time and a bound."""
    record = workload.bounds.get(target)
    if record is None or record.value.result is None:
        return
    bound = record.value.result.t_sol_s
    for found in workload.scores.get(target, ()):
        score = found.value
        if score.solution in series:
            # The baseline comes last, as a ring on top of a candidate that is as fast.
            if score.t_k is not None:
                yield _dot(series[score.solution], bound, score.t_k, f"{label}, {score.solution}: T_k")
            if score.t_b is not None:
                yield _dot("base", bound, score.t_b, f"{label}, baseline beside {score.solution}: T_b")


def _dot(series: str, bound: float, time: Estimate, words: str) -> Dot:
    interval = f"interval {text.exact(time.low_s)} – {text.exact(time.high_s)} s"
    title = f"{words} {text.quantity(time.point_s, 's')} ({text.exact(time.point_s)} s, {interval})"
    title += f", T_SOL {text.quantity(bound, 's')} ({text.exact(bound)} s)"
    return Dot(series, bound, time.point_s, title, time.low_s, time.high_s)


def _heights(dots: Sequence[Dot]) -> list[float]:
    return [value for dot in dots for value in (dot.y, dot.low, dot.high) if value is not None and value > 0]


def _at_least_a_decade(values: Sequence[float]) -> list[float]:
    """``values`` with two around them, where they span less than one."""
    least, most = min(values), max(values)
    wider = (10 * least / most) ** 0.5
    return [*values, least / wider, most * wider] if wider > 1 else [*values]
