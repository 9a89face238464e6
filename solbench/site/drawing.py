"""The drawing of an operator graph: inputs, operations and outputs as boxes, data flowing from top to bottom.

Pure values to finished strings; ``site_templates/drawing.html`` draws them. Positions are in the units of the view box.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from solar.graph import OperatorGraph
from solbench.site import text
from solbench.site.calls import call, differing, earlier, short, some, types
from solbench.site.folding import WRITTEN, Folded, Step, fold, shares_storage
from solbench.site.layering import Placed, Size, passings, place

# More cannot be read as a drawing: boxes, edges, and places where an edge passes a layer. The published release needs
# 91, 91 and 43 at most. Boxes and passings together bound the recursion in grandalf's placement.
MOST_BOXES: Final = 120
MOST_EDGES: Final = 300
MOST_PASSINGS: Final = 500
MARGIN: Final = 10
# Advance of a character of a monospaced font, for each pixel of its size: 0.6 in most, a little more in some.
ADVANCE: Final = 0.615
NAME_PX: Final = 12
NOTE_PX: Final = 11
PADDING: Final = 9
LONGEST_NAME: Final = 30
LONGEST_NOTE: Final = 40
LONGEST_TITLE: Final = 400
MOST_TYPES: Final = 3
LINE_PX: Final = 15
# How far the second outline of a repeated operation stands out.
BEHIND: Final = 4


class Words(NamedTuple):
    """A line in a box: ``style`` is ``name``, ``note`` or ``number``; where its base line has its middle or start."""

    style: str
    x: str
    y: str
    words: str


class Box(NamedTuple):
    """``kind``: input, output, operation, view or write. ``behind``: corner of a second outline where it is repeated.

    ``round``: radius of its corners. The number in it is that of its row in :func:`solbench.site.calls.rows`.
    """

    kind: str
    x: str
    y: str
    width: str
    height: str
    round: str
    behind: tuple[str, str] | None
    lines: tuple[Words, ...]
    title: str


class Wire(NamedTuple):
    """``path``, ``head``: the d of an SVG path; ``label``: which results of the source, or ""; ``side`` of the head."""

    path: str
    head: str
    label: str
    side: str
    x: str
    y: str


@dataclass(frozen=True)
class Drawing:
    """What the template draws. ``reason``: why nothing is drawn, else "". ``legend``: (kind, words) of what occurs."""

    name: str
    title: str
    description: str
    reason: str
    width: str
    height: str
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    legend: tuple[tuple[str, str], ...]


def draw(graph: OperatorGraph, name: str, of: str, folded: Folded | None = None) -> Drawing:
    """The drawing of ``graph``; ``name`` begins the ids of its elements, ``of`` names the workload in its title.

    ``folded``: what :func:`solbench.site.folding.fold` makes of it, where that is known.

    A graph of more than :data:`solbench.site.folding.WHOLE` operations is folded; one that is then still over
    :data:`MOST_BOXES`, :data:`MOST_EDGES` or :data:`MOST_PASSINGS` is not drawn, and ``reason`` says so.
    """
    folded = fold(graph) if folded is None else folded
    title = f"Operator graph of {text.visible(of)}"
    description = _description(graph, folded)
    reason = _reason(graph, folded)
    if reason:
        return Drawing(name, title, description, reason, "0", "0", (), (), ())
    sketches = list(_sketches(graph, folded))
    pairs = tuple(folded.links)
    placed = place(tuple(sketch.size for sketch in sketches), pairs)
    boxes = [_box(sketch, *corner) for sketch, corner in zip(sketches, placed.boxes, strict=True)]
    wires = _wires(graph, folded, sketches, placed)
    return Drawing(
        name,
        title,
        description,
        "",
        _at(placed.width + 2 * MARGIN),
        _at(placed.height + 2 * MARGIN),
        tuple(boxes),
        tuple(wires),
        tuple(_legend(sketches, folded)),
    )


def _reason(graph: OperatorGraph, folded: Folded) -> str:
    sides = len(graph.inputs) + len(graph.outputs)
    boxes, edges = sides + len(folded.steps), len(folded.links)
    if not boxes:
        return "No input and no operation: nothing to draw."
    if boxes <= MOST_BOXES and edges <= MOST_EDGES and passings(boxes, tuple(folded.links)) <= MOST_PASSINGS:
        return ""
    once = f" ({text.grouped(len(folded.steps))} with repeats drawn once)" if folded.folds else ""
    count = text.plural(len(graph.nodes), "operation")
    ends = text.plural(sides, "input or output", "inputs and outputs")
    what = f"{count}{once}, {ends} and {text.plural(edges, 'edge')}"
    return f"{what}: too many to draw so that they can be read; the object lists them all."


@dataclass(frozen=True)
class _Sketch:
    """A box before it has a place."""

    kind: str
    number: str
    name: str
    notes: tuple[str, ...]
    title: str
    repeats: int

    @cached_property
    def size(self) -> Size:
        head = _length(self.name, NAME_PX) + (2 * _length(self.number + " ", NOTE_PX) if self.number else 0)
        widest = max([head, *(_length(note, NOTE_PX) for note in self.notes)])
        behind = BEHIND if self.repeats > 1 else 0
        return Size(int(widest) + 2 * PADDING + behind, 10 + LINE_PX * (1 + len(self.notes)) + behind)


def _sketches(graph: OperatorGraph, folded: Folded) -> Iterable[_Sketch]:
    """In the order of the vertices: inputs, steps, outputs."""
    read = {source for source, _ in folded.links}
    for number, (declared, name) in enumerate(graph.inputs):
        notes = [*types(graph, [(name,)])]
        if declared in graph.in_place:
            notes.append("may be written in place")
        if number not in read:
            notes.append("not read")
        yield _sketch("input", "", declared, notes, f"input {declared}: tensor {name}", 1)
    shares = shares_storage(graph)
    for number, step in enumerate(folded.steps):
        nodes = [graph.nodes[position] for position in step.nodes]
        notes = types(graph, [node.outputs for node in nodes])
        if len(notes) > MOST_TYPES:
            notes = [*notes[: MOST_TYPES - 1], f"and {text.grouped(len(notes) - MOST_TYPES + 1)} more"]
        kind = "view" if shares[step.nodes[0]] else "operation"
        if nodes[0].mutates:
            kind = "write"
            notes.append(f"writes {differing([', '.join(node.mutates) for node in nodes])} in place")
        if number in folded.carried:
            notes.append(f"reads {earlier(folded.carried[number])}")
        yield _sketch(kind, str(number + 1), short(nodes[0].op), notes, _title(graph, step), len(nodes))
    for declared, name in graph.outputs:
        yield _sketch("output", "", declared, types(graph, [(name,)]), f"output {declared}: tensor {name}", 1)


def _sketch(kind: str, number: str, name: str, notes: Sequence[str], title: str, repeats: int) -> _Sketch:
    words = f"{kind} {text.visible(name)}" if kind in ("input", "output") else text.visible(name)
    return _Sketch(
        kind,
        number,
        clip(words, LONGEST_NAME) + (f" × {text.grouped(repeats)}" if repeats > 1 else ""),
        tuple(clip(text.visible(line), LONGEST_NOTE) for line in notes),
        clip(text.visible(title), LONGEST_TITLE),
        repeats,
    )


def _title(graph: OperatorGraph, step: Step) -> str:
    first = call(graph.nodes[step.nodes[0]])
    return first if len(step.nodes) == 1 else f"first of {text.grouped(len(step.nodes))}: {first}"


def _box(sketch: _Sketch, left: float, top: float) -> Box:
    width, height = sketch.size.width, sketch.size.height
    behind = BEHIND if sketch.repeats > 1 else 0
    width, height = width - behind, height - behind
    left, top = left + MARGIN, top + MARGIN
    middle = _at(left + width / 2)
    lines = [Words("name", middle, _at(top + 5 + LINE_PX - 3), sketch.name)]
    if sketch.number:
        lines.append(Words("number", _at(left + 5), _at(top + 5 + LINE_PX - 4), sketch.number))
    for row, note in enumerate(sketch.notes, 2):
        lines.append(Words("note", middle, _at(top + 5 + LINE_PX * row - 4), note))
    return Box(
        sketch.kind,
        _at(left),
        _at(top),
        _at(width),
        _at(height),
        "12" if sketch.kind in ("input", "output") else "3",
        (_at(left + behind), _at(top + behind)) if behind else None,
        tuple(lines),
        sketch.title,
    )


def _wires(graph: OperatorGraph, folded: Folded, sketches: Sequence[_Sketch], placed: Placed) -> Iterable[Wire]:
    """Paths from the lower side of the source through its lanes to the upper side of the target."""
    pairs = list(folded.links)
    middle = [x + sketch.size.width / 2 for (x, _), sketch in zip(placed.boxes, sketches, strict=True)]
    arriving: dict[int, list[int]] = {}
    for number, (_, target) in enumerate(pairs):
        arriving.setdefault(target, []).append(number)
    for numbers in arriving.values():
        # From left to right as they come, so that no two cross before the box.
        numbers.sort(key=lambda number: (placed.lanes[number] or (middle[pairs[number][0]],))[-1])
    for number, (source, target) in enumerate(pairs):
        ports = arriving[target]
        width = sketches[target].size.width - 2 * PADDING
        end = placed.boxes[target][0] + PADDING + width * (ports.index(number) + 1) / (len(ports) + 1)
        start = placed.boxes[source][1] + sketches[source].size.height
        lower = placed.layers[placed.rank[source]][1]
        path = [f"M{_at(middle[source] + MARGIN)} {_at(start + MARGIN)}"]
        if lower > start:
            path.append(f"V{_at(lower + MARGIN)}")
        x, y = middle[source], lower
        below = placed.layers[placed.rank[source] + 1 :]
        for lane, (top, bottom) in zip((*placed.lanes[number], end), below, strict=False):
            bend = (y + top) / 2
            path.append("C" + " ".join(_at(value + MARGIN) for value in (x, bend, lane, bend, lane, top)))
            x, y = lane, top
            if top < placed.boxes[target][1]:
                path.append(f"V{_at(bottom + MARGIN)}")
                y = bottom
        label = _label(graph, folded, source, folded.links[source, target])
        end, y = end + MARGIN, y + MARGIN
        side = "left" if ports[0] == number and len(ports) > 1 else "right"
        beside = end - 5 if side == "left" else end + 5
        yield Wire(" ".join(path), f"M{_at(end)} {_at(y)}l-3.5-7h7z", label, side, _at(beside), _at(y - 3))


def _label(graph: OperatorGraph, folded: Folded, source: int, slots: tuple[int, ...]) -> str:
    """Which results of an operation with several: ``1``, ``0, 2``, ``0 … 15``; nothing where there is only one."""
    number = source - len(graph.inputs)
    if not 0 <= number < len(folded.steps):
        return ""
    results = graph.nodes[folded.steps[number].nodes[0]].outputs
    slots = tuple(slot for slot in slots if slot != WRITTEN)
    if len(results) - results.count(None) < 2:
        return ""
    if len(slots) > 2 and slots[-1] - slots[0] == len(slots) - 1:
        return f"{slots[0]} … {slots[-1]}"
    return clip(", ".join(map(str, slots)), 12)


def _legend(sketches: Sequence[_Sketch], folded: Folded) -> Iterable[tuple[str, str]]:
    kinds = {sketch.kind for sketch in sketches}
    words = {
        "input": "input or output",
        "operation": "operation: its results lie in new storage",
        "view": "view: its results share storage that was there before",
        "write": "writes a tensor in place",
    }
    for kind, said in words.items():
        if kind in kinds or (kind == "input" and "output" in kinds):
            yield kind, said
    if folded.folds:
        yield "repeat", "× n: operations at one place of n repeats, drawn once; * is an extent that differs among them"


def _description(graph: OperatorGraph, folded: Folded) -> str:
    """For those who do not see the drawing, and for those who do."""
    sides = [
        f"{text.plural(len(pairs), kind)} ({some([text.visible(declared) for declared, _ in pairs])})"
        if pairs
        else f"no {kind}"
        for kind, pairs in (("input", graph.inputs), ("output", graph.outputs))
    ]
    parts = [f"{text.plural(len(graph.nodes), 'operation')} from {sides[0]} to {sides[1]}"]
    for length, repeats in folded.folds:
        parts.append(f"{text.plural(repeats, 'repeat')} of {text.plural(length, 'operation')} drawn once")
    if graph.scalars:
        scalars = some([f"{text.visible(key)} = {value}" for key, value in sorted(graph.scalars.items())])
        parts.append(f"Python scalars taken as constants: {scalars}")
    return "; ".join(parts) + ". Numbers are those of the table of operations."


def clip(words: str, length: int) -> str:
    return words if len(words) <= length else words[: length - 1] + "…"


def _length(words: str, size: int) -> float:
    """Estimated width in pixels; characters of East Asian scripts take two columns."""
    if words.isascii():
        return len(words) * size * ADVANCE
    columns = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in words)
    return columns * size * ADVANCE


def _at(value: float) -> str:
    return f"{value:.1f}"
