"""Operands of the assembly text, by LLVM's syntax, and constants by the ISA guide's rules."""

from __future__ import annotations

import struct

import pytest

from solbench.code.assembly import Operation
from solbench.gfx12.operands import EXEC, M0, NULL, VCC, Unreadable, constant_bits, parse, split


@pytest.mark.parametrize(
    ("text", "kind", "register", "count", "half"),
    [
        ("v7", "v", 7, 1, None), ("v255", "v", 255, 1, None), ("v[4:7]", "v", 4, 4, None), ("v3.h", "v", 3, 1, 1),
        ("v3.l", "v", 3, 1, 0), ("s105", "s", 105, 1, None), ("s[2:3]", "s", 2, 2, None), ("s[5]", "s", 5, 1, None),
        ("ttmp9", "s", 117, 1, None), ("vcc_lo", "s", VCC, 1, None), ("vcc", "s", VCC, 2, None),
        ("exec_lo", "s", EXEC, 1, None), ("m0", "s", M0, 1, None), ("null", "s", NULL, 1, None),
    ],
)  # fmt: skip
def test_registers(text: str, kind: str, register: int, count: int, half: int | None) -> None:
    found = parse(text)
    assert (found.kind, found.register, found.count, found.half) == (kind, register, count, half)


@pytest.mark.parametrize(
    ("text", "negated", "absolute"),
    [
        ("-v1", True, False),
        ("|v1|", False, True),
        ("-|v1|", True, True),
        ("neg(s3)", True, False),
        ("v1", False, False),
    ],
)
def test_signs(text: str, negated: bool, absolute: bool) -> None:
    found = parse(text)
    assert (found.negated, found.absolute) == (negated, absolute)


@pytest.mark.parametrize(
    "text", ["v256", "s106", "v[254:257]", "v[3:2]", "ttmp16", "x1", "", "--v1", "0x", "v1.x", "v[1"]
)
def test_what_is_no_operand(text: str) -> None:
    with pytest.raises(Unreadable):
        parse(text)


@pytest.mark.parametrize(
    ("text", "width", "floating", "signed", "bits"),
    [
        ("1.0", 32, True, False, 0x3F800000), ("1.0", 16, True, False, 0x3C00), ("-4.0", 64, True, False, 0xC010 << 48),
        ("0.15915494", 32, True, False, 0x3E22F983), ("1.0", 32, False, False, 0x3F800000),
        ("-1", 32, False, False, 0xFFFFFFFF), ("-1", 64, False, False, 2**64 - 1), ("-16", 16, False, True, 0xFFF0),
        # A literal is the upper half of a 64-bit float; of integers it is extended.
        ("0x40080000", 64, True, False, 0x4008000000000000), ("0x80000000", 64, False, False, 0x80000000),
        ("0x80000000", 64, False, True, 0xFFFFFFFF80000000), ("0x12345678", 32, False, False, 0x12345678),
    ],
)  # fmt: skip
def test_constants(text: str, width: int, floating: bool, signed: bool, bits: int) -> None:
    assert constant_bits(parse(text), width, floating, signed) == bits


def test_a_bfloat16_constant_is_the_upper_half_of_a_float32() -> None:
    upper = struct.unpack("<I", struct.pack("<f", 0.5))[0] >> 16
    assert constant_bits(parse("0.5"), 16, False, False, brain=True) == upper


def test_modifiers() -> None:
    operands, modifiers = split(Operation("buffer_load_b32", ("v1", "v0", "s[8:11]", "null offen offset:16")))
    assert operands == ("v1", "v0", "s[8:11]", "null")
    assert modifiers.flags == {"offen"} and modifiers.number("offset") == 16
    operands, modifiers = split(Operation("v_pk_add_f16", ("v1", "v2", "v3 op_sel:[1,0] op_sel_hi:[0,1] clamp")))
    assert operands == ("v1", "v2", "v3") and modifiers.flags == {"clamp"}
    assert modifiers.bits("op_sel", (0, 0, 0)) == (1, 0, 0) and modifiers.bits("neg_lo", (0, 0)) == (0, 0)


def test_an_instruction_with_modifiers_alone() -> None:
    operands, modifiers = split(Operation("global_inv", ("scope:SCOPE_DEV",)))
    assert operands == () and modifiers.values == {"scope": "SCOPE_DEV"}
