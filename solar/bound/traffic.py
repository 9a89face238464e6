"""Bytes that have to move: inputs by what is read of them, outputs by what is written (rules 1 and 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solar.bound import regions as rg
from solar.bound.demand import Demand
from solar.bound.facts import Facts
from solar.bound.writes import changed
from solar.einsum import DTYPE_BITS, Program


@dataclass(frozen=True)
class Moved:
    """One declared tensor: bytes that must move, and bytes that its declaration names."""

    name: str
    role: str
    live_bytes: int
    declared_bytes: int


def moved(program: Program, facts: Facts, demand: Demand) -> list[Moved]:
    """Every declared input and output, in declared order.

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
    for declared, name in program.outputs:
        tensor = program.tensors[name]
        written = tensor.elements
        if declared in program.aliases:
            written = rg.count(changed(program, name, inputs.get(program.aliases[declared])))
        result.append(Moved(declared, "output", _bytes(written, tensor.dtype), tensor.bytes))
    return result


def live(items: Sequence[Moved], role: str) -> int:
    return sum(item.live_bytes for item in items if item.role == role)


def _bytes(elements: int, dtype: str) -> int:
    return (elements * DTYPE_BITS[dtype] + 7) // 8
