"""LDS instructions, and those that move values between lanes through it.

Names and operands: "RDNA4 Instruction Set Architecture Reference Guide", chapter 11, as LLVM prints them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from solbench.gfx12 import memory
from solbench.gfx12.access import vector_reader
from solbench.gfx12.atomics import ATOMICS
from solbench.gfx12.integers import Array
from solbench.gfx12.operands import Modifiers, Operand, Unreadable, parse
from solbench.gfx12.results import Writer, vector_writer
from solbench.gfx12.state import LANES, State, Step, Unsupported
from solbench.gfx12.vector_memory import atomic_readers, deliver_atomic, element

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

_NONE = Modifiers()
_LOAD = re.compile(r"ds_load_([ubi])(8|16|32|64|96|128)(_d16)?(_hi)?")
_STORE = re.compile(r"ds_store_b(8|16|32|64|96|128)(_d16_hi)?")
_TWO = re.compile(r"ds_(load|store)_2addr_(stride64_)?b(32|64)")
_ATOMIC = re.compile(r"ds_(\w+?)_(rtn_)?([biuf]\d+|bf16)")
# What LDS instructions call differently from the others.
_RENAMED: Final = {"storexchg": "swap", "cmpstore": "cmpswap"}
_LANES = np.arange(LANES)


def build(held: Instruction, name: str, texts: Sequence[str], modifiers: Modifiers) -> Step | None:
    """The step of an LDS instruction; None for a name that is none of them."""
    if name in ("ds_bpermute_b32", "ds_bpermute_fi_b32", "ds_permute_b32"):
        return _permute(held, name, texts, modifiers)
    if name == "ds_swizzle_b32":
        return _swizzle(held, texts, modifiers)
    if match := _TWO.fullmatch(name):
        scale = int(match[3]) // 8 * (64 if match[2] else 1)
        return (_load_two if match[1] == "load" else _store_two)(held, texts, modifiers, int(match[3]) // 8, scale)
    if match := _LOAD.fullmatch(name):
        return _load(held, texts, modifiers, int(match[2]) // 8, match[1] == "i", bool(match[3]), bool(match[4]))
    if match := _STORE.fullmatch(name):
        return _store(held, texts, modifiers, int(match[1]) // 8, bool(match[2]))
    if match := _ATOMIC.fullmatch(name):
        operation = f"{_RENAMED.get(match[1], match[1])}_{match[3]}"
        if operation in ATOMICS:
            return _atomic(held, texts, modifiers, operation, bool(match[2]))
    return None


def _address(text: str) -> Any:
    return vector_reader(parse(text), "u32", 0, _NONE)


def _part(m: State, read: Any, fixed: int) -> list[memory.Part]:
    offset = (read(m) + np.uint32(fixed)).astype(np.int64)
    if offset.shape != (m.count, LANES):
        offset = np.broadcast_to(offset, (m.count, LANES))
    return [(m.lds, offset, None if m.full else m.mask)]


def _finish(
    m: State, held: Instruction, registers: Sequence[tuple[int, int]], writers: Sequence[Writer], words: Sequence[Array]
) -> None:
    if m.waits is not None:
        m.waits.withhold(m, "ds", registers, words, held)
        return
    for write, word in zip(writers, words, strict=True):
        write(m, word)


def _counted(m: State) -> None:
    """Stores count where loads do."""
    if m.waits is not None:
        m.waits.count(m, "ds")


def _registers(data: Operand, count: int) -> tuple[list[tuple[int, int]], list[Writer]]:
    if data.kind != "v" or data.count != count:
        raise Unreadable(data.text)
    places = [(data.register + word, -1) for word in range(count)]
    return places, [vector_writer(Operand("v", register), "u32") for register, _ in places]


def _words(data: Operand, count: int) -> list[Any]:
    if data.kind != "v" or data.count != count:
        raise Unreadable(data.text)
    return [vector_reader(Operand("v", data.register + n), "u32", 0, _NONE) for n in range(count)]


def _load(
    held: Instruction, texts: Sequence[str], modifiers: Modifiers, size: int, signed: bool, narrow: bool, high: bool
) -> Step:
    data, read, fixed = parse(texts[0]), _address(texts[1]), modifiers.number("offset")
    if narrow:
        half = int(high or data.half == 1)
        places = [(data.register, half)]
        writers = [vector_writer(Operand("v", data.register, half=half), "u16")]
    else:
        places, writers = _registers(data, max(1, size // 4))

    def step(m: State) -> None:
        words = memory.load(m, held, _part(m, read, fixed), size, signed)
        _finish(m, held, places, writers, [words[0].astype(np.uint16)] if narrow else words)

    return step


def _load_two(held: Instruction, texts: Sequence[str], modifiers: Modifiers, size: int, scale: int) -> Step:
    places, writers = _registers(parse(texts[0]), size // 2)
    read = _address(texts[1])
    fixed = [modifiers.number(name) * scale for name in ("offset0", "offset1")]

    def step(m: State) -> None:
        words = [word for at in fixed for word in memory.load(m, held, _part(m, read, at), size)]
        _finish(m, held, places, writers, words)

    return step


def _store(held: Instruction, texts: Sequence[str], modifiers: Modifiers, size: int, high: bool) -> Step:
    data = parse(texts[1])
    read, fixed = _address(texts[0]), modifiers.number("offset")
    readers = _words(data, max(1, size // 4))
    shift = np.uint32(16 if high or data.half == 1 else 0)

    def step(m: State) -> None:
        words = [one(m) for one in readers]
        memory.store(m, held, _part(m, read, fixed), size, [words[0] >> shift] if shift else words)
        _counted(m)

    return step


def _store_two(held: Instruction, texts: Sequence[str], modifiers: Modifiers, size: int, scale: int) -> Step:
    read = _address(texts[0])
    pairs = [
        (modifiers.number(name) * scale, _words(parse(text), size // 4))
        for name, text in zip(("offset0", "offset1"), texts[1:3], strict=True)
    ]

    def step(m: State) -> None:
        for fixed, readers in pairs:
            memory.store(m, held, _part(m, read, fixed), size, [one(m) for one in readers])
        _counted(m)

    return step


def _atomic(held: Instruction, texts: Sequence[str], modifiers: Modifiers, operation: str, returns: bool) -> Step:
    kind, size, _ = element(operation)
    listed = list(texts)
    result = parse(listed.pop(0)) if returns else None
    read, fixed = _address(listed[0]), modifiers.number("offset")
    if operation.startswith("cmpswap"):
        # Two operands of their own: what to write, then what to compare with.
        readers = [reader for text in listed[1:3] for reader in atomic_readers(parse(text), f"swap_b{8 * size}")]
    else:
        readers = atomic_readers(parse(listed[1]), operation)
    places, writers = _registers(result, size // 4) if result else ([], [])
    change, adds = ATOMICS[operation], result is None and operation in ("add_u32", "add_u64", "add_f32")

    def step(m: State) -> None:
        values = [one(m) for one in readers]
        before = memory.atomic(m, held, _part(m, read, fixed), size, change, values, kind, adds)
        deliver_atomic(m, held, before, size, places, writers, "ds")
        if not places:
            _counted(m)

    return step


def _permute(held: Instruction, name: str, texts: Sequence[str], modifiers: Modifiers) -> Step:
    """``ds_bpermute`` fetches from the lane that bits 6:2 of the address name, ``ds_permute`` sends to it."""
    places, writers = _registers(parse(texts[0]), 1)
    read, value, fixed = _address(texts[1]), _words(parse(texts[2]), 1)[0], modifiers.number("offset")

    def step(m: State) -> None:
        shape = (m.count, LANES)
        lane = (np.broadcast_to(read(m), shape).astype(np.int64) + fixed) >> 2 & 31
        data = np.broadcast_to(value(m), shape)
        if name == "ds_permute_b32":
            found = np.zeros(shape, np.uint32)
            rows, lanes = np.nonzero(np.broadcast_to(m.mask, shape))
            found[rows, lane[rows, lanes]] = data[rows, lanes]
        else:
            if not m.full and name == "ds_bpermute_b32":
                data = np.where(m.mask, data, np.uint32(0))
            found = np.take_along_axis(data, lane, 1)
        _finish(m, held, places, writers, [found])

    return step


def _swizzle(held: Instruction, texts: Sequence[str], modifiers: Modifiers) -> Step:
    places, writers = _registers(parse(texts[0]), 1)
    value = _words(parse(texts[1]), 1)[0]
    source = swizzle_lanes(modifiers.values.get("offset", "0"))

    def step(m: State) -> None:
        data = value(m)
        if not m.full:
            data = np.where(m.mask, data, np.uint32(0))
        _finish(m, held, places, writers, [data[:, source]])

    return step


def swizzle_lanes(text: str) -> Array:
    """The lane that each lane reads from: ``ds_swizzle_b32``'s offset, as a number or as LLVM writes it."""
    match = re.fullmatch(r"swizzle\((\w+),(.*)\)", text.replace(" ", ""))
    if match:
        return _named_swizzle(match[1], match[2])
    offset = int(text, 0)
    if offset >= 0xE000:
        return _reversed(offset & 31)
    if offset >> 14 == 3:  # rotate within 32 lanes
        return _rotated(offset >> 10 & 1, offset >> 5 & 31, offset & 31)
    if offset >> 15:
        return _LANES & ~3 | np.array([offset >> 2 * (lane & 3) & 3 for lane in range(LANES)])
    and_mask, or_mask, xor_mask = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return ((_LANES & and_mask) | or_mask) ^ xor_mask


