"""Scalar loads: one address a wave.

Address arithmetic: "RDNA4 Instruction Set Architecture Reference Guide", chapter 8. Addresses of words lose their two
low bits, as on the card.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solbench.gfx12 import memory
from solbench.gfx12.access import scalar_reader
from solbench.gfx12.integers import Array
from solbench.gfx12.operands import NULL, Modifiers, Operand, Unreadable, parse
from solbench.gfx12.results import scalar_writer
from solbench.gfx12.state import LANES, State, Step

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

_NAME = re.compile(r"s_(buffer_)?load_([biu])(8|16|32|64|96|128|256|512)")


def build(held: Instruction, name: str, texts: Sequence[str], modifiers: Modifiers) -> Step | None:
    """The step of a scalar load; None for a name that is none."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    result, base, offset = (parse(text) for text in texts)
    bits, signed = int(match[3]), match[2] == "i"
    count = max(1, bits // 32)
    if result.kind != "s" or result.count != count or base.kind != "s":
        raise Unreadable(result.text)
    places = [Operand("s", result.register + n) for n in range(count)]
    writers = [scalar_writer(place, "u32") for place in places]
    registers = [(place.register, -2) for place in places]
    start = scalar_reader(Operand("s", base.register, 2), "i64")
    records = scalar_reader(Operand("s", base.register + 2), "u32") if match[1] else None
    fixed = modifiers.number("offset")
    lane = None
    if offset.kind == "s" and offset.register != NULL:
        lane = scalar_reader(offset, "u32")
    elif offset.kind == "number":
        fixed += int(offset.value)
    size = bits // 8

    def step(m: State) -> None:
        within = np.int64(fixed) if lane is None else lane(m).astype(np.int64) + fixed
        address = start(m)
        inside: Any = None
        if records is not None:
            address = address & 0xFFFF_FFFF_FFFF
            inside = np.broadcast_to(within + size <= records(m), address.shape)
        address = address + within
        if size >= 4:
            address = address & ~np.int64(3)
        words = load(m, held, address, inside, size, signed)
        if m.waits is not None:
            m.waits.withhold(m, "scalar", registers, words, held)
            return
        for write, word in zip(writers, words, strict=True):
            write(m, word)

    return step


def load(m: State, held: Instruction, address: Array, inside: Any, size: int, signed: bool) -> list[Array]:
    """``size`` bytes a wave as uint32 words (waves,); ``inside``: waves whose buffer covers them, None for all."""
    m.moved["load scalar"] += size * m.count
    first = int(address[0])
    storage = m.arena.at(first >> 32)
    if m.races is None and inside is None and storage is not None and (address == first).all():
        low = first & 0xFFFFFFFF
        if size >= 4 and low + size <= storage.size:
            found = storage.by_size[4][low >> 2 : (low + size) >> 2]
            return [np.broadcast_to(found[n], address.shape) for n in range(size // 4)]
    parts: list[memory.Part] = []
    for high in np.unique(address >> 32):
        mask = address >> 32 == high
        if inside is not None:
            mask = mask & inside
        at = m.arena.at(int(high))
        one_lane = np.zeros((m.count, LANES), bool)
        one_lane[:, 0] = mask
        low = np.broadcast_to((address & 0xFFFFFFFF)[:, None], (m.count, LANES))
        if at is None:
            m.report.no_memory(m, held, (int(high) << 32) + low, one_lane, size)
        else:
            parts.append((at, low, one_lane))
    return [word[:, 0] for word in memory.load(m, held, parts, size, signed, counted=False)]
