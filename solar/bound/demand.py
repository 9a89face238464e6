"""Demand, backwards: the elements of every tensor that the outputs need, and those that must exist as such.

Two regions a tensor. *Needed*: some output depends on the element. *Rooted*: the element itself must be formed, because
something that is not linear (or an output) reads it; sums, scalings and views pass this on, while a contraction or a
sum over a dimension does not, since linear algebra may go around it (:mod:`solar.bound.chains`).

Where contents decide what is read and are not known, the smallest demand over all contents is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from solar.bound import axes as ax
from solar.bound import regions as rg
from solar.bound.axes import Axis
from solar.bound.copies import pull_copy
from solar.bound.einsums import pull_einsum
from solar.bound.facts import Facts
from solar.bound.gathers import Gatherer
from solar.bound.pairs import Pair, count_pair
from solar.bound.patterns import scalars_of
from solar.bound.regions import Block, Region, everything, on_line
from solar.bound.structure import Structure
from solar.bound.views import align, pull_view
from solar.bound.writes import changed, last_writes
from solar.einsum import DTYPE_BITS, Op, Program
from solar.errors import GraphError

# Opaque operations whose count is known: factors of a matrix; and results that count where all of them is wanted.
FACTORISATIONS = frozenset(("cholesky", "lu", "qr_triangle"))
SYSTEMS = frozenset(("triangular_solve", "lu_inverse", "qr"))
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
        return op.function in POINTWISE_LINEAR
    if op.kind == "cast":
        return _real(program, op.operands[0]) and _real(program, op.outputs[0])
    return (op.kind == "view" and op.function != "bitcast") or (op.kind == "copy" and op.function == "clone")


def _real(program: Program, name: str) -> bool:
    return program.tensors[name].dtype.startswith(("float", "bfloat"))


def is_summing(op: Op) -> bool:
    """Whether an op is linear but sums over dimensions: a contraction, a sum."""
    return op.kind == "einsum" or (op.kind == "reduce" and op.function == "sum")


def is_decided(program: Program, op: Op, wants: Sequence[Region]) -> bool:
    """Whether these parts of the results of an opaque operation depend on all that it reads."""
    if op.function in FACTORISATIONS:
        batch = len(program.tensors[op.operands[0]].shape) - 2
        return any(_holds_last(block, batch) for region in wants for block in region)
    if op.function in SYSTEMS:
        return rg.count(wants[0]) >= program.tensors[op.outputs[0]].elements
    return any(not block.empty for region in wants for block in region)


def _holds_last(block: Block, batch: int) -> bool:
    """Every matrix of the batch (so many dimensions), and of each the element at the end."""
    if any(not axis.full for axis in block.axes[:batch]):
        return False
    axes = list(block.axes)
    for dim in range(batch, len(axes)):
        if axes[dim].unplaced is not None or axes[dim].extent - 1 not in axes[dim]:
            return False
        axes[dim] = ax.run(axes[dim].extent, axes[dim].extent - 1, axes[dim].extent)
    return all(min(p.first, p.second) >= batch and count_pair(p, axes[p.first], axes[p.second]) for p in block.pairs)


def demand(
    program: Program, facts: Facts, structure: Structure, cancelled: frozenset[tuple[str, int]] = frozenset()
) -> Demand:
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
    reader = _Reader(program, facts, cancelled | _hidden(program, facts, structure))
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
            if op.function == "triangular_solve" and position == 1:
                continue  # linear: the right side need not exist as such
            if op.function == "div" and position == 1:
                blocks = pulled[1]  # a reciprocal is not linear
            rooted[name] = rg.unite(rooted.get(name, ()), blocks)
    return Demand(needed, rooted, reader.gatherer.frozen)


def _hidden(program: Program, facts: Facts, structure: Structure) -> frozenset[tuple[str, int]]:
    """What is only multiplied with something that an unknown mask may zero, or added to what may drown it. One-hot
    tensors choose something."""
    zeros = structure.vanishing - facts.selectors.keys()
    hidden: set[tuple[str, int]] = set()
    for op in program.ops:
        if op.kind == "einsum" or op.function in ("mul", "div"):
            hiding = zeros.intersection(op.operands[: 1 if op.function == "div" else None])
        else:
            hiding = structure.never.intersection(op.operands) if op.function in ("add", "sub") else frozenset()
        hidden.update((op.name, position) for position, name in enumerate(op.operands) if hiding - {name})
    return frozenset(hidden)


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


class _Reader:
    """Operand regions of one op after the other; remembers whether known contents were used."""

    def __init__(self, program: Program, facts: Facts, cancelled: frozenset[tuple[str, int]]) -> None:
        self.program = program
        self.facts = facts
        self.cancelled = cancelled
        self.gatherer = Gatherer(program, facts, last_writes(program))

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
            return self.gatherer.pull(op, block, shapes)
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
        if op.operands[0] not in self.facts.fixed and self.program.values:
            self.gatherer.frozen = True
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

    def _whole_lines(self, op: Op, wants: Sequence[Region], shapes: Sequence[tuple[int, ...]]) -> list[Region]:
        if op.kind == "opaque":
            decided = is_decided(self.program, op, wants)
            return [(everything(shape),) if decided else () for shape in shapes]
        result: list[Region] = [() for _ in op.operands]
        dim = op.attributes.get("dim")
        for wanted in wants:
            for block in wanted:
                if block.empty:
                    continue
                if op.kind in ("sort", "scan") and dim is not None:
                    last = shapes[0][dim] if op.kind == "sort" else _reach(block.axes[dim])
                    result[0] = rg.add(result[0], on_line(block, dim, ax.run(shapes[0][dim], 0, last)))
                elif op.kind == "map":
                    for position, shape in enumerate(shapes):
                        result[position] = rg.add(result[position], align(block, shape))
                else:
                    raise GraphError(f"ops.{op.name}: {len(op.outputs)} results of kind {op.kind!r}")
        return result


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


def _reduce(op: Op, block: Block, operand: tuple[int, ...]) -> list[Block]:
    attributes = op.attributes
    if op.function == "fold":
        return _folded(op, block, operand)
    dims = set(attributes["dims"])
    # any and all may know their answer after one element.
    reduced = {
        dim: (ax.unknown(operand[dim], 1) if op.function in ("any", "all") else ax.whole(operand[dim])) for dim in dims
    }
    if attributes.get("keepdim"):
        for dim, axis in reduced.items():
            block = on_line(block, dim, axis)
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
