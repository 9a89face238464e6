"""Which part of the card each instruction keeps busy, how often, and how wide its memory accesses are.

Names and what they do: "RDNA4 Instruction Set Architecture Reference Guide" of AMD, chapters 4 to 16. A name that gfx12
does not have is listed as unknown and counted nowhere else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from solbench.code.agreement import base_name
from solbench.code.assembly import Function, Instruction
from solbench.code.loops import Flow
from solbench.code.opcodes import MNEMONICS

# First match wins. What is "graphics" or "message" no compute kernel needs; a "hint" costs issue slots at most.
_ENGINES: Final = tuple(
    (re.compile(pattern), engine)
    for pattern, engine in (
        (r"v_(wmma|swmmac)_", "wmma"),
        (r"v_dual_", "valu_dual"),
        (r"v_dot\d", "valu_dot"),
        (r"v_pk_", "valu_packed"),
        (r"v_(s_)?(exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos)_(f16|f32|f64)$", "valu_transcendental"),
        (r"v_(readlane|writelane|readfirstlane|permlane)", "valu_cross_lane"),
        (r"v_\w*f64", "valu_f64"),
        (r"v_interp_|ds_(param|direct)_load|export|image_|ds_bvh|s_ttracedata|s_atc_probe", "graphics"),
        (r"v_(nop|pipeflush)$", "hint"),
        (r"v_", "valu"),
        (r"s_(buffer_)?load_", "scalar_load"),
        (r"s_(buffer_)?prefetch_|s_dcache|s_icache|(global|buffer|flat)_(inv|wb)", "cache"),
        (r"s_barrier|s_get_barrier|s_wakeup", "barrier"),
        (r"s_wait|s_sleep", "wait"),
        (r"s_c?branch|s_setpc|s_swappc|s_call|s_rfe", "branch"),
        (r"s_endpgm", "end"),
        (r"s_sendmsg|s_trap|s_sethalt|s_setkill|s_(inc|dec)perflevel", "message"),
        (r"s_(nop|delay_alu|clause|code_end|version|setprio|round_mode|denorm_mode|alloc_vgpr)", "hint"),
        (r"s_", "salu"),
        (r"scratch_load_", "scratch_load"),
        (r"scratch_store_", "scratch_store"),
        (r"(global|buffer|tbuffer)_load_", "global_load"),
        (r"(global|buffer|tbuffer)_store_", "global_store"),
        (r"(global|buffer)_atomic_", "global_atomic"),
        (r"flat_load_", "flat_load"),
        (r"flat_store_", "flat_store"),
        (r"flat_atomic_", "flat_atomic"),
        (r"ds_(b?permute|swizzle)", "lds_permute"),
        (r"ds_load_", "lds_load"),
        (r"ds_store_", "lds_store"),
        (r"ds_nop$", "hint"),
        (r"ds_", "lds_atomic"),
    )
)
_WMMA = re.compile(r"v_(?:wmma|swmmac)_\w+?_16x16x\d+_(\w+)")
_WIDTH = re.compile(r"_(?:b|u|i|f)(\d+)(?:_d16)?(?:_hi|_w32|_w64)?$")
# What JSON holds exactly; no wave runs for years.
MOST: Final = 2**53 - 1
# Engines whose accesses have a width.
MEMORY: Final = (
    "global_load", "global_store", "global_atomic", "flat_load", "flat_store", "flat_atomic", "scratch_load",
    "scratch_store", "lds_load", "lds_store", "lds_atomic", "scalar_load",
)  # fmt: skip


@dataclass(frozen=True)
class Count:
    """``written``: instructions in the code. ``run_at_most``: times that one wave can run them.

    ``run_at_most`` is None where one of them is in a loop whose trip count is not constant, and beyond :data:`MOST`.
    """

    written: int
    run_at_most: int | None


@dataclass(frozen=True)
class Mix:
    """Counts by engine, WMMA by operand format, and memory accesses by engine and bits a lane (0: by a format).

    A VOPD counts once, under ``valu_dual``. ``per_iteration``: for each loop, what its own blocks hold, inner loops
    left out. ``unknown``: mnemonics that gfx12 does not have.
    """

    engines: Mapping[str, Count]
    wmma: Mapping[str, Count]
    widths: Mapping[str, Mapping[int, Count]]
    mnemonics: Mapping[str, int]
    per_iteration: tuple[Mapping[str, int], ...]
    unknown: tuple[str, ...]


@lru_cache(maxsize=4096)
def engine(mnemonic: str) -> str | None:
    """The engine that an instruction uses; None for a name that gfx12 does not have."""
    name = base_name(mnemonic)
    if name not in MNEMONICS:
        return None
    if mnemonic.endswith("_dpp"):
        return "valu_cross_lane"
    return next((engine for pattern, engine in _ENGINES if pattern.match(name)), None)


def wmma_format(mnemonic: str) -> str | None:
    """Operand format of a WMMA, ``f16`` or ``fp8_bf8``; None for anything else."""
    match = _WMMA.fullmatch(base_name(mnemonic))
    return match[1] if match else None


@lru_cache(maxsize=4096)
def width_bits(mnemonic: str) -> int:
    """Bits that each lane reads or writes in memory; 0 where a buffer's format decides."""
    name = base_name(mnemonic)
    match = _WIDTH.search(name)
    if "_pk_add_" in name:
        return 32
    if not match:
        return 0
    return int(match[1]) * (2 if "_2addr_" in name else 1)


