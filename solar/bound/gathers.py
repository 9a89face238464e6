"""Gathers and scatters, backwards: what of the data, the indices and the values a part of the result needs.

Known contents of an index tensor give exact rows. Unknown ones name as few elements as any contents could: one row,
however many indices there are, and of what a scatter overwrites as much as it can reach.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from solar.bound import axes as ax
from solar.bound.axes import Axis
from solar.bound.facts import Facts
from solar.bound.pairs import Pair
from solar.bound.regions import Block, boxes_inside, everything, holds, on_line, projected
from solar.bound.views import align
from solar.einsum import Op, Program
from solar.errors import GraphError

Shapes = Sequence[tuple[int, ...]]


@dataclass
class Gatherer:
    """Operand regions of index operations; ``frozen`` remembers whether known contents of an input were used.

    ``last_writes``: operations that write an in-place output, and that nothing writes over: all they write is wanted.
    """

    program: Program
    facts: Facts
    last_writes: frozenset[str] = frozenset()
    frozen: bool = False

    def pull(self, op: Op, block: Block, shapes: Shapes) -> list[list[Block]]:
        """Blocks of every operand behind one block of the result."""
        function = op.function
        if function in ("gather", "index_select", "embedding", "index"):
            pull = self._advanced if function == "index" else self._gathered
            found = pull(op, block, shapes)
            if block.pairs:  # looked up box by box: rows that differ do not all want what one of them wants
                found[0] = [part for box in boxes_inside(block) for part in pull(op, box, shapes)[0]]
            return found
        if function == "searchsorted":
            index, queries = shapes[0], shapes[1]
            # A search that knows nothing of its answers reads at least the last step of a bisection.
            steps = min(index[-1], math.ceil(math.log2(index[-1] + 1))) if index and index[-1] else 0
            asked = block.count
            along = ax.whole(index[-1]) if asked >= index[-1] else ax.unknown(index[-1], steps)
            leading = block.axes[:-1] if len(index) > 1 else ()
            return [[Block((*leading, along))] if index else [], [align(block, queries)]]
        if function in ("scatter", "index_put", "index_add"):
            return self._scatter(op, block, shapes)
        raise GraphError(f"ops.{op.name}: unknown index function {function!r}")

    def _known(self, name: str) -> tuple[int | float | bool, ...] | None:
        values = self.program.values.get(name)
        if values is not None and len(values) == self.program.tensors[name].elements:
            return values
        ramp = self.facts.ramps.get(name)
        shape = self.program.tensors[name].shape
        if ramp is None or len(shape) != 1 or shape[0] > ax.LARGEST_MASK:
            return None
        return tuple(int(value) for value in ramp.line(shape[0]))

    def _chosen(self, name: str, wanted: Block, extent: int) -> Axis:
        """Positions that the wanted elements of an index tensor name, along an axis of ``extent``."""
        values = self._known(name)
        shape = self.program.tensors[name].shape
        if values is None:
            if name in self.facts.orders and math.prod(shape) == shape[self.facts.orders[name]]:
                return ax.whole(extent) if wanted.count >= extent else ax.unknown(extent, wanted.count)
            return ax.unknown(extent, 1 if wanted.count else 0)
        if name not in self.facts.fixed:
            self.frozen = True
        if wanted.full:
            return ax.of(extent, (int(value) for value in values))
        if wanted.pairs or any(axis.unplaced is not None for axis in wanted.axes):
            return ax.unknown(extent, 1 if wanted.count else 0)
        picked = [0]
        for axis, size in zip(wanted.axes, shape, strict=True):
            picked = [base * size + position for base in picked for position in axis]
        return ax.of(extent, (int(values[flat]) for flat in picked))

    def _gathered(self, op: Op, block: Block, shapes: Shapes) -> list[list[Block]]:
        data, index = shapes[0], shapes[1]
        name = op.operands[1]
        if op.function == "gather":
            dim = op.attributes["dim"] if data else 0
            if not data:
                return [[block], [block]]
            elsewhere = all(extent == 1 for i, extent in enumerate(index) if i != dim)
            if elsewhere:
                along = self._chosen(name, block, data[dim])
                axes = [ax.image(axis, 1, 0, extent) for axis, extent in zip(block.axes, data, strict=True)]
                return [[on_line(Block(tuple(axes)), dim, along)], [block]]
            exact = self._pairs_gathered(op, block, data, dim)
            axes = [ax.image(block.position(i), 1, 0, extent) for i, extent in enumerate(data)]
            axes[dim] = ax.unknown(data[dim], 1)
            if self.facts.orders.get(name) == dim and not block.pairs:
                # Every position once: as many as are asked for.
                size = block.axes[dim].count
                axes[dim] = ax.whole(data[dim]) if size >= data[dim] else ax.unknown(data[dim], size)
            return [[exact if exact is not None else Block(tuple(axes))], [block]]
        if op.function == "embedding":
            wanted = _among(block, 0, len(index))
            rows = self._chosen(name, wanted, data[0])
            return [[Block((rows, *(block.position(i) for i in range(len(index), len(block.axes)))))], [wanted]]
        dim = op.attributes["dim"]
        asked = Block((block.position(dim),)) if index else Block(())
        rows = self._chosen(name, asked, data[dim])
        axes = [block.position(i) if i != dim else rows for i in range(len(data))]
        return [[Block(tuple(axes))], [asked]]

    def _pairs_gathered(self, op: Op, block: Block, data: tuple[int, ...], dim: int) -> Block | None:
        """Exact positions where the index is known and two dimensions are not trivial."""
        values = self._known(op.operands[1])
        index = self.program.tensors[op.operands[1]].shape
        wide = [i for i, extent in enumerate(index) if extent != 1 and i != dim]
        if values is None or len(wide) != 1 or block.pairs or data[dim] > ax.LARGEST_MASK:
            return None
        other = wide[0]
        if index[other] > ax.LARGEST_WALK or any(axis.unplaced is not None for axis in block.axes):
            return None
        if op.operands[1] not in self.facts.fixed:
            self.frozen = True
        strides = [math.prod(index[i + 1 :]) for i in range(len(index))]
        rows = [0] * data[other]
        for x in block.axes[other]:
            bits = 0
            for j in block.axes[dim]:
                bits |= 1 << (int(values[x * strides[other] + j * strides[dim]]) % data[dim])
            rows[x] = bits
        axes = [ax.image(axis, 1, 0, extent) for axis, extent in zip(block.axes, data, strict=True)]
        axes[dim] = ax.whole(data[dim])
        return Block(tuple(axes), (Pair(other, dim, rows=tuple(rows)),))

    def _advanced(self, op: Op, block: Block, shapes: Shapes) -> list[list[Block]]:
        data = shapes[0]
        dims = list(op.attributes["dims"])
        rank = max((len(shape) for shape in shapes[1:]), default=0)
        adjacent = all(b - a == 1 for a, b in pairwise(dims))
        start = dims[0] if adjacent else 0
        joint = _among(block, start, rank)
        axes: list[Axis] = []
        rest = [i for i in range(len(block.axes)) if not start <= i < start + rank]
        for i in range(len(data)):
            axes.append(ax.whole(data[i]) if i in dims else block.position(rest.pop(0)))
        indices = [[align(joint, shape)] for shape in shapes[1:]]
        if len(dims) == 1:
            axes[dims[0]] = self._chosen(op.operands[1], indices[0][0], data[dims[0]])
            return [[Block(tuple(axes))], *indices]
        if _independent(shapes[1:], rank) and not joint.pairs:
            for position, dim in enumerate(dims):
                axes[dim] = self._chosen(op.operands[position + 1], indices[position][0], data[dim])
            return [[Block(tuple(axes))], *indices]
        exact = self._pairs_indexed(op, joint, dims, data)
        if exact is not None:
            return [[Block(tuple(axes), (exact,))], *indices]
        for dim in dims:
            axes[dim] = ax.unknown(data[dim], 1)
        return [[Block(tuple(axes))], *indices]

    def _pairs_indexed(self, op: Op, joint: Block, dims: Sequence[int], data: tuple[int, ...]) -> Pair | None:
        """Exact positions of two known index tensors of one shape."""
        if len(dims) != 2 or not joint.full or data[dims[0]] > ax.LARGEST_WALK or data[dims[1]] > ax.LARGEST_MASK:
            return None
        first, second = op.operands[1], op.operands[2]
        if self.program.tensors[first].shape != self.program.tensors[second].shape:
            return None
        left, right = self._known(first), self._known(second)
        if left is None or right is None:
            return None
        if not {first, second} <= self.facts.fixed:
            self.frozen = True
        rows = [0] * data[dims[0]]
        for x, y in zip(left, right, strict=True):
            rows[int(x)] |= 1 << (int(y) % data[dims[1]])
        return Pair(dims[0], dims[1], rows=tuple(rows))

    def _scatter(self, op: Op, block: Block, shapes: Shapes) -> list[list[Block]]:
        """Data, indices and values of a write; unknown places overwrite as much of what is wanted as they can."""
        data = shapes[0]
        attributes = op.attributes
        keeps = op.function == "index_add" or bool(attributes.get("reduce")) or bool(attributes.get("accumulate"))
        last = len(shapes) - 1
        has_values = str(len(shapes)) not in attributes.get("scalars", {}) and "2" not in attributes.get("scalars", {})
        result: list[list[Block]] = [[] for _ in shapes]
        whole = [everything(shape) for shape in shapes]
        written, dims, exact = scattered(self.program, op, data)
        if exact:
            self.frozen = True
        if keeps:
            result[0] = [block]
        elif written is not None and len(written) == 1 and not written[0].pairs and not block.pairs:
            restricted = [i for i, axis in enumerate(written[0].axes) if not axis.full]
            if len(restricted) == 1:
                dim = restricted[0]
                if exact:
                    left = ax.intersection(block.axes[dim], ax.complement(written[0].axes[dim]))
                else:
                    most = _most_written(op, shapes, dims)
                    left = ax.unknown(data[dim], block.axes[dim].count - most)
                result[0] = [on_line(block, dim, left)]
        reached = exact and written is not None and all(holds(block, part) for part in written)
        if not (block.full or reached or op.name in self.last_writes):
            return result
        # All that is written is wanted: so are all indices, and of the values those that survive.
        for position in range(1, len(shapes)):
            if position != last or not has_values:
                result[position] = [whole[position]]
        if has_values:
            result[last] = [_taken(op, shapes)] if keeps else self._surviving(op, written, exact, dims, shapes)
        return result

    def _surviving(
        self, op: Op, written: list[Block] | None, exact: bool, dims: Sequence[int],
        shapes: Shapes,
    ) -> list[Block]:  # fmt: skip
        source = _taken(op, shapes)
        if not source.axes:
            return [source]
        if not written or len(dims) != 1:
            return [Block(tuple(ax.unknown(axis.extent, 1) for axis in source.axes))]
        along = dims[0] if op.function == "scatter" else 0
        survivors = written[0].axes[dims[0]].count if exact else 1
        return [on_line(source, along, ax.unknown(source.axes[along].extent, survivors))]


def _independent(shapes: Shapes, rank: int) -> bool:
    """Whether no two index tensors vary along the same dimension of their joint shape (rows and columns of a grid)."""
    seen: set[int] = set()
    for shape in shapes:
        varying = {i + rank - len(shape) for i, extent in enumerate(shape) if extent > 1}
        if seen & varying:
            return False
        seen |= varying
    return True


def scattered(program: Program, op: Op, data: tuple[int, ...]) -> tuple[list[Block] | None, list[int], bool]:
    """Written part of the data (at least), the indexed dimensions, and whether the places are known."""
    dims = [op.attributes["dim"]] if op.function in ("scatter", "index_add") else list(op.attributes["dims"])
    whole = everything(data)
    if len(dims) != 1 or not data:
        axes = [ax.unknown(axis.extent, 1) if i in dims else axis for i, axis in enumerate(whole.axes)]
        return [Block(tuple(axes))], dims, False
    dim = dims[0]
    index = program.tensors[op.operands[1]].shape
    values = _places(program, op)
    axes = list(whole.axes)
    if op.function == "scatter":
        axes = [axis if i == dim else ax.run(axis.extent, 0, index[i]) for i, axis in enumerate(whole.axes)]
    if values is not None:
        axes[dim] = ax.of(data[dim], (int(value) for value in values))
        return [Block(tuple(axes))], dims, True
    axes[dim] = ax.unknown(data[dim], 1 if math.prod(index) else 0)
    return [Block(tuple(axes))], dims, False


def _places(program: Program, op: Op) -> Sequence[int | float | bool] | None:
    """Known indices along the one indexed dimension; those of a scatter only where they are the same on every line."""
    name = op.operands[1]
    if op.function != "scatter":
        return program.values.get(name)
    values, index, dim = program.values.get(name), program.tensors[name].shape, op.attributes["dim"]
    if values is None or not index:
        return values
    stride = math.prod(index[dim + 1 :])
    line = values[: index[dim] * stride : stride]
    alike = all(value == line[i // stride % index[dim]] for i, value in enumerate(values))
    return line if alike else None


def _taken(op: Op, shapes: Shapes) -> Block:
    """What a write takes of its values: a scatter as many as it has indices."""
    source = everything(shapes[-1])
    if op.function != "scatter" or len(shapes[1]) != len(source.axes):
        return source
    return Block(tuple(ax.run(axis.extent, 0, n) for axis, n in zip(source.axes, shapes[1], strict=True)))


def _most_written(op: Op, shapes: Shapes, dims: Sequence[int]) -> int:
    """Positions along the indexed dimension that the indices can cover at most."""
    index = shapes[1]
    return index[dims[0]] if op.function == "scatter" and index else math.prod(index)


def _among(block: Block, start: int, rank: int) -> Block:
    """Projection onto consecutive dimensions, with the conditions between them."""
    kept = range(start, start + rank)
    pairs = (
        replace(p, first=p.first - start, second=p.second - start)
        for p in block.pairs
        if p.first in kept and p.second in kept
    )
    return Block(projected(block, kept).axes, tuple(pairs))
