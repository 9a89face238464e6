"""Operand values for the instruction tests: edge values and seeded random bits of every type of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
from exact_floats import FORMATS

_INTEGERS = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 23, 24, 31, 32, 33, 63, 64, 100, 127, 128, 255, 256, 32767, 32768, 65535)
DTYPES = {
    "b16": np.uint16, "u16": np.uint16, "i16": np.int16, "imm16": np.int16, "bf16": np.uint16, "f16": np.float16,
    "b32": np.uint32, "u32": np.uint32, "i32": np.int32, "f32": np.float32, "mix": np.float32,
    "b64": np.uint64, "u64": np.uint64, "i64": np.int64, "f64": np.float64,
}  # fmt: skip


def float_patterns(kind: str) -> list[int]:
    """Edge values of a format: zeros, denormals, powers of two, halves, neighbours, limits, infinities, NaN."""
    fraction, lowest, _, size = FORMATS[kind]
    bias, one = -lowest + 1, 1 << fraction
    top = (1 << (size - 1 - fraction)) - 1
    steps = sorted({1, 2, bias - 1, bias, bias + 1, bias - fraction, bias - fraction - 1, bias + fraction,
                    bias + fraction + 1, bias + fraction - 1, bias + 5, bias - 5, top - 1, top // 4, top // 4 * 3,
                    bias + 15, bias + 16, bias + 31, bias + 32})  # fmt: skip
    found = [0, 1, 2, one // 2, one - 1]
    for step in (step for step in steps if 0 < step < top):
        found += [step * one, step * one + 1, step * one + one // 2, step * one + one - 1, step * one + one // 2 + 1]
    found += [top * one, top * one + one // 2, top * one + 1, top * one + one - 1]
    return found + [pattern | 1 << (size - 1) for pattern in found]


def edges(kind: str) -> list[int]:
    """Patterns worth trying of an operand type that is one value."""
    if kind == "mix":
        kind = "f32"
    if kind in FORMATS:
        return float_patterns(kind)
    size = 8 * np.dtype(DTYPES[kind]).itemsize
    top = 1 << size
    found = {value % top for value in _INTEGERS} | {-value % top for value in _INTEGERS}
    found |= {1 << at for at in range(size)} | {(1 << at) - 1 for at in range(size)}
    found |= {top // 2 + 1, top // 2 - 1, 0x5A5A5A5A5A5A5A5A % top, 0x00FF00FF00FF00FF % top, 0x7FFFFF % top}
    return sorted(found)


def _values(kind: str, count: int, random: np.random.Generator) -> np.ndarray[Any, Any]:
    size = 8 * np.dtype(DTYPES[kind]).itemsize
    unsigned = np.dtype(f"u{size // 8}")
    noise = np.frombuffer(random.bytes(count * size // 8), unsigned)
    chosen = random.choice(np.array(edges(kind), unsigned), count)
    return np.where(random.random(count) < 0.7, chosen, noise).view(DTYPES[kind])


def sample(kind: str, count: int, random: np.random.Generator) -> np.ndarray[Any, Any]:
    """``count`` values of an operand type, as the table's functions take them."""
    if kind in ("mask", "vcc", "exec", "scc"):
        return random.integers(0, 2, count).astype(bool)
    if kind.startswith("2x"):
        return np.stack([_values(kind[2:], count, random) for _ in range(2)], axis=-1)
    if kind == "b128":
        return np.stack([_values("b32", count, random) for _ in range(4)], axis=-1)
    return _values(kind, count, random)


def _few(kind: str) -> list[int]:
    """Patterns of which all combinations should be met: zeros, ones, infinities, NaN; 0, 1, -1, ends of integers."""
    if kind in FORMATS:
        fraction, lowest, _, size = FORMATS[kind]
        found = [0, 1, (-lowest + 1) << fraction, (1 << (size - 1)) - (1 << fraction), (1 << (size - 1)) - 1]
        return found + [x | 1 << (size - 1) for x in found]
    size = 8 * np.dtype(DTYPES[kind]).itemsize
    return [0, 1, (1 << size) - 1, 1 << (size - 1), (1 << (size - 1)) - 1]


def _patterns(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits of values: a choice between floats could make a signalling NaN quiet."""
    return x if x.dtype == bool else x.view(f"u{x.dtype.itemsize}")


def operands(kinds: tuple[str, ...], count: int, seed: int) -> list[np.ndarray[Any, Any]]:
    """``count`` values of each operand.

    In parts of the places the operands after the first are equal to it, its complement or its negative, where they are
    of its type; in another part all are of a few special values.
    """
    random = np.random.default_rng(seed)
    found = [sample(kind, count, random) for kind in kinds]
    mode = random.choice(5, count, p=(0.15, 0.08, 0.07, 0.2, 0.5))
    for number, kind in enumerate(kinds):
        if found[number].dtype == bool:
            continue
        old = _patterns(found[number])
        modes = mode.reshape(-1, *[1] * (old.ndim - 1))
        if number and kind == kinds[0]:
            first = _patterns(found[0])
            old = np.select([modes == 0, modes == 1, modes == 2], [first, ~first, ~first + first.dtype.type(1)], old)
        part = {"b128": "b32", "mix": "f32"}.get(kind, kind.removeprefix("2x"))
        special = random.choice(np.array(_few(part), old.dtype), old.shape)
        found[number] = np.where(modes == 3, special, old).view(found[number].dtype)
    return found


def pattern(value: Any) -> int:
    """The bits of one value: a scalar, or a short row whose first element is lowest."""
    value = np.asarray(value)
    if value.dtype == bool:
        return int(value.item())
    raw = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}").ravel()
    return sum(int(part) << (8 * value.dtype.itemsize * at) for at, part in enumerate(raw))
