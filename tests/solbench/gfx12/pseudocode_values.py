"""Values of the ISA guide's pseudocode, and the functions it takes for granted."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import exact_floats as ef
from exact_floats import FORMATS, Float


class Int(NamedTuple):
    """An integer and how many bits it counts for in a concatenation."""

    value: int
    width: int = 32


class Real(NamedTuple):
    """A power of two out of ``**``, which no format limits."""

    value: Fraction


def bits(value: Any) -> int:
    """The pattern of a value, without limit for integers."""
    if isinstance(value, Float):
        return ef.encode(value)
    return int(value.value) if isinstance(value, Int) else int(value)


def typed(value: Any, name: str) -> Any:
    """A value read with a type suffix (``.u32``, ``.f16`` ...)."""
    if name in FORMATS:
        return value if isinstance(value, Float) and value.kind == name else ef.decode(
            name, bits(value) & ((1 << FORMATS[name][3]) - 1))  # fmt: skip
    width = int(name[1:])
    raw = bits(value) & ((1 << width) - 1)
    return Int(raw - (1 << width) if name[0] == "i" and raw >> (width - 1) else raw, width)


def to_format(kind: str, value: Any) -> Float:
    if isinstance(value, Real):
        return ef.rounded(kind, value.value)
    return ef.convert(kind, value) if isinstance(value, Float) else ef.decode(kind, bits(value))


def integer(value: Float, low: int, high: int) -> Int:
    if math.isnan(value.value):
        return Int(0)
    if math.isinf(value.value):
        return Int(high if value.value > 0 else low)
    return Int(min(max(math.trunc(value.value), low), high))


def _norm(value: Float, low: int, top: int) -> Int:
    if math.isnan(value.value):
        return Int(0)
    return Int(round(Fraction(min(max(value.value, float(low)), 1.0)) * top))


def _sign_from_bit(value: Int, width: Int) -> Int:
    if width.value == 0:
        return Int(0)
    low = value.value & ((1 << width.value) - 1)
    return Int(low - (1 << width.value) if low >> (width.value - 1) & 1 else low)


def _one(function: Callable[[float], float]) -> Callable[[Float], Float]:
    """A function of a finite float64 that gives the format of its operand; infinities and NaN pass through."""

    def apply(x: Float) -> Float:
        return x if not math.isfinite(x.value) else Float(x.kind, math.copysign(function(x.value), x.value))

    return apply


def _floor(x: Float) -> Float:
    return x if not math.isfinite(x.value) or x.value == 0 else Float(x.kind, float(math.floor(x.value)))


def _log2(x: Float) -> Float:
    if x.value == 0:
        return Float(x.kind, -math.inf)
    if math.isnan(x.value) or x.value < 0:
        return Float(x.kind, math.nan)
    return ef.convert(x.kind, Float("f64", math.log2(x.value)))


def _power(base: Float, x: Float) -> Float:
    if math.isnan(x.value):
        return x
    return ef.convert(x.kind, Float("f64", 2.0**x.value if x.value < 1000 else math.inf))


def _lowest_one(x: Int) -> Int:
    return Int((x.value & -x.value).bit_length() - 1)


def _field(x: Float) -> Int:
    fraction, _, _, size = FORMATS[x.kind]
    return Int(ef.encode(x) >> fraction & ((1 << (size - 1 - fraction)) - 1))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isNAN": lambda x: Int(int(math.isnan(x.value)), 1),
    "sign": lambda x: Int(int(x.negative), 1),
    "abs": lambda x: Float(x.kind, abs(x.value)),
    "exponent": _field,
    "cvtToQuietNAN": lambda x: Float(x.kind, math.nan),
    "trunc": _one(lambda v: float(math.trunc(v))),
    "floor": _floor,
    "fract": lambda x: ef.add(x.kind, x.value, -_floor(x).value),
    "isEven": lambda x: Int(int(math.isfinite(x.value) and x.value % 2 == 0), 1),
    "sqrt": lambda x: ef.square_root(x.kind, x.value),
    "log2": _log2,
    "pow": _power,
    "fma": lambda a, b, c: ef.fma(a.kind, a.value, b.value, c.value),
    "signext": lambda x: x,
    "signext_from_bit": _sign_from_bit,
    "s_ff1_i32_b32": _lowest_one,
    "s_nop": lambda x: None,
    "CalcDsAddr": lambda *_: Int(0),
    "CalcGlobalAddr": lambda *_: Int(0),
    "v_cvt_i16_f32": lambda x: integer(x, -32768, 32767),
    "v_cvt_u16_f32": lambda x: integer(x, 0, 65535),
    "f32_to_u8": lambda x: integer(x, 0, 255),
    "f16_to_snorm": lambda x: _norm(x, -1, 32767),
    "f32_to_snorm": lambda x: _norm(x, -1, 32767),
    "f16_to_unorm": lambda x: _norm(x, 0, 65535),
    "f32_to_unorm": lambda x: _norm(x, 0, 65535),
    "u32_to_u16": lambda x: Int(min(x.value, 65535)),
    "i32_to_i16": lambda x: Int(min(max(x.value, -32768), 32767)),
    "u8_to_u32": lambda x: x,
    "u4_to_u32": lambda x: x,
}


COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<>": lambda a, b: a < b or a > b,
}
_ORDER = ("fp8", "bf8", "f16", "bf16", "f32", "f64")


def float_binary(sign: str, a: Any, b: Any) -> Any:
    if sign == "**":
        return Real(Fraction(2) ** min(max(bits(b), -5000), 5000))
    if isinstance(b, Real):
        if not math.isfinite(a.value) or a.value == 0:
            return a
        return ef.rounded(a.kind, Fraction(a.value) * b.value)
    if sign in COMPARES:
        return Int(int(COMPARES[sign](a.value, b.value)), 1)
    kind = max(a.kind, b.kind, key=_ORDER.index)
    if sign == "+":
        return ef.add(kind, a.value, b.value)
    if sign == "-":
        return ef.add(kind, a.value, -b.value)
    if sign == "*":
        return ef.multiply(kind, a.value, b.value)
    return ef.divide(kind, a.value, b.value)
