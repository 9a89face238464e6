"""Loads, stores and atomics of whole batches: bounds, alignment, gathering and scattering.

A region is what lanes address by bytes from 0: a storage of the arena, the LDS of each group of the batch, or the
scratch of each lane. Offsets are int64 (waves, 32); a mask of None stands for all lanes. What is out of bounds is
reported and left out: it reads 0 and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from solbench.gfx12.integers import Array
from solbench.gfx12.marks import CLEAN
from solbench.gfx12.state import LANES, State, Unsupported

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

Mask = Any
Part = tuple["Region", Array, Mask]


class Region(Protocol):
    """What lanes address from 0 to ``size``; ``by_size`` are typed views of its bytes.

    ``space``: the memory that it is part of. ``written``: bytes that something was written to, None for all or where
    nobody keeps it.
    """

    name: str
    size: int
    read_only: bool
    space: str
    written: Array
    by_size: dict[int, Array]


@dataclass
class Local:
    """LDS of a batch: ``stride`` bytes a group."""

    by_size: dict[int, Array]
    size: int
    stride: int
    name: str = "LDS"
    read_only: bool = False
    space: str = "LDS"
    written: Array = None


@dataclass
class Scratch:
    """Scratch of a batch, as uint32 words of all lanes: word 0 of every lane first."""

    by_size: dict[int, Array]
    size: int
    lanes: int
    name: str = "scratch"
    read_only: bool = False
    space: str = "scratch"
    written: Array = None


def views(data: Array) -> dict[int, Array]:
    """Typed views of uint8 ``data``, whose size is a multiple of 16."""
    kinds = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
    return {size: data.view(kind) for size, kind in kinds.items()}


def place(m: State, region: Region, offset: Array) -> Array:
    """Bytes from the start of the region's data."""
    if type(region) is Local:
        group = m.group if m.selected is None else m.group[m.selected]
        return offset + (group * region.stride)[:, None]
    if type(region) is Scratch:
        lane = m.numbers()[:, None] * LANES + np.arange(LANES)
        return ((offset >> 2) * region.lanes + lane) * 4 + (offset & 3)
    return offset


def checked(m: State, held: Instruction, part: Part, size: int, what: str) -> tuple[Array, Mask, bool]:
    """Offsets that are safe to use, the lanes that count, and whether there are any."""
    region, offset, mask = part
    if mask is not None:
        offset = np.where(mask, offset, 0)
    if int(offset.min()) < 0 or int(offset.max()) + size > region.size:
        bad = (offset < 0) | (offset + size > region.size)
        if mask is not None:
            bad &= mask
        if bad.any():
            m.report.bounds(m, held, region, offset, bad, size, what)
            mask = ~bad if mask is None else mask & ~bad
            offset = np.where(bad, 0, offset)
        if region.size < size:
            return offset, mask, False
    if what != "load" and region.read_only and (mask is None or mask.any()):
        m.report.read_only(m, held, region, offset, mask, size)
        return offset, mask, False
    return offset, mask, True


def _lanes(m: State, mask: Mask) -> int:
    return m.count * LANES if mask is None else int(np.count_nonzero(mask))


