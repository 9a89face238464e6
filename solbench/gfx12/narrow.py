"""8-bit floating point of gfx12: ``fp8`` is OCP E4M3 (no infinity, NaN is 0x7f), ``bf8`` is OCP E5M2.

Source: OCP 8-bit Floating Point Specification (OFP8), and the conversions of the RDNA4 ISA guide.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from solbench.gfx12.floats import negative
from solbench.gfx12.integers import F32, F64, U32, Array


def _values(fraction_bits: int, bias: int, infinities: bool) -> Array:
    codes = np.arange(256)
    sign = np.where(codes & 0x80, -1.0, 1.0)
    field = (codes & 0x7F) >> fraction_bits
    fraction = codes & ((1 << fraction_bits) - 1)
    top = 0x7F >> fraction_bits
    scale = 2.0**-fraction_bits
    value = np.where(field == 0, fraction * scale * 2.0 ** (1 - bias), (1 + fraction * scale) * 2.0 ** (field - bias))
    if infinities:
        value = np.where(field == top, np.where(fraction == 0, np.inf, np.nan), value)
    else:
        value = np.where((codes & 0x7F) == 0x7F, np.nan, value)
    return np.copysign(value, sign).astype(F32)


FP8: Final = _values(3, 7, infinities=False)
BF8: Final = _values(2, 15, infinities=True)
# Fraction bits, exponent of the smallest normal number, largest number, patterns of NaN and of an overflow.
_FORMATS: Final = {"fp8": (3, -6, 448.0, 0x7F, 0x7F), "bf8": (2, -14, 57344.0, 0x7F, 0x7C)}


def widen(x: Array, kind: str) -> Array:
    """Patterns (the low 8 bits of any integers) of ``kind`` ("fp8", "bf8") to float32."""
    return (FP8 if kind == "fp8" else BF8)[np.asarray(x) & 0xFF]


def narrow(x: Array, kind: str, saturate: bool = False, noise: Array | None = None) -> Array:
    """float32 to patterns (uint32, the low 8 bits) of ``kind``.

    Nearest even. A value past the largest number becomes NaN (fp8) or infinity (bf8); with ``saturate`` (FP16_OVFL)
    the largest number. With ``noise`` (uint32) its high 20 (fp8) or 21 (bf8) bits, as fractions of the last place,
    are added instead and the rest is cut: stochastic rounding. The guide leaves open how the hardware does this
    for denormal results; here they are rounded to their own last place.
    """
    fraction_bits, lowest, largest, nan, overflow = _FORMATS[kind]
    x = np.asarray(x)
    magnitude = np.abs(x.astype(F64))
    exponents = np.maximum(np.where(magnitude == 0, lowest, np.frexp(magnitude)[1] - 1), lowest)
    steps = np.ldexp(np.where(np.isfinite(magnitude), magnitude, 0.0), fraction_bits - exponents)
    if noise is None:
        steps = np.rint(steps)
    else:
        width = 20 if kind == "fp8" else 21
        steps = np.floor(steps + (np.asarray(noise) >> U32(32 - width)).astype(F64) / 2.0**width)
    rounded = np.ldexp(steps, exponents - fraction_bits)
    # The exponent field follows from the number of steps: a carry out of the fraction raises it by itself.
    code = steps.astype(U32) + ((exponents - lowest).astype(U32) << U32(fraction_bits))
    past = (rounded > largest) | np.isinf(magnitude)
    largest_code = U32(overflow - 1)
    infinite = np.isinf(magnitude) if kind == "bf8" else np.zeros_like(past)
    code = np.where(past, np.where(saturate & ~infinite, largest_code, U32(overflow)), code)
    code = np.where(np.isnan(x), U32(nan), code)
    return (code | (negative(x).astype(U32) << U32(7))).astype(U32)


def select_byte(x: Array, number: int) -> Array:
    """Byte ``number`` of each uint32."""
    return (x >> U32(8 * number)) & U32(0xFF)


def insert_byte(old: Array, byte: Array, number: int) -> Array:
    """``old`` (uint32) with byte ``number`` replaced."""
    shift = U32(8 * number)
    return (old & ~(U32(0xFF) << shift)) | (byte << shift)
