"""Integer arithmetic that several families share: counting, reversing, fields, products, saturation.

Functions take and return numpy arrays of the dtype their name or docstring says and broadcast over any shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

U8, U16, U32, U64 = np.uint8, np.uint16, np.uint32, np.uint64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64
F16, F32, F64 = np.float16, np.float32, np.float64

Array = Any


def popcount(x: Array) -> Array:
    """Number of ones of each uint32 or uint64, as int32."""
    x = np.asarray(x)
    one = x.dtype.type
    ones = (1 << (8 * x.dtype.itemsize)) - 1
    x = x - ((x >> one(1)) & one(ones // 3))
    x = (x & one(ones // 5)) + ((x >> one(2)) & one(ones // 5))
    x = (x + (x >> one(4))) & one(ones // 17)
    return ((x * one(ones // 255)) >> one(8 * x.dtype.itemsize - 8)).astype(I32)


def bit_length(x: Array) -> Array:
    """Position after the highest one of each uint32 or uint64, 0 for zero, as int32."""
    x = np.asarray(x)
    if x.dtype == U32:
        return np.frexp(x.astype(F64))[1].astype(I32)
    high = (x >> U64(32)).astype(U32)
    return np.where(high != 0, bit_length(high) + I32(32), bit_length(x.astype(U32)))


def clz(x: Array) -> Array:
    """Zeros before the highest one of each uint32 or uint64, -1 if there is none, as int32."""
    x = np.asarray(x)
    return np.where(x == 0, I32(-1), I32(8 * x.dtype.itemsize) - bit_length(x))


def ctz(x: Array) -> Array:
    """Position of the lowest one of each uint32 or uint64, -1 if there is none, as int32."""
    x = np.asarray(x)
    return bit_length(x & (~x + x.dtype.type(1))) - I32(1)


def cls(x: Array) -> Array:
    """Leading bits that equal the sign bit of each int32 or int64, the sign bit included; -1 if all do, as int32."""
    x = np.asarray(x)
    folded = (x ^ (x >> x.dtype.type(8 * x.dtype.itemsize - 1))).view(U32 if x.dtype == I32 else U64)
    return clz(folded)


def reverse(x: Array) -> Array:
    """The bits of each uint32 or uint64 in opposite order."""
    x = np.asarray(x)
    one = x.dtype.type
    ones = (1 << (8 * x.dtype.itemsize)) - 1
    for step, mask in ((1, ones // 3), (2, ones // 5), (4, ones // 17)):
        x = ((x >> one(step)) & one(mask)) | ((x & one(mask)) << one(step))
    return x.byteswap()


def mask_of(width: Array, dtype: Any) -> Array:
    """The lowest ``width`` bits set, as uint32 or uint64; all of them from the dtype's size on."""
    size = 8 * np.dtype(dtype).itemsize
    width = np.asarray(width).astype(dtype)
    return np.where(width >= size, ~dtype(0), (dtype(1) << (width & dtype(size - 1))) - dtype(1))


def field(x: Array, offset: Array, width: Array) -> Array:
    """``width`` bits of uint32 or uint64 ``x`` from bit ``offset`` on, in the low bits."""
    x = np.asarray(x)
    dtype = x.dtype.type
    return (x >> np.asarray(offset).astype(dtype)) & mask_of(width, dtype)


def signed_field(x: Array, offset: Array, width: Array) -> Array:
    """``width`` bits of int32 or int64 ``x`` from bit ``offset`` on, its highest bit repeated; 0 for width 0.

    Bits above the top of ``x`` are copies of its sign, as the shift of the ISA's formula makes them.
    """
    x = np.asarray(x)
    dtype, size = x.dtype.type, 8 * x.dtype.itemsize
    shifted = x >> np.asarray(offset).astype(dtype)
    width = np.minimum(np.asarray(width).astype(dtype), dtype(size))
    unused = (dtype(size) - width) & dtype(size - 1)
    return np.where(width == 0, dtype(0), (shifted << unused) >> unused)


def mul_hi_u32(a: Array, b: Array) -> Array:
    """High half of the product of two uint32."""
    return ((np.asarray(a).astype(U64) * np.asarray(b).astype(U64)) >> U64(32)).astype(U32)


def mul_hi_i32(a: Array, b: Array) -> Array:
    """High half of the product of two int32."""
    return ((np.asarray(a).astype(I64) * np.asarray(b).astype(I64)) >> I64(32)).astype(I32)


def u24(x: Array) -> Array:
    """The low 24 bits of each uint32."""
    return x & U32(0xFFFFFF)


def i24(x: Array) -> Array:
    """The low 24 bits of each int32 with bit 23 as sign."""
    return (x << I32(8)) >> I32(8)


def saturate(x: Array, dtype: Any) -> Array:
    """``x`` (integers of a wider dtype) limited to what ``dtype`` holds."""
    limits = np.iinfo(dtype)
    return np.clip(x, limits.min, limits.max).astype(dtype)


def wide(x: Array) -> Array:
    """8-, 16- or 32-bit integers as int64."""
    return np.asarray(x).astype(I64)


def bytes_of(x: Array) -> tuple[Array, Array, Array, Array]:
    """The four bytes of each uint32, lowest first, each as uint32."""
    return x & U32(255), (x >> U32(8)) & U32(255), (x >> U32(16)) & U32(255), x >> U32(24)
