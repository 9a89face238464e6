"""Floating-point arithmetic that several families share, with one rounding where the hardware has one.

Source of formulas: AMD, "RDNA4 Instruction Set Architecture Reference Guide", chapter 16. Round to nearest even and
denormals preserved, which is the mode compilers set on gfx12, except that the f32 transcendentals (exp, log, rcp, rsq,
sqrt) flush denormals as LLVM's AMDGPU backend assumes of them. Transcendentals are rounded from float64, which is
within the documented error (1 ulp) and not the bits of the hardware.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from solbench.gfx12.integers import F16, F32, F64, I16, I32, I64, U16, U32, U64, Array

_BITS = {2: U16, 4: U32, 8: U64}
_FRACTION = {2: 10, 4: 23, 8: 52}


def bits_of(x: Array) -> Array:
    """The patterns of floats as unsigned integers of their size."""
    x = np.ascontiguousarray(x)
    return x.view(_BITS[x.dtype.itemsize])


def negative(x: Array) -> Array:
    """Where the sign bit is set, of NaN and zero as well."""
    return np.signbit(x)


def exponent(x: Array) -> Array:
    """The biased exponent field of floats, as int32."""
    bits = bits_of(x)
    size = 8 * bits.dtype.itemsize
    fraction = _FRACTION[bits.dtype.itemsize]
    field = (bits >> bits.dtype.type(fraction)) & bits.dtype.type((1 << (size - 1 - fraction)) - 1)
    return field.view(I32) if size == 32 else field.astype(I32)


def quiet(x: Array) -> Array:
    """``x`` with signalling NaN made quiet, everything else as it is."""
    x = np.asarray(x)
    return x * x.dtype.type(1)


def two_sum_error(a: Array, b: Array, total: Array) -> Array:
    """What the float64 sum ``total`` of ``a`` and ``b`` misses, exactly (Knuth)."""
    other = total - a
    return (a - (total - other)) + (b - other)


def sum_to_odd(a: Array, b: Array) -> Array:
    """``a + b`` in float64, rounded to odd: exact, or the neighbour whose last bit is set (Boldo, Melquiond 2008)."""
    total = a + b
    error = two_sum_error(a, b, total)
    bits = bits_of(total).view(I64)
    inexact = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    # Towards the error: away from zero if it has the sign of the sum, else towards zero.
    step = np.where((error > 0) == (total > 0), I64(1), I64(-1))
    return np.where(inexact, (bits + step).view(F64), total)


def _rounded_sum(product: Array, c: Array, dtype: type, unseen: int, smallest: float) -> Array:
    """``product + c`` in a narrower dtype, rounded once.

    Rounding first to float64 and then to ``dtype``, which keeps all but the last ``unseen`` bits of the fraction,
    differs from one rounding only where the float64 sum lies on a midpoint of ``dtype``, or in its denormals: below
    ``smallest``. Those are summed to odd.
    """
    total = np.atleast_1d(product + c)
    result = total.astype(dtype)
    # The lower halves of float64 are enough for float32, and half the work.
    bits = total.view(U32)[..., ::2] if unseen < 32 else total.view(U64)
    unsure = (bits & bits.dtype.type((1 << unseen) - 1)) == bits.dtype.type(1 << (unseen - 1))
    unsure |= np.abs(result) < dtype(smallest)
    if unsure.any():
        unsure &= total != 0
        parts = (np.broadcast_to(x, total.shape)[unsure].astype(F64) for x in (product, c))
        result[unsure] = sum_to_odd(*parts).astype(dtype)
    return result


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of float32, rounded once."""
    return _rounded_sum(np.multiply(a, b, dtype=F64), c, F32, 29, 2.0**-126)


