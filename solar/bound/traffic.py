"""Bytes that have to move: inputs by what is read of them, outputs by what is written (rules 1 and 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solar.bound import regions as rg
from solar.bound.demand import Demand
from solar.bound.facts import Facts
from solar.bound.regions import Region, everything
from solar.bound.views import pull_view
from solar.bound.writes import changed
from solar.einsum import DTYPE_BITS, Op, Program

# Views that show no element twice.
_ONCE = frozenset(("permute", "reshape", "squeeze", "unsqueeze", "slice", "select"))


@dataclass(frozen=True)
class Moved:
    """One declared tensor: bytes that must move, and bytes that its declaration names."""

    name: str
    role: str
    live_bytes: int
    declared_bytes: int


def moved(program: Program, facts: Facts, demand: Demand) -> list[Moved]:
    """Every declared input and output, in declared order; what two outputs show of one tensor is written once.

    An input counts once, by the elements that anything needs of it, read directly or through views; one whose contents
    are the same in every draw need not be read. An output is written in full, in its own dtype; one that is an input in
    place is written where the reference changes it.
    """
    result = []
    for declared, name in program.inputs:
        tensor = program.tensors[name]
        read = 0 if name in facts.fixed else rg.count(demand.needed.get(name, ()))
        result.append(Moved(declared, "input", _bytes(read, tensor.dtype), tensor.bytes))
    inputs = dict(program.inputs)
    producers = program.producers()
    shown: dict[str, Region] = {}
    for declared, name in program.outputs:
        tensor = program.tensors[name]
        written = tensor.elements
        if declared in program.aliases:
            written = rg.count(changed(program, name, inputs.get(program.aliases[declared])))
        else:
            base, region = _base(program, producers, name)
            before = shown.get(base, ())
            shown[base] = rg.unite(before, region)
            written = rg.count(shown[base]) - rg.count(before)
        result.append(Moved(declared, "output", _bytes(written, tensor.dtype), tensor.bytes))
    return result


def _base(program: Program, producers: Mapping[str, Op], name: str) -> tuple[str, Region]:
    """The tensor that an output is a view of, and the elements of it, each of them once."""
    region: Region = (everything(program.tensors[name].shape),)
    while name in producers and producers[name].kind == "view" and producers[name].function in _ONCE:
        op = producers[name]
        shape = program.tensors[op.operands[0]].shape
        found = [part for block in region for part in pull_view(op.function, op.attributes, block, shape, (1, 1))]
        pulled = rg.region(*found)
        if rg.count(pulled) < rg.count(region):
            break
        name, region = op.operands[0], pulled
    return name, region


def live(items: Sequence[Moved], role: str) -> int:
    return sum(item.live_bytes for item in items if item.role == role)


def _bytes(elements: int, dtype: str) -> int:
    return (elements * DTYPE_BITS[dtype] + 7) // 8
