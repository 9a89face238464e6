"""Matrix instructions: layouts, formats and modifiers against products formed element by element in Python."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from exact_floats import FORMATS, Float, decode, encode, rounded

from solbench.gfx12.wmma import WMMA

WAVES = 3
MODIFIED = ("u8", "u4", "f16", "bf16")


class Format(NamedTuple):
    """Kinds of the elements of A, B and of C and D, and the depth."""

    a: str
    b: str
    c: str
    depth: int


def _format(name: str) -> Format:
    _, _, result, shape, *factors = name.split("_")
    if factors[0].startswith("iu"):
        factors = [f"u{factors[0][2:]}"]
    return Format(factors[0], factors[-1], result, int(shape.split("x")[2]))


def bits_of(kind: str) -> int:
    return FORMATS[kind][3] if kind in FORMATS else int(kind[1:])


def put(elements: Any, kind: str) -> Any:
    """Patterns (waves, 32, n) of a lane's elements as registers, the first element in the lowest bits."""
    size = bits_of(kind)
    waves, lanes, count = elements.shape
    words = elements.reshape(waves, lanes, count * size // 32, 32 // size).astype(np.uint64)
    shifts = (np.arange(32 // size) * size).astype(np.uint64)
    return (words << shifts).sum(axis=-1).astype(np.uint32)


def take(registers: Any, kind: str) -> Any:
    """The patterns of a lane's elements."""
    size = bits_of(kind)
    shifts = np.arange(32 // size) * size
    parts = (registers.astype(np.int64)[..., None] >> shifts) & ((1 << size) - 1)
    return parts.reshape(*registers.shape[:-1], -1)


def factor(matrix: Any, kind: str) -> Any:
    """Registers of A (waves, 16 rows, depth), or of B given as (waves, 16 columns, depth)."""
    depth = matrix.shape[-1]
    lanes = np.zeros((matrix.shape[0], 32, depth // 2), np.uint64)
    for lane in range(32):
        half = lane // 16
        lanes[:, lane] = matrix[:, lane % 16, half * depth // 2 : (half + 1) * depth // 2]
    return put(lanes, kind)


def accumulator(matrix: Any, kind: str) -> Any:
    """Registers of C (waves, 16 rows, 16 columns)."""
    lanes = np.zeros((matrix.shape[0], 32, 8), np.uint64)
    for lane in range(32):
        for number in range(8):
            lanes[:, lane, number] = matrix[:, number + 8 * (lane // 16), lane % 16]
    return put(lanes, kind)


def matrix_of(registers: Any, kind: str) -> Any:
    """D (waves, 16, 16) of its registers."""
    lanes = take(registers, kind)
    matrix = np.zeros((registers.shape[0], 16, 16), np.int64)
    for lane in range(32):
        for number in range(8):
            matrix[:, number + 8 * (lane // 16), lane % 16] = lanes[:, lane, number]
    return matrix


def number(kind: str, pattern: int, signed: bool = False) -> Any:
    """The value of a pattern: a Fraction of a float, an int."""
    if kind in FORMATS:
        return Fraction(decode(kind, pattern).value)
    size = bits_of(kind)
    return pattern - (1 << size) if signed and pattern >> (size - 1) else pattern


def small(kind: str, shape: tuple[int, ...], random: np.random.Generator) -> Any:
    """Patterns whose sums of products are exact: small integers, or any bits of an integer kind."""
    if kind not in FORMATS:
        return random.integers(0, 1 << bits_of(kind), shape)
    table = [encode(Float(kind, float(value))) for value in range(-4, 5)]
    return np.array(table)[random.integers(0, 9, shape)]


# Modifiers of A and B: none, of one, of both; 8-bit floats have none.
SIGNS = [(False, False), (True, False), (False, True), (True, True)]
CASES = [(name, signs) for name in sorted(WMMA) for signs in SIGNS if _format(name).a in MODIFIED or not any(signs)]


@pytest.mark.parametrize(("name", "signed"), CASES)
def test_every_element_is_its_row_by_its_column(name: str, signed: tuple[bool, bool]) -> None:
    kinds = _format(name)
    integer = kinds.c == "i32"
    random = np.random.default_rng(len(name) + 2 * signed[0] + signed[1])
    a, b = (small(kind, (WAVES, 16, kinds.depth), random) for kind in (kinds.a, kinds.b))
    c = random.integers(0, 2**32, (WAVES, 16, 16)) if integer else small(kinds.c, (WAVES, 16, 16), random)
    neg = (*signed, False)
    # Of 16-bit floats the two modifiers name the even and the odd elements; here both are set.
    high = neg if kinds.a in ("f16", "bf16") else (False, False, False)
    blocks = factor(a, kinds.a), factor(b, kinds.b), accumulator(c, kinds.c)
    result = matrix_of(WMMA[name](*blocks, neg_lo=neg, neg_hi=high), kinds.c)
    for wave in range(WAVES):
        for row in range(16):
            for column in range(16):
                left = [number(kinds.a, int(x), signed[0]) for x in a[wave, row]]
                right = [number(kinds.b, int(x), signed[1]) for x in b[wave, column]]
                total = sum(x * y for x, y in zip(left, right, strict=True))
                if not integer and signed[0] != signed[1]:
                    total = -total
                total += number(kinds.c, int(c[wave, row, column]))
                wanted = total % 2**32 if integer else encode(rounded(kinds.c, Fraction(total)))
                got = int(result[wave, row, column])
                assert got == wanted or (total == 0 and got == 1 << (bits_of(kinds.c) - 1)), (wave, row, column)


@pytest.mark.parametrize(
    "name", sorted(name for name in WMMA if "f16_16x16x16_f16" in name or "f32_16x16x16_f16" in name)
)
def test_modifiers_of_halves_and_of_the_addend(name: str) -> None:
    kinds = _format(name)
    random = np.random.default_rng(4)
    a, b = (small(kind, (1, 16, 16), random) for kind in (kinds.a, kinds.b))
    c = small(kinds.c, (1, 16, 16), random)
    blocks = factor(a, kinds.a), factor(b, kinds.b), accumulator(c, kinds.c)
    result = matrix_of(WMMA[name](*blocks, neg_lo=(True, False, True), neg_hi=(False, True, True)), kinds.c)
    for row in range(16):
        for column in range(16):
            total = Fraction(0)
            for k in range(16):
                x, y = number(kinds.a, int(a[0, row, k])), number(kinds.b, int(b[0, column, k]))
                total += (-x if k % 2 == 0 else x) * (-y if k % 2 else y)
            total -= abs(number(kinds.c, int(c[0, row, column])))
            got = decode(kinds.c, int(result[0, row, column])).value
            assert Fraction(got) == total


@pytest.mark.parametrize("name", sorted(name for name in WMMA if "_i32_" in name))
def test_clamp_limits_the_sum_of_integers(name: str) -> None:
    kinds = _format(name)
    random = np.random.default_rng(5)
    a, b = (random.integers(0, 1 << bits_of(kind), (1, 16, kinds.depth)) for kind in (kinds.a, kinds.b))
    c = np.where(random.random((1, 16, 16)) < 0.5, 0x7FFFFFFF, 0x80000000)
    blocks = factor(a, kinds.a), factor(b, kinds.b), accumulator(c, kinds.c)
    result = matrix_of(WMMA[name](*blocks, neg_lo=(True, True, False), clamp=True), kinds.c)
    limited = 0
    for row in range(16):
        for column in range(16):
            pairs = zip(a[0, row], b[0, column], strict=True)
            total = sum(number(kinds.a, int(x), True) * number(kinds.b, int(y), True) for x, y in pairs)
            total += number("i32", int(c[0, row, column]), True)
            wanted = min(max(total, -(2**31)), 2**31 - 1)
            limited += wanted != total
            assert number("i32", int(result[0, row, column]), True) == wanted
    assert limited


@pytest.mark.parametrize("name", sorted(name for name in WMMA if "_i32_" not in name))
def test_sums_are_rounded_once(name: str) -> None:
    kinds = _format(name)
    random = np.random.default_rng(6)

    def patterns(kind: str, shape: tuple[int, ...]) -> Any:
        values = random.standard_normal(shape).ravel()
        return np.array([encode(rounded(kind, Fraction(float(x)))) for x in values]).reshape(shape)

    a, b, c = (patterns(kind, (1, 16, 16)) for kind in (kinds.a, kinds.b, kinds.c))
    result = matrix_of(WMMA[name](factor(a, kinds.a), factor(b, kinds.b), accumulator(c, kinds.c)), kinds.c)
    exact = 0
    for row in range(16):
        for column in range(16):
            terms = [
                number(kinds.a, int(x)) * number(kinds.b, int(y)) for x, y in zip(a[0, row], b[0, column], strict=True)
            ]
            terms.append(number(kinds.c, int(c[0, row, column])))
            got = int(result[0, row, column])
            # Float64 itself rounds far below the last place of the result: beside a midpoint only.
            assert abs(got - encode(rounded(kinds.c, sum(terms)))) <= 1
            exact += got == encode(rounded(kinds.c, sum(terms)))
    assert exact >= 255


def test_infinity_and_nan_reach_their_row_and_column_only() -> None:
    one, zero = encode(Float("f16", 1.0)), 0
    a, b = np.full((1, 16, 16), one), np.full((1, 16, 16), one)
    a[0, 3, 5], b[0, 7, 2] = 0x7C00, 0x7E00
    c = np.full((1, 16, 16), zero)
    with np.errstate(all="ignore"):
        result = WMMA["v_wmma_f32_16x16x16_f16"](factor(a, "f16"), factor(b, "f16"), accumulator(c, "f32"))
    values = [[decode("f32", int(x)).value for x in row] for row in matrix_of(result, "f32")[0]]
    for row in range(16):
        for column in range(16):
            value = values[row][column]
            if column == 7:
                assert math.isnan(value)
            else:
                assert value == (math.inf if row == 3 else 16)
