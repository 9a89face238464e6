"""Evaluates the pseudocode of the RDNA4 ISA guide for one lane, in Python integers and exact rationals.

Integers are unbounded until a type, a cast or a destination cuts them, as the notation reads. The text is that of
the tinygrad wheel (MIT), which is taken from AMD's document; nothing else of tinygrad is used.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import exact_floats as ef
from exact_floats import FORMATS, Float
from pseudocode_syntax import Node, parse
from tinygrad.runtime.autogen.amd.rdna4.str_pcode import PCODE


class Int(NamedTuple):
    """An integer and how many bits it counts for in a concatenation."""

    value: int
    width: int = 32


class Real(NamedTuple):
    """A power of two out of ``**``, which no format limits."""

    value: Fraction


class _Stop(Exception):
    """A ``break``."""


class _Return(Exception):
    """A ``return``, with its value."""


REGISTERS = ("D0", "D1", "EXEC", "VCC", "SCC")
_FLOAT_OF_SIZE = {16: "f16", 32: "f32", 64: "f64"}


@functools.cache
def texts() -> Mapping[str, str]:
    """Pseudocode by lower-case mnemonic without ``_e32`` and ``_e64``."""
    found: dict[str, str] = {}
    for key, text in PCODE.items():
        found.setdefault(re.sub(r"_e(32|64)$", "", key.name.lower()), text)
    return found


@functools.cache
def tree(name: str) -> Node:
    """The tree of an instruction's pseudocode."""
    return parse(texts()[name])


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


def _to(kind: str, value: Any) -> Float:
    if isinstance(value, Real):
        return ef.rounded(kind, value.value)
    return ef.convert(kind, value) if isinstance(value, Float) else ef.decode(kind, bits(value))


def _integer(value: Float, low: int, high: int) -> Int:
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


_FUNCTIONS: dict[str, Callable[..., Any]] = {
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
    "v_cvt_i16_f32": lambda x: _integer(x, -32768, 32767),
    "v_cvt_u16_f32": lambda x: _integer(x, 0, 65535),
    "f32_to_u8": lambda x: _integer(x, 0, 255),
    "f16_to_snorm": lambda x: _norm(x, -1, 32767),
    "f32_to_snorm": lambda x: _norm(x, -1, 32767),
    "f16_to_unorm": lambda x: _norm(x, 0, 65535),
    "f32_to_unorm": lambda x: _norm(x, 0, 65535),
    "u32_to_u16": lambda x: Int(min(x.value, 65535)),
    "i32_to_i16": lambda x: Int(min(max(x.value, -32768), 32767)),
    "u8_to_u32": lambda x: x,
    "u4_to_u32": lambda x: x,
}


