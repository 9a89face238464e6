"""Work that is not a contraction: elementwise functions, reductions, scans, sorts (rule 3).

One operation an element, at the elementwise engine's fastest rate in operations a second, where a multiply-add counts
as two: a lower bound, whichever engine a kernel takes and however it fuses. What can ride along with something else
costs nothing: casts and copies, sign and magnitude, and linear steps beside a contraction (a scaling folds into its
operands, a bias or a residual starts its accumulator). Repetition along a broadcast dimension is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solar.bound import axes as ax
from solar.bound import regions as rg
from solar.bound.cancellation import INCREASING, centred_values, ordered
from solar.bound.demand import Demand, is_pointwise_linear
from solar.bound.expansion import bearing_tensors
from solar.bound.facts import Facts
from solar.bound.formats import CODES, sources
from solar.bound.patterns import scalars_of
from solar.bound.regions import Block, Region
from solar.bound.structure import Structure
from solar.einsum import Op, Program

# Operand modifiers, or no operation at all.
_FREE = frozenset(("neg", "abs", "identity", "tril", "triu", "logical_not"))
_POSITIVE = frozenset(("relu", "exp", "sigmoid", "abs", "sqrt"))
_MONOTONE = INCREASING | {"relu"}
_SCALAR_AFFINE = frozenset(("add", "sub", "mul", "div"))


@dataclass(frozen=True)
class Elementwise:
    """Operations of one op outside the contractions."""

    op: str
    operations: int


def elementwise_work(
    program: Program, facts: Facts, demand: Demand, structure: Structure,
    cancelled: frozenset[tuple[str, int]] = frozenset(),
) -> list[Elementwise]:  # fmt: skip
    """Operations of every live op that is not a contraction, in program order. ``cancelled``: see :func:`demand`."""
    shifted = {name for name, _ in cancelled}
    kept = ordered(program)
    free = shifted | _spared(program, facts, demand)
    readers = program.consumers()
    values: dict[str, int] = {name: program.tensors[name].elements for _, name in program.inputs}
    bearing = bearing_tensors(program)
    producers = program.producers()
    feeding = _feeding(program, demand)
    narrowest = sources(program)
    unpacked = _unpacked(program, narrowest)
    folded = {name: rg.count(demand.needed.get(name, ())) for _, name in program.inputs}
    result = []
    for op in program.ops:
        if op.kind == "opaque" or not op.outputs:
            continue
        wanted = [demand.needed.get(name, ()) for name in op.outputs]
        if not any(_touched(region) for region in wanted):
            continue
        size = max(distinct(region, facts.uniform[name]) for region, name in zip(wanted, op.outputs, strict=True))
        for name in op.outputs:
            values[name] = _values(program, op, name, values)
            if op.kind == "map":
                size = min(size, values[name], math.prod(structure.different[name]))
            if name in structure.vanishing and name not in structure.masks:
                size = 0  # an unknown mask may leave none of it
            elif op.function == "where" and op.operands[0] in structure.masks:
                size = min(size, program.tensors[op.operands[0]].elements)  # it may choose one side of all
            if op.kind == "map" and (op.function in _MONOTONE or op.name in kept):
                limit = _extrema(program, demand, shifted | kept, readers, name)
                size = size if limit is None else min(size, limit)
            folded[name] = min(_folded(program, demand, op, name, size, folded), values[name])
        if op.name in free or all(name in facts.fixed or name in unpacked for name in op.outputs):
            continue
        operations = _operations(program, facts, demand, op, size, bearing, feeding, producers, folded)
        if operations:
            result.append(Elementwise(op.name, operations))
    return result


def _values(program: Program, op: Op, name: str, values: Mapping[str, int]) -> int:
    """At most so many different values, each of which a function of one tensor has to be computed for."""
    elements = program.tensors[name].elements
    gathers = op.kind == "index" and op.function in ("gather", "index_select", "embedding", "index")
    if op.kind in ("view", "cast") or (op.kind == "copy" and op.function != "pad") or gathers:
        moved = op.operands[:1] if gathers else op.operands
        return min(elements, sum(values.get(given, program.tensors[given].elements) for given in dict.fromkeys(moved)))
    if op.kind == "map" and len(op.operands) == 1 and op.function not in ("tril", "triu"):
        return min(elements, values.get(op.operands[0], elements))
    return elements


def _spared(program: Program, facts: Facts, demand: Demand) -> set[str]:
    """Ops that arithmetic can do without: a choice that a known mask makes, a product with zeros and ones, a comparison
    that only names a position, what is not negative made not negative, and the mean taken off where nothing but the sum
    of squares is wanted, which is that of x less n mean^2."""
    readers, producers = program.consumers(), program.producers()
    centred = centred_values(program, producers)
    shown = {name for _, name in program.outputs}

    def spared(op: Op) -> bool:
        output = op.outputs[0]
        if op.function == "where" and "0" not in op.attributes.get("scalars", {}):
            pattern = facts.patterns.get(op.operands[0])
            return pattern is not None and pattern.settled
        if op.function == "mul" and any(name in facts.fixed and _zeros_and_ones(facts, name) for name in op.operands):
            return True
        if op.function == "add" and any(_predicated(producers.get(name)) for name in op.operands):
            return True  # one operation with the choice
        if op.function == "relu" and op.operands[0] in producers:
            return producers[op.operands[0]].function in _POSITIVE
        if op.name in centred and output not in shown:
            return all(
                reader.function == "mul"
                and set(reader.operands) == {output}
                and not _touched(demand.rooted.get(reader.outputs[0], ()))
                for reader in readers[output]
            )
        return output in facts.selectors

    return {op.name for op in program.ops if op.kind == "map" and spared(op)}


def _predicated(op: Op | None) -> bool:
    """A choice between something and nothing."""
    return op is not None and op.function == "where" and 0 in scalars_of(op).values()


def _zeros_and_ones(facts: Facts, name: str) -> bool:
    pattern = facts.patterns.get(name)
    return pattern is not None and pattern.settled and {pattern.inside, pattern.outside} <= {0, 1, None}


def _extrema(
    program: Program, demand: Demand, shifted: set[str], readers: Mapping[str, Sequence[Op]], name: str
) -> int | None:
    """Results of the extrema and sorts that alone read a tensor, through views and monotone functions; positions count
    nothing.

    The extremum of a monotone function is its value at an extremum. None where something else reads the tensor.
    """
    total = 0
    if any(shown == name for _, shown in program.outputs):
        return None
    for reader in readers[name]:
        unread = not any(_touched(demand.needed.get(made, ())) for made in reader.outputs)
        if unread or (reader.kind == "reduce" and reader.function in ("argmax", "argmin")):
            continue
        if reader.kind == "sort" or (reader.kind == "reduce" and reader.function in ("amax", "amin")):
            values = reader.outputs[0]
            total += program.tensors[values].elements if _touched(demand.needed.get(values, ())) else 0
            continue
        through = reader.kind in ("view", "cast") or (reader.kind == "map" and reader.function in _MONOTONE)
        through = (through and reader.function != "bitcast") or reader.name in shifted
        inner = _extrema(program, demand, shifted, readers, reader.outputs[0]) if through else None
        if inner is None:
            return None
        total += inner
    return total


def _touched(region: Region) -> bool:
    return any(not block.empty for block in region)


def distinct(region: Region, uniform: frozenset[int]) -> int:
    """Elements of a region that can differ from each other."""
    if not uniform:
        return rg.count(region)
    kept: Region = ()
    for block in region:
        if block.empty:
            continue
        axes = tuple(
            ax.run(axis.extent, 0, 1) if i in uniform else (block.position(i) if block.pairs else axis)
            for i, axis in enumerate(block.axes)
        )
        pairs = tuple(p for p in block.pairs if p.first not in uniform and p.second not in uniform)
        kept = rg.add(kept, Block(axes, pairs))
    return rg.count(kept)


def _operations(
    program: Program, facts: Facts, demand: Demand, op: Op, size: int, bearing: frozenset[str],
    feeding: frozenset[str], producers: Mapping[str, Op], folded: Mapping[str, int],
) -> int:  # fmt: skip
    output = op.outputs[0]
    if op.kind == "map":
        if op.function in _FREE:
            return 0
        if is_pointwise_linear(program, op):
            beside = sum(name in bearing for name in op.operands)
            if (beside and not (op.function == "mul" and beside > 1)) or _repeats_scaling(op, producers):
                return 0
            rooted = demand.rooted.get(output, ())
            if not _touched(rooted):
                # A sum of sums adds up the smaller part apart; products of products are in the contraction's price.
                parts = [folded.get(name, size) for name in op.operands]
                return 0 if output in feeding or output in bearing else min(size, folded.get(output, 0), *parts)
            return min(size, distinct(rooted, facts.uniform[output]))
        return size
    if op.kind == "reduce":
        if op.function in ("any", "all"):
            return size
        if output in bearing:
            return 0
        return max(0, min(_read(demand, op), folded.get(op.operands[0], 0)) - size)
    if op.kind == "einsum" and len(op.operands) == 1:
        # Sums over windows may run: each element is added once and taken off once at most.
        return 0 if output in bearing else max(0, min(_read(demand, op), folded.get(op.operands[0], 0)) - size)
    if op.kind in ("scan", "sort"):
        return _read(demand, op)
    if op.kind == "create":
        return size if op.function == "random" else 0
    if op.kind == "index":
        adds = op.function == "index_add" or op.attributes.get("reduce") or op.attributes.get("accumulate")
        if op.function == "searchsorted":
            return size
        if not adds or len(op.operands) < 3:
            return 0
        alike = [facts.uniform[name] for name in op.operands] if op.function == "scatter" else [frozenset()]
        return distinct(demand.needed.get(op.operands[-1], ()), frozenset.intersection(*alike))
    return 0


def _read(demand: Demand, op: Op) -> int:
    return rg.count(demand.needed.get(op.operands[0], ()))


def _repeats_scaling(op: Op, producers: Mapping[str, Op]) -> bool:
    """A scalar step right after another one: both are one multiply-add."""
    if op.function not in _SCALAR_AFFINE or not scalars_of(op):
        return False
    name = op.operands[0]
    while name in producers and (
        producers[name].kind in ("view", "cast") or producers[name].function in ("neg", "clone", "identity")
    ):
        name = producers[name].operands[0]
    before = producers.get(name)
    return (
        before is not None and before.kind == "map" and before.function in _SCALAR_AFFINE and bool(scalars_of(before))
    )


def _feeding(program: Program, demand: Demand) -> frozenset[str]:
    """Tensors that a contraction of two operands or a triangular system reads, through linear steps."""
    found: set[str] = set()
    for op in reversed(program.ops):
        if (op.kind == "einsum" and len(op.operands) > 1) or op.function == "triangular_solve":
            if any(_touched(demand.needed.get(name, ())) for name in op.outputs):
                found.update(op.operands)
        elif is_pointwise_linear(program, op) and any(name in found for name in op.outputs):
            found.update(op.operands)
    return frozenset(found)


def _unpacked(program: Program, narrowest: Mapping[str, str]) -> frozenset[str]:
    """What only brings codes of four bits into the shape that a contraction is written in: it takes them packed."""
    readers = program.consumers()
    feeding: set[str] = set()
    made: set[str] = set()
    kept = {name for _, name in program.outputs}
    for op in reversed(program.ops):
        name = op.outputs[0] if op.outputs else ""
        if name in kept or any(
            reader.kind != "einsum" and not feeding.issuperset(reader.outputs) for reader in readers.get(name, ())
        ):
            continue
        given = {narrowest[operand] for operand in op.operands}
        coded = narrowest.get(name) in CODES or bool(given & CODES and given <= {*CODES, "bool"})
        if coded or is_pointwise_linear(program, op) or op.kind in ("cast", "copy"):
            feeding.add(name)
        if coded and op.kind == "map":
            made.add(name)
    return frozenset(made)


def _folded(program: Program, demand: Demand, op: Op, name: str, size: int, folded: Mapping[str, int]) -> int:
    """Elements that a sum over a tensor has to touch at least: those of its largest part, if it is a linear mix."""
    read = min(size, rg.count(demand.needed.get(name, ())))
    if op.kind in ("view", "cast") or op.function == "clone":
        return min(read, folded.get(op.operands[0], rg.count(demand.needed.get(op.operands[0], ()))))
    if is_pointwise_linear(program, op) and len(op.operands) > 1 and op.function in ("add", "sub", "mul"):
        parts: Sequence[int] = [folded.get(part, rg.count(demand.needed.get(part, ()))) for part in op.operands]
        return min(read, max(parts))
    return read
