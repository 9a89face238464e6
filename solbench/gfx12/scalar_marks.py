"""Marks that scalar instructions carry: bit by bit where their results are made so, else of whole values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from solbench.gfx12.defined import SCC, Defined
from solbench.gfx12.integers import Array
from solbench.gfx12.marks import CLEAN
from solbench.gfx12.op import Op
from solbench.gfx12.operands import EXEC, NULL, Operand
from solbench.gfx12.state import LANES, State

# Registers to mark: kind, number, marks, and the lanes that they are for (None: all).
Carry = Callable[[State, Defined], list[tuple[str, int, Array, Any]]]
# Scalar instructions whose result's bits depend on the same bits of their operands alone.
_BITWISE = re.compile(r"s_(mov|not|and|or|xor|nand|nor|xnor|and_not1|or_not1|cselect|cmov)_b(32|64)")
# 64-bit arithmetic whose lower word needs the lower words of its operands alone.
UPWARDS = re.compile(r"v_mad_co_[iu]64_[iu]32|[sv]_(add|sub)_nc_u64|s_mul_u64|v_lshlrev_b64|s_lshl_b64")
COPIES: Final = frozenset({"v_mov_b32", "v_mov_b16", "v_swap_b32", "s_mov_b32", "s_mov_b64"})


def scalar_marks(entry: Op, written: Sequence[Operand], sources: Sequence[Operand], number: int) -> Carry:
    """What a scalar instruction of the table does to marks."""
    bitwise = _BITWISE.fullmatch(entry.name) is not None
    name = ", ".join(source.text for source in sources if source.text)
    words = max((operand.count for operand in written if operand.kind == "s"), default=1)
    absorbing = {"and": (False, False), "or": (True, True), "and_not1": (False, True), "or_not1": (True, False)}
    match = re.fullmatch(r"s_(and|or|and_not1|or_not1)(_saveexec|_wrexec)?_b(32|64)", entry.name)
    absorbs = absorbing[match[1]] if match else None
    upwards = UPWARDS.fullmatch(entry.name) is not None

    def bits(m: State, operand: Operand, word: int) -> Array:
        """Bits that a scalar operand holds, bool (waves, 32) or (1, 32)."""
        if operand.kind == "s" and operand.register != NULL:
            return m.mask_of(operand.register + (word if operand.count > 1 else 0))
        value = int(operand.value) if operand.kind == "number" else 0
        return np.array([[bool(value >> 32 * word + lane & 1) for lane in range(LANES)]])

    def one(m: State, marks: Defined, operand: Operand, kind: str, word: int) -> Array:
        if kind == "scc" or operand.kind == "scc":
            return marks.value(m, "s", SCC)
        if operand.kind != "s" or operand.register in (NULL, EXEC, EXEC + 1):
            return CLEAN
        return marks.of(m, "s", operand.register + (word if operand.count > 1 else 0))

    def combined(m: State, marks: Defined, word: int) -> Array:
        parts = [one(m, marks, s, k, word) for s, k in zip(sources, entry.src, strict=True) if k != "exec"]
        if entry.name.startswith("s_cselect"):
            scc = m.scc if m.selected is None else m.scc[m.selected]
            return np.maximum(np.where(scc[:, None], parts[0], parts[1]), parts[2])
        found = CLEAN
        for part in parts:
            found = np.maximum(found, part)
        if absorbs is not None and found.any():
            # A bit that decides alone needs no other: 0 of an AND, 1 of an OR.
            operands = [s for s, k in zip(sources, entry.src, strict=True) if k != "exec"]
            operands += [Operand("s", EXEC, operands[0].count)] if len(operands) == 1 else []
            parts += [CLEAN] if len(parts) == 1 else []
            for operand, part, decides in zip(operands, parts, absorbs, strict=False):
                found = np.where((bits(m, operand, word) == decides) & (part == 0), np.uint32(0), found)
        if entry.reads_dst:
            found = np.maximum(found, one(m, marks, written[0], "b32", word))
        return found

    def carry(m: State, marks: Defined) -> list[tuple[str, int, Array, Any]]:
        found = [combined(m, marks, word) for word in range(words)]
        if not any(part.any() for part in found):
            every = CLEAN
        else:
            if entry.name not in COPIES:
                found = [marks.read_by(part, number, name) for part in found]
            every = found[0].max(axis=1, keepdims=True)
            for part in found[1:]:
                every = np.maximum(every, part.max(axis=1, keepdims=True))
        results: list[tuple[str, int, Array, Any]] = []
        for operand, kind in zip(written, entry.dst, strict=True):
            if kind == "scc":
                results.append(("s", SCC, every, None))
            elif kind == "exec" or operand.register == EXEC:
                marks.matters(m, number, found[0], None, name)
                if kind != "exec":
                    continue
            elif operand.register != NULL:
                if "saveexec" in entry.name:
                    found_here = [CLEAN] * words
                else:
                    found_here = found if bitwise or absorbs is not None else [every] * words
                    if upwards:
                        found_here = [found[0].max(axis=1, keepdims=True), every]
                results += [("s", operand.register + n, found_here[n], None) for n in range(operand.count)]
        return results

    return carry
