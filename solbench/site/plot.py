"""Geometry of the plots over two log axes: dots with vertical intervals, and straight lines with labels.

Pure numbers to pure positions; the template ``plot.svg`` draws them. Positions are in the units of the view box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from solbench.errors import SolbenchError
from solbench.site import text
from solbench.site.axis import Axis, spread

WIDTH = 760
LEFT = 78
TOP = 46
AREA = 380
FOOT = 44
# More dots than this are drawn as one path a series, without titles.
DENSE = 150
# Outlines of the template's shapes, smaller, from the middle of the mark.
_OUTLINES = {
    "base": "m-4 0a4 4 0 108 0 4 4 0 10-8 0",
    "a": "m-2.5 0a2.5 2.5 0 105 0 2.5 2.5 0 10-5 0",
    "b": "m-2.5-2.5h5v5h-5z",
    "c": "m0-3.5l3.5 3.5-3.5 3.5-3.5-3.5z",
    "d": "m0-3.2l3.2 5.8h-6.4z",
    "e": "m0 3.2l3.2-5.8h-6.4z",
    "f": "m-3-1h2v-2h2v2h2v2h-2v2h-2v-2h-2z",
    "sol": "m-.9-3.5h1.8v7h-1.8z",
}


_Place = tuple[float, float]


@dataclass(frozen=True)
class Dot:
    """A point to draw; ``low`` and ``high``: the interval of ``y``. ``series`` picks shape and colour."""

    series: str
    x: float
    y: float
    title: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Guide:
    """A line between two (x, y), straight on log axes and drawn as far as it lies in the plot.

    ``label`` and the smaller ``note`` stand at its upper right end, or, where ``along``, in its middle.
    """

    kind: str
    start: tuple[float, float]
    end: tuple[float, float]
    label: str
    note: str = ""
    title: str = ""
    along: bool = False


@dataclass(frozen=True)
class Mark:
    series: str
    x: str
    y: str
    low: str | None
    high: str | None
    title: str


@dataclass(frozen=True)
class Cloud:
    """All dots of a series as one path, and their intervals as another."""

    series: str
    shapes: str
    intervals: str


@dataclass(frozen=True)
class Label:
    """``turn``: an SVG transform, or ""."""

    x: str
    y: str
    anchor: str
    turn: str
    words: str
    note: str


@dataclass(frozen=True)
class Line:
    """``leader``: path from its end to its label, or ""."""

    kind: str
    x1: str
    y1: str
    x2: str
    y2: str
    leader: str
    title: str
    label: Label


@dataclass(frozen=True)
class Plot:
    """What the template draws. ``legend``: (series, words) in order; either ``marks`` or ``clouds`` is empty."""

    name: str
    title: str
    description: str
    x_name: str
    y_name: str
    width: int
    height: int
    left: int
    right: int
    top: int
    foot: int
    x_ticks: tuple[tuple[str, str], ...]
    y_ticks: tuple[tuple[str, str], ...]
    x_minor: tuple[str, ...]
    y_minor: tuple[str, ...]
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...]
    clouds: tuple[Cloud, ...]
    legend: tuple[tuple[str, str], ...]


def positive(dots: Sequence[Dot]) -> tuple[list[Dot], int]:
    """The dots that have a place on log axes, and how many have none. Raises for a NaN or an infinity."""
    for dot in dots:
        if not all(math.isfinite(v) for v in (dot.x, dot.y, dot.low, dot.high) if v is not None):
            raise SolbenchError(f"site: not a finite point of a plot: {dot.title}")
    drawn = [dot for dot in dots if dot.x > 0 and dot.y > 0]
    return drawn, len(dots) - len(drawn)


def draw(
    words: tuple[str, str, str, str, str],
    axes: tuple[Axis, Axis],
    dots: Sequence[Dot],
    guides: Sequence[Guide],
    legend: Sequence[tuple[str, str]],
    margin: int,
) -> Plot:
    """``words``: name, title, description, names of the axes. ``margin``: room for labels on the right.

    Up to :data:`DENSE` dots have a mark and a title each, dots at one place share them; more are drawn as one path a
    series, the first of ``legend`` on top, and the description says so.
    """
    name, title, description, x_name, y_name = words
    area = _Area(*axes, right=WIDTH - margin, foot=TOP + AREA)
    dense = len(dots) > DENSE
    if dense:
        description = joined(
            description, "The points are too many for a title each; the page of each problem holds their numbers."
        )
    return Plot(
        name, title, description, x_name, y_name,
        width=WIDTH, height=area.foot + FOOT, left=LEFT, right=area.right, top=TOP, foot=area.foot,
        x_ticks=tuple((f"{area.x(value):.1f}", label) for value, label in area.across.ticks),
        y_ticks=tuple((f"{area.y(value):.1f}", label) for value, label in area.up.ticks),
        x_minor=tuple(f"{area.x(value):.1f}" for value in area.across.minor),
        y_minor=tuple(f"{area.y(value):.1f}" for value in area.up.minor),
        lines=tuple(_lines(area, guides)),
        marks=() if dense else tuple(_marks(area, dots)),
        clouds=tuple(_clouds(area, dots, legend)) if dense else (),
        legend=tuple(legend),
    )  # fmt: skip


def joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


@dataclass(frozen=True)
class _Area:
    """Where values stand between ``LEFT`` and ``right``, ``foot`` and ``TOP``."""

    across: Axis
    up: Axis
    right: int
    foot: int

    def x(self, value: float) -> float:
        return LEFT + (self.right - LEFT) * self.across.place(value)

    def y(self, value: float) -> float:
        return self.foot - (self.foot - TOP) * self.up.place(value)

    def mark(self, dot: Dot) -> Mark:
        """An interval that is no longer than a rounded position is none."""
        y = f"{self.y(dot.y):.1f}"
        low, high = (None if end is None else f"{self.y(max(end, self.up.low)):.1f}" for end in (dot.low, dot.high))
        return Mark(dot.series, f"{self.x(dot.x):.1f}", y, low if low != high else None, high, dot.title)


def _marks(area: _Area, dots: Sequence[Dot]) -> list[Mark]:
    """Marks alike in all but their titles are one, with every title."""
    alike: dict[Mark, list[str]] = {}
    for dot in dots:
        alike.setdefault(replace(area.mark(dot), title=""), []).append(text.visible(dot.title))
    return [replace(mark, title=text.Lines("\n".join(titles))) for mark, titles in alike.items()]


def _clouds(area: _Area, dots: Sequence[Dot], legend: Sequence[tuple[str, str]]) -> Iterator[Cloud]:
    for series, _ in reversed(legend):
        outline = _OUTLINES[series]
        # Marks at one place are one.
        marks = dict.fromkeys(replace(area.mark(dot), title="") for dot in dots if dot.series == series)
        shapes = dict.fromkeys((mark.x, mark.y) for mark in marks)
        if shapes:
            yield Cloud(
                series,
                "".join(f"M{x} {y}{outline}" for x, y in shapes),
                "".join(f"M{mark.x} {mark.low}V{mark.high}" for mark in marks if mark.low is not None),
            )


def _lines(area: _Area, guides: Sequence[Guide]) -> list[Line]:
    """The guides as far as they lie in the area: labels along them, or right of or above where they leave it."""
    found = [(guide, *ends) for guide in guides if (ends := _clipped(area, guide)) is not None]
    along = [_along(*each) for each in found if each[0].along]
    leaving = [each for each in found if not each[0].along]
    return [
        *along,
        *_beside(area, [each for each in leaving if each[2][0] > area.right - 0.5]),
        *_above(area, [each for each in leaving if each[2][0] <= area.right - 0.5]),
    ]


def _along(guide: Guide, start: _Place, end: _Place) -> Line:
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    angle = math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))
    turn = f"rotate({angle:.1f} {x:.1f} {y:.1f}) translate(0 -13)"
    return _line(guide, start, end, "", Label(f"{x:.1f}", f"{y:.1f}", "middle", turn, guide.label, guide.note))


def _beside(area: _Area, found: Sequence[tuple[Guide, _Place, _Place]]) -> Iterator[Line]:
    noted = any(guide.note for guide, _, _ in found)
    rows = spread([y for _, _, (_, y) in found], 31 if noted else 15, TOP + 4, area.foot - (14 if noted else 4))
    for (guide, start, end), y in zip(found, rows):
        leader = f"M{end[0]:.1f} {end[1]:.1f}L{end[0] + 9:.1f} {y:.1f}"
        baseline = y if guide.note else y + 4
        label = Label(f"{end[0] + 13:.1f}", f"{baseline:.1f}", "start", "", guide.label, guide.note)
        yield _line(guide, start, end, leader, label)


def _above(area: _Area, found: Sequence[tuple[Guide, _Place, _Place]]) -> Iterator[Line]:
    columns = spread([x for _, _, (x, _) in found], 36, LEFT + 12, area.right)
    for (guide, start, end), x in zip(found, columns):
        leader = f"M{end[0]:.1f} {end[1]:.1f}L{x:.1f} {TOP - 6}"
        yield _line(guide, start, end, leader, Label(f"{x:.1f}", f"{TOP - 10}", "middle", "", guide.label, guide.note))


def _line(guide: Guide, start: _Place, end: _Place, leader: str, label: Label) -> Line:
    x1, y1, x2, y2 = (f"{value:.1f}" for value in (*start, *end))
    return Line(guide.kind, x1, y1, x2, y2, leader, guide.title, label)


def _clipped(area: _Area, guide: Guide) -> tuple[_Place, _Place] | None:
    """Both ends of the part inside the area, by Liang and Barsky; ``None`` where no part is."""
    (x1, y1), (x2, y2) = ((area.x(x), area.y(y)) for x, y in (guide.start, guide.end))
    first, last = 0.0, 1.0
    for start, way, low, high in ((x1, x2 - x1, LEFT, area.right), (y1, y2 - y1, TOP, area.foot)):
        if way == 0:
            if not low <= start <= high:
                return None
            continue
        enters, leaves = sorted(((low - start) / way, (high - start) / way))
        first, last = max(first, enters), min(last, leaves)
    if first >= last:
        return None
    return (
        (x1 + first * (x2 - x1), y1 + first * (y2 - y1)),
        (x1 + last * (x2 - x1), y1 + last * (y2 - y1)),
    )