def fma_f16(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of float16, rounded once."""
    return _rounded_sum(np.multiply(a, b, dtype=F64), c, F16, 42, 2.0**-14)


_SPLIT = 134217729.0  # 2**27 + 1, Veltkamp


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of float64, rounded once (error-free transforms; exact rationals near overflow and underflow)."""
    a, b, c = np.broadcast_arrays(a, b, c)
    product = a * b
    upper_a, upper_b = a * _SPLIT, b * _SPLIT
    high_a, high_b = upper_a - (upper_a - a), upper_b - (upper_b - b)
    low_a, low_b = a - high_a, b - high_b
    low = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    small = c + low
    total = product + small
    result = total + sum_to_odd(two_sum_error(product, small, total), two_sum_error(c, low, small))
    # The transforms hold only away from the ends of the range.
    odd = ~(
        (np.abs(a) < 1e250) & (np.abs(b) < 1e250) & (np.abs(c) < 1e300) & (np.abs(product) < 1e300)
        & (np.abs(product) > 1e-250) & (np.abs(a) > 1e-250) & (np.abs(b) > 1e-250) & ((np.abs(c) > 1e-250) | (c == 0))
    )  # fmt: skip
    if not odd.any():
        return result
    # Infinities, NaN and products that are zero need no more than one rounded operation.
    finite = np.isfinite(a) & np.isfinite(b)
    simple = ~(finite & np.isfinite(c)) | (a == 0) | (b == 0)
    result = np.where(simple, np.where(finite & ~np.isfinite(c), c, product + c), result)
    odd &= ~simple
    for place in np.argwhere(odd):
        at = tuple(place)
        result[at] = fma_exact(float(a[at]), float(b[at]), float(c[at]), 0)
    return result


def fma_exact(a: float, b: float, c: float, scale: int) -> float:
    """``(a * b + c) * 2**scale`` rounded once, by rationals."""
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        if np.isfinite(a) and np.isfinite(b):
            return c
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    value = (Fraction(a) * Fraction(b) + Fraction(c)) * Fraction(2) ** scale
    if value == 0:
        # An exact zero is negative only if both terms are.
        return -0.0 if negative(np.float64(a)) != negative(np.float64(b)) and negative(np.float64(c)) else 0.0
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def min_num(a: Array, b: Array) -> Array:
    """The smaller; the other one if one is NaN; -0 below +0 (V_MIN_NUM_*)."""
    return _order(np.fmin(a, b), a, b, np.bitwise_or)


def max_num(a: Array, b: Array) -> Array:
    """The larger; the other one if one is NaN; -0 below +0 (V_MAX_NUM_*)."""
    return _order(np.fmax(a, b), a, b, np.bitwise_and)


def minimum(a: Array, b: Array) -> Array:
    """The smaller; NaN if one is NaN; -0 below +0 (V_MINIMUM_*)."""
    return _order(np.minimum(a, b), a, b, np.bitwise_or)


def maximum(a: Array, b: Array) -> Array:
    """The larger; NaN if one is NaN; -0 below +0 (V_MAXIMUM_*)."""
    return _order(np.maximum(a, b), a, b, np.bitwise_and)


def _order(result: Array, a: Array, b: Array, of_zeros: np.ufunc) -> Array:
    """``result`` with the sign of zero made right where both operands are zero, and NaN made quiet."""
    result = np.asarray(result)
    if (result == 0).any():
        zeros = (np.asarray(a) == 0) & (np.asarray(b) == 0)
        signs = of_zeros(bits_of(a), bits_of(b)).view(result.dtype)
        result = np.where(zeros, signs, result)
    return result if not np.isnan(result).any() else quiet(result)


def med3_num(a: Array, b: Array, c: Array) -> Array:
    """The middle one of three; the smallest number if one is NaN (V_MED3_NUM_*)."""
    largest = max_num(max_num(a, b), c)
    middle = np.where(largest == a, max_num(b, c), np.where(largest == b, max_num(a, c), max_num(a, b)))
    return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), min_num(min_num(a, b), c), middle)


def ldexp(x: Array, n: Array) -> Array:
    """``x * 2**n``, rounded once."""
    return np.ldexp(x, np.clip(n, -5000, 5000).astype(I32))


def frexp_mant(x: Array) -> Array:
    """The fraction of ``x`` in [0.5, 1) with its sign; zero, infinity and NaN as they are."""
    return np.frexp(x)[0]


def frexp_exp(x: Array, dtype: type = I32) -> Array:
    """The exponent that goes with :func:`frexp_mant`; 0 for zero, infinity and NaN."""
    return np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(dtype)


def fract(x: Array) -> Array:
    """``x - floor(x)``, below 1 (LLVM takes V_FRACT for ``min(x - floor(x), 1 - ulp)``); NaN for infinity."""
    x = np.asarray(x)
    return np.minimum(x - np.floor(x), np.nextafter(x.dtype.type(1), x.dtype.type(0)))


def round_even(x: Array) -> Array:
    """To the nearest integer, halves to even; the sign of zero stays."""
    return np.rint(x)


def to_integer(x: Array, dtype: type) -> Array:
    """Towards zero, limited to what ``dtype`` (up to 32 bits) holds; NaN to 0."""
    limits = np.iinfo(dtype)
    x = np.asarray(x).astype(F64)
    return np.clip(np.where(np.isnan(x), 0.0, x), limits.min, limits.max).astype(I64).astype(dtype)


def to_norm(x: Array, dtype: type) -> Array:
    """[-1, 1] or [0, 1] to the whole of int16 or uint16, nearest even; NaN to 0 (V_CVT_NORM_*, V_CVT_PK_NORM_*)."""
    top = float(np.iinfo(dtype).max)
    x = np.asarray(x).astype(F64)
    low = -1.0 if dtype is I16 else 0.0
    return np.rint(np.clip(np.where(np.isnan(x), 0.0, x), low, 1.0) * top).astype(dtype)


