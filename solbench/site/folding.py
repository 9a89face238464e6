"""What feeds what in an operator graph, and which operations repeat: an unrolled loop is shown as one body, counted.

Vertices are numbered: declared inputs first, then operations in execution order, then declared outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from solar.graph import Node, OperatorGraph, Ref

# A graph of so many operations is shown whole; a larger one with its repeats folded, where that leaves out enough.
WHOLE: Final = 40
LEAST_SAVED: Final = 8
# Operations of one repeat at most: a longer body could not be drawn anyway, and the search stays linear.
LONGEST_BODY: Final = 100
# The slot of what an operation wrote in place: no result of its own.
WRITTEN: Final = -1


class Link(NamedTuple):
    """A tensor on its way from one vertex to another; ``slot``: which of the source's results, or :data:`WRITTEN`."""

    source: int
    slot: int
    target: int


@dataclass(frozen=True)
class Step:
    """One operation (``nodes``: its position), or those at the same place of each of several repeats, in order."""

    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Folded:
    """``steps`` in execution order; ``links`` between steps (numbered like vertices); every slot that is passed.

    ``carried``: for a step, the steps whose results of an earlier repeat it reads. ``folds``: (operations of the body,
    repeats) of each fold, in order.
    """

    steps: tuple[Step, ...]
    links: dict[tuple[int, int], tuple[int, ...]]
    carried: dict[int, tuple[int, ...]]
    folds: tuple[tuple[int, int], ...]


def fold(graph: OperatorGraph) -> Folded:
    """The graph with consecutive repeats of an equal body made one, if it has more than :data:`WHOLE` operations.

    Two bodies are equal if their operations agree one by one in operator, form of the arguments, dtypes and ranks of
    the results, storage shared or new, writes, and in where they read inside the body and of the repeat before. Extents
    and numbers may differ (``x[0]``, ``x[1]``), and so may what is read from elsewhere.
    """
    found = links(graph)
    inputs, nodes = len(graph.inputs), len(graph.nodes)
    runs = list(_runs(graph, found)) if nodes > WHOLE else [(position, 1, 1) for position in range(nodes)]
    steps: list[Step] = []
    # By node: its step, the run that it is in, and which repeat of it.
    place: list[tuple[int, int, int]] = [(0, 0, 0)] * nodes
    for start, length, repeats in runs:
        for offset in range(length):
            positions = tuple(range(start + offset, start + length * repeats, length))
            for repeat, position in enumerate(positions):
                place[position] = (len(steps), start, repeat)
            steps.append(Step(positions))

    def vertex(number: int) -> int:
        if number < inputs:
            return number
        return inputs + place[number - inputs][0] if number < inputs + nodes else number - nodes + len(steps)

    between: dict[tuple[int, int], set[int]] = {}
    carried: dict[int, set[int]] = {}
    for link in found:
        source, target = link.source - inputs, link.target - inputs
        if source >= 0 and target < nodes:
            (first, run, repeat), (second, *where) = place[source], place[target]
            if run == where[0] and repeat != where[1]:
                carried.setdefault(second, set()).add(first)
                continue
        between.setdefault((vertex(link.source), vertex(link.target)), set()).add(link.slot)
    return Folded(
        tuple(steps),
        {pair: tuple(sorted(slots)) for pair, slots in sorted(between.items())},
        {step: tuple(sorted(sources)) for step, sources in carried.items()},
        tuple((length, repeats) for _, length, repeats in runs if repeats > 1),
    )


def links(graph: OperatorGraph) -> list[Link]:
    """Every tensor that an operation reads or writes in place, and every output, from where its content comes.

    After a write in place, that is the last writer of the storage (whatever part it wrote); the operation that made the
    tensor stays a source where the writer did not itself take it.
    """
    made: dict[str, tuple[int, int]] = {}
    for number, (_, name) in enumerate(graph.inputs):
        made.setdefault(name, (number, 0))
    writers: dict[int, tuple[int, frozenset[str]]] = {}
    found: list[Link] = []

    def read(name: str, target: int) -> None:
        vertex, slot = made[name]
        writer = writers.get(graph.tensors[name].storage)
        if writer is not None and writer[0] > vertex:
            found.append(Link(writer[0], WRITTEN, target))
            if name in writer[1]:
                return
        found.append(Link(vertex, slot, target))

    number = len(graph.inputs)
    for node in graph.nodes:
        taken = _taken(node)
        for name in taken:
            read(name, number)
        for name in node.mutates:
            writers[graph.tensors[name].storage] = (number, frozenset(taken))
        for slot, output in enumerate(node.outputs):
            if output is not None:
                made[output] = (number, slot)
        number += 1
    for _, name in graph.outputs:
        read(name, number)
        number += 1
    return found