class Lane:
    """One evaluation. ``names`` holds the registers and variables, by the guide's names."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names: dict[str, Any] = {
            "D0": Int(0, 128), "D1": Int(0, 1), "SCC": Int(0, 1), "VCC": Int(0, 64), "EXEC": Int(0xFFFFFFFF, 64),
            "laneId": Int(0), "addr": Int(0), "ADDR": Int(0), "MEM": {0: Int(0)}, "ROUND_MODE": Int(0),
            "ROUND_TOWARD_ZERO": Int(1), "ROUND_NEAREST_EVEN": Int(0), "WAVE32": Int(1), "WAVE64": Int(0),
            "INF": Float("f64", math.inf), "PI": Float("f64", math.pi), "NAN": Float("f64", math.nan),
            "MAX_FLOAT_F32": ef.decode("f32", 0x7F7FFFFF), "UNDERFLOW_F32": Float("f32", 0.0),
            "UNDERFLOW_F64": Float("f64", 0.0), "OVERFLOW_F32": Float("f32", math.inf),
            "OVERFLOW_F64": Float("f64", math.inf), "v_addr": Int(0), "s_saddr": Int(0), "vgpr_a": Int(0),
            "offset": Int(0), "wave32": Int(1), "TRAPSTS": Int(0), **names,
        }  # fmt: skip

    def run(self, name: str) -> Mapping[str, Any]:
        """Runs the pseudocode of instruction ``name`` and returns the names."""
        self.do(tree(name))
        return self.names

    def do(self, node: Node) -> None:
        what, parts = node
        if what == "block":
            for part in parts:
                self.do(part)
        elif what == "assign":
            sign, target, value = parts
            result = self.of(value)
            if sign != "=":
                result = self.binary(sign[0], self.of(target), result)
            self.store(target, result)
        elif what == "if":
            condition, then, otherwise = parts
            self.do(then if bits(self.of(condition)) else otherwise)
        elif what == "for":
            name, low, high, body = parts
            for number in range(bits(self.of(low)), bits(self.of(high)) + 1):
                self.names[name] = Int(number)
                try:
                    self.do(body)
                except _Stop:
                    break
        elif what == "break":
            raise _Stop
        elif what == "return":
            raise _Return(self.of(parts[0]))
        elif what == "declare":
            name, count = parts
            if name not in self.names or name in ("tmp", "in"):
                self.names[name] = Int(0, 32) if count is None else [Int(0)] * bits(self.of(count))
        elif what == "define":
            self.names[parts[0]] = parts[1]
        else:
            self.of(node.parts[0] if what == "do" else node)

    def of(self, node: Node) -> Any:
        what, parts = node
        if what == "name":
            return self.names["EXEC"] if parts[0] == "EXEC_LO" else self.names.get(parts[0], Int(0, 64))
        if what == "int":
            return Int(*parts)
        if what == "real":
            return ef.rounded(parts[1], Fraction(parts[0]))
        if what == "typed":
            if parts[0] == Node("name", ("INF",)):
                return Float(parts[1], math.inf)
            return typed(self.of(parts[0]), parts[1])
        if what in ("slice", "part"):
            value, first, second = (self.of(part) for part in parts)
            high, low = (first.value, second.value) if what == "slice" else (
                first.value + second.value - 1, first.value)  # fmt: skip
            raw = bits(value)
            if high < low:
                return Int(sum((raw >> at & 1) << (low - at) for at in range(high, low + 1)), low - high + 1)
            return Int(raw >> low & ((1 << (high - low + 1)) - 1), high - low + 1)
        if what == "index":
            container, place = self.of(parts[0]), self.of(parts[1])
            if isinstance(container, (list, dict)):
                return container[place.value]
            return Int(bits(container) >> place.value & 1, 1)
        if what == "concat":
            total, width = 0, 0
            for value in (self.of(part) for part in parts):
                size = FORMATS[value.kind][3] if isinstance(value, Float) else value.width
                total = total << size | bits(value) & ((1 << size) - 1)
                width += size
            return Int(total, width)
        if what == "choose":
            return self.of(parts[1] if bits(self.of(parts[0])) else parts[2])
        if what == "cast":
            return self.cast(*parts)
        if what == "unary":
            return self.unary(parts[0], self.of(parts[1]))
        if what == "binary":
            if parts[0] in ("&&", "||"):
                left = bool(bits(self.of(parts[1])))
                stop = left if parts[0] == "||" else not left
                return Int(int(left), 1) if stop else Int(int(bool(bits(self.of(parts[2])))), 1)
            return self.binary(parts[0], self.of(parts[1]), self.of(parts[2]))
        if what == "call":
            return self.call(parts[0], [self.of(part) for part in parts[1]])
        raise NotImplementedError(what)

    def cast(self, width: int, kind: str, inner: Node) -> Any:
        value = self.of(inner)
        if kind == "F":
            return value if isinstance(value, Real) else _to(_FLOAT_OF_SIZE[width], value)
        raw = bits(value) & ((1 << width) - 1)
        return Int(raw - (1 << width) if kind == "I" and raw >> (width - 1) else raw, width)

    def unary(self, sign: str, value: Any) -> Any:
        if sign == "!":
            return Int(int(not bits(value)), 1)
        if sign == "~":
            return Int(~bits(value), value.width)
        if isinstance(value, Float):
            return value if sign == "+" else Float(value.kind, -value.value)
        return Int(-value.value if sign == "-" else value.value, value.width)

    def binary(self, sign: str, a: Any, b: Any) -> Any:
        if isinstance(a, Float) or isinstance(b, Float) or isinstance(a, Real):
            return _float_binary(sign, a, b)
        if sign == "**":
            raise NotImplementedError("integer power")
        x, y = a.value, b.value
        if sign in _COMPARES:
            return Int(int(_COMPARES[sign](x, y)), 1)
        width = max(a.width, b.width)
        results: dict[str, Callable[[], int]] = {
            "+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "&": lambda: x & y, "|": lambda: x | y,
            "^": lambda: x ^ y, "<<": lambda: x << y, ">>": lambda: x >> y,
        }  # fmt: skip
        return Int(results[sign](), width)

    def call(self, name: str, arguments: list[Any]) -> Any:
        if isinstance(self.names.get(name), Node):
            names, body = self.names[name].parts
            inner = Lane({**self.names, **dict(zip(names, arguments, strict=True))})
            try:
                inner.do(body)
            except _Return as stop:
                return stop.args[0]
            raise AssertionError(name)
        if name in ("isSignalNAN", "isQuietNAN"):
            quiet = name == "isQuietNAN"
            return Int(int(math.isnan(arguments[0].value) and arguments[0].signalling != quiet), 1)
        if name in _FUNCTIONS:
            return _FUNCTIONS[name](*arguments)
        if found := re.fullmatch(r"(\w+)_to_(\w+)", name):
            return self.convert(found[1], found[2], arguments[0])
        if name.startswith("v_"):
            registers = {f"S{number}": Int(bits(value), 64) for number, value in enumerate(arguments)}
            result = Lane(registers).run(name)["D0"]
            return typed(result, "u32" if name.endswith("u8") else name.rsplit("_", 1)[1])
        raise NotImplementedError(name)

    def convert(self, source: str, target: str, value: Any) -> Any:
        """``f32_to_i32`` and the like."""
        if target in FORMATS:
            toward_zero = bits(self.names["ROUND_MODE"]) == 1
            if isinstance(value, Float):
                return ef.convert(target, value, toward_zero)
            return ef.rounded(target, Fraction(value.value), toward_zero=toward_zero)
        size = int(target[1:])
        low, high = (-(1 << (size - 1)), (1 << (size - 1)) - 1) if target[0] == "i" else (0, (1 << size) - 1)
        return _integer(value, low, high)

    def store(self, target: Node, value: Any) -> None:
        what, parts = target
        if what == "name":
            keep = parts[0] in REGISTERS and not isinstance(value, Int)
            self.names[parts[0]] = Int(bits(value), 64) if keep else value
        elif what == "typed":
            self.store_typed(parts[0], parts[1], value)
        elif what == "slice":
            high, low = (bits(self.of(part)) for part in parts[1:])
            raw = bits(value)
            if high < low:
                raise NotImplementedError("reversed target")
            mask = ((1 << (high - low + 1)) - 1) << low
            old = bits(self.of(parts[0]))
            self.store(parts[0], Int(old & ~mask | raw << low & mask, 128))
        elif what == "index":
            container, place = self.of(parts[0]), bits(self.of(parts[1]))
            if isinstance(container, (list, dict)):
                container[place] = value
            else:
                old = bits(container)
                self.store(parts[0], Int(old & ~(1 << place) | (bits(value) & 1) << place, 128))
        elif what == "concat":
            raw = bits(value)
            for part in reversed(parts):
                width = int(part.parts[1][1:])
                self.store(part, Int(raw & ((1 << width) - 1), width))
                raw >>= width
        else:
            raise NotImplementedError(what)

    def store_typed(self, inner: Node, name: str, value: Any) -> None:
        """Converts a value to a type and puts its bits where ``inner`` says; exception flags are not kept."""
        if name == "INVALID":
            return
        if name in FORMATS and not isinstance(value, Int):
            value = _to(name, value)
            width = FORMATS[name][3]
        else:
            width = int(name.lstrip("uibfp")) if name not in ("fp8", "bf8", "bf16") else FORMATS[name][3]
        raw = bits(value) & ((1 << width) - 1)
        if inner.what == "name" and inner.parts[0] in REGISTERS:
            old = bits(self.names[inner.parts[0]])
            self.names[inner.parts[0]] = Int(old & ~((1 << width) - 1) | raw, 128)
        else:
            self.store(inner, typed(Int(raw), name) if inner.what != "slice" else Int(raw, width))


_COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<>": lambda a, b: a < b or a > b,
}
_ORDER = ("fp8", "bf8", "f16", "bf16", "f32", "f64")


def _float_binary(sign: str, a: Any, b: Any) -> Any:
    if sign == "**":
        return Real(Fraction(2) ** min(max(bits(b), -5000), 5000))
    if isinstance(b, Real):
        if not math.isfinite(a.value) or a.value == 0:
            return a
        return ef.rounded(a.kind, Fraction(a.value) * b.value)
    if sign in _COMPARES:
        return Int(int(_COMPARES[sign](a.value, b.value)), 1)
    kind = max(a.kind, b.kind, key=_ORDER.index)
    if sign == "+":
        return ef.add(kind, a.value, b.value)
    if sign == "-":
        return ef.add(kind, a.value, -b.value)
    if sign == "*":
        return ef.multiply(kind, a.value, b.value)
    return ef.divide(kind, a.value, b.value)
