"""What a kernel's author can act on, each with the lines that show it.

A finding states what is in the code; whether it costs time only a run can tell. Thresholds are set so that what is rare
and harmless (one scalar load, a short prologue) says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from solbench.code import occupancy as limits
from solbench.code.agreement import base_name
from solbench.code.assembly import Instruction
from solbench.code.examined import Examined
from solbench.code.mix import engine, width_bits

Severity = Literal["fails launch", "slow", "note"]
# Lines that one finding names at most; and the fewest accesses of a kind that are worth a word.
MAX_EVIDENCE = 8
MIN_NARROW = 8
MIN_NARROW_LDS = 16
FEW_WAVES = 4
# What a wave may do between a load and its wait, and it still counts as waiting at once.
IDLE_WORK = 2

# Types as Triton's two intermediate languages write them, to WMMA's names for operands.
_OPERANDS: Final = {
    "f16": "f16", "fp16": "f16", "bf16": "bf16", "i8": "iu8", "ui8": "iu8", "si8": "iu8",
    "f8E4M3FN": "fp8", "fp8e4nv": "fp8", "f8E5M2": "bf8", "fp8e5": "bf8",
}  # fmt: skip
_MULTIPLY_ADD = re.compile(r"v_(dual_)?(pk_)?(fma|fmac|fma_mix|dot\d\w*|dot2acc|mad|mul_lo|mul|fmaak|fmamk)\w*_")
_COUNT = re.compile(r"0x[0-9a-f]{1,4}|0|[1-9]\d{0,4}")
_WORK = ("wmma", "valu", "lds", "scratch", "global_store", "global_atomic", "flat_store", "flat_atomic")


@dataclass(frozen=True)
class Finding:
    """One finding. ``evidence``: lines of the assembly; ``source``: lines of the kernel's source, as far as known."""

    rule: str
    severity: Severity
    text: str
    evidence: tuple[int, ...]
    source: tuple[str, ...]


def finding(rule: str, severity: Severity, text: str, shown: Iterable[Instruction] = ()) -> Finding:
    """A finding that some instructions show; the first few of them are named."""
    few = tuple(shown)[:MAX_EVIDENCE]
    source = dict.fromkeys(f"{i.source[0]}:{i.source[1]}" for i in few if i.source)
    return Finding(rule, severity, text, tuple(instruction.line for instruction in few), tuple(source))


def findings(examined: Examined) -> tuple[Finding, ...]:
    """All findings, what keeps the kernel from being launched first."""
    found = [each for rule in _RULES for each in rule(examined)]
    order = {"fails launch": 0, "slow": 1, "note": 2}
    return tuple(sorted(found, key=lambda each: order[each.severity]))


def limit_findings(examined: Examined) -> Iterator[Finding]:
    """What no launch can get: from what is declared and how it is launched, whatever the program does."""
    kernel, threads, lds = examined.kernel, examined.launch.threads, examined.lds_bytes
    most = min(limits.MAX_THREADS, kernel.max_threads)
    if lds > limits.LDS_BYTES_PER_GROUP:
        over = f"LDS of {lds} bytes a work-group, over the limit of {limits.LDS_BYTES_PER_GROUP}: the launch will fail"
        yield finding("lds-limit", "fails launch", over, _using(examined, "lds"))
    if threads > most:
        text = f"work-groups of {threads} threads; the kernel can be launched with {most} at most"
        yield finding("work-group-limit", "fails launch", text)
    if kernel.vgprs > limits.MAX_VGPRS:
        text = f"{kernel.vgprs} VGPRs; a wave has {limits.MAX_VGPRS} at most"
        yield finding("vgpr-limit", "fails launch", text)
    elif examined.occupancy.by_vgprs == 0:
        text = (
            f"a work-group of {examined.occupancy.waves_per_group} waves with {kernel.vgprs} VGPRs each has more "
            "registers than the SIMDs it runs on: the launch will fail"
        )
        yield finding("vgpr-limit", "fails launch", text)