def f32_to_f16_rtz(x: Array) -> Array:
    """float32 to float16 towards zero: a finite value stays finite."""
    x = np.asarray(x)
    half = x.astype(F16)
    past = np.abs(half.astype(F32)) > np.abs(x)
    return (half.view(U16) - past.astype(U16)).view(F16)


def _flush(x: Array) -> Array:
    """float32 with denormals as zeros of their sign."""
    x = np.asarray(x)
    small = np.abs(x) < F32(1.1754944e-38)
    return np.where(small, np.copysign(F32(0), x), x) if small.any() else x


def _transcendental(function: Callable[[Array], Array], x: Array) -> Array:
    return _flush(function(_flush(x).astype(F64)).astype(F32))


def exp2_f32(x: Array) -> Array:
    """2 to the power of ``x``; denormal operands and results are zero."""
    return _transcendental(np.exp2, x)


def log2_f32(x: Array) -> Array:
    """Logarithm to base 2; a denormal operand counts as zero."""
    return _transcendental(np.log2, x)


def rcp_f32(x: Array) -> Array:
    """``1 / x``; denormal operands and results are zero."""
    return _transcendental(np.reciprocal, x)


def rsq_f32(x: Array) -> Array:
    """``1 / sqrt(x)``; a denormal operand counts as zero."""
    return _transcendental(rsq_f64, x)


def sqrt_f32(x: Array) -> Array:
    """Square root; a denormal operand counts as zero."""
    return _transcendental(np.sqrt, x)


def rsq_f64(x: Array) -> Array:
    """``1 / sqrt(x)`` of float64."""
    return np.reciprocal(np.sqrt(x))


def _sin_of_part(turns: Array) -> Array:
    return np.sin(2 * np.pi * turns)


def sin_turns(x: Array) -> Array:
    """Sine of ``x`` full turns, in the dtype of ``x``; 0 at half turns, NaN for infinity."""
    x = np.asarray(x)
    wide = x.astype(F64)
    part = wide - np.rint(wide)
    part = np.where(np.abs(part) > 0.25, np.copysign(0.5, part) - part, part)
    return np.where(wide == 0, wide, _sin_of_part(part)).astype(x.dtype)


def cos_turns(x: Array) -> Array:
    """Cosine of ``x`` full turns, in the dtype of ``x``; 0 at quarter turns, NaN for infinity."""
    x = np.asarray(x)
    wide = x.astype(F64)
    return _sin_of_part(0.25 - np.abs(wide - np.rint(wide))).astype(x.dtype)


def classes(x: Array, mask: Array) -> Array:
    """Where the class of ``x`` is one of ``mask``: bits from 0 on are signalling and quiet NaN, -infinity, -normal,
    -denormal, -0, +0, +denormal, +normal, +infinity (V_CMP_CLASS_*)."""
    bits = bits_of(x)
    size = bits.dtype.itemsize
    fraction = bits & bits.dtype.type((1 << _FRACTION[size]) - 1)
    field = exponent(x)
    full = {2: 31, 4: 255, 8: 2047}[size]
    sign = negative(x)
    number = np.where(field == full, 9, np.where(field > 0, 8, np.where(fraction != 0, 7, 6)))
    number = np.where(sign, 11 - number, number)
    is_quiet = (fraction >> bits.dtype.type(_FRACTION[size] - 1)) != 0
    number = np.where((field == full) & (fraction != 0), np.where(is_quiet, 1, 0), number)
    return ((np.asarray(mask).astype(I32) >> number.astype(I32)) & 1) != 0


def bf16_to_f32(x: Array) -> Array:
    """bfloat16 patterns (uint16) to float32."""
    return (np.asarray(x).astype(U32) << U32(16)).view(F32)


def f32_to_bf16(x: Array) -> Array:
    """float32 to bfloat16 patterns (uint16), nearest even; NaN stays NaN and is quiet."""
    bits = bits_of(x)
    rounded = (bits + U32(0x7FFF) + ((bits >> U32(16)) & U32(1))) >> U32(16)
    return np.where(np.isnan(x), (bits >> U32(16)) | U32(0x40), rounded).astype(U16)


def f64_to_f32_odd(x: Array) -> Array:
    """float64 to float32 rounded to odd, so that one more rounding to a narrower format is the only one."""
    x = np.asarray(x)
    near = x.astype(F32)
    back = near.astype(F64)
    bits = bits_of(near).view(I32)
    step = np.where(np.abs(back) > np.abs(x), I32(-1), I32(1))
    inexact = (back != x) & ~np.isnan(x) & ((bits & 1) == 0)
    return np.where(inexact, (bits + step).view(F32), near)
