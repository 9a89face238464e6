"""Dot products of packed operands with an accumulator.

The ISA guide does not say how often the hardware rounds in the floating-point ones; here the exact sum is formed in
float64 (to odd where it is not exact) and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solbench.gfx12.floats import bf16_to_f32, f32_to_bf16, f64_to_f32_odd, sum_to_odd, two_sum_error
from solbench.gfx12.integers import F16, F32, F64, I32, I64, U32, Array, saturate, wide
from solbench.gfx12.narrow import select_byte, widen


def _pairs(a: Array, b: Array, c: Array) -> Array:
    """``a[0] * b[0] + a[1] * b[1] + c`` of float32-exact values as float64 rounded to odd."""
    products = np.multiply(a, b, dtype=F64)
    first, second = products[..., 0], products[..., 1]
    total = first + second
    # Of three terms the two small errors are summed first, so that a later cancellation does not show them.
    error = two_sum_error(first, second, total)
    c = np.asarray(c).astype(F64)
    small = c + error
    whole = total + small
    rest = sum_to_odd(two_sum_error(c, error, small), two_sum_error(total, small, whole))
    return np.where(np.isfinite(whole), sum_to_odd(whole, rest), total + c)


def dot2_f32_f16(a: Array, b: Array, c: Array) -> Array:
    """Two float16 products and a float32 addend."""
    return _pairs(a, b, c).astype(F32)


def dot2_f32_bf16(a: Array, b: Array, c: Array) -> Array:
    """Two bfloat16 products and a float32 addend."""
    return _pairs(bf16_to_f32(a), bf16_to_f32(b), c).astype(F32)


def dot2_f16(a: Array, b: Array, c: Array) -> Array:
    """Two float16 products and a float16 addend."""
    return _pairs(a, b, c).astype(F16)


def dot2_bf16(a: Array, b: Array, c: Array) -> Array:
    """Two bfloat16 products and a bfloat16 addend."""
    return f32_to_bf16(f64_to_f32_odd(_pairs(bf16_to_f32(a), bf16_to_f32(b), bf16_to_f32(c))))


def dot4_f32(kind_a: str, kind_b: str) -> Callable[[Array, Array, Array], Array]:
    """Four products of 8-bit floats of two kinds and a float32 addend."""

    def apply(a: Array, b: Array, c: Array) -> Array:
        total = np.asarray(c).astype(F64)
        for number in range(4):
            left, right = widen(select_byte(a, number), kind_a), widen(select_byte(b, number), kind_b)
            total = sum_to_odd(total, np.multiply(left, right, dtype=F64))
        return total.astype(F32)

    return apply


def _parts(x: Array, bits: int, signed: bool) -> list[Array]:
    parts = [wide((x >> U32(first)) & U32((1 << bits) - 1)) for first in range(0, 32, bits)]
    half, whole = I64(1 << (bits - 1)), I64(1 << bits)
    return [np.where(part >= half, part - whole, part) for part in parts] if signed else parts


def dot_integer(bits: int, clamp: bool, dtype: type = I32) -> Callable[..., Array]:
    """Sum of the products of the ``bits``-wide parts of two uint32 and an addend of ``dtype``, wrapped or limited.

    ``signed`` says of each factor whether its parts are signed.
    """

    def apply(a: Array, b: Array, c: Array, signed: tuple[bool, bool] = (False, False)) -> Array:
        total = wide(c)
        for left, right in zip(_parts(a, bits, signed[0]), _parts(b, bits, signed[1]), strict=True):
            total = total + left * right
        return saturate(total, dtype) if clamp else total.astype(dtype)

    return apply
