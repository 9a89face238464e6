"""The operations of an operator graph in words: a table of what its drawing shows, and of what a drawing leaves out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from solar.graph import Node, OperatorGraph, Ref, number_text
from solbench.site import text
from solbench.site.folding import Folded, fold, shares_storage, tensors_in

MOST_ROWS: Final = 200
# An argument of more elements is told by their number.
LONGEST_LIST: Final = 8
LONGEST_WORD: Final = 60
MOST_ARGUMENTS: Final = 24
DIFFERS: Final = "…"


class Row(NamedTuple):
    """One operation, or one repeated: then what differs among the repeats ends in "…" behind that of the first.

    ``number``: as in the drawing. ``storage``: new, a view of which tensor's, or what is written in place.
    """

    number: str
    name: str
    op: str
    times: str
    reads: str
    constants: str
    writes: str
    types: str
    storage: str


@dataclass(frozen=True)
class Rows:
    """``count``: what the table shows, in words, always with n of m where it is cut."""

    rows: tuple[Row, ...]
    count: str
    cut: bool


def rows(graph: OperatorGraph, folded: Folded | None = None) -> Rows:
    """The operations in execution order, ``folded`` as the drawing is (:func:`solbench.site.folding.fold`)."""
    folded = fold(graph) if folded is None else folded
    shares = shares_storage(graph)
    owners: dict[int, str] = {}
    for _, name in graph.inputs:
        owners.setdefault(graph.tensors[name].storage, name)
    for node in graph.nodes:
        for output in node.outputs:
            if output is not None:
                owners.setdefault(graph.tensors[output].storage, output)
    found = []
    for number, step in enumerate(folded.steps[:MOST_ROWS]):
        nodes = [graph.nodes[position] for position in step.nodes]
        storage = _storage(graph, nodes, shares[step.nodes[0]], owners)
        found.append(_row(graph, number, nodes, storage, folded.carried.get(number, ())))
    shown = sum(len(step.nodes) for step in folded.steps[:MOST_ROWS])
    total, cut = len(graph.nodes), len(folded.steps) > MOST_ROWS
    if cut:
        count = f"the first {text.grouped(shown)} of {text.plural(total, 'operation')}; the object lists them all"
    elif folded.folds:
        count = f"{text.plural(total, 'operation')} in {text.plural(len(found), 'row')}: what repeats shares a row"
    else:
        count = text.plural(total, "operation")
    return Rows(tuple(found), count, cut)


def _row(graph: OperatorGraph, number: int, nodes: Sequence[Node], storage: str, carried: Sequence[int]) -> Row:
    reads = [*_arguments(nodes, tensors=True), *([earlier(carried)] if carried else [])]
    results = zip(*(node.outputs for node in nodes), strict=True)
    written = [differing(list(names)) for names in results if None not in names]
    return Row(
        number=str(number + 1),
        name=differing([node.name for node in nodes]),
        op=nodes[0].op,
        times=f"×{text.SPACE}{text.grouped(len(nodes))}" if len(nodes) > 1 else "",
        reads=some(reads, MOST_ARGUMENTS) or "nothing",
        constants=some(_arguments(nodes, tensors=False), MOST_ARGUMENTS) or "none",
        writes=some(written) or "no tensor",
        types=some(types(graph, [node.outputs for node in nodes])) or "no tensor",
        storage=storage,
    )


def _storage(graph: OperatorGraph, nodes: Sequence[Node], shares: bool, owners: Mapping[int, str]) -> str:
    parts = []
    if any(name is not None for name in nodes[0].outputs):
        firsts = [next(name for name in node.outputs if name is not None) for node in nodes]
        owner = differing([owners[graph.tensors[name].storage] for name in firsts])
        parts.append(f"shared with {owner}" if shares else "new")
    if nodes[0].mutates:
        parts.append(f"writes {differing([', '.join(node.mutates) for node in nodes])} in place")
    return "; ".join(parts) or "no tensor"


def earlier(steps: Sequence[int]) -> str:
    """What a repeated operation reads of an earlier repeat of the same body; ``steps`` from 0, as rows are from 1."""
    return f"{some([str(step + 1) for step in steps])} of an earlier repeat"


def short(op: str) -> str:
    """``aten.mm.default`` -> ``aten.mm``: without the overload; other names as they are."""
    parts = op.split(".")
    return ".".join(parts[:2]) if len(parts) == 3 and parts[0] == "aten" else op


def call(node: Node) -> str:
    """``mm = aten.mm.default(mat2=permute, self=x)``."""
    arguments = ", ".join(f"{name}={_said(value)}" for name, value in sorted(node.arguments.items()))
    results = ", ".join("_" if name is None else name for name in node.outputs)
    return f"{results or node.name} = {node.op}({arguments})"


def types(graph: OperatorGraph, repeats: Sequence[Sequence[str | None]]) -> list[str]:
    """Dtype and shape of every result, ``float32[8, 16]``, equal ones in a row counted: ``2 × float32[8, 16]``.

    ``repeats``: results of each repeat, of equal dtypes and ranks; an extent that differs among them reads ``*``.
    """
    found: list[tuple[str, int]] = []
    for names in zip(*repeats, strict=True):
        tensors = [graph.tensors[name] for name in names if name is not None]
        if not tensors:
            continue
        extents = [set(sizes) for sizes in zip(*(tensor.shape for tensor in tensors), strict=True)]
        inside = ", ".join(str(next(iter(sizes))) if len(sizes) == 1 else "*" for sizes in extents)
        said = f"{tensors[0].dtype}[{inside}]"
        if found and found[-1][0] == said:
            found[-1] = (said, found[-1][1] + 1)
        else:
            found.append((said, 1))
    return [said if times == 1 else f"{text.grouped(times)} × {said}" for said, times in found]


def differing(words: Sequence[str]) -> str:
    """The first of ``words``, with "…" behind it unless all are equal."""
    return words[0] if len(set(words)) == 1 else f"{words[0]} {DIFFERS}"


def _arguments(nodes: Sequence[Node], *, tensors: bool) -> list[str]:
    """``name = value`` of the arguments with tensors, or of those without."""
    found = []
    for name, value in sorted(nodes[0].arguments.items()):
        if any(True for _ in tensors_in(value)) == tensors:
            found.append(f"{name} = {differing([_said(node.arguments[name]) for node in nodes])}")
    return found


def _said(value: Any) -> str:
    if isinstance(value, Ref):
        return value.tensor
    if isinstance(value, tuple):
        return f"[{some([_said(item) for item in value])}]"
    if isinstance(value, float) and not math.isfinite(value):
        return number_text(value)
    words = str(value)
    return words if len(words) <= LONGEST_WORD else words[: LONGEST_WORD - 1] + "…"


def some(words: Sequence[str], most: int = LONGEST_LIST) -> str:
    """All of them, or the first few and how many there are."""
    if len(words) <= most:
        return ", ".join(words)
    return f"{', '.join(words[: most - 2])}, … ({text.grouped(len(words))} in all)"
