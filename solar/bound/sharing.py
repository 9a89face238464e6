"""A program without repeated operations: what is computed twice needs computing once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from solar.einsum import Op, Program

# Attributes that say where an operation came from, not what it does.
_ORIGIN = frozenset(("source", "node", "implicit"))


def shared(program: Program) -> Program:
    """The same program with equal operations of equal operands merged (random draws stay apart).

    Declared inputs and outputs keep their declared names; only tensors of repeated operations disappear.
    """
    alias: dict[str, str] = {}
    seen: dict[Any, Op] = {}
    ops: list[Op] = []
    for op in program.ops:
        operands = tuple(alias.get(name, name) for name in op.operands)
        if operands != op.operands:
            op = replace(op, operands=operands)
        if op.function == "random":
            ops.append(op)
            continue
        outputs = tuple((program.tensors[name].shape, program.tensors[name].dtype) for name in op.outputs)
        attributes = {key: value for key, value in op.attributes.items() if key not in _ORIGIN}
        key = (op.kind, op.function, operands, outputs, _frozen(attributes))
        first = seen.setdefault(key, op)
        if first is op:
            ops.append(op)
        else:
            alias.update(zip(op.outputs, first.outputs, strict=True))
    if not alias:
        return replace(program, ops=tuple(ops))
    return replace(
        program,
        ops=tuple(ops),
        outputs=tuple((declared, alias.get(name, name)) for declared, name in program.outputs),
        values={alias.get(name, name): contents for name, contents in program.values.items()},
    )


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted((str(key), _frozen(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    return (type(value).__name__, value)