def load(
    m: State, held: Instruction, parts: Sequence[Part], size: int, signed: bool = False, counted: bool = True
) -> list[Array]:
    """``size`` bytes a lane as uint32 words (waves, 32), extended from less; 0 in lanes that no part covers."""
    words: list[Array] | None = None
    marks: list[Array] | None = None
    for part in parts:
        offset, mask, any_lane = checked(m, held, part, size, "load")
        if not any_lane:
            continue
        if counted:
            m.moved[f"load {part[0].space}"] += size * _lanes(m, mask)
        if m.defined is not None:
            marks = _together(marks, m.defined.load(m, part[0], offset, mask, size))
        if m.races is not None:
            m.races.load(m, held, part[0], offset, mask, size)
        read = _gather(m, part[0], offset, size, signed)
        if words is None:
            words = read if mask is None else [np.where(mask, word, np.uint32(0)) for word in read]
        else:
            for word, more in zip(words, read, strict=True):
                np.copyto(word, more, where=mask)
    if m.defined is not None:
        m.defined.loaded += marks or [CLEAN] * max(1, size // 4)
    if words is None:
        return [np.zeros((m.count, LANES), np.uint32)] * max(1, size // 4)
    return words


def _together(marks: list[Array] | None, more: list[Array] | None) -> list[Array] | None:
    if marks is None or more is None:
        return more if marks is None else marks
    return [np.maximum(one, other) for one, other in zip(marks, more, strict=True)]


def _gather(m: State, region: Region, offset: Array, size: int, signed: bool) -> list[Array]:
    at = place(m, region, offset)
    if size in (1, 2):
        narrow = _take(region, at, size)
        if signed:
            return [narrow.view(np.int8 if size == 1 else np.int16).astype(np.int32).view(np.uint32)]
        return [narrow.astype(np.uint32)]
    if size == 4:
        return [_take(region, at, 4)]
    if type(region) is not Scratch and size in (8, 16) and not (at & (size - 1)).any():
        wide = region.by_size[size].take(at >> (3 if size == 8 else 4))
        split = wide.view(np.uint32).reshape(*at.shape, size // 4)
        return [split[..., word] for word in range(size // 4)]
    if type(region) is Scratch:
        return [_take(region, place(m, region, offset + 4 * word), 4) for word in range(size // 4)]
    return [_take(region, at + 4 * word, 4) for word in range(size // 4)]


def _take(region: Region, at: Array, size: int) -> Array:
    if size == 1:
        return region.by_size[1].take(at)
    if not (at & (size - 1)).any():
        return region.by_size[size].take(at >> (size >> 1))
    if type(region) is Scratch:
        raise Unsupported("a scratch access that lies across two words")
    together = np.stack([region.by_size[1].take(at + byte) for byte in range(size)], -1)
    return together.view(np.uint16 if size == 2 else np.uint32)[..., 0]


def store(m: State, held: Instruction, parts: Sequence[Part], size: int, words: Sequence[Array]) -> None:
    """Write ``size`` bytes a lane; of two lanes of one wave at the same place the higher one's stay."""
    marks = m.defined.take(len(words)) if m.defined is not None else []
    for part in parts:
        offset, mask, any_lane = checked(m, held, part, size, "store")
        if not any_lane:
            continue
        if m.defined is not None:
            m.defined.store(m, part[0], offset, mask, size, marks)
        else:
            part[0].written = None  # who runs without marks does not know
        m.moved[f"store {part[0].space}"] += size * _lanes(m, mask)
        before = m.races.before_store(m, held, part[0], offset, mask, size) if m.races is not None else None
        _scatter(m, part[0], offset, mask, size, words)
        if before is not None and m.races is not None:
            m.races.after_store(m, held, part[0], before, _written(m, mask, size, words, before[0].shadow.grain))


def _written(m: State, mask: Mask, size: int, words: Sequence[Array], grain: int) -> Array:
    """What lanes wrote, one value a grain in the order of lanes."""
    shape = (m.count, LANES)
    joined = np.stack([np.broadcast_to(word, shape) for word in words], -1)
    chosen = joined.reshape(-1, len(words)) if mask is None else joined[np.broadcast_to(mask, shape)]
    if grain == 4:
        return chosen.reshape(-1)
    return np.ascontiguousarray(chosen).view(np.uint8)[:, :size].reshape(-1)


def _scatter(m: State, region: Region, offset: Array, mask: Mask, size: int, words: Sequence[Array]) -> None:
    shape = offset.shape
    words = [word if word.shape == shape else np.broadcast_to(word, shape) for word in words]
    if type(region) is Scratch and size > 4:
        for number, word in enumerate(words):
            _put(region, place(m, region, offset + 4 * number), mask, 4, word)
        return
    at = place(m, region, offset)
    if size <= 4:
        _put(region, at, mask, size, words[0])
    elif size in (8, 16) and not (at & (size - 1)).any():
        joined = np.empty((*shape, size // 4), np.uint32)
        for number, word in enumerate(words):
            joined[..., number] = word
        kind = np.uint64 if size == 8 else np.complex128
        _assign(region.by_size[size], at >> (3 if size == 8 else 4), mask, joined.view(kind)[..., 0])
    else:
        for number, word in enumerate(words):
            _put(region, at + 4 * number, mask, 4, word)


def _put(region: Region, at: Array, mask: Mask, size: int, word: Array) -> None:
    if size < 4:
        word = word.astype(np.uint8 if size == 1 else np.uint16)
    if size == 1 or not (at & (size - 1)).any():
        _assign(region.by_size[size], at >> (size >> 1), mask, word)
        return
    if type(region) is Scratch:
        raise Unsupported("a scratch access that lies across two words")
    split = np.ascontiguousarray(word).view(np.uint8).reshape(*at.shape, size)
    for byte in range(size):
        _assign(region.by_size[1], at + byte, mask, split[..., byte])


def _assign(data: Array, index: Array, mask: Mask, values: Array) -> None:
    if mask is None:
        data[index] = values
    else:
        data[index[mask]] = values[mask]


def atomic(
    m: State,
    held: Instruction,
    parts: Sequence[Part],
    size: int,
    change: Callable[..., Array],
    operands: Sequence[Array],
    kind: np.dtype[Any],
    adds: bool,
) -> Array:
    """Read, ``change(old, *operands)``, write, one lane after another; returns what was read, 0 in lanes left out.

    Arrays of ``kind``, possibly with a last axis of packed elements. ``adds``: the change is ``old + operand`` and its
    result is not needed.
    """
    shape = (m.count, LANES)
    inner = operands[0].shape[2:]
    before = np.zeros((*shape, *inner), kind)
    for part in parts:
        region = part[0]
        offset, mask, any_lane = checked(m, held, part, size, "atomic")
        if not any_lane:
            continue
        wrong = (offset & (size - 1)) != 0
        if mask is not None:
            wrong &= mask
        if wrong.any():
            m.report.misaligned(m, held, region, offset, wrong, size)
            mask = ~wrong if mask is None else mask & ~wrong
        if m.defined is not None:
            m.defined.atomic(m, region, offset, mask, size)
        else:
            region.written = None
        if m.races is not None:
            m.races.atomic(m, held, region, offset, mask, size)
        data = region.by_size[size].view(kind).reshape(-1, *inner)
        lanes = np.flatnonzero(np.broadcast_to(True if mask is None else mask, shape))
        if not lanes.size:
            continue
        index = (place(m, region, offset) // size).reshape(-1)[lanes]
        values = [np.broadcast_to(o, (*shape, *inner)).reshape(-1, *inner)[lanes] for o in operands]
        m.moved[f"load {region.space}"] += size * lanes.size
        m.moved[f"store {region.space}"] += size * lanes.size
        if adds:
            np.add.at(data, index, values[0])
            continue
        old = before.reshape(-1, *inner)
        for turn in _turns(index):
            at = index[turn]
            found = data[at]
            old[lanes[turn]] = found
            data[at] = change(found, *(value[turn] for value in values))
    return before


def _turns(index: Array) -> list[Array]:
    """Lanes in turns, so that no turn holds one place twice and each place sees its lanes in order."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if first.size == index.size:
        return [np.arange(index.size)]
    rank = np.arange(index.size) - np.repeat(first, np.diff(np.append(first, index.size)))
    by_rank = order[np.argsort(rank, kind="stable")]
    return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])
