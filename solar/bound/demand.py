"""Demand, backwards: the elements of every tensor that the outputs need, and those that must exist as such.

Two regions a tensor. *Needed*: some output depends on the element. *Rooted*: the element itself must be formed, because
something that is not linear (or an output) reads it; sums, scalings and views pass this on, while a contraction or a
sum over a dimension does not, since linear algebra may go around it (:mod:`solar.bound.chains`).

Where contents decide what is read and are not known, the smallest demand over all contents is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from solar.bound import axes as ax
from solar.bound import regions as rg
from solar.bound.axes import Axis
from solar.bound.facts import Facts, scalars_of
from solar.bound.regions import Block, Pair, Region, everything
from solar.bound.views import align, pull_copy, pull_view, written_by
from solar.einsum import DTYPE_BITS, Op, Program
from solar.errors import GraphError

# Elementwise functions that are linear in (one of) their tensors, and one that takes a linear part.
POINTWISE_LINEAR = frozenset(("add", "sub", "neg", "mul", "identity", "tril", "triu"))


@dataclass(frozen=True)
class Demand:
    """Regions by tensor name, and whether known contents decided any of them."""

    needed: Mapping[str, Region]
    rooted: Mapping[str, Region]
    frozen: bool


def is_pointwise_linear(program: Program, op: Op) -> bool:
    """Whether an op passes "must exist" on to its operands: no sum over a dimension, no other function."""
    if op.kind == "map":
        if op.function == "div":
            return "1" in op.attributes.get("scalars", {}) or len(op.operands) == 2
        if op.function == "mul" and len(op.operands) == 2 and op.operands[0] == op.operands[1]:
            return False  # a square
        return op.function in POINTWISE_LINEAR
    if op.kind == "cast":
        return _real(program, op.operands[0]) and _real(program, op.outputs[0])
    return op.kind == "view" and op.function != "bitcast" or (op.kind == "copy" and op.function == "clone")


def _real(program: Program, name: str) -> bool:
    return program.tensors[name].dtype.startswith(("float", "bfloat"))


def is_summing(op: Op) -> bool:
    """Whether an op is linear but sums over dimensions: a contraction, a sum."""
    return op.kind == "einsum" or (op.kind == "reduce" and op.function == "sum")


def demand(program: Program, facts: Facts, cancelled: frozenset[tuple[str, int]] = frozenset()) -> Demand:
    """Walk the program backwards from its outputs. ``cancelled``: (op, operand position) that nothing depends on."""
    needed: dict[str, Region] = {}
    rooted: dict[str, Region] = {}
    aliases = dict(program.aliases)
    inputs = dict(program.inputs)
    for declared, name in program.outputs:
        wanted: Region = (everything(program.tensors[name].shape),)
        if declared in aliases:
            wanted = changed(program, name, inputs.get(aliases[declared]))
        needed[name] = rg.unite(needed.get(name, ()), wanted)
        rooted[name] = rg.unite(rooted.get(name, ()), wanted)
    reader = _Reader(program, facts, cancelled)
    for op in reversed(program.ops):
        wants = [_limited(needed.get(name, ()), facts, name) for name in op.outputs]
        for name, wanted in zip(op.outputs, wants, strict=True):
            needed[name] = wanted
        if not any(wants):
            continue
        pulled = reader.pull(op, wants)
        for name, blocks in zip(op.operands, pulled, strict=True):
            needed[name] = rg.unite(needed.get(name, ()), blocks)
        if is_summing(op):
            continue
        if is_pointwise_linear(program, op):
            roots = [_limited(rooted.get(name, ()), facts, name) for name in op.outputs]
            if roots == wants:
                through = pulled
            else:
                through = reader.pull(op, roots)
        else:
            through = pulled
        for position, (name, blocks) in enumerate(zip(op.operands, through, strict=True)):
            if op.function == "div" and position == 1:
                blocks = pulled[1]  # a reciprocal is not linear
            rooted[name] = rg.unite(rooted.get(name, ()), blocks)
    return Demand(needed, rooted, reader.frozen)


def _limited(wanted: Region, facts: Facts, name: str) -> Region:
    """Without elements whose value is known by structure."""
    pattern = facts.patterns.get(name)
    live = None if pattern is None else pattern.live
    if live is None or not wanted:
        return wanted
    return rg.region(*(_both(block, live) for block in wanted))


def _both(a: Block, b: Block) -> Block:
    exact = rg.combine(a, b)
    return rg.intersect(a, b) if exact is None else exact


def changed(program: Program, name: str, original: str | None) -> Region:
    """Part of an in-place output that the reference writes; all of it unless it is a chain of scatters."""
    producers = program.producers()
    written: Region = ()
    shape = program.tensors[name].shape
    while name != original:
        op = producers.get(name)
        if op is None:
            return (everything(shape),)
        parts = written_by(op.function, op.attributes, shape) if op.kind == "copy" else None
        if op.kind == "index" and op.function in ("scatter", "index_put", "index_add"):
            parts = _scattered(program, op, shape)[0]
        if parts is None:
            return (everything(shape),)
        written = rg.unite(written, tuple(parts))
        name = op.operands[0]
    return written


class _Reader:
    """Operand regions of one op after the other; remembers whether known contents were used."""

    def __init__(self, program: Program, facts: Facts, cancelled: frozenset[tuple[str, int]]) -> None:
        self.program = program
        self.facts = facts
        self.cancelled = cancelled
        self.frozen = False

    def pull(self, op: Op, wants: Sequence[Region]) -> list[Region]:
        """Regions of the operands, in order, behind regions of the outputs."""
        shapes = [self.program.tensors[name].shape for name in op.operands]
        result: list[Region] = [() for _ in op.operands]
        if op.kind in ("sort", "scan", "opaque") or len(op.outputs) > 1:
            return self._whole_lines(op, wants, shapes)
        for block in wants[0]:
            if block.empty:
                continue
            for position, blocks in enumerate(self._pull_block(op, block, shapes)):
                if (op.name, position) in self.cancelled:
                    continue
                for piece in blocks:
                    result[position] = rg.add(result[position], piece)
        return result

    def _pull_block(self, op: Op, block: Block, shapes: Sequence[tuple[int, ...]]) -> Sequence[Sequence[Block]]:
        attributes = op.attributes
        if op.kind == "map":
            return self._map(op, block, shapes)
        if op.kind == "cast":
            return [[block]]
        if op.kind == "view":
            bits = (
                DTYPE_BITS[self.program.tensors[op.outputs[0]].dtype],
                DTYPE_BITS[self.program.tensors[op.operands[0]].dtype],
            )
            return [pull_view(op.function, attributes, block, shapes[0], bits)]
        if op.kind == "copy":
            return pull_copy(op.function, attributes, block, shapes)
        if op.kind == "einsum":
            return pull_einsum(self.program, self.facts, op, block)
        if op.kind == "reduce":
            return [_reduce(op, block, shapes[0])]
        if op.kind == "index":
            return self._index(op, block, shapes)
        if op.kind == "create":
            return []
        raise GraphError(f"ops.{op.name}: unknown kind {op.kind!r}")

    def _map(self, op: Op, block: Block, shapes: Sequence[tuple[int, ...]]) -> list[list[Block]]:
        pulled = [[align(block, shape)] for shape in shapes]
        if op.function != "where":
            return pulled
        # Only the chosen branch is read. Unknown contents may choose the other one everywhere.
        scalars = scalars_of(op)
        condition = self.facts.patterns.get(op.operands[0]) if 0 not in scalars else None
        names = iter(range(len(op.operands)))
        positions = {slot: next(names) for slot in range(3) if slot not in scalars}
        if condition is None or not condition.settled:
            for slot in (1, 2):
                if slot in positions:
                    pulled[positions[slot]] = []
            return pulled
        if op.operands[0] not in self.facts.fixed:
            self.frozen = True
        shape = shapes[0]
        lead = len(block.axes) - len(shape)
        for slot, truth in ((1, True), (2, False)):
            if slot not in positions:
                continue
            chosen = _where(condition.block, condition.inside, condition.outside, truth)
            if chosen is None:
                pulled[positions[slot]] = []
            elif chosen != "everywhere":
                assert isinstance(chosen, Block)
                lifted = _lift(chosen, lead, tuple(axis.extent for axis in block.axes))
                pulled[positions[slot]] = (
                    [] if lifted is None else [align(_both(block, lifted), shapes[positions[slot]])]
                )
        return pulled

    def _whole_lines(
        self, op: Op, wants: Sequence[Region], shapes: Sequence[tuple[int, ...]]
    ) -> list[Region]:
        if op.kind == "opaque":
            return [(everything(shape),) for shape in shapes]
        result: list[Region] = [() for _ in op.operands]
        dim = op.attributes.get("dim")
        for wanted in wants:
            for block in wanted:
                if block.empty:
                    continue
                if op.kind in ("sort", "scan") and dim is not None:
                    last = shapes[0][dim] if op.kind == "sort" else _reach(block.axes[dim])
                    result[0] = rg.add(result[0], _line(block, dim, ax.run(shapes[0][dim], 0, last)))
                elif op.kind == "map":
                    for position, shape in enumerate(shapes):
                        result[position] = rg.add(result[position], align(block, shape))
                else:
                    raise GraphError(f"ops.{op.name}: {len(op.outputs)} results of kind {op.kind!r}")
        return result

    # --- indices -----------------------------------------------------------------------------------------------

    def _index(self, op: Op, block: Block, shapes: Sequence[tuple[int, ...]]) -> list[list[Block]]:
        function, attributes = op.function, op.attributes
        data = shapes[0]
        if function in ("gather", "index_select", "embedding"):
            return self._gathered(op, block, shapes)
        if function == "index":
            return self._advanced(op, block, shapes)
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
        if function == "masked_scatter":
            return [[], [align(block, shapes[1])], *([] for _ in shapes[2:])]
        del data, attributes
        raise GraphError(f"ops.{op.name}: unknown index function {function!r}")

    def _known(self, name: str) -> tuple[int | float | bool, ...] | None:
        values = self.program.values.get(name)
        if values is not None and len(values) == self.program.tensors[name].elements:
            return values
        ramp = self.facts.ramps.get(name)
        shape = self.program.tensors[name].shape
        if ramp is None or len(shape) != 1 or shape[0] > ax.LARGEST_MASK:
            return None
        return tuple(int(ramp.start + ramp.steps[0] * i) for i in range(shape[0]))

    def _chosen(self, name: str, wanted: Block, extent: int) -> Axis:
        """Positions that the wanted elements of an index tensor name, along an axis of ``extent``."""
        values = self._known(name)
        shape = self.program.tensors[name].shape
        if values is None:
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

    def _gathered(self, op: Op, block: Block, shapes: Sequence[tuple[int, ...]]) -> list[list[Block]]:
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
                return [[_line(Block(tuple(axes)), dim, along)], [block]]
            exact = self._pairs_gathered(op, block, data, dim)
            axes = [ax.image(block.position(i), 1, 0, extent) for i, extent in enumerate(data)]
            axes[dim] = ax.unknown(data[dim], 1)
            return [[exact if exact is not None else Block(tuple(axes))], [block]]
        if op.function == "embedding":
            wanted = _lead(block, len(index))
            rows = self._chosen(name, wanted, data[0])
            return [[Block((rows, *(block.position(i) for i in range(len(index), len(block.axes)))))], [wanted]]
        dim = op.attributes["dim"]
        along = Block((block.position(dim),)) if index else Block(())
        rows = self._chosen(name, along, data[dim])
        axes = [block.position(i) if i != dim else rows for i in range(len(data))]
        return [[Block(tuple(axes))], [along]]

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
                bits |= 1 << int(values[x * strides[other] + j * strides[dim]])
            rows[x] = bits
        axes = [ax.image(axis, 1, 0, extent) for axis, extent in zip(block.axes, data, strict=True)]
        axes[dim] = ax.whole(data[dim])
        return Block(tuple(axes), (Pair(other, dim, rows=tuple(rows)),))

    def _advanced(self, op: Op, block: Block, shapes: Sequence[tuple[int, ...]]) -> list[list[Block]]:
        data = shapes[0]
        dims = list(op.attributes["dims"])
        rank = max((len(shape) for shape in shapes[1:]), default=0)
        adjacent = all(b - a == 1 for a, b in zip(dims, dims[1:], strict=False))
        start = dims[0] if adjacent else 0
        joint = _sub(block, range(start, start + rank))
        axes: list[Axis] = []
        rest = [i for i in range(len(block.axes)) if not start <= i < start + rank]
        for i in range(len(data)):
            axes.append(ax.whole(data[i]) if i in dims else block.position(rest.pop(0)))
        indices = [[align(joint, shape)] for shape in shapes[1:]]
        if len(dims) == 1:
            axes[dims[0]] = self._chosen(op.operands[1], indices[0][0], data[dims[0]])
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

    def _scatter(self, op: Op, block: Block, shapes: Sequence[tuple[int, ...]]) -> list[list[Block]]:
        """Data, indices and values of a write; unknown places overwrite as much of what is wanted as they can."""
        data = shapes[0]
        attributes = op.attributes
        keeps = op.function == "index_add" or bool(attributes.get("reduce")) or bool(attributes.get("accumulate"))
        last = len(shapes) - 1
        has_values = str(len(shapes)) not in attributes.get("scalars", {}) and "2" not in attributes.get("scalars", {})
        result: list[list[Block]] = [[] for _ in shapes]
        whole = [everything(shape) for shape in shapes]
        written, dims, exact = _scattered(self.program, op, data)
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
                result[0] = [_line(block, dim, left)]
        if not block.full:
            return result
        # All of the result is wanted: so are all indices, and of the values those that survive.
        for position in range(1, len(shapes)):
            if position != last or not has_values:
                result[position] = [whole[position]]
        if has_values:
            result[last] = [whole[last]] if keeps else self._surviving(op, written, exact, dims, shapes)
        return result

    def _surviving(
        self, op: Op, written: list[Block] | None, exact: bool, dims: Sequence[int],
        shapes: Sequence[tuple[int, ...]],
    ) -> list[Block]:  # fmt: skip
        source = everything(shapes[-1])
        if not source.axes:
            return [source]
        if not written or len(dims) != 1:
            return [Block(tuple(ax.unknown(axis.extent, 1) for axis in source.axes))]
        along = dims[0] if op.function == "scatter" else 0
        survivors = written[0].axes[dims[0]].count if exact else 1
        return [_line(source, along, ax.unknown(source.axes[along].extent, survivors))]


def _scattered(program: Program, op: Op, data: tuple[int, ...]) -> tuple[list[Block] | None, list[int], bool]:
    """Written part of the data (at least), the indexed dimensions, and whether the places are known."""
    dims = [op.attributes["dim"]] if op.function in ("scatter", "index_add") else list(op.attributes["dims"])
    whole = everything(data)
    if len(dims) != 1 or not data:
        axes = [ax.unknown(axis.extent, 1) if i in dims else axis for i, axis in enumerate(whole.axes)]
        return [Block(tuple(axes))], dims, False
    dim = dims[0]
    name = op.operands[1]
    values = program.values.get(name)
    index = program.tensors[name].shape
    plain = op.function != "scatter" or all(extent == 1 for i, extent in enumerate(index) if i != dim)
    if values is not None and plain:
        places = ax.of(data[dim], (int(value) for value in values))
        axes = list(whole.axes)
        axes[dim] = places
        return [Block(tuple(axes))], dims, True
    axes = list(whole.axes)
    if op.function == "scatter":
        axes = [
            axis if i == dim else ax.run(axis.extent, 0, index[i]) for i, axis in enumerate(whole.axes)
        ]
    axes[dim] = ax.unknown(data[dim], 1 if math.prod(index) else 0)
    return [Block(tuple(axes))], dims, False


def _most_written(op: Op, shapes: Sequence[tuple[int, ...]], dims: Sequence[int]) -> int:
    """Positions along the indexed dimension that the indices can cover at most."""
    index = shapes[1]
    return index[dims[0]] if op.function == "scatter" and index else math.prod(index)


def _where(block: Block | None, inside: object, outside: object, truth: bool) -> Block | str | None:
    """Positions at which a settled condition has a truth value: a block, "everywhere", or None for nowhere."""
    if block is None:
        return "everywhere" if bool(outside) is truth else None
    hits = (bool(inside) is truth, bool(outside) is truth)
    if hits == (True, True):
        return "everywhere"
    if hits == (False, False):
        return None
    return block if hits[0] else rg.opposite(block)


def _lift(block: Block, lead: int, shape: tuple[int, ...]) -> Block | None:
    """A block of a condition over the shape that it broadcasts to."""
    axes = list(everything(shape).axes)
    for i, axis in enumerate(block.axes):
        if axis.extent == shape[i + lead]:
            axes[i + lead] = axis
        elif not axis.full or any(i in (p.first, p.second) for p in block.pairs):
            return None
    return Block(tuple(axes), tuple(replace(p, first=p.first + lead, second=p.second + lead) for p in block.pairs))


def _reach(axis: Axis) -> int:
    """One past the furthest position (for unknown positions, the least that it can be)."""
    return axis.count if axis.unplaced is not None else axis.stop


def _line(block: Block, dim: int, axis: Axis) -> Block:
    """The block with another set along ``dim``; conditions on ``dim`` are replaced by what they leave elsewhere."""
    axes = list(block.axes)
    pairs = []
    for pair in block.pairs:
        if dim in (pair.first, pair.second):
            other = pair.second if pair.first == dim else pair.first
            axes[other] = ax.intersection(axes[other], block.position(other))
        else:
            pairs.append(pair)
    axes[dim] = axis
    return Block(tuple(axes), tuple(pairs))


def _sub(block: Block, dims: Sequence[int] | range) -> Block:
    """Projection onto some dimensions."""
    return Block(tuple(block.position(i) for i in dims))


def _lead(block: Block, rank: int) -> Block:
    pairs = tuple(p for p in block.pairs if p.first < rank and p.second < rank)
    if len(pairs) == len(block.pairs):
        return Block(block.axes[:rank], pairs)
    return _sub(block, range(rank))


def _reduce(op: Op, block: Block, operand: tuple[int, ...]) -> list[Block]:
    attributes = op.attributes
    if op.function == "fold":
        return _folded(op, block, operand)
    dims = set(attributes["dims"])
    # any and all may know their answer after one element.
    reduced = {dim: (ax.unknown(operand[dim], 1) if op.function in ("any", "all") else ax.whole(operand[dim])) for dim in dims}
    if attributes.get("keepdim"):
        for dim, axis in reduced.items():
            block = _line(block, dim, axis)
        return [block]
    kept = [i for i in range(len(operand)) if i not in dims]
    axes = [reduced.get(i, ax.whole(extent)) for i, extent in enumerate(operand)]
    for new, old in enumerate(kept):
        axes[old] = block.axes[new]
    pairs = tuple(replace(p, first=kept[p.first], second=kept[p.second]) for p in block.pairs)
    return [Block(tuple(axes), pairs)]


def _folded(op: Op, block: Block, operand: tuple[int, ...]) -> list[Block]:
    """Columns (y, r) that land on a wanted position stride*y + dilation*r - padding."""
    spatial = op.attributes["spatial"]
    lead = len(operand) - 2 * spatial
    axes = list(everything(operand).axes)
    axes[:lead] = block.axes[:lead]
    if any(p.first >= lead or p.second >= lead for p in block.pairs):
        return []
    pairs = list(block.pairs)
    for i in range(spatial):
        wanted = block.axes[lead + i]
        if not wanted.contiguous:
            return []
        padding = op.attributes["padding"][i]
        low, high = wanted.start + padding, wanted.stop - 1 + padding
        pairs.append(
            Pair(lead + i, lead + spatial + i, op.attributes["stride"][i], op.attributes["dilation"][i], low, high)
        )
    return [Block(tuple(axes), tuple(pairs))]


# --- einsums -------------------------------------------------------------------------------------------------------


def einsum_space(program: Program, facts: Facts, op: Op, block: Block | None) -> tuple[dict[str, Axis], list[tuple[str, str, Pair]]]:
    """Positions of every index that a block of the result needs, and conditions between two of them.

    Structural zeros of an operand remove positions: a product with a zero is not formed, and what it would be
    multiplied with is not needed for it.
    """
    sets = {index: ax.whole(extent) for index, extent in op.attributes["indices"].items()}
    output = list(op.attributes["output"])
    conditions: list[tuple[str, str, Pair]] = []
    if block is not None:
        for index, axis in zip(output, block.axes, strict=True):
            sets[index] = axis
        conditions += [(output[p.first], output[p.second], p) for p in block.pairs]
    for name, forms in zip(op.operands, op.attributes["operands"], strict=True):
        pattern = facts.patterns.get(name)
        if pattern is None or pattern.outside != 0 or pattern.block is None:
            continue
        plain = [_plain_index(form) for form in forms]
        for index, axis in zip(plain, pattern.block.axes, strict=True):
            if index is not None and axis.extent == sets[index].extent:
                sets[index] = ax.intersection(sets[index], axis)
        for pair in pattern.block.pairs:
            x, y = plain[pair.first], plain[pair.second]
            if x is not None and y is not None and x != y:
                conditions.append((x, y, pair))
    return sets, conditions


def _plain_index(form: Mapping[str, object]) -> str | None:
    """The index that an affine form is, if it is just one."""
    terms = form["terms"]
    if form["offset"] or len(terms) != 1 or terms[0][1] != 1:  # type: ignore[arg-type,index]
        return None
    return str(terms[0][0])  # type: ignore[index]


def pull_einsum(program: Program, facts: Facts, op: Op, block: Block) -> list[list[Block]]:
    """Operand elements that take part in a needed product."""
    sets, conditions = einsum_space(program, facts, op, block)
    names = list(sets)
    number = {name: i for i, name in enumerate(names)}
    space = rg.conditioned(
        tuple(sets[name] for name in names),
        (replace(pair, first=number[x], second=number[y]) for x, y, pair in conditions),
    )
    narrowed = [space.position(i) for i in range(len(names))] if space.pairs else list(space.axes)
    pulled: list[list[Block]] = []
    for name, forms in zip(op.operands, op.attributes["operands"], strict=True):
        shape = program.tensors[name].shape
        axes: list[Axis] = []
        where: dict[int, int] = {}
        for dim, form in enumerate(forms):
            plain = _plain_index(form)
            if plain is not None:
                where.setdefault(number[plain], dim)
            axes.append(_form_image(form, {n: narrowed[number[n]] for n, _ in form["terms"]}, shape[dim]))
        pairs = tuple(
            replace(p, first=where[p.first], second=where[p.second])
            for p in space.pairs
            if p.first in where and p.second in where
        )
        repeated = [n for n, _ in ((t[0], 0) for form in forms for t in form["terms"])]
        if len(set(repeated)) != len(repeated):
            pairs = (*pairs, *_diagonals(forms))
        pulled.append([Block(tuple(axes), pairs)])
    return pulled


def _diagonals(forms: Sequence[Mapping[str, object]]) -> list[Pair]:
    """One index at two dimensions of an operand reads only their diagonal."""
    seen: dict[str, int] = {}
    pairs = []
    for dim, form in enumerate(forms):
        plain = _plain_index(form)
        if plain is None:
            continue
        if plain in seen:
            pairs.append(Pair(seen[plain], dim, low=0, high=0))
        else:
            seen[plain] = dim
    return pairs


def _form_image(form: Mapping[str, object], sets: Mapping[str, Axis], extent: int) -> Axis:
    """Positions that an affine form takes, inside the operand."""
    terms = [(sets[index], coefficient) for index, coefficient in form["terms"] if coefficient]  # type: ignore[attr-defined]
    offset = form["offset"]
    assert isinstance(offset, int)
    if any(axis.count == 0 for axis, _ in terms):
        return Axis(extent)
    if any(coefficient < 0 for _, coefficient in terms):
        return Axis(extent)
    if not terms:
        return ax.run(extent, offset, offset + 1)
    terms.sort(key=lambda term: term[1])
    if len(terms) == 1:
        return ax.image(terms[0][0], terms[0][1], offset, extent)
    # Room for partial sums below zero: a padded window starts before the operand does.
    reach = sum(coefficient * (axis.extent - 1) for axis, coefficient in terms) + 1
    axis, scale = terms[0]
    for other, coefficient in terms[1:-1]:
        axis, scale = ax.spread(axis, scale, other, coefficient, 0, reach), 1
    return ax.spread(axis, scale, terms[-1][0], terms[-1][1], offset, extent)
