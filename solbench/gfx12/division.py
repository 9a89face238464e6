"""The three instructions a correctly rounded division is made of: V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP.

The pseudocode of the ISA guide is vague or wrong in places; what is here makes the compiler's sequence (scale, rcp, fma
steps, fmas, fixup) a correctly rounded division for every pair of operands, which the tests check:

- where the scale leaves a value alone, the result is the first operand; "== DENORM" asks whether the quotient is below
  the smallest normal number of the operands' format (the guide tests ``1 / S1`` of f32 in f64);
- where both ``1 / S1`` and ``S2 / S1`` are denormal the denominator becomes smaller, not larger (it is near the largest
  number already);
- FMAS undoes the scale with 2**64 or 2**-64 (f64: 2**128) by the size of the quotient, in one rounding;
- FIXUP turns a NaN quotient of two numbers into infinity: it comes of an overflow in the steps before.
"""

from __future__ import annotations

import numpy as np

from solbench.gfx12.floats import exponent, fma_exact, fma_f32, fma_f64, ldexp, negative, quiet, sum_to_odd
from solbench.gfx12.integers import F32, F64, I32, Array


def _scale(value: Array, denominator: Array, numerator: Array, step: int, near: int, tiny: int) -> tuple[Array, Array]:
    value, denominator, numerator = np.broadcast_arrays(value, denominator, numerator)
    dtype = value.dtype.type
    smallest = np.finfo(dtype).tiny
    field_n, field_d = exponent(numerator), exponent(denominator)
    # Quotients by exponent would do; the division itself says it exactly, but for f64, whose own result is denormal.
    quotient = np.abs(numerator.astype(F64) / denominator.astype(F64))
    reciprocal = np.abs(1.0 / denominator.astype(F64))
    zero = (numerator == 0) | (denominator == 0)
    large = field_n - field_d >= near
    low_denominator = field_d == 0
    low_reciprocal = (reciprocal < smallest) & (reciprocal > 0)
    low_quotient = (quotient < smallest) & ~np.isinf(denominator)
    is_denominator, is_numerator = value == denominator, value == numerator
    up, down = ldexp(value, I32(step)), ldexp(value, I32(-step))
    cases = [
        (zero, np.full_like(value, np.nan), False),
        (large, np.where(is_denominator, up, value), True),
        (low_denominator, up, False),
        (low_reciprocal & low_quotient, np.where(is_denominator, down, value), True),
        (low_reciprocal, down, False),
        (low_quotient, np.where(is_numerator, up, value), True),
        (field_n <= tiny, up, False),
    ]
    conditions = [case for case, _, _ in cases]
    result = np.select(conditions, [scaled for _, scaled, _ in cases], default=value)
    flag = np.select(conditions, [np.broadcast_to(post, value.shape) for _, _, post in cases], default=False)
    return result, flag


def scale_f32(value: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
    """V_DIV_SCALE_F32: ``value`` (one of the other two) scaled by 2**0, 2**64 or 2**-64, and whether FMAS undoes it."""
    return _scale(value, denominator, numerator, 64, 96, 23)


def scale_f64(value: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
    """V_DIV_SCALE_F64: as :func:`scale_f32` with 2**128."""
    return _scale(value, denominator, numerator, 128, 768, 53)


def fmas_f32(a: Array, b: Array, c: Array, scaled: Array) -> Array:
    """V_DIV_FMAS_F32: ``a * b + c``, where ``scaled`` times 2**64 (``c`` at least 1) or 2**-64, rounded once."""
    plain = fma_f32(a, b, c)
    if not np.any(scaled):
        return plain
    total = sum_to_odd(np.multiply(a, b, dtype=F64), np.asarray(c).astype(F64))
    undone = np.ldexp(total, np.where(np.abs(c) >= 1, 64, -64).astype(I32)).astype(F32)
    return np.where(scaled, undone, plain)


def fmas_f64(a: Array, b: Array, c: Array, scaled: Array) -> Array:
    """V_DIV_FMAS_F64: ``a * b + c``, where ``scaled`` times 2**128 (``c`` at least 1) or 2**-128, rounded once."""
    a, b, c, scaled = np.broadcast_arrays(a, b, c, scaled)
    result = fma_f64(a, b, c)
    if not scaled.any():
        return result
    result = np.array(result)
    for place in np.argwhere(scaled):
        at = tuple(place)
        result[at] = fma_exact(float(a[at]), float(b[at]), float(c[at]), 128 if abs(c[at]) >= 1 else -128)
    return result


def fixup(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """V_DIV_FIXUP_*: the quotient with its sign, or the special value the operands ask for, in their dtype."""
    quotient, denominator, numerator = np.broadcast_arrays(quotient, denominator, numerator)
    dtype = quotient.dtype.type
    flip = negative(denominator) != negative(numerator)
    # A quotient more than this many powers of two below 1 rounds to zero.
    deep = {2: -10000, 4: -150, 8: -1075}[quotient.dtype.itemsize]
    infinite = np.isinf(denominator), np.isinf(numerator)
    invalid = ((denominator == 0) & (numerator == 0)) | (infinite[0] & infinite[1])
    conditions = [
        np.isnan(numerator),
        np.isnan(denominator),
        invalid,
        (denominator == 0) | infinite[1],
        infinite[0] | (numerator == 0),
        exponent(numerator) - exponent(denominator) < deep,
        np.isnan(quotient),
    ]
    unsigned = [np.abs(quotient), dtype(np.inf), dtype(0), dtype(0), dtype(np.inf)]
    plain, inf, zero, under, over = (np.where(flip, -value, value) for value in unsigned)
    nan = np.copysign(dtype(np.nan), dtype(-1))
    return np.select(conditions, [quiet(numerator), quiet(denominator), nan, inf, zero, under, over], default=plain)
