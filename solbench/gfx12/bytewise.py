"""Vector instructions on the bytes of a register: differences, averages, permutations, and packing of 8-bit values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solbench.gfx12.floats import to_integer
from solbench.gfx12.integers import I64, U8, U16, U32, U64, Array, bytes_of, saturate, wide
from solbench.gfx12.narrow import insert_byte, narrow

Sad = Callable[[Array, Array, Array], Array]


def lerp(a: Array, b: Array, c: Array) -> Array:
    """Average of each byte of ``a`` and ``b``, rounded up where the lowest bit of that byte of ``c`` is set."""
    result = U32(0)
    for number, (left, right, carry) in enumerate(zip(bytes_of(a), bytes_of(b), bytes_of(c), strict=True)):
        result = result | (((left + right + (carry & U32(1))) >> U32(1)) << U32(8 * number))
    return result


def sad_u8_wide(a: Array, b: Array, c: Array) -> Array:
    """Sum of the absolute differences of the bytes and ``c``, as int64."""
    pairs = zip(bytes_of(a), bytes_of(b), strict=True)
    return sum((np.abs(wide(left) - wide(right)) for left, right in pairs), start=wide(c))


def msad_u8_wide(a: Array, b: Array, c: Array) -> Array:
    """As :func:`sad_u8_wide` without the bytes where ``b`` is zero."""
    pairs = zip(bytes_of(a), bytes_of(b), strict=True)
    terms = (np.where(right == 0, I64(0), np.abs(wide(left) - wide(right))) for left, right in pairs)
    return sum(terms, start=wide(c))


def sad_hi_u8_wide(a: Array, b: Array, c: Array) -> Array:
    """The byte differences in the upper half, and ``c``, as int64."""
    return (sad_u8_wide(a, b, U32(0)) << I64(16)) + wide(c)


def sad_u16_wide(a: Array, b: Array, c: Array) -> Array:
    """Sum of the absolute differences of the halves and ``c``, as int64."""
    low = np.abs(wide(a & U32(0xFFFF)) - wide(b & U32(0xFFFF)))
    return low + np.abs(wide(a >> U32(16)) - wide(b >> U32(16))) + wide(c)


def sad_u32_wide(a: Array, b: Array, c: Array) -> Array:
    """Absolute difference of two uint32 and ``c``, as int64."""
    return np.abs(wide(a) - wide(b)) + wide(c)


def _wrapped(function: Sad) -> Sad:
    return lambda a, b, c: function(a, b, c).astype(U32)


def limited_sad(function: Sad) -> Sad:
    """The sum limited to uint32."""
    return lambda a, b, c: saturate(function(a, b, c), U32)


sad_u8, msad_u8, sad_hi_u8 = _wrapped(sad_u8_wide), _wrapped(msad_u8_wide), _wrapped(sad_hi_u8_wide)
sad_u16, sad_u32 = _wrapped(sad_u16_wide), _wrapped(sad_u32_wide)


def _window(x: Array, number: int) -> Array:
    """The four bytes of uint64 ``x`` from byte ``number`` on, as uint32."""
    return (x >> U64(8 * number)).astype(U32)


def qsad_pk(function: Sad, clamp: bool) -> Sad:
    """Four sums of differences against bytes 0-3, 1-4, 2-5 and 3-6 of ``a``, as four 16-bit values with addends."""

    def apply(a: Array, b: Array, c: Array) -> Array:
        result = U64(0)
        for number in range(4):
            addend = ((c >> U64(16 * number)) & U64(0xFFFF)).astype(U32)
            total = function(_window(a, number), b, addend)
            part = saturate(total, U16) if clamp else total.astype(U16)
            result = result | (part.astype(U64) << U64(16 * number))
        return result

    return apply


def mqsad_u32(clamp: bool) -> Sad:
    """The masked sums of :func:`qsad_pk` as four 32-bit values: a last axis of 4."""

    def apply(a: Array, b: Array, c: Array) -> Array:
        totals = [msad_u8_wide(_window(a, number), b, c[..., number]) for number in range(4)]
        total = np.stack(np.broadcast_arrays(*totals), axis=-1)
        return saturate(total, U32) if clamp else total.astype(U32)

    return apply


def cvt_pk_u8(x: Array, number: Array, old: Array) -> Array:
    """``old`` with byte ``number`` replaced by float32 ``x`` as an 8-bit integer (towards zero, limited)."""
    shift = (number & U32(3)) * U32(8)
    return (old & ~(U32(0xFF) << shift)) | (to_integer(x, U8).astype(U32) << shift)


def _rearranged(high: Array, low: Array, selector: int) -> Array:
    """:func:`perm` by one selector for all lanes that names bytes only: whole halves where it can, else bytes."""
    high, low = np.broadcast_arrays(high, low)
    halves = [selector & 0xFFFF, selector >> 16]
    size = 2 if all(half % 2 == 0 and half >> 8 == (half & 0xFF) + 1 for half in halves) else 1
    count = 4 // size
    sources = [np.ascontiguousarray(x).view(f"u{size}").reshape(*x.shape, count) for x in (low, high)]
    result = np.empty((*low.shape, count), f"u{size}")
    for number in range(count):
        chosen = (selector >> (8 * size * number) & 7) // size
        result[..., number] = sources[chosen // count][..., chosen % count]
    return result.view(U32).reshape(low.shape)


def perm(high: Array, low: Array, selector: Array) -> Array:
    """Each byte of ``selector`` chooses: 0-7 a byte of ``low`` then ``high``, 8-11 the sign of byte 1, 3, 5, 7 in every
    bit, 12 zero, 13 and more ones."""
    selector = np.asarray(selector)
    first = int(selector.flat[0])
    if (first & 0xF8F8F8F8) == 0 and (selector == first).all():
        return _rearranged(high, low, first)
    both = (np.asarray(high).astype(U64) << U64(32)) | low
    result = U32(0)
    for number, choice in enumerate(bytes_of(selector)):
        byte = (both >> ((choice & U32(7)) * U32(8)).astype(U64)).astype(U32) & U32(0xFF)
        sign_at = (((choice & U32(3)) * U32(2) + U32(1)) * U32(8) + U32(7)).astype(U64)
        sign = ((both >> sign_at).astype(U32) & U32(1)) * U32(0xFF)
        fixed = np.where(choice == 12, U32(0), U32(0xFF))
        value = np.where(choice < 8, byte, np.where(choice < 12, sign, fixed))
        result = result | (value << U32(8 * number))
    return result


def narrow_pair(kind: str) -> Callable[..., Array]:
    """Two float32 as two 8-bit floats in 16 bits."""

    def apply(a: Array, b: Array, saturate: bool = False) -> Array:
        return (narrow(a, kind, saturate) | (narrow(b, kind, saturate) << U32(8))).astype(U16)

    return apply


def narrow_noisy(kind: str) -> Callable[..., Array]:
    """A float32 as an 8-bit float by stochastic rounding, in one byte of the old value."""

    def apply(x: Array, noise: Array, old: Array, byte_sel: int = 0, saturate: bool = False) -> Array:
        return insert_byte(old, narrow(x, kind, saturate, noise), byte_sel)

    return apply
