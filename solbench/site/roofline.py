"""Rooflines: operations a second over operations a byte, under the memory's and the engines' rates.

The operations of a workload are those that its bound charges to the engine that needs longest, and its bytes those
that the bound charges to memory. So every bound stands where min(bytes, engine) says: on the slope where memory binds,
on the engine's roof where that binds (between two roofs, where the engine works in two modes). Counting the reference's
floating-point operations instead would put a bound above its roof where a quicker algorithm does fewer of them, and
leave out whatever is not a contraction. Form of the plot: Williams, Waterman and Patterson, "Roofline", 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from solbench.errors import IntegrityError
from solbench.model.score import Estimate
from solbench.site import text
from solbench.site.axis import clip, log_axis
from solbench.site.plot import Dot, Guide, Plot, draw, joined, positive
from solbench.site.records import Book, BoundResult, ProblemRecords, WorkloadRecords


@dataclass(frozen=True)
class Work:
    """What a bound charges: ``operations`` of ``engine`` in ``modes``, ``bytes`` of memory, ``t_sol_s`` for both."""

    engine: str
    modes: tuple[str, ...]
    operations: float
    bytes: float
    t_sol_s: float

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.operations / self.bytes


@dataclass(frozen=True)
class Roof:
    """Operations a second of one engine; modes of the same rate share a roof."""

    engine: str
    modes: tuple[str, ...]
    rate: float


def charged(result: BoundResult) -> Work | None:
    """``None`` where the bound charges no operation, no byte, or no time: such a workload has no intensity."""
    engines: dict[str, list[tuple[float, float, str]]] = {}
    for term in result.compute:
        engines.setdefault(term.engine, []).append((term.seconds, term.ops, term.mode))
    memory = result.memory
    # As the bound does: where anything moves, at least a byte is charged.
    size = max(memory.live_bytes - memory.absorbed_write_bytes, 1.0) if memory.live_bytes > 0 else 0.0
    if not engines or not size or not result.t_sol_s:
        return None
    engine = max(engines, key=lambda name: (math.fsum(seconds for seconds, _, _ in engines[name]), name))
    operations = math.fsum(ops for _, ops, _ in engines[engine])
    modes = tuple(mode for _, _, mode in engines[engine])
    return Work(engine, modes, operations, size, result.t_sol_s) if operations else None


def roofs(results: Sequence[BoundResult]) -> list[Roof]:
    """A roof for every rate that occurs in the bounds, the highest first."""
    found: dict[tuple[float, str], set[str]] = {}
    for term in (term for result in results for term in result.compute):
        found.setdefault((term.rate_per_s, term.engine), set()).add(term.mode)
    return [Roof(engine, tuple(sorted(modes)), rate) for (rate, engine), modes in sorted(found.items(), reverse=True)]


def roofline(
    name: str,
    title: str,
    results: Sequence[BoundResult],
    dots: Sequence[Dot],
    legend: Sequence[tuple[str, str]],
    note: str = "",
) -> Plot | None:
    """``results``: all bounds of one machine, which give memory's slope and the roofs; ``dots``: see :func:`places`.

    ``None`` where no bound has operations. Raises :class:`IntegrityError` where the bounds are of two memories.
    """
    works = [work for result in results if (work := charged(result)) is not None]
    dots, left_out = positive(dots)
    if not works or not dots:
        return None
    bandwidths = {result.memory.bandwidth_bytes_per_s for result in results}
    if len(bandwidths) != 1:
        raise IntegrityError(f"site: {title}: the bounds state {len(bandwidths)} memory bandwidths; derive them anew")
    bandwidth = bandwidths.pop()
    rates = roofs(results)
    # Every ridge is in the plot, with some of its roof, and enough of the slope for a label.
    ridges = [roof.rate / bandwidth for roof in rates]
    furthest = max(*(dot.x for dot in dots), ridges[0] * 1.5)
    nearest = ridges[-1] / max(3.0, (furthest / ridges[-1]) ** 0.5)
    x = log_axis([*(dot.x for dot in dots), nearest, furthest], "op/B")
    heights = [v for dot in dots for v in (dot.y, dot.high) if v is not None]
    y = log_axis([*heights, x.low * bandwidth * 1.15, rates[0].rate * 1.3], "op/s")
    guides = [
        Guide(
            "roof", (x.low, x.low * bandwidth), (ridges[0], rates[0].rate),
            f"memory, {text.quantity(bandwidth, 'B/s')}", title=f"memory, {text.exact(bandwidth)} B/s", along=True,
        )
    ]  # fmt: skip
    for roof, ridge in zip(rates, ridges):
        modes = text.listed(roof.modes)
        rate = f"{text.quantity(roof.rate, 'op/s')}, {roof.engine}"
        guides.append(
            Guide(
                "roof", (ridge, roof.rate), (x.high, roof.rate), clip(rate, 26), clip(modes, 28),
                f"{roof.engine}, {modes}: {text.exact(roof.rate)} op/s",
            )
        )  # fmt: skip
    description = (
        "Across are operations a byte, up are operations a second. The slope is the memory's bandwidth, the level "
        "lines are the engines' rates. Bars are the bounds."
    )
    if any(dot.series != "sol" for dot in dots):
        description += (
            " Straight below its bound stand a workload's times: rings are the baseline, filled shapes the solutions."
        )
    description += (
        " Counted are the operations that a bound charges to the engine that needs longest (a multiply-add is two), "
        "and the bytes that it charges to memory, whatever a kernel executes."
    )
    if any(len(work.modes) > 1 for work in works):
        description += " Where an engine works in several modes, a bound may lie between their lines."
    without = len(results) - len(works)
    if without:
        description += (
            f" {text.grouped(without)} of {text.plural(len(results), 'bound')} {'has' if without == 1 else 'have'} "
            f"no operation to count or no byte to move, and {'is' if without == 1 else 'are'} not drawn."
        )
    if left_out:
        description += f" {text.plural(left_out, 'time')} not drawn: not above 0."
    words = (name, title, joined(description, note), "operations a byte, log axis", "operations a second, log axis")
    return draw(words, (x, y), dots, guides, legend, 196)


def places(label: str, work: Work, times: Sequence[tuple[str, str, Estimate]]) -> Iterator[Dot]:
    """Dots of one workload: its ``times`` as (series, words, time), and on top its bound."""
    x = work.intensity
    counted = f"{text.exact(work.operations)} op on {work.engine}, {text.exact(work.bytes)} B"
    for series, words, time in times:
        if time.point_s <= 0:
            yield Dot(series, x, 0.0, f"{label}, {words}")
            continue
        y = work.operations / time.point_s
        low, high = (work.operations / end if end > 0 else None for end in (time.high_s, time.low_s))
        title = f"{label}, {words} {text.quantity(y, 'op/s')}: {counted} in {text.exact(time.point_s)} s"
        yield Dot(series, x, y, title, low if high is not None else None, high)
    y = work.operations / work.t_sol_s
    title = f"{label}, bound: {text.quantity(y, 'op/s')} at {text.quantity(x, 'op/B')}: {counted}"
    yield Dot("sol", x, y, f"{title} in T_SOL {text.exact(work.t_sol_s)} s")


def problem_roofline(
    problem: ProblemRecords, target: str, labels: Mapping[str, str], series: Mapping[str, str], name: str
) -> Plot | None:
    """Bounds and times of one problem on ``target``. ``labels``: of the workloads by uuid; ``series`` by solution."""
    named = [(labels[workload.uuid], workload) for workload in problem.workloads]
    return _of(named, target, series, name, f"Roofline of {problem.record.value.name} on {target}")


def target_roofline(book: Book, target: str, series: Mapping[str, str], name: str) -> Plot | None:
    """Bounds of all workloads on ``target``, with the times of the solutions in ``series``, which may be empty."""
    named = [(f"{problem.record.value.name} {workload.uuid}", workload) for problem, workload in book.workloads()]
    return _of(named, target, series, name, f"Roofline of all workloads on {target}")


def _of(
    named: Sequence[tuple[str, WorkloadRecords]], target: str, series: Mapping[str, str], name: str, title: str
) -> Plot | None:
    results: list[BoundResult] = []
    dots: list[Dot] = []
    measured = set()
    for label, workload in named:
        record = workload.bounds.get(target)
        if record is None or record.value.result is None:
            continue
        results.append(record.value.result)
        work = charged(record.value.result)
        times: list[tuple[str, str, Estimate]] = []
        for score in (found.value for found in workload.scores.get(target, ())):
            if score.solution in series:
                # The baseline comes last, as a ring on top of a candidate that is as fast.
                if score.t_k is not None:
                    times.append((series[score.solution], f"{score.solution}:", score.t_k))
                if score.t_b is not None:
                    times.append(("base", f"baseline beside {score.solution}:", score.t_b))
        if work is not None:
            measured |= {kind for kind, _, _ in times}
            dots += list(places(label, work, times))
    legend = [("base", "T_b, baseline"), *((kind, f"T_k, {solution}") for solution, kind in series.items())]
    shown = [("sol", "T_SOL, the bound"), *(entry for entry in legend if entry[0] in measured)]
    return roofline(name, title, results, dots, shown)
