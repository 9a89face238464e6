"""Choices between a value and that value with something added: the value counts, whichever is chosen."""

from __future__ import annotations

from dataclasses import replace

from solar.einsum import Op, Program


def pulled_out(program: Program) -> Program:
    """The same program with ``where(c, a + b, a)`` as ``a + where(c, b, 0)``, and ``where(c, a, a + b)`` likewise."""
    producers = program.producers()
    tensors = dict(program.tensors)
    ops: list[Op] = []
    for op in program.ops:
        added = _added(program, producers.get(op.operands[1]), op.operands[2]) if _chooses(op) else None
        other = _added(program, producers.get(op.operands[2]), op.operands[1]) if _chooses(op) else None
        if added is None and other is None:
            ops.append(op)
            continue
        term = added or other
        assert term is not None
        kept, zero = (op.operands[2], "2") if added is not None else (op.operands[1], "1")
        chosen = f"{op.outputs[0]}.chosen"
        tensors[chosen] = tensors[op.outputs[0]]
        attributes = {**op.attributes, "scalars": {zero: 0}}
        ops.append(Op(f"{op.name}.chosen", "map", "where", (op.operands[0], term), (chosen,), attributes))
        ops.append(replace(op, function="add", operands=(kept, chosen)))
    return program if len(ops) == len(program.ops) else replace(program, ops=tuple(ops), tensors=tensors)


def _chooses(op: Op) -> bool:
    return op.kind == "map" and op.function == "where" and len(op.operands) == 3


def _added(program: Program, op: Op | None, kept: str) -> str | None:
    """What a sum adds to ``kept``, where the sum has its shape and dtype."""
    if op is None or op.kind != "map" or op.function != "add" or len(op.operands) != 2 or kept not in op.operands:
        return None
    if program.tensors[op.outputs[0]] != program.tensors[kept]:
        return None
    return op.operands[1] if op.operands[0] == kept else op.operands[0]
