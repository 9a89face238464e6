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

from typing import Final

import numpy as np

from solbench.gfx12.floats import bits_of, exponent, fma_exact, fma_f32, fma_f64, ldexp, negative, quiet, sum_to_odd
from solbench.gfx12.integers import F32, F64, I32, U32, Array


def _scale(value: Array, denominator: Array, numerator: Array, step: int, near: int, tiny: int) -> tuple[Array, Array]:
    """The cases of the guide for operands that are not zero."""
    value, denominator, numerator = np.broadcast_arrays(value, denominator, numerator)
    dtype = value.dtype.type
    smallest = np.finfo(dtype).tiny
    field_n, field_d = exponent(numerator), exponent(denominator)
    # Quotients by exponent would do; the division itself says it exactly, but for f64, whose own result is denormal.
    quotient = np.abs(numerator.astype(F64) / denominator.astype(F64))
    reciprocal = np.abs(1.0 / denominator.astype(F64))
    large = field_n - field_d >= near
    low_denominator = field_d == 0
    low_reciprocal = (reciprocal < smallest) & (reciprocal > 0)
    low_quotient = (quotient < smallest) & ~np.isinf(denominator)
    is_denominator, is_numerator = value == denominator, value == numerator
    up, down = ldexp(value, I32(step)), ldexp(value, I32(-step))
    cases = [
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


def _scaled(value: Array, denominator: Array, numerator: Array, step: int, near: int, tiny: int) -> tuple[Array, Array]:
    """:func:`_scale` where an operand or the quotient comes near the ends of the range, ``value`` elsewhere."""
    field_n, field_d = exponent(numerator), exponent(denominator)
    top = 2 * I32(np.finfo(np.asarray(value).dtype).maxexp) - I32(1)
    between = field_n - field_d
    # Normal operands, a normal reciprocal and quotient: none of the cases of _scale holds.
    plain = _within(field_n, I32(tiny + 1), top) & _within(field_d, I32(1), top - I32(2))
    plain &= _within(between, I32(3) - top // I32(2), I32(near))
    value = np.broadcast_to(value, plain.shape)
    flag = np.zeros(plain.shape, bool)
    if plain.all():
        return value, flag
    zero = (numerator == 0) | (denominator == 0)
    special = ~(plain | zero)
    value = np.where(zero, value.dtype.type(np.nan), value)
    if special.any():
        v, d, n = (np.broadcast_to(x, special.shape)[special] for x in (value, denominator, numerator))
        value[special], flag[special] = _scale(v, d, n, step, near, tiny)
    return value, flag


def _within(x: Array, low: Array, end: Array) -> Array:
    """``low <= x < end`` of int32, in one comparison of unsigned numbers."""
    return (x - low).view(U32) < (end - low).view(U32)


def scale_f32(value: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
    """V_DIV_SCALE_F32: ``value`` (one of the other two) scaled by 2**0, 2**64 or 2**-64, and whether FMAS undoes it."""
    return _scaled(value, denominator, numerator, 64, 96, 23)


def scale_f64(value: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
    """V_DIV_SCALE_F64: as :func:`scale_f32` with 2**128."""
    return _scaled(value, denominator, numerator, 128, 768, 53)


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
    bits_n, bits_d = bits_of(numerator), bits_of(denominator)
    sign = bits_n.dtype.type(1 << (8 * bits_n.dtype.itemsize - 1))
    result = ((bits_of(quotient) & ~sign) | ((bits_n ^ bits_d) & sign)).view(quotient.dtype)
    field_n, field_d = exponent(numerator), exponent(denominator)
    top = 2 * I32(np.finfo(quotient.dtype).maxexp) - I32(1)
    plain = _within(field_n, I32(1), top) & _within(field_d, I32(1), top)
    plain &= (field_n - field_d >= _DEEP[quotient.dtype.itemsize]) & (quotient == quotient)
    if plain.all():
        return result
    zero = (numerator == 0) & _within(field_d, I32(1), top)
    result = np.where(zero, np.copysign(quotient.dtype.type(0), result), result)
    special = ~(plain | zero)
    if special.any():
        result[special] = _fixup(quotient[special], denominator[special], numerator[special])
    return result


# A quotient more than this many powers of two below 1 rounds to zero, by the size of the format.
_DEEP: Final = {2: -10000, 4: -150, 8: -1075}


def _fixup(quotient: Array, denominator: Array, numerator: Array) -> Array:
    dtype = quotient.dtype.type
    flip = negative(denominator) != negative(numerator)
    infinite_d, infinite_n = np.isinf(denominator), np.isinf(numerator)
    conditions = [
        np.isnan(numerator),
        np.isnan(denominator),
        ((denominator == 0) & (numerator == 0)) | (infinite_d & infinite_n),
        (denominator == 0) | infinite_n,
        infinite_d | (numerator == 0),
        exponent(numerator) - exponent(denominator) < _DEEP[quotient.dtype.itemsize],
        np.isnan(quotient),
    ]
    unsigned = [np.abs(quotient), dtype(np.inf), dtype(0), dtype(0), dtype(np.inf)]
    plain, inf, zero, under, over = (np.where(flip, -value, value) for value in unsigned)
    nan = np.copysign(dtype(np.nan), dtype(-1))
    return np.select(conditions, [quiet(numerator), quiet(denominator), nan, inf, zero, under, over], default=plain)
