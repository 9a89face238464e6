"""Floating-point numbers in exact arithmetic: the second opinion of the instruction tests, without numpy.

A number is its value as a Python float (which holds every value of the formats here) and its format. Arithmetic goes
through rationals and rounds once.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction

# Bits of the fraction, exponent of the smallest normal number, largest exponent, size.
FORMATS = {
    "f64": (52, -1022, 1023, 64),
    "f32": (23, -126, 127, 32),
    "f16": (10, -14, 15, 16),
    "bf16": (7, -126, 127, 16),
    "fp8": (3, -6, 8, 8),
    "bf8": (2, -14, 15, 8),
}


@dataclass(frozen=True)
class Float:
    """A number of one format; ``bits`` is kept where the number was read from bits, for the payload of NaN."""

    kind: str
    value: float
    bits: int | None = None

    @property
    def negative(self) -> bool:
        return math.copysign(1.0, self.value) < 0

    @property
    def signalling(self) -> bool:
        fraction = FORMATS[self.kind][0]
        return math.isnan(self.value) and self.bits is not None and not self.bits >> (fraction - 1) & 1


def decode(kind: str, bits: int) -> Float:
    """The number that ``bits`` are."""
    fraction, lowest, _, size = FORMATS[kind]
    sign = -1.0 if bits >> (size - 1) & 1 else 1.0
    field = bits >> fraction & ((1 << (size - 1 - fraction)) - 1)
    rest = bits & ((1 << fraction) - 1)
    top = (1 << (size - 1 - fraction)) - 1
    if kind == "fp8":
        special = field == top and rest == 7
        value = math.nan if special else 0.0
    else:
        special = field == top
        value = math.inf if rest == 0 else math.nan
    if not special:
        scaled = rest if field == 0 else rest + (1 << fraction)
        value = math.ldexp(float(scaled), (lowest if field == 0 else field - 1 + lowest) - fraction)
    return Float(kind, math.copysign(value, sign), bits)


def encode(number: Float) -> int:
    """The bits of a number; a NaN that has none is the positive quiet one."""
    fraction, lowest, _, size = FORMATS[number.kind]
    sign = int(number.negative) << (size - 1)
    if math.isnan(number.value):
        if number.bits is not None:
            return number.bits
        return sign | (0x7F if number.kind == "fp8" else ((1 << (size - 1)) - 1) & ~((1 << (fraction - 1)) - 1))
    if math.isinf(number.value):
        return sign | 0x7F if number.kind == "fp8" else sign | (((1 << (size - 1 - fraction)) - 1) << fraction)
    value = abs(Fraction(number.value))
    if value == 0:
        return sign
    exponent = max(math.frexp(number.value)[1] - 1, lowest)
    scaled = value / Fraction(2) ** (exponent - fraction)
    assert scaled.denominator == 1, number
    return sign | (int(scaled) + ((exponent - lowest) << fraction))


def rounded(kind: str, value: Fraction, zero_negative: bool = False, toward_zero: bool = False) -> Float:
    """A rational in a format: nearest even or towards zero, overflow to infinity or to the largest number."""
    fraction, lowest, highest, _ = FORMATS[kind]
    if value == 0:
        return Float(kind, -0.0 if zero_negative else 0.0)
    sign = -1 if value < 0 else 1
    value = abs(value)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, lowest) - fraction)
    steps = math.floor(value / quantum) if toward_zero else round(value / quantum)
    result = steps * quantum
    # fp8 has no infinity, so its largest number is not the last of its binade but one.
    largest = Fraction(448) if kind == "fp8" else (2 - Fraction(2) ** -fraction) * Fraction(2) ** highest
    if result > largest:
        return Float(kind, sign * (float(largest) if toward_zero else math.inf))
    return Float(kind, math.copysign(float(result), sign))


def convert(kind: str, number: Float, toward_zero: bool = False) -> Float:
    """A number in another format; a NaN that becomes wider stays signalling if it was."""
    if kind == number.kind:
        return number
    if math.isnan(number.value):
        more = FORMATS[kind][0] - FORMATS[number.kind][0]
        if number.bits is None or more < 0 or FORMATS[kind][3] <= FORMATS[number.kind][3] or number.kind == "fp8":
            return Float(kind, number.value)
        fraction = (number.bits & ((1 << FORMATS[number.kind][0]) - 1)) << more
        return Float(kind, number.value, encode(Float(kind, math.copysign(math.inf, number.value))) | fraction)
    if math.isinf(number.value):
        return Float(kind, number.value)
    return rounded(kind, Fraction(number.value), number.negative, toward_zero)


def fma(kind: str, a: float, b: float, c: float) -> Float:
    """``a * b + c`` rounded once to a format."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        if math.isnan(a) or math.isnan(b) or math.isnan(c):
            return Float(kind, math.nan)
        if math.isfinite(a) and math.isfinite(b):
            return Float(kind, c)
        if a == 0 or b == 0:
            return Float(kind, math.nan)
        product = math.copysign(math.inf, math.copysign(1, a) * math.copysign(1, b))
        return Float(kind, math.nan if math.isinf(c) and c != product else product)
    negative_product = math.copysign(1, a) * math.copysign(1, b) < 0
    value = Fraction(a) * Fraction(b) + Fraction(c)
    # An exact zero is negative only where both terms are.
    both_negative = negative_product and math.copysign(1, c) < 0
    product_zero = a == 0 or b == 0
    zero_negative = both_negative and product_zero and c == 0
    return rounded(kind, value, zero_negative)


def add(kind: str, a: float, b: float) -> Float:
    """``a + b`` rounded once."""
    return fma(kind, a, 1.0, b)


def multiply(kind: str, a: float, b: float) -> Float:
    """``a * b`` rounded once."""
    negative = math.copysign(1, a) * math.copysign(1, b) < 0
    return fma(kind, a, b, -0.0 if negative else 0.0)


def divide(kind: str, a: float, b: float) -> Float:
    """``a / b`` rounded once."""
    sign = math.copysign(1, a) * math.copysign(1, b)
    if math.isnan(a) or math.isnan(b) or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
        return Float(kind, math.nan)
    if math.isinf(a) or b == 0:
        return Float(kind, math.copysign(math.inf, sign))
    if math.isinf(b):
        return Float(kind, math.copysign(0.0, sign))
    return rounded(kind, Fraction(a) / Fraction(b), sign < 0)


def square_root(kind: str, a: float) -> Float:
    """The square root rounded once (integer square root with a sticky bit)."""
    if math.isnan(a) or a < 0:
        return Float(kind, math.nan)
    if a == 0 or math.isinf(a):
        return Float(kind, a)
    value = Fraction(a)
    shift = 200 + value.denominator.bit_length()
    shift += shift % 2
    scaled = value * Fraction(4) ** shift
    root = math.isqrt(int(scaled))
    exact = root * root == scaled
    return rounded(kind, Fraction(2 * root + (0 if exact else 1), 2) / Fraction(2) ** shift)


def double_bits(value: float) -> int:
    """The pattern of a Python float."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])
