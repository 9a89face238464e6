"""Matrix instructions (WMMA, wave32): ``D = A B + C`` of one wave's 16x16 tiles.

Layouts: register i of lane l of C and D holds row ``i + 8 * (l // 16)`` of column ``l % 16`` (16-bit results: two rows
a register, the lower one in the low half). A lane of A holds row ``l % 16``, a lane of B column ``l % 16``; lanes 0-15
hold the first half of K, 16-31 the second, consecutive, lowest bits first.

Floating-point products and their sum with C are formed in float64 and rounded once, so that a result does not depend on
its place in the tile. A card's may differ by float32 rounding: the inner order and rounding of the hardware are not
documented. Integer results are exact: sums of 32 products of 8 bits stay below 2**24, which float32 holds.

SWMMAC (sparse A) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from solbench.gfx12.floats import bf16_to_f32, f32_to_bf16, f64_to_f32_odd
from solbench.gfx12.integers import F16, F32, F64, I32, U8, U16, U32, Array, saturate, wide
from solbench.gfx12.narrow import BF8, FP8

Triple = tuple[bool, bool, bool]
Reader = Callable[[Array, bool, bool], Array]
_NONE: Final[Triple] = (False, False, False)


def _rows(values: Array) -> Array:
    """(waves, 32, k) values of lanes to float32 (waves, 16, 2 * k) rows of A, or columns of B."""
    waves, _, half = values.shape
    return values.reshape(waves, 2, 16, half).transpose(0, 2, 1, 3).reshape(waves, 16, 2 * half)


def _negated(values: Array, low: bool, high: bool) -> Array:
    """The even elements negated if ``low``, the odd ones if ``high``."""
    if low or high:
        values = values * np.array([-1 if low else 1, -1 if high else 1] * (values.shape[-1] // 2), dtype=F32)
    return values


def _f16(block: Array, low: bool, high: bool) -> Array:
    return _negated(np.ascontiguousarray(block).view(F16).astype(F32), low, high)


def _bf16(block: Array, low: bool, high: bool) -> Array:
    block = np.asarray(block)
    values = np.empty((*block.shape, 2), U32)
    np.left_shift(block, U32(16), out=values[..., 0])
    np.bitwise_and(block, U32(0xFFFF0000), out=values[..., 1])
    return _negated(values.reshape(*block.shape[:-1], -1).view(F32), low, high)


def _byte_floats(values: Array) -> Reader:
    return lambda block, low, high: values[np.ascontiguousarray(block).view(U8)]


def _integers(bits: int) -> Reader:
    """Parts of ``bits``; the printed ``neg_lo`` of A and B says that they are signed."""

    def read(block: Array, signed: bool, _: bool) -> Array:
        parts = np.ascontiguousarray(block).view(U8)
        if bits == 4:
            parts = np.stack([parts & U8(15), parts >> U8(4)], axis=-1).reshape(*parts.shape[:-1], -1)
        values = parts.astype(F32)
        return np.where(parts >> U8(bits - 1) != 0, values - F32(1 << bits), values) if signed else values

    return read


def _product(a: Array, b: Array) -> Array:
    """(waves, 32, 8) of the operands' dtype: the sum of products of the row of A and the column of B of that place."""
    columns = np.matmul(_rows(b), _rows(a).transpose(0, 2, 1))
    return columns.reshape(-1, 16, 2, 8).transpose(0, 2, 1, 3).reshape(-1, 32, 8)


def _addend(c: Array, negate: bool, absolute: bool) -> Array:
    """C with its modifiers: ``neg_hi`` takes the magnitude, ``neg_lo`` then negates."""
    c = np.abs(c) if absolute else c
    return -c if negate else c


def _sum(readers: tuple[Reader, Reader], a: Array, b: Array, c: Array, neg_lo: Triple, neg_hi: Triple) -> Array:
    """Products and C (floats) in float64."""
    left, right = readers[0](a, neg_lo[0], neg_hi[0]), readers[1](b, neg_lo[1], neg_hi[1])
    return _product(left.astype(F64), right.astype(F64)) + _addend(c.astype(F64), neg_lo[2], neg_hi[2])


def _to_f32(*readers: Reader) -> Callable[..., Array]:
    left, right = readers

    def apply(a: Array, b: Array, c: Array, *, neg_lo: Triple = _NONE, neg_hi: Triple = _NONE) -> Array:
        total = _sum((left, right), a, b, np.ascontiguousarray(c).view(F32), neg_lo, neg_hi)
        return total.astype(F32).view(U32)

    return apply


def _to_f16(a: Array, b: Array, c: Array, *, neg_lo: Triple = _NONE, neg_hi: Triple = _NONE) -> Array:
    total = _sum((_f16, _f16), a, b, np.ascontiguousarray(c).view(F16), neg_lo, neg_hi)
    return total.astype(F16).view(U32)


def _to_bf16(a: Array, b: Array, c: Array, *, neg_lo: Triple = _NONE, neg_hi: Triple = _NONE) -> Array:
    total = _sum((_bf16, _bf16), a, b, bf16_to_f32(np.ascontiguousarray(c).view(U16)), neg_lo, neg_hi)
    return f32_to_bf16(f64_to_f32_odd(total)).view(U32)


def _to_i32(bits: int) -> Callable[..., Array]:
    read = _integers(bits)

    def apply(
        a: Array, b: Array, c: Array, *, neg_lo: Triple = _NONE, neg_hi: Triple = _NONE, clamp: bool = False
    ) -> Array:
        total = _product(read(a, neg_lo[0], False), read(b, neg_lo[1], False)).astype(I32)
        addend = np.ascontiguousarray(c).view(I32)
        result = saturate(wide(total) + wide(addend), I32) if clamp else total + addend
        return result.view(U32)

    return apply


_FP8, _BF8 = _byte_floats(FP8), _byte_floats(BF8)
# Register blocks uint32 (waves, 32, n) of A, B and C -> uint32 (waves, 32, m) of D. Keywords: the printed ``neg_lo``
# and ``neg_hi`` as three bool, and ``clamp`` of the integer ones.
WMMA: Final[Mapping[str, Callable[..., Array]]] = MappingProxyType(
    {
        "v_wmma_f32_16x16x16_f16": _to_f32(_f16, _f16),
        "v_wmma_f32_16x16x16_bf16": _to_f32(_bf16, _bf16),
        "v_wmma_f16_16x16x16_f16": _to_f16,
        "v_wmma_bf16_16x16x16_bf16": _to_bf16,
        "v_wmma_i32_16x16x16_iu8": _to_i32(8),
        "v_wmma_i32_16x16x16_iu4": _to_i32(4),
        "v_wmma_i32_16x16x32_iu4": _to_i32(4),
        "v_wmma_f32_16x16x16_fp8_fp8": _to_f32(_FP8, _FP8),
        "v_wmma_f32_16x16x16_fp8_bf8": _to_f32(_FP8, _BF8),
        "v_wmma_f32_16x16x16_bf8_fp8": _to_f32(_BF8, _FP8),
        "v_wmma_f32_16x16x16_bf8_bf8": _to_f32(_BF8, _BF8),
    }
)
