"""Where the lanes of buffer, global, flat and scratch instructions point to.

Address arithmetic: "RDNA4 Instruction Set Architecture Reference Guide", chapters 9 (buffer resources and their range
checks), 10 (flat, global, scratch). Buffers whose elements are swizzled end as unsupported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solbench.gfx12.access import Reader, scalar_reader, vector_reader
from solbench.gfx12.integers import Array
from solbench.gfx12.memory import Part
from solbench.gfx12.operands import NULL, PRIVATE_APERTURE, SHARED_APERTURE, Modifiers, Operand, Unreadable
from solbench.gfx12.state import LANES, State, Unsupported

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

Parts = Callable[[State], Sequence[Part]]
_NONE = Modifiers()
_HALF = 1 << 31
# What Triton gives its buffers as their size, and masked lanes as their offset.
_TRITON_RECORDS, _MASKED = 0x7FFFFFFE, np.uint32(0x80000000)
# OOB_SELECT of a buffer resource.
_STRUCTURED, _INDEX_ONLY, _EMPTY_ONLY, _RAW = range(4)


def _mask(m: State) -> Any:
    return None if m.full else m.mask


def _storage(m: State, held: Instruction, high: int, low: Array, mask: Any, size: int) -> list[Part]:
    """The part of one upper word; what lies up to 4 GiB before or after a storage is out of its bounds."""
    found = m.arena.at(high)
    if found is not None:
        return [(found, low, mask)]
    before, after = m.arena.at(high + 1), m.arena.at(high - 1)
    first = int(low[mask].min()) if mask is not None and mask.any() else int(low.min())
    if mask is not None and not mask.any():
        return []
    if before is not None and first >= _HALF:
        return [(before, low - (1 << 32), mask)]
    if after is not None and first < _HALF:
        return [(after, low + (1 << 32), mask)]
    m.report.no_memory(m, held, (high << 32) + low, mask, size)
    return []


def _by_upper_word(m: State, held: Instruction, address: Array, mask: Any, size: int) -> list[Part]:
    """Parts of int64 addresses (waves, 32)."""
    high, low = address >> 32, address & 0xFFFFFFFF
    listed = high if mask is None else high[mask]
    if not listed.size:
        return []
    first = int(listed.flat[0])
    if (listed == first).all():
        return _storage(m, held, first, low, mask, size)
    parts: list[Part] = []
    for one in np.unique(listed):
        part = high == one if mask is None else (high == one) & mask
        parts += _storage(m, held, int(one), low, part, size)
    return parts


def buffer_parts(
    held: Instruction, address: Operand, resource: Operand, offset: Operand, modifiers: Modifiers, size: int
) -> Parts:
    """Lanes of a ``buffer_*``: those beyond ``num_records`` are left out without a word, as on the card."""
    if resource.kind != "s" or resource.count != 4:
        raise Unreadable(resource.text)
    first, fixed = resource.register, modifiers.number("offset")
    by_index, by_offset = "idxen" in modifiers.flags, "offen" in modifiers.flags
    index: Reader | None = None
    lane_offset: Reader | None = None
    if by_index:
        index = vector_reader(Operand("v", address.register), "u32", 0, _NONE)
    if by_offset:
        lane_offset = vector_reader(Operand("v", address.register + by_index), "u32", 0, _NONE)
    scalar = None if offset.kind == "s" and offset.register == NULL else scalar_reader(offset, "u32")

    def parts(m: State) -> Sequence[Part]:
        words = m.scalars[first : first + 4]
        if m.selected is not None:
            words = words[:, m.selected]
        uniform = bool((words == words[:, :1]).all())
        if uniform:
            # One resource for all waves, as nearly always.
            word0, word1, records, word3 = (int(word) for word in words[:, 0])
        else:
            word0, word1, records, word3 = (word.astype(np.int64)[:, None] for word in words)  # type: ignore[assignment]
        if np.any((word1 >> 30) & 3):
            raise Unsupported("a swizzled buffer")
        within: Any = fixed if lane_offset is None else lane_offset(m).astype(np.int64) + fixed
        total: Any = within
        stride = (word1 >> 16) & 0x3FFF
        if index is not None:
            number = index(m).astype(np.int64)
            total = number * stride + total
        if scalar is not None:
            total = total + scalar(m).astype(np.int64).reshape(-1, 1)
        kind = word3 >> 28 & 3
        inside = total + size <= records
        if index is not None and not (np.all(kind == _RAW)):
            if not uniform:
                raise Unsupported("structured buffers that differ from wave to wave")
            inside = number < records if kind != _EMPTY_ONLY else np.asarray(records != 0)
            if kind == _STRUCTURED:
                inside = inside & (within + size <= stride)
        mask = _mask(m)
        if not np.all(inside):
            mask = np.broadcast_to(inside, (m.count, LANES)) if mask is None else mask & inside
        if uniform and records == _TRITON_RECORDS and lane_offset is not None and mask is not None:
            _unmasked(m, held, word1 & 0xFFFF, word0, lane_offset(m), inside, fixed, size)
        if uniform:
            return _storage(m, held, word1 & 0xFFFF, _wide(m, total + word0), mask, size)
        return _by_upper_word(m, held, _wide(m, total + word0 + ((word1 & 0xFFFF) << 32)), mask, size)

    return parts


def _unmasked(
    m: State, held: Instruction, high: int, low: int, lanes: Array, inside: Array, fixed: int, size: int
) -> None:
    """Report lanes of Triton's buffers that the card leaves out although the program did not mask them."""
    outside = np.broadcast_to(~inside & (lanes != _MASKED), (m.count, LANES)) & m.mask
    if outside.any():
        storage = m.arena.at(high)
        offset = np.broadcast_to(lanes.view(np.int32), outside.shape).astype(np.int64) + low + fixed
        if storage is not None:
            what = "store" if "_store_" in held.name else "atomic" if "_atomic_" in held.name else "load"
            m.report.bounds(m, held, storage, offset, outside, size, what)


