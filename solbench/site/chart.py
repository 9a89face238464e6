"""Geometry of the charts: dots with intervals in horizontal lanes over a log time axis or a score axis.

Pure numbers to pure positions; the template ``chart.svg`` draws them. Positions are in the units of the view box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from solbench.site.axis import clip, log_axis

WIDTH = 860
LEFT = 190
RIGHT = 24
LANE = 15
GAP = 13
AXIS = 34


@dataclass(frozen=True)
class Point:
    """A value to draw; ``series`` picks its shape and colour, ``low`` and ``high`` its interval."""

    series: str
    value: float
    title: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Line:
    """One row: its label, a smaller note below, what spans the row (the bound), and points by lane."""

    label: str
    note: str
    across: Point | None
    lanes: tuple[tuple[Point, ...], ...]


@dataclass(frozen=True)
class Mark:
    series: str
    x: str
    y: str
    low: str | None
    high: str | None
    title: str


@dataclass(frozen=True)
class Row:
    """``top`` and ``height`` of the row's band; the bound is drawn from ``first`` to ``last``."""

    label: str
    note: str
    top: str
    height: str
    middle: str
    first: str
    last: str
    across: Mark | None
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Chart:
    """What the template draws. ``legend``: (series, words) in order."""

    name: str
    title: str
    description: str
    axis: str
    width: int
    height: int
    left: int
    right: int
    foot: int
    ticks: tuple[tuple[str, str], ...]
    minor: tuple[str, ...]
    rows: tuple[Row, ...]
    legend: tuple[tuple[str, str], ...]


def time_chart(
    name: str, title: str, description: str, lines: Sequence[Line], legend: Sequence[tuple[str, str]]
) -> Chart | None:
    """Seconds on a labelled log axis; ``None`` where nothing positive is to be drawn."""
    values = [value for line in lines for value in _values(line) if value > 0]
    if not values:
        return None
    time = log_axis(values, "s")
    words = (name, title, description, "time, log axis")
    return _chart(words, time.place, time.ticks, time.minor, lines, legend)


def score_chart(
    name: str, title: str, description: str, lines: Sequence[Line], legend: Sequence[tuple[str, str]]
) -> Chart | None:
    """S from 0 to 1."""
    if not any(True for line in lines for _ in _values(line)):
        return None
    ticks = [(0.0, "0"), (0.25, "0.25"), (0.5, "0.5"), (0.75, "0.75"), (1.0, "1")]
    return _chart((name, title, description, "score S"), lambda value: value, ticks, [], lines, legend)


def _chart(
    words: tuple[str, str, str, str],
    place: Callable[[float], float],
    ticks: Sequence[tuple[float, str]],
    steps: Sequence[float],
    lines: Sequence[Line],
    legend: Sequence[tuple[str, str]],
) -> Chart:
    """``words``: name, title, description, axis. ``place`` maps a value to [0, 1] along the axis."""

    def x(value: float) -> str:
        return f"{LEFT + (WIDTH - LEFT - RIGHT) * place(value):.1f}"

    def mark(point: Point, y: float) -> Mark:
        low, high = (None if end is None else x(end) for end in (point.low, point.high))
        return Mark(point.series, x(point.value), f"{y:.1f}", low, high, point.title)

    rows = []
    top = 8.0
    for line in lines:
        height = max(len(line.lanes), 2 if line.note else 1) * LANE + GAP
        first = top + (height - LANE * len(line.lanes)) / 2 + LANE / 2
        marks = [mark(point, first + LANE * lane) for lane, points in enumerate(line.lanes) for point in points]
        rows.append(
            Row(
                label=clip(line.label, 26),
                note=clip(line.note, 34),
                top=f"{top:.1f}",
                height=f"{height:.1f}",
                middle=f"{top + height / 2:.1f}",
                first=f"{top + 4:.1f}",
                last=f"{top + height - 4:.1f}",
                across=None if line.across is None else mark(line.across, top + height / 2),
                marks=tuple(marks),
            )
        )
        top += height
    return Chart(
        *words,
        width=WIDTH,
        height=int(top) + AXIS,
        left=LEFT,
        right=WIDTH - RIGHT,
        foot=int(top),
        ticks=tuple((x(value), label) for value, label in ticks),
        minor=tuple(x(step) for step in steps),
        rows=tuple(rows),
        legend=tuple(legend),
    )


def _values(line: Line) -> Iterator[float]:
    for point in (*([line.across] if line.across else []), *(point for lane in line.lanes for point in lane)):
        yield from (value for value in (point.value, point.low, point.high) if value is not None)
