"""Scalar registers whose values are constants, step by step through machine code: enough to count a loop's trips.

Semantics: "RDNA4 Instruction Set Architecture Reference Guide" of AMD, chapter 16.1 to 16.5. Only what loop counters
are made of is interpreted; every other instruction makes what it writes unknown. One thing is assumed: a wave that runs
has active lanes, so that a mask ANDed with EXEC keeps whether it is all ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from solbench.code.assembly import Instruction


class Mask(Enum):
    """A value known only not to be 0: EXEC, or what is left of all ones under it."""

    EXEC = "exec"


Value = int | Mask
# Register to value, 32 bits without sign; SCC is "scc". What is not there is unknown.
State = dict[str, Value]

# A card has no register of a higher number, whatever a text says.
MAX_SGPR: Final = 127
_BITS: Final = 0xFFFFFFFF
_RANGE = re.compile(r"s\[(\d{1,3}):(\d{1,3})\]")
_SINGLE = re.compile(r"s\d{1,3}|vcc_lo|vcc_hi|m0|ttmp\d{1,2}")
_NUMBER = re.compile(r"0|-?[1-9]\d{0,9}|0x[0-9a-f]{1,8}")
# Scalar instructions that leave SCC alone, besides loads, waits, branches and moves of 64 bits.
_KEEP_SCC = re.compile(
    r"s_(mov|movk|cmov|cmovk|cselect|mul|mulk|load|buffer_load|wait|nop|delay|clause|branch|cbranch|pack|sext|getreg"
    r"|setreg|prefetch|barrier_signal(?!_isfirst)|barrier_wait|sendmsg|setprio|sleep|dcache|bitset|brev|ff|ctz|clz|cls|getpc"
    r"|add_nc|sub_nc|add_f|sub_f|fma|min_num|max_num|minimum|maximum|cvt|round|denorm|code_end|endpgm)(_|\d|$)"
)
# Instructions whose first operand is no result: compares to SCC or EXEC, branches, waits.
_WRITE_NONE = ("s_cmp", "s_bitcmp", "s_branch", "s_cbranch", "s_wait", "s_setreg", "v_cmpx")
_CALLS = ("s_swappc_b64", "s_call_b64", "s_movreld_b32", "s_movreld_b64", "s_movrelsd_2_b32")


def signed(value: int) -> int:
    """32 bits as a signed number."""
    return value - (value >> 31 << 32)


_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
}  # fmt: skip
# Result of a register and a constant of 16 bits with sign.
_SHORT: Final[dict[str, Callable[[int, int], int]]] = {
    "s_movk_i32": lambda a, b: b, "s_addk_co_i32": lambda a, b: a + b, "s_mulk_i32": lambda a, b: a * b,
}  # fmt: skip
# Result of two 32-bit operands; SCC becomes "the result is not 0" (True), unknown (False) or stays (None).
_BINARY: Final[dict[str, tuple[Callable[[int, int], int], bool | None]]] = {
    "s_add_co_u32": (lambda a, b: a + b, False), "s_add_co_i32": (lambda a, b: a + b, False),
    "s_sub_co_u32": (lambda a, b: a - b, False), "s_sub_co_i32": (lambda a, b: a - b, False),
    "s_mul_i32": (lambda a, b: a * b, None),
    "s_lshl_b32": (lambda a, b: a << (b & 31), True), "s_lshr_b32": (lambda a, b: a >> (b & 31), True),
    "s_ashr_i32": (lambda a, b: signed(a) >> (b & 31), True),
    "s_and_b32": (lambda a, b: a & b, True), "s_or_b32": (lambda a, b: a | b, True),
    "s_xor_b32": (lambda a, b: a ^ b, True), "s_and_not1_b32": (lambda a, b: a & ~b, True),
    "s_or_not1_b32": (lambda a, b: a | (~b & _BITS), True),
    "s_min_i32": (lambda a, b: min(signed(a), signed(b)), False),
    "s_max_i32": (lambda a, b: max(signed(a), signed(b)), False),
    "s_min_u32": (min, False), "s_max_u32": (max, False),
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One instruction that changes scalar registers: its name, its operands, and the registers that it may write."""

    mnemonic: str
    operands: tuple[str, ...]
    written: tuple[str, ...]
    everything: bool


def steps(instructions: Sequence[Instruction]) -> tuple[Step, ...]:
    """The instructions of a block that change a scalar register or SCC."""
    found: list[Step] = []
    for instruction in instructions:
        for operation in instruction.operations:
            name, operands = operation.mnemonic, operation.operands
            if name in _CALLS:
                found.append(Step(name, operands, (), True))
                continue
            written = _written(name, operands)
            if writes_scc(name):
                written = (*written, "scc")
            if written:
                found.append(Step(name, operands, written, False))
    return tuple(found)


def writes_scc(mnemonic: str) -> bool:
    """Whether an instruction may write SCC."""
    return mnemonic.startswith("s_") and not _KEEP_SCC.match(mnemonic)


def run(block: Sequence[Step], state: State) -> None:
    """Bring ``state`` from before the steps of a block to after them."""
    for step in block:
        if step.everything:
            state.clear()
            continue
        after = _interpreted(step, state)
        for register in step.written:
            state.pop(register, None)
        state.update(after)