def mix(function: Function, flow: Flow, trips: Sequence[int | None]) -> Mix:
    """The mix of a function; ``trips`` of each of the flow's loops."""
    weights = _weights(flow, trips)
    engines: dict[str, list[int | None]] = {}
    wmma: dict[str, list[int | None]] = {}
    widths: dict[str, dict[int, list[int | None]]] = {}
    unknown: set[str] = set()
    for number, block in enumerate(flow.blocks):
        for instruction in function.instructions[block.start : block.end]:
            used = engine(instruction.mnemonic)
            if used is None:
                unknown.add(instruction.mnemonic)
                continue
            engines.setdefault(used, []).append(weights[number])
            form = wmma_format(instruction.mnemonic)
            if form:
                wmma.setdefault(form, []).append(weights[number])
            if used in MEMORY:
                by_width = widths.setdefault(used, {})
                by_width.setdefault(width_bits(instruction.mnemonic), []).append(weights[number])
    own = flow.innermost()
    return Mix(
        {name: _count(found) for name, found in sorted(engines.items())},
        {name: _count(found) for name, found in sorted(wmma.items())},
        {name: {bits: _count(found) for bits, found in sorted(by.items())} for name, by in sorted(widths.items())},
        dict(sorted(Counter(o.mnemonic for i in function.instructions for o in i.operations).items())),
        tuple(
            by_engine(i for b in sorted(loop.blocks) if own[b] == number for i in _of(function, flow, b))
            for number, loop in enumerate(flow.loops)
        ),
        tuple(sorted(unknown)),
    )


def by_engine(instructions: Iterable[Instruction]) -> dict[str, int]:
    """Instructions by engine, unknown ones left out."""
    found = Counter(used for instruction in instructions if (used := engine(instruction.mnemonic)))
    return dict(sorted(found.items()))


def _of(function: Function, flow: Flow, block: int) -> tuple[Instruction, ...]:
    return function.instructions[flow.blocks[block].start : flow.blocks[block].end]


def _weights(flow: Flow, trips: Sequence[int | None]) -> list[int | None]:
    """Times that each block runs at most; 0 for one that is never reached, None if it is in a loop without a count."""
    reached = set(flow.order)
    found: list[int | None] = [int(block in reached) for block in range(len(flow.blocks))]
    if flow.irreducible:
        return [None if weight else 0 for weight in found]
    for loop, trip in zip(flow.loops, trips, strict=True):
        for block in loop.blocks:
            weight = found[block]
            found[block] = None if weight is None or trip is None else weight * trip
    return found


def _count(weights: Sequence[int | None]) -> Count:
    known = [weight for weight in weights if weight is not None]
    total = sum(known)
    return Count(len(weights), total if len(known) == len(weights) and total <= MOST else None)
