"""Instructions that steer waves: branches, calls, barriers, mode registers; and those that emulation need not do.

Names: "RDNA4 Instruction Set Architecture Reference Guide", chapters 4, 5 and 16. What is a hint, a wait for something
that is done at once here, or about caches that are not there, does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from solbench.gfx12.access import scalar_reader
from solbench.gfx12.integers import Array
from solbench.gfx12.operands import EXEC, VCC, Operand, Unreadable, parse
from solbench.gfx12.results import scalar_writer, scc_writer
from solbench.gfx12.state import State, Step, Unsupported

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

# What the end of a block says of where its waves go: a block for all, or one a wave; PARKED - block waits there.
Next = Any
ENDED: Final = -(1 << 30)
PARKED: Final = -1
NOTHING = re.compile(
    r"s_(nop|clause|delay_alu|wait_alu|wait_idle|wait_event|sleep|sleep_var|setprio|code_end|icache_inv|dcache_inv|"
    r"sethalt|wakeup|prefetch_\w+|buffer_prefetch_data|ttracedata\w*|incperflevel|decperflevel|version)|"
    r"(global|buffer|flat)_(wb|wbinv)|v_nop|v_pipeflush|ds_nop"
)
WAITS = re.compile(r"s_wait_(loadcnt|storecnt|samplecnt|bvhcnt|expcnt|dscnt|kmcnt|loadcnt_dscnt|storecnt_dscnt)")
# The mode register (hwreg 1) at the start: round to nearest, denormals kept.
_MODE: Final = 0xF0
_OVERFLOW_BIT: Final = 23
_HWREG = re.compile(r"hwreg\((\w+)(?:,\s*(\d+),\s*(\d+))?\)")
_MODES: Final = frozenset({"HW_REG_MODE", "HW_REG_WAVE_MODE", "1"})
_ENDS: Final = frozenset(
    {"s_branch", "s_endpgm", "s_endpgm_saved", "s_setpc_b64", "s_swappc_b64", "s_call_b64", "s_barrier_wait", "s_trap"}
)


def ends_block(name: str) -> bool:
    """Whether waves may part at this instruction."""
    return name in _ENDS or name.startswith("s_cbranch_")


def step(held: Instruction, name: str, texts: Sequence[str]) -> Step | None:
    """The step of an instruction that leaves waves together; None for one that is not of this module."""
    if name in ("s_barrier_signal", "s_barrier_signal_isfirst"):
        if texts != ("-1",):
            raise Unsupported(f"{name} {', '.join(texts)}")

        def signal(m: State) -> None:
            if m.waits is not None:
                m.waits.signal(m, held)
            first = m.barriers.signal(m)
            if name != "s_barrier_signal":
                scc_writer(m, first)

        return signal
    if name in ("global_inv", "buffer_inv", "flat_inv"):
        # Within a group there is nothing to do: its waves see what they wrote.
        return _fence if any("SCOPE_DEV" in text or "SCOPE_SYS" in text for text in texts) else _nothing
    if name == "s_getpc_b64":
        write = scalar_writer(parse(texts[0]), "u64")
        after = held.address + held.size
        return lambda m: write(m, np.uint64(m.image + after))
    if name in ("s_setreg_imm32_b32", "s_setreg_b32"):
        return _set_mode(name, texts)
    if name == "s_getreg_b32":
        return _get_mode(texts)
    if name == "s_sendmsg":
        if "DEALLOC_VGPRS" not in texts[0]:
            raise Unsupported(f"s_sendmsg {texts[0]}")
        return lambda m: None
    if name in ("s_round_mode", "s_denorm_mode"):
        raise Unsupported(name)
    return None


def _fence(m: State) -> None:
    if m.races is not None:
        m.races.fence(m)


def _nothing(m: State) -> None:
    del m


def _field(text: str) -> tuple[int, int]:
    match = _HWREG.fullmatch(text)
    if not match or match[1] not in _MODES:
        raise Unsupported(f"the register {text}")
    return int(match[2] or 0), int(match[3] or 32)


def _set_mode(name: str, texts: Sequence[str]) -> Step:
    """Only FP16_OVFL may change: rounding and denormals are those that a program starts with."""
    first, bits = _field(texts[0])
    read = scalar_reader(parse(texts[1]), "u32")
    mask = ((1 << bits) - 1) << first

    def write(m: State) -> None:
        values = np.broadcast_to(read(m), (m.count,)).astype(np.uint64) << np.uint64(first)
        kept = 0xFF & mask
        if kept and (values & np.uint64(kept) != np.uint64(_MODE & kept)).any():
            raise Unsupported(f"{name} of rounding or denormals")
        if mask >> _OVERFLOW_BIT & 1:
            on = values >> np.uint64(_OVERFLOW_BIT) & np.uint64(1) == 1
            m.saturates |= bool(on.any())
            m.overflow[slice(None) if m.selected is None else m.selected] = on

    return write


def _get_mode(texts: Sequence[str]) -> Step:
    first, bits = _field(texts[1])
    write = scalar_writer(parse(texts[0]), "u32")

    def read(m: State) -> None:
        overflow = m.overflow if m.selected is None else m.overflow[m.selected]
        mode = np.uint32(_MODE) | overflow.astype(np.uint32) << np.uint32(_OVERFLOW_BIT)
        write(m, mode >> np.uint32(first) & np.uint32((1 << bits) - 1))

    return read


# ---- ends of blocks


def end(
    held: Instruction, name: str, texts: Sequence[str], blocks: Mapping[int, int], after: int
) -> Callable[[State], Next]:
    """Where waves go from the last instruction of a block. ``blocks``: address to block; ``after``: the next block."""
    if name == "s_branch":
        target = blocks[held.target if held.target is not None else -1]
        return lambda m: target
    if name.startswith("s_cbranch_"):
        return _conditional(name, blocks[held.target if held.target is not None else -1], after)
    if name in ("s_endpgm", "s_endpgm_saved"):
        return lambda m: ENDED
    if name == "s_barrier_wait":
        return lambda m: m.barriers.wait(m, after)
    if name == "s_call_b64":
        return _call(held, parse(texts[0]), blocks[held.target if held.target is not None else -1])
    if name == "s_setpc_b64":
        return _jump(held, parse(texts[0]), None, blocks)
    if name == "s_swappc_b64":
        return _jump(held, parse(texts[1]), parse(texts[0]), blocks)
    raise Unsupported(f"{name} {', '.join(texts)}")


def _conditional(name: str, target: int, after: int) -> Callable[[State], Next]:
    condition = name.removeprefix("s_cbranch_")
    if condition in ("scc0", "scc1"):
        return _two_ways(
            lambda m: m.scc if m.selected is None else m.scc[m.selected], condition == "scc1", target, after
        )
    register = {"vcc": VCC, "exe": EXEC}.get(condition[:3])
    if register is None or condition not in ("vccz", "vccnz", "execz", "execnz"):
        raise Unreadable(name)

    def nonzero(m: State) -> Array:
        held = m.rows[0][register]
        return (held if m.selected is None else held[m.selected]) != 0

    return _two_ways(nonzero, condition.endswith("nz"), target, after)


def _two_ways(test: Callable[[State], Array], taken: bool, target: int, after: int) -> Callable[[State], Next]:
    def where(m: State) -> Next:
        held = test(m)
        count = int(np.count_nonzero(held))
        if count == m.count:
            return target if taken else after
        if count == 0:
            return after if taken else target
        return np.where(held == taken, target, after)

    return where


def _call(held: Instruction, back: Operand, target: int) -> Callable[[State], Next]:
    write = scalar_writer(back, "u64")
    after = held.address + held.size

    def where(m: State) -> Next:
        write(m, np.uint64(m.image + after))
        return target

    return where


def _jump(held: Instruction, to: Operand, back: Operand | None, blocks: Mapping[int, int]) -> Callable[[State], Next]:
    read = scalar_reader(to, "u64")
    write = scalar_writer(back, "u64") if back is not None else None
    after = held.address + held.size

    def where(m: State) -> Next:
        addresses = np.broadcast_to(read(m), (m.count,)) - np.uint64(m.image)
        if write is not None:
            write(m, np.uint64(m.image + after))
        first = int(addresses[0])
        if (addresses == first).all() and first in blocks:
            return blocks[first]
        found = np.array([blocks.get(int(address), ENDED) for address in addresses])
        wild = found == ENDED
        if wild.any():
            m.report.waves(m, held, "wild branch", m.numbers()[wild], offset=int(addresses[wild][0]))
        return found

    return where