def taken(branch: str, state: Mapping[str, Value]) -> bool | None:
    """Whether a conditional branch is taken; None where the state does not tell."""
    if branch.startswith("s_cbranch_scc"):
        value = state.get("scc")
        return None if value is None else (value != 0) == branch.endswith("1")
    if branch.startswith("s_cbranch_vcc"):
        value = state.get("vcc_lo")
        return None if value is None else (value != 0) == branch.endswith("nz")
    return None


def _interpreted(step: Step, state: State) -> State:
    """What is known after a step of what it writes."""
    name, operands = step.mnemonic, step.operands
    if name.startswith("s_cmp_") and name.endswith(("_i32", "_u32")) and len(operands) == 2:
        first, second = _value(operands[0], state), _value(operands[1], state)
        if isinstance(first, int) and isinstance(second, int):
            if name.endswith("i32"):
                first, second = signed(first), signed(second)
            return {"scc": int(_COMPARE[name[6:8]](first, second))}
        return {}
    if not operands or len(step.written) < 1 or not _SINGLE.fullmatch(operands[0]):
        return _wide(step, state)
    result = operands[0]
    if name == "s_mov_b32" and len(operands) == 2:
        value = _value(operands[1], state)
        return {} if value is None else {result: value}
    if name in _SHORT and len(operands) == 2 and _NUMBER.fullmatch(operands[1]):
        first = state.get(result)
        if name != "s_movk_i32" and not isinstance(first, int):
            return {}
        return {result: _SHORT[name](first if isinstance(first, int) else 0, _signed16(operands[1])) & _BITS}
    if name == "s_cselect_b32" and len(operands) == 3 and "scc" in state:
        value = _value(operands[1 if state["scc"] else 2], state)
        return {} if value is None else {result: value}
    if name in _BINARY and len(operands) == 3:
        return _binary(name, result, _value(operands[1], state), _value(operands[2], state))
    return {}


def _binary(name: str, result: str, first: Value | None, second: Value | None) -> State:
    function, flag = _BINARY[name]
    if isinstance(first, int) and isinstance(second, int):
        value = function(first, second) & _BITS
        return {result: value, "scc": int(value != 0)} if flag else {result: value}
    if name == "s_and_b32" and Mask.EXEC in (first, second):
        other = second if first is Mask.EXEC else first
        if other in (0, _BITS):
            return {result: 0, "scc": 0} if other == 0 else {result: Mask.EXEC, "scc": 1}
    if name == "s_and_not1_b32" and first is Mask.EXEC and second in (0, _BITS):
        return {result: Mask.EXEC, "scc": 1} if second == 0 else {result: 0, "scc": 0}
    return {}


def _wide(step: Step, state: State) -> State:
    """Moves and sums of 64 bits, as two registers."""
    target = registers(step.operands[0]) if step.operands else ()
    if len(target) != 2 or step.mnemonic not in ("s_mov_b64", "s_add_nc_u64", "s_sub_nc_u64"):
        return {}
    values = [_pair(operand, state) for operand in step.operands[1:]]
    if None in values or len(values) != (1 if step.mnemonic == "s_mov_b64" else 2):
        return {}
    known = [value for value in values if value is not None]
    total = known[0] if len(known) == 1 else known[0] + (known[1] if step.mnemonic[2] == "a" else -known[1])
    return {target[0]: total & _BITS, target[1]: total >> 32 & _BITS}


def _pair(operand: str, state: State) -> int | None:
    if _NUMBER.fullmatch(operand):
        return int(operand, 0) & 0xFFFFFFFFFFFFFFFF
    names = registers(operand)
    low, high = (state.get(names[0]), state.get(names[1])) if len(names) == 2 else (None, None)
    return low | high << 32 if isinstance(low, int) and isinstance(high, int) else None


def _value(operand: str, state: Mapping[str, Value]) -> Value | None:
    if operand == "exec_lo":
        return Mask.EXEC
    if _NUMBER.fullmatch(operand):
        return int(operand, 0) & _BITS
    return state.get(operand)


def _signed16(operand: str) -> int:
    value = int(operand, 0) & 0xFFFF
    return value - (value >> 15 << 16)


@lru_cache(maxsize=1 << 14)
def registers(operand: str) -> tuple[str, ...]:
    """The scalar registers that an operand names; empty for anything else. EXEC counts as none: it is never known."""
    spread = _RANGE.fullmatch(operand)
    if spread:
        return tuple(f"s{number}" for number in range(int(spread[1]), min(int(spread[2]), MAX_SGPR) + 1))
    if operand == "vcc":
        return ("vcc_lo", "vcc_hi")
    return (operand,) if _SINGLE.fullmatch(operand) else ()


def _written(name: str, operands: Sequence[str]) -> tuple[str, ...]:
    """Scalar registers that an instruction may write: its first operand, and the carry that VALU writes second."""
    if not operands or name.startswith(_WRITE_NONE):
        return ()
    found = registers(operands[0])
    if name.startswith("v_") and len(operands) > 1 and ("_co_" in name or "div_scale" in name):
        found += registers(operands[1])
    return found