def _reversed(keep: int) -> Array:
    """Bits of the lane in opposite order, but those of ``keep`` (the order of a fast Fourier transform)."""
    opposite = np.array([int(f"{lane:05b}"[::-1], 2) for lane in range(LANES)])
    return opposite >> keep.bit_count() | (_LANES & keep)


def _rotated(direction: int, by: int, keep: int) -> Array:
    moved: Array = _LANES + (-by if direction else by)
    return (_LANES & keep) | (moved & 31 & ~keep)


def _named_swizzle(name: str, rest: str) -> Array:
    if name == "BITMASK_PERM":
        masks = {"0": (0, 0, 0), "1": (0, 1, 0), "p": (1, 0, 0), "i": (1, 0, 1)}
        and_mask = or_mask = xor_mask = 0
        for letter in rest.strip('"'):
            a, o, x = masks[letter]
            and_mask, or_mask, xor_mask = and_mask << 1 | a, or_mask << 1 | o, xor_mask << 1 | x
        return ((_LANES & and_mask) | or_mask) ^ xor_mask
    numbers = [int(n, 0) for n in rest.split(",")]
    if name == "QUAD_PERM":
        return _LANES & ~3 | np.array(numbers)[_LANES & 3]
    if name == "SWAP":
        return _LANES ^ numbers[0]
    if name == "REVERSE":
        return _LANES ^ (numbers[0] - 1)
    if name == "BROADCAST":
        return _LANES & ~(numbers[0] - 1) | numbers[1]
    if name == "ROTATE":
        return _rotated(numbers[0], numbers[1], 0)
    if name == "FFT":
        return _reversed(numbers[0])
    raise Unsupported(f"ds_swizzle_b32 {name}")