def shares_storage(graph: OperatorGraph) -> list[bool]:
    """Of each operation, whether it has results and all of them lie in storage that was there before: views."""
    known = {graph.tensors[name].storage for _, name in graph.inputs}
    shares = []
    for node in graph.nodes:
        storages = [graph.tensors[name].storage for name in node.outputs if name is not None]
        shares.append(bool(storages) and known.issuperset(storages))
        known.update(storages)
    return shares


def _taken(node: Node) -> list[str]:
    """Tensors that a node reads, then those that it only writes in place."""
    read = (name for _, value in sorted(node.arguments.items()) for name in tensors_in(value))
    return list(dict.fromkeys((*read, *node.mutates)))


def tensors_in(value: Any) -> Iterator[str]:
    """Tensors in an argument, in order."""
    if isinstance(value, Ref):
        yield value.tensor
    elif isinstance(value, tuple):
        for item in value:
            yield from tensors_in(item)


def _runs(graph: OperatorGraph, found: Sequence[Link]) -> Iterator[tuple[int, int, int]]:
    """(first position, length of the body, repeats), all operations in order; where nothing repeats, (position, 1, 1).

    Greedy: at each position the run that leaves out most.
    """
    inputs, count = len(graph.inputs), len(graph.nodes)
    numbers: dict[Any, int] = {}
    shares = shares_storage(graph)
    kinds = [
        numbers.setdefault(_kind(graph, node, shared), len(numbers))
        for node, shared in zip(graph.nodes, shares, strict=True)
    ]
    sources: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]
    for link in found:
        if link.target - inputs < count:
            sources[link.target - inputs].append((link.source - inputs, link.slot))

    def alike(start: int, length: int, repeat: int) -> bool:
        """Whether this repeat is equal to those before; from the third on, also in what it reads of the one before."""
        like, back = (start, 0) if repeat == 1 else (start + length, length)
        again = start + repeat * length
        return kinds[like : like + length] == kinds[again : again + length] and all(
            _wired(sources[like + offset], like - back) == _wired(sources[again + offset], again - back)
            for offset in range(length)
        )

    position = 0
    while position < count:
        best = (position, 1, 1)
        for length in range(1, min(LONGEST_BODY, (count - position) // 2) + 1):
            repeats = 1
            if kinds[position] != kinds[position + length]:
                continue
            while alike(position, length, repeats):
                repeats += 1
            if (repeats - 1) * length >= max(LEAST_SAVED, (best[2] - 1) * best[1] + 1):
                best = (position, length, repeats)
        yield best
        position += best[1] * best[2]


def _wired(sources: Sequence[tuple[int, int]], start: int) -> list[tuple[int, int] | None]:
    """Sources relative to ``start``; None for one before it."""
    return [(source - start, slot) if source >= start else None for source, slot in sources]


def _kind(graph: OperatorGraph, node: Node, shares: bool) -> tuple[Any, ...]:
    tensors = [None if name is None else graph.tensors[name] for name in node.outputs]
    return (
        node.op,
        tuple((name, _form(value)) for name, value in sorted(node.arguments.items())),
        tuple(None if tensor is None else (tensor.dtype, len(tensor.shape)) for tensor in tensors),
        len(node.mutates),
        shares,
    )


def _form(value: Any) -> Any:
    """An argument without its tensors and numbers; words and truth values decide what an operator does."""
    if isinstance(value, Ref):
        return Ref
    if isinstance(value, tuple):
        return tuple(_form(item) for item in value)
    return value if isinstance(value, (str, bool)) or value is None else float
