"""Operands of the assembly text: registers, constants and modifiers.

Syntax: "User Guide for AMDGPU Backend" of LLVM, operands and modifiers of GFX12. Values of constants: "RDNA4
Instruction Set Architecture Reference Guide", section 5.9 (inline constants) and 6.4 (literals).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from solbench.code.assembly import Operation

VCC, TTMP, NULL, M0, EXEC = 106, 108, 124, 125, 126
SCALARS: Final = 128
# Upper words of the addresses at which flat instructions see LDS and scratch.
SHARED_APERTURE, PRIVATE_APERTURE = 0x0001_0000, 0x0002_0000
_NAMED: Final = {
    "vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1), "null": (NULL, 1), "m0": (M0, 1), "exec": (EXEC, 2),
    "exec_lo": (EXEC, 1), "exec_hi": (EXEC + 1, 1),
}  # fmt: skip
_CONSTANTS: Final = {
    "src_shared_base": SHARED_APERTURE << 32, "src_private_base": PRIVATE_APERTURE << 32,
    "src_shared_limit": (SHARED_APERTURE << 32) | 0xFFFFFFFF,
    "src_private_limit": (PRIVATE_APERTURE << 32) | 0xFFFFFFFF,
}  # fmt: skip
_ONE = re.compile(r"(v|s|ttmp)(\d{1,3})(\.[lh])?")
_RANGE = re.compile(r"(v|s|ttmp)\[(\d{1,3})(?::(\d{1,3}))?\](\.[lh])?")
_NUMBER = re.compile(r"[-+]?(?:0x[0-9a-fA-F]+|\d+)")
_REAL = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?")
_LIST = re.compile(r"[-+]?\d+")


class Unreadable(Exception):
    """An operand that is not understood: the text of it."""


@dataclass(frozen=True)
class Operand:
    """``kind``: v or s with first register, how many, and half (true16: 0 or 1); number or real with its value;
    scc; off."""

    kind: str
    register: int = 0
    count: int = 1
    half: int | None = None
    value: float | int = 0
    hexadecimal: bool = False
    negated: bool = False
    absolute: bool = False
    text: str = ""


@dataclass(frozen=True)
class Modifiers:
    """What follows the operands. Lists are as printed, None where they are not; ``values``: of ``name:value``."""

    flags: frozenset[str] = frozenset()
    values: dict[str, str] = field(default_factory=dict)

    def bits(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """A list of ones and zeros such as ``op_sel:[0,1]``, filled up from ``default``."""
        if name not in self.values:
            return default
        found = tuple(int(n) for n in _LIST.findall(self.values[name]))
        return found + default[len(found) :]

    def number(self, name: str, default: int = 0) -> int:
        """The value of ``name:value``."""
        return int(self.values[name], 0) if name in self.values else default


def split(operation: Operation) -> tuple[tuple[str, ...], Modifiers]:
    """Texts of the operands, and the modifiers after the last one."""
    if not operation.operands:
        return (), Modifiers()
    words = operation.operands[-1].split()
    flags: set[str] = set()
    values: dict[str, str] = {}
    operands = list(operation.operands[:-1])
    for place, word in enumerate(words):
        name, colon, value = word.partition(":")
        if place == 0 and not _is_modifier(word):
            operands.append(word)
        elif colon:
            values[name] = value
        else:
            flags.add(word)
    return tuple(operands), Modifiers(frozenset(flags), values)


def _is_modifier(word: str) -> bool:
    name, colon, _ = word.partition(":")
    return bool(colon) and "[" not in name and name.isidentifier() and not _ONE.fullmatch(name)


@lru_cache(maxsize=1 << 14)
def parse(text: str) -> Operand:
    """One operand; :class:`Unreadable` for what is none."""
    inner, negated, absolute = text.strip(), False, False
    if inner.startswith("-") and not inner[1:2].isdigit():
        inner, negated = inner[1:], True
    for start, end in (("neg(", ")"), ("|", "|"), ("abs(", ")")):
        if inner.startswith(start) and inner.endswith(end) and len(inner) > len(start):
            inner = inner[len(start) : -len(end)]
            negated, absolute = (negated or start == "neg("), (absolute or start != "neg(")
            break
    made = _plain(inner)
    if made is None:
        raise Unreadable(text)
    return Operand(
        made.kind, made.register, made.count, made.half, made.value, made.hexadecimal, negated, absolute, text
    )


def _plain(text: str) -> Operand | None:
    if match := _ONE.fullmatch(text):
        return _register(match[1], int(match[2]), 1, match[3])
    if match := _RANGE.fullmatch(text):
        first = int(match[2])
        return _register(match[1], first, int(match[3] or first) - first + 1, match[4])
    if text in _NAMED:
        return Operand("s", *_NAMED[text])
    if text in _CONSTANTS:
        return Operand("number", value=_CONSTANTS[text], count=2, hexadecimal=True)
    if text in ("scc", "src_scc"):
        return Operand("scc")
    if text == "off":
        return Operand("off")
    if text.startswith("lit(") and text.endswith(")"):
        text = text[4:-1]
    if _NUMBER.fullmatch(text):
        return Operand("number", value=int(text, 0), hexadecimal="x" in text)
    if _REAL.fullmatch(text):
        return Operand("real", value=float(text))
    return None


def _register(kind: str, first: int, count: int, half: str | None) -> Operand | None:
    place = first + TTMP if kind == "ttmp" else first
    limit = 256 if kind == "v" else TTMP + 16 if kind == "ttmp" else VCC
    if count < 1 or place + count > limit:
        return None
    return Operand("v" if kind == "v" else "s", place, count, None if half is None else int(half == ".h"))


def constant_bits(operand: Operand, width: int, floating: bool, signed: bool, brain: bool = False) -> int:
    """Bits of a constant as an operand of ``width`` bits sees them.

    A literal of 32 bits is the upper half of a 64-bit float; of other 64-bit operands it is extended.
    """
    if operand.kind == "real":
        if brain:
            return int.from_bytes(struct.pack("<f", operand.value), "little") >> 16
        form = {16: "<e", 32: "<f", 64: "<d"}[width]
        return int.from_bytes(struct.pack(form, operand.value), "little")
    value = int(operand.value)
    if width == 64 and operand.count == 1 and operand.hexadecimal:
        value &= 0xFFFFFFFF
        if floating:
            return value << 32
        if signed and value >> 31:
            value -= 1 << 32
    elif width < 64 and operand.count == 2:
        value >>= 32  # a 32-bit instruction sees the aperture's upper word
    return value & ((1 << width) - 1)