def _no_wmma(examined: Examined) -> Iterator[Finding]:
    wanted: dict[str, tuple[str, str]] = {}
    for first, second, _ in examined.launch.dots or ():
        names = (_OPERANDS.get(first), _OPERANDS.get(second))
        if None in names or ("8" in str(names[0])) != ("8" in str(names[1])):
            continue
        both_narrow_floats = names[0] in ("fp8", "bf8") and names[1] in ("fp8", "bf8")
        if both_narrow_floats or names[0] == names[1]:
            wanted[f"{names[0]}_{names[1]}" if both_narrow_floats else str(names[0])] = (first, second)
    have = examined.mix.wmma
    for form, (first, second) in wanted.items():
        if form in have:
            continue
        text = f"a dot of {first} and {second}, but no WMMA"
        if have:
            text += f" of {form}: it runs on WMMA of {', '.join(sorted(have))} or on the VALU"
        else:
            text += ": it runs on the VALU"
        yield finding("no-wmma", "slow", text, _deepest(examined, _is_multiply_add))
    if any(dot[:2] == ("f32", "f32") for dot in examined.launch.dots or ()) and not have:
        text = "a dot of f32 and f32 runs on the VALU, as gfx12 has no WMMA for it: operands of 16 bits would use WMMA"
        yield finding("f32-dot", "note", text, _deepest(examined, _is_multiply_add))


def _narrow(examined: Examined) -> Iterator[Finding]:
    kinds: tuple[tuple[str, Severity, str, tuple[str, ...], int], ...] = (
        ("narrow-loads", "slow", "global loads", ("global_load", "flat_load"), MIN_NARROW),
        ("narrow-stores", "slow", "global stores", ("global_store", "flat_store"), MIN_NARROW),
        ("narrow-lds", "note", "LDS accesses", ("lds_load", "lds_store"), MIN_NARROW_LDS),
    )
    for rule, severity, what, engines, fewest in kinds:
        found: list[tuple[int | None, list[Instruction]]] = []
        for loop, instructions in examined.regions():
            accesses = [i for i in instructions if engine(i.mnemonic) in engines]
            narrow = [i for i in accesses if 0 < width_bits(i.mnemonic) <= 16]
            if rule == "narrow-loads" and len(narrow) >= fewest:
                lines = examined.gathering
                gathered = [i for i in narrow if i.line in lines]
                narrow = [i for i in narrow if i.line not in lines]
                if len(gathered) >= fewest:
                    place = examined.place(loop)
                    text = f"{len(gathered)} narrow loads a thread {place}, at addresses made of loaded data"
                    yield finding("gather", "note", text, gathered)
            if len(narrow) >= fewest and len(narrow) * 2 > len(accesses):
                found.append((loop, narrow))
        # A prologue in front of a loop that does the same says nothing new.
        looped = [each for each in found if each[0] is not None]
        for loop, narrow in looped or found:
            bits = sorted({width_bits(i.mnemonic) for i in narrow})
            widths = " and ".join(map(str, bits))
            text = (
                f"{what} of {widths} bits, {len(narrow)} a thread {examined.place(loop)}: the layout is not vectorised"
            )
            yield finding(rule, severity, text, narrow)


def _narrow_loops(examined: Examined) -> Iterator[Finding]:
    """Loops that load, but nothing wider than 16 bits: each iteration moves hardly anything."""
    for loop, instructions in examined.regions():
        loads = [i for i in instructions if engine(i.mnemonic) in ("global_load", "flat_load")]
        narrow = [i for i in loads if 0 < width_bits(i.mnemonic) <= 16]
        if loop is None or not narrow or len(narrow) < len(loads) or len(loads) >= MIN_NARROW:
            continue
        if not any(i.line in examined.gathering for i in loads):
            bits = sum(width_bits(i.mnemonic) for i in loads)
            text = f"{examined.place(loop)} a thread loads {bits} bits, in loads of 8 or 16"
            yield finding("narrow-loop", "note", text, loads)


def _spills(examined: Examined) -> Iterator[Finding]:
    kernel = examined.kernel
    scratch = _using(examined, "scratch")
    if kernel.vgpr_spills:
        text = f"{kernel.vgpr_spills} VGPR spills: registers are saved to memory, {kernel.scratch_bytes} bytes a thread"
        yield finding("vgpr-spills", "slow", text, scratch)
    elif kernel.scratch_bytes:
        severity: Severity = "slow" if any(i.line in examined.looped for i in scratch) else "note"
        text = f"scratch memory, {kernel.scratch_bytes} bytes a thread, without VGPR spills"
        text += ": an array that is indexed at run time, or a call, keeps it from registers"
        yield finding("scratch", severity, text, scratch)
    if kernel.sgpr_spills:
        lanes = [i for i in examined.function.instructions if i.mnemonic in ("v_writelane_b32", "v_readlane_b32")]
        severity = "slow" if any(i.line in examined.looped for i in lanes) else "note"
        yield finding("sgpr-spills", severity, f"{kernel.sgpr_spills} SGPR spills, to lanes of VGPRs", lanes)


