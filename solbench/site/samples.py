"""Geometry of the sample plot: every sample of one trace, process by process, by both witnesses.

Each process has two lanes of ticks on one time axis: the event time, its own word, and the orchestrator's clock.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from solbench.errors import SolbenchError
from solbench.model.trace import SampleSet, Timing
from solbench.site import text
from solbench.site.axis import Axis, clip, linear_axis, log_axis

WIDTH = 760
LEFT = 142
RIGHT = 26
TOP = 30
FOOT = 42
LANE = 13
GAP = 5
HEAD = 22
WITNESSES = ("event", "clock")
# A tick is one unit wide; ticks that touch are one block, which looks the same.
_HALF = 5


@dataclass(frozen=True)
class Lane:
    """Samples of one process by one witness. ``ticks``: a path with a stroke for every block of samples; ``median``:
    where it stands, or "".
    """

    witness: str
    series: str
    y: str
    ticks: str
    median: str
    top: str
    bottom: str
    title: str


@dataclass(frozen=True)
class Process:
    """A band with the lanes of both witnesses."""

    label: str
    top: str
    height: int
    middle: str
    lanes: tuple[Lane, ...]


@dataclass(frozen=True)
class Side:
    """Candidate or baseline: its heading, and its processes."""

    label: str
    y: str
    processes: tuple[Process, ...]


@dataclass(frozen=True)
class Strip:
    """What the template draws. ``bound``: where T_SOL stands, or "" where the axis does not reach it."""

    name: str
    title: str
    description: str
    axis: str
    width: int
    height: int
    left: int
    right: int
    top: int
    foot: int
    ticks: tuple[tuple[str, str], ...]
    minor: tuple[str, ...]
    sides: tuple[Side, ...]
    bound: str
    bound_title: str


def strip(
    name: str, title: str, timing: Timing, candidate: str, series: str = "a", t_sol_s: float | None = None
) -> Strip | None:
    """All samples of ``timing`` over time, on a log axis where they spread over more than a decade.

    ``candidate``: name of the solution; ``series`` its colour. The axis is that of the samples; it reaches out to
    T_SOL only where that is near, else words say where it is. Samples that are not positive are counted in words.
    ``None`` where no sample is positive. Raises :class:`SolbenchError` for a NaN or an infinity.
    """
    sets = [*timing.candidate, *timing.baseline]
    every = [value for samples in sets for witness in WITNESSES for value in _times(samples, witness)]
    if not all(math.isfinite(value) for value in (*every, t_sol_s or 0.0)):
        raise SolbenchError(f"site: {title}: a sample is not a finite number")
    positive = [value for value in every if value > 0]
    if not positive:
        return None
    time, bound = _axis(positive, t_sol_s)
    top = TOP
    sides = []
    for words, kind, found in (
        (f"candidate: {candidate}", series, timing.candidate),
        ("baseline", "base", timing.baseline),
    ):
        head, top = top, top + HEAD
        processes = []
        for samples in found:
            processes.append(_process(time, samples, kind, top))
            top += len(WITNESSES) * LANE + 2 * GAP
        sides.append(Side(clip(words, 40), f"{head + 15}", tuple(processes)))
    foot = top + 4
    bound_words = "" if t_sol_s is None else f"T_SOL {text.quantity(t_sol_s, 's')} ({text.exact(t_sol_s)} s)"
    return Strip(
        name, title, _description(timing, len(every) - len(positive), t_sol_s, bool(bound)),
        "time, log axis" if time.log else "time", WIDTH, foot + FOOT, LEFT, WIDTH - RIGHT, TOP, foot,
        ticks=tuple((f"{_x(time, value):.1f}", label) for value, label in time.ticks),
        minor=tuple(f"{_x(time, value):.1f}" for value in time.minor),
        sides=tuple(sides), bound=bound, bound_title=bound_words,
    )  # fmt: skip


def _description(timing: Timing, left_out: int, t_sol_s: float | None, drawn: bool) -> str:
    counts = [len(samples.event_s) for samples in timing.candidate]
    each = f"{counts[0]}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
    words = [
        f"{text.plural(sum(counts), 'sample')} of each side: {text.plural(len(counts), 'process', 'processes')} with "
        f"{each}, taken in turns.",
        "The event time is what the process says of a sample; the clock is the orchestrator's, around the whole call, "
        "and so is later by what a call costs. The witnesses agree where they differ by as much in every process.",
    ]
    if left_out:
        words.append(f"{text.plural(left_out, 'time')} not above 0 not drawn.")
    if t_sol_s is None:
        words.append("There is no bound.")
    elif drawn:
        words.append("The line across all lanes is the bound.")
    else:
        words.append(f"The bound T_SOL, {text.quantity(t_sol_s, 's')}, is off the axis.")
    return " ".join(words)


def _axis(positive: Sequence[float], t_sol_s: float | None) -> tuple[Axis, str]:
    """The axis of the samples, with the bound where that takes no more than a quarter of it; and the bound's place."""
    make = log_axis if max(positive) > 10 * min(positive) else linear_axis
    time = make(positive, "s")
    if t_sol_s is None or t_sol_s <= 0:
        return time, ""
    if -0.25 <= time.place(t_sol_s) <= 1.25:
        time = make([*positive, t_sol_s], "s")
    return time, f"{_x(time, t_sol_s):.1f}" if time.holds(t_sol_s) else ""


