"""Which loads read at addresses that depend on what was loaded before: gathers, which no layout makes wider.

Registers are followed forwards through the control flow: what a load brings is data, and so is what is computed from
data. Arguments of the kernel (scalar loads) are not data. Where ways join, a register is data if it is on one of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from solbench.code.assembly import Function, Operation
from solbench.code.loops import Flow
from solbench.code.mix import engine
from solbench.code.scalars import writes_scc

# Rounds over all blocks; registers that are data only grow in number, so that few are needed.
MAX_ROUNDS = 16
# A card has no register of a higher number, whatever a text says.
MAX_VGPR = 255
_REGISTER = re.compile(r"(?<![\w.])([vs])(?:(\d{1,3})|\[(\d{1,3}):(\d{1,3})\])|\b(vcc|exec)")
_ACCUMULATES = re.compile(r"v_(dual_)?(fmac|dot2acc|pk_fmac|wmma|swmmac)|s_fmac")
_LOW_ALONE = ("v_mad_co_u64_u32", "v_mad_co_i64_i32", "v_lshlrev_b64")
_IMPLICIT_VCC = ("v_dual_cndmask", "v_div_fmas")
_READ_SCC = ("s_cselect", "s_cmov", "s_add_co_ci", "s_sub_co_ci")
_BRING = ("global_load", "flat_load", "lds_load", "scratch_load", "lds_permute")
_STORE = (
    "global_store",
    "flat_store",
    "lds_store",
    "scratch_store",
    "branch",
    "wait",
    "barrier",
    "hint",
    "cache",
    "end",
)


def gathering_lines(function: Function, flow: Flow) -> frozenset[int]:
    """Lines of the loads whose addresses depend on data."""
    known: dict[int, frozenset[str]] = {0: frozenset()}
    found: set[int] = set()
    for _ in range(MAX_ROUNDS):
        changed = False
        for block in flow.order:
            if block not in known:
                continue
            data = set(known[block])
            for instruction in function.instructions[flow.blocks[block].start : flow.blocks[block].end]:
                if _step(instruction.operations, data):
                    found.add(instruction.line)
            for successor in flow.blocks[block].successors:
                joined = known.get(successor, frozenset()) | data
                if known.get(successor) != joined:
                    known[successor] = frozenset(joined)
                    changed = True
        if not changed:
            break
    return frozenset(found)


def _step(operations: Sequence[Operation], data: set[str]) -> bool:
    """Bring ``data`` from before an instruction to after it; whether it loads at an address that is data."""
    gathers = False
    after: list[tuple[frozenset[str], bool, bool]] = []
    for operation in operations:
        used = engine(operation.mnemonic) or ""
        operands = operation.operands
        if not operands or used in _STORE:
            continue
        if operation.mnemonic.startswith(("s_cmp", "s_bitcmp")):
            (data.discard if data.isdisjoint(_named(operands)) else data.add)("scc")
            continue
        results = 2 if "_co_" in operation.mnemonic or "div_scale" in operation.mnemonic else 1
        written = _named(operands[:results])
        first = 0 if _ACCUMULATES.match(operation.mnemonic) else results
        tainted = not data.isdisjoint(_named(operands[first:]))
        if operation.mnemonic.startswith(_IMPLICIT_VCC):
            tainted |= "vcc" in data
        if used == "salu":
            tainted |= "scc" in data and operation.mnemonic.startswith(_READ_SCC)
            if writes_scc(operation.mnemonic):
                (data.add if tainted else data.discard)("scc")
        if used in ("global_load", "flat_load") and tainted:
            gathers = True
        brings = used in _BRING or ("atomic" in used and "TH_ATOMIC_RETURN" in operands[-1])
        if "atomic" in used and not brings:
            continue
        # Half a register written: the other half stays what it was.
        part = operands[0].endswith((".l", ".h")) or "d16" in operation.mnemonic
        if operation.mnemonic.startswith(_LOW_ALONE) and tainted:
            # The low half of the result does not depend on the high half of the last operand, often left as it was.
            low, high = _half(operands[0], 1), _half(operands[-1], 2)
            if low and data.isdisjoint(_named(operands[first:-1]) | (_named(operands[-1:]) - {high})):
                after.append((frozenset({low}), False, False))
                written -= {low}
        after.append((written, tainted or brings, part))
    # Both halves of a VOPD read before either writes.
    for written, is_data, part in after:
        if is_data:
            data |= written
        elif not part:
            data -= written
    return gathers


def _half(operand: str, half: int) -> str | None:
    """The first or second register of a pair of vector registers."""
    pair = _REGISTER.fullmatch(operand)
    return f"v{pair[2 + half]}" if pair and pair[1] == "v" and pair[3] else None


def _named(operands: Sequence[str]) -> frozenset[str]:
    return frozenset().union(*map(registers, operands))


@lru_cache(maxsize=1 << 14)
def registers(operand: str) -> frozenset[str]:
    """The vector and scalar registers that an operand names."""
    found: set[str] = set()
    for kind, one, low, high, mask in _REGISTER.findall(operand):
        if mask:
            found.add(mask)
        elif one:
            found.add(kind + one)
        else:
            found.update(f"{kind}{number}" for number in range(int(low), min(int(high), MAX_VGPR) + 1))
    return frozenset(found)