def _few_waves(examined: Examined) -> Iterator[Finding]:
    held = examined.occupancy
    if held.groups and held.waves_per_simd < FEW_WAVES:
        by = " and ".join(held.limited_by)
        amounts = (
            f"{examined.kernel.vgprs} VGPRs; LDS {examined.lds_bytes} bytes; waves a group: {held.waves_per_group}"
        )
        text = f"{held.waves_per_simd} of {limits.WAVES_PER_SIMD} waves a SIMD, limited by {by} ({amounts})"
        yield finding("low-occupancy", "note", text)


def _idle_waits(examined: Examined) -> Iterator[Finding]:
    """Loops of one block in which every load is waited for at once: order within a block is the order of time."""
    for number, loop in enumerate(examined.flow.loops):
        if len(loop.blocks) > 1:
            continue
        body = tuple(examined.instructions(loop.blocks))
        waits = _waits_at_once(body)
        if waits:
            text = (
                f"{examined.place(number)} the wave waits for its global loads with nothing of its own to do meanwhile"
            )
            yield finding("idle-wait", "note", text, waits)


def _waits_at_once(body: Sequence[Instruction]) -> list[Instruction]:
    """Loads and waits of a body whose loads are all waited for within it, with hardly anything in between; else empty.

    Loads return in order: a wait for n is over once all but the last n loads have returned.
    """
    pending: list[tuple[Instruction, int]] = []
    work = 0
    shown: list[Instruction] = []
    for instruction in body:
        used = engine(instruction.mnemonic) or ""
        if used in ("global_load", "flat_load"):
            pending.append((instruction, work))
        elif instruction.mnemonic.startswith("s_wait_loadcnt"):
            if not instruction.operands or not _COUNT.fullmatch(instruction.operands[0]):
                return []
            left = int(instruction.operands[0], 0)
            if instruction.mnemonic == "s_wait_loadcnt_dscnt":
                left >>= 8
            done = pending[: max(0, len(pending) - left)]
            pending = pending[len(done) :]
            if done and work - done[-1][1] > IDLE_WORK:
                return []
            shown += [load for load, _ in done] + ([instruction] if done else [])
        elif used.startswith(_WORK):
            work += 1
    return [] if pending else shown


def _dear(examined: Examined) -> Iterator[Finding]:
    looped = examined.looped
    doubles = _using(examined, "valu_f64")
    if len(doubles) >= MIN_NARROW:
        text = f"{len(doubles)} double-precision instructions, which gfx12 runs at a fraction of the fp32 rate"
        yield finding("double-precision", "note", text, doubles)
    flat = [i for i in _using(examined, "flat_") if i.line in looped]
    if flat:
        text = f"{len(flat)} flat accesses in loops: the compiler does not know that the pointers are global"
        yield finding("flat-access", "note", text, flat)
    calls = [i for i in examined.function.instructions if i.mnemonic in ("s_swappc_b64", "s_call_b64")]
    if calls:
        yield finding("calls", "note", f"{len(calls)} calls: what the called functions do is not counted here", calls)
    swaps = [i for i in examined.function.instructions if i.line in looped and "_atomic_cmpswap_" in i.mnemonic]
    if swaps:
        text = "compare-and-swap in a loop: a lock, or an atomic operation that the card has no instruction for"
        yield finding("compare-and-swap", "note", text, swaps)


def _using(examined: Examined, engines: str) -> list[Instruction]:
    """Instructions whose engine's name starts so, those in loops first."""
    looped = examined.looped
    found = [i for i in examined.function.instructions if (engine(i.mnemonic) or "").startswith(engines)]
    return sorted(found, key=lambda i: i.line not in looped)


def _deepest(examined: Examined, wanted: Callable[[Instruction], bool]) -> list[Instruction]:
    """Instructions of a kind in the deepest loop that has any, else outside."""
    depths = [(examined.flow.loops[n].depth if n is not None else 0, body) for n, body in examined.regions()]
    for _, body in sorted(depths, key=lambda each: -each[0]):
        found = [instruction for instruction in body if wanted(instruction)]
        if found:
            return found
    return []


def _is_multiply_add(instruction: Instruction) -> bool:
    return any(_MULTIPLY_ADD.match(base_name(operation.mnemonic)) for operation in instruction.operations)


_RULES: Final = (limit_findings, _no_wmma, _narrow, _narrow_loops, _spills, _few_waves, _idle_waits, _dear)