def _process(time: Axis, samples: SampleSet, series: str, top: int) -> Process:
    lanes = []
    for number, witness in enumerate(WITNESSES):
        middle = top + GAP + LANE * number + LANE / 2
        values = _times(samples, witness)
        title = f"process {samples.process}, {witness}: no samples"
        median = ""
        if values:
            found = statistics.median(values)
            title = (
                f"process {samples.process}, {witness}: median {text.quantity(found, 's')} ({text.exact(found)} s) of "
                f"{text.plural(len(values), 'sample')}, {text.exact(min(values))} – {text.exact(max(values))} s"
            )
            median = f"{_x(time, found):.1f}" if time.holds(found) else ""
        ticks = _ticks([_x(time, value) for value in values if value > 0], middle)
        reach = LANE / 2
        lanes.append(
            Lane(
                witness, series, f"{middle:.1f}", ticks, median, f"{middle - reach:.1f}", f"{middle + reach:.1f}", title
            )
        )
    height = len(WITNESSES) * LANE + 2 * GAP
    return Process(f"process {samples.process}", str(top), height, f"{top + height / 2:.1f}", tuple(lanes))


def _ticks(places: Sequence[float], y: float) -> str:
    """A path of horizontal strokes, one a block of touching ticks; in tenths of a unit, so that no rounding adds up."""
    tenths = sorted({round(10 * place) for place in places})
    blocks = list(_blocks(tenths))
    if not blocks:
        return ""
    start, end = blocks[0]
    path = [f"M{_tenths(start)} {y:.1f}h{_tenths(end - start)}"]
    for (_, before), (start, end) in pairwise(blocks):
        path.append(f"m{_tenths(start - before)} 0h{_tenths(end - start)}")
    return "".join(path)


def _blocks(tenths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(start, end) of the union of the ticks, each from ``_HALF`` before its place to ``_HALF`` after it."""
    first = last = None
    for place in tenths:
        if last is not None and first is not None and place - _HALF > last:
            yield first, last
            first = None
        first = place - _HALF if first is None else first
        last = place + _HALF
    if first is not None and last is not None:
        yield first, last


def _tenths(count: int) -> str:
    whole, rest = divmod(count, 10)
    return f"{whole}.{rest}" if rest else f"{whole}"


def _x(time: Axis, value: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * time.place(value)


def _times(samples: SampleSet, witness: str) -> tuple[float, ...]:
    return samples.event_s if witness == "event" else samples.clock_s
