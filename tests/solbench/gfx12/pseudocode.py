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
from typing import Any

import exact_floats as ef
from exact_floats import FORMATS, Float
from pseudocode_syntax import Node, parse
from pseudocode_values import COMPARES, FUNCTIONS, Int, Real, bits, float_binary, integer, to_format, typed
from tinygrad.runtime.autogen.amd.rdna4.str_pcode import PCODE


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
            return value if isinstance(value, Real) else to_format(_FLOAT_OF_SIZE[width], value)
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
            return float_binary(sign, a, b)
        if sign == "**":
            raise NotImplementedError("integer power")
        x, y = a.value, b.value
        if sign in COMPARES:
            return Int(int(COMPARES[sign](x, y)), 1)
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
        if name in FUNCTIONS:
            return FUNCTIONS[name](*arguments)
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
        return integer(value, low, high)

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
            value = to_format(name, value)
            width = FORMATS[name][3]
        else:
            width = int(name.lstrip("uibfp")) if name not in ("fp8", "bf8", "bf16") else FORMATS[name][3]
        raw = bits(value) & ((1 << width) - 1)
        if inner.what == "name" and inner.parts[0] in REGISTERS:
            old = bits(self.names[inner.parts[0]])
            self.names[inner.parts[0]] = Int(old & ~((1 << width) - 1) | raw, 128)
        else:
            self.store(inner, typed(Int(raw), name) if inner.what != "slice" else Int(raw, width))
