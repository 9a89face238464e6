"""Registers that an instruction reads and writes, by its text: what analyses of waits and matrix operands need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from solbench.code.assembly import Operation
from solbench.gfx12.arithmetic import name_of
from solbench.gfx12.operands import EXEC, NULL, VCC, Operand, Unreadable, parse, split
from solbench.gfx12.ops import OPS
from solbench.gfx12.program import Instruction, Program

# Instructions outside of the table whose first operand is a result.
_RESULT_FIRST = (
    "s_load_", "s_buffer_load_", "buffer_load_", "global_load_", "flat_load_", "scratch_load_", "ds_load_",
    "ds_bpermute", "ds_permute", "ds_swizzle", "v_wmma_", "v_swmmac_", "s_getpc_b64", "s_swappc_b64", "s_call_b64",
    "s_getreg_b32", "v_movrels",
)  # fmt: skip


@dataclass(frozen=True)
class Uses:
    """Registers as (kind, number): kind ``v`` or ``s``. Masks count as their scalar registers; EXEC is left out."""

    reads: tuple[tuple[str, int], ...]
    writes: tuple[tuple[str, int], ...]


@lru_cache(maxsize=1 << 16)
def uses(held: Instruction) -> Uses:
    """What an instruction reads and writes; what is not understood counts as read and written."""
    reads: list[tuple[str, int]] = []
    writes: list[tuple[str, int]] = []
    for operation in held.operations:
        read, written = _of(operation)
        reads += _registers(read)
        writes += _registers(written)
    return Uses(tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)))


def _of(operation: Operation) -> tuple[list[Operand], list[Operand]]:
    name = name_of(operation)
    texts, modifiers = split(operation)
    operands = _readable(texts)
    entry = OPS.get(name)
    if entry is not None:
        printed = [kind for kind in entry.dst if kind not in ("scc", "vcc", "exec")]
        written, read = operands[: len(printed)], operands[len(printed) :]
        if entry.reads_dst:
            read = [*read, written[0]]
        if name.startswith("v_swap"):
            read, written = operands, operands
        if "mask" in (*entry.src, *entry.dst) or "vcc" in (*entry.src, *entry.dst):
            implied = Operand("s", VCC)
            if len(read) < sum(kind not in ("scc", "exec") for kind in entry.src) and "mask" in entry.src:
                read = [*read, implied]
            if "vcc" in entry.src:
                read = [*read, implied]
        return read, written
    if name.startswith(_RESULT_FIRST):
        return operands[1:], operands[:1]
    if "_atomic_" in name and "RETURN" in modifiers.values.get("th", ""):
        return (operands, operands[:1]) if name.startswith("buffer_") else (operands[1:], operands[:1])
    if name.startswith("ds_") and "_rtn_" in name:
        return operands[1:], operands[:1]
    if "_store_" in name or "_atomic_" in name or name.startswith(("ds_", "s_set", "s_barrier", "s_wait", "s_send")):
        return operands, []
    return operands, operands


def _readable(texts: Sequence[str]) -> list[Operand]:
    found = []
    for text in texts:
        try:
            found.append(parse(text))
        except Unreadable:
            continue
    return found


def _registers(operands: Iterable[Operand]) -> list[tuple[str, int]]:
    return [
        (operand.kind, operand.register + n)
        for operand in operands
        if operand.kind in ("v", "s") and not (operand.kind == "s" and operand.register == NULL)
        for n in range(operand.count)
        if not (operand.kind == "s" and operand.register + n in (EXEC, EXEC + 1))
    ]


def named_registers(program: Program) -> int:
    """Vector registers up to the highest that any instruction names."""
    if "registers" not in program.compiled:
        named = (
            n for held in program.instructions for kind, n in (*uses(held).reads, *uses(held).writes) if kind == "v"
        )
        program.compiled["registers"] = max(named, default=0) + 1
    count: int = program.compiled["registers"]
    return count