def _wide(m: State, offsets: Any) -> Array:
    found = np.asarray(offsets, np.int64)
    return found if found.shape == (m.count, LANES) else np.broadcast_to(found, (m.count, LANES))


def global_parts(held: Instruction, address: Operand, base: Operand, modifiers: Modifiers, size: int) -> Parts:
    """Lanes of a ``global_*``: a 64-bit address a lane, or a scalar one and 32 bits a lane."""
    fixed = modifiers.number("offset")
    if base.kind == "off":
        read = vector_reader(address, "i64", 0, _NONE)

        def direct(m: State) -> Sequence[Part]:
            return _by_upper_word(m, held, read(m) + np.int64(fixed), _mask(m), size)

        return direct
    scalar = scalar_reader(base, "i64")
    lane = vector_reader(address, "u32", 0, _NONE) if address.kind == "v" else None

    def indirect(m: State) -> Sequence[Part]:
        start = scalar(m)
        high = int(start[0]) >> 32
        mask = _mask(m)
        if (start >> 32 == high).all():
            low = (start & 0xFFFFFFFF)[:, None] + np.int64(fixed)
            low = _wide(m, low if lane is None else low + lane(m).astype(np.int64))
            # A sum that carries is out of its bounds as well.
            if m.arena.at(high) is not None:
                return _storage(m, held, high, low, mask, size)
        total = start[:, None] + np.int64(fixed)
        return _by_upper_word(m, held, _wide(m, total if lane is None else total + lane(m)), mask, size)

    return indirect


def flat_parts(held: Instruction, address: Operand, modifiers: Modifiers, size: int) -> Parts:
    """Lanes of a ``flat_*``: LDS and scratch by their apertures, else global memory."""
    fixed = modifiers.number("offset")
    read = vector_reader(address, "i64", 0, _NONE)

    def parts(m: State) -> Sequence[Part]:
        where, mask = read(m), _mask(m)
        high = where >> 32
        found: list[Part] = []
        rest = np.ones((m.count, LANES), bool) if mask is None else mask.copy()
        for aperture, region in ((SHARED_APERTURE, m.lds), (PRIVATE_APERTURE, m.scratch)):
            here = rest & (high == aperture)
            if here.any():
                found.append((region, (where & 0xFFFFFFFF) + fixed, here))
                rest &= ~here
        if not found:
            return _by_upper_word(m, held, where + np.int64(fixed), mask, size)
        if rest.any():
            found += _by_upper_word(m, held, where + np.int64(fixed), rest, size)
        return found

    return parts


def scratch_parts(held: Instruction, address: Operand, base: Operand, modifiers: Modifiers, size: int) -> Parts:
    """Lanes of a ``scratch_*``: bytes from the start of the lane's scratch."""
    fixed = modifiers.number("offset")
    lane = vector_reader(address, "i32", 0, _NONE) if address.kind == "v" else None
    scalar = scalar_reader(base, "i32") if base.kind == "s" else None

    def parts(m: State) -> Sequence[Part]:
        offset: Any = np.int64(fixed)
        if lane is not None:
            offset = offset + lane(m)
        if scalar is not None:
            offset = offset + scalar(m).astype(np.int64).reshape(-1, 1)
        return [(m.scratch, _wide(m, offset), _mask(m))]

    return parts
