"""Entries whose values have a closed form that the ISA guide's pseudocode misses: rounding, transcendentals, dots."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import exact_floats as ef
import mpmath
import numpy as np
import pytest
from exact_floats import FORMATS, Float, decode, encode
from operand_samples import operands, pattern
from test_pseudocode import equal

from solbench.gfx12.ops import OPS

mpmath.mp.prec = 200
_NAN = Float("f64", math.nan)


def run(name: str, arrays: list[Any], **options: Any) -> Any:
    """The result of an entry over all places of the operands."""
    with np.errstate(all="ignore"):
        return OPS[name].apply(*arrays, **options)


def samples(name: str, kinds: tuple[str, ...], count: int = 600) -> list[Any]:
    return operands(kinds, count, zlib.crc32(name.encode()))


def flushed(x: Float) -> Float:
    """A float32 denormal as zero of its sign."""
    small = abs(x.value) < 2.0**-126
    return Float(x.kind, math.copysign(0.0, x.value)) if small and not math.isnan(x.value) else x


def of_mpmath(kind: str, value: Any) -> Float:
    """A positive or negative mpmath number in a format."""
    mantissa, exponent = abs(value).man_exp
    exact = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return ef.rounded(kind, -exact if value < 0 else exact)


def _exp2(x: Float) -> Float:
    if math.isnan(x.value):
        return Float(x.kind, math.nan)
    if x.value >= 2000 or x.value <= -2000:
        return Float(x.kind, math.inf if x.value > 0 else 0.0)
    return of_mpmath(x.kind, mpmath.mpf(2) ** mpmath.mpf(x.value))


def _log2(x: Float) -> Float:
    if x.value == 0:
        return Float(x.kind, -math.inf)
    if math.isnan(x.value) or x.value < 0:
        return Float(x.kind, math.nan)
    if math.isinf(x.value) or x.value == 1:
        return Float(x.kind, math.inf if x.value > 1 else 0.0)
    return of_mpmath(x.kind, mpmath.log(mpmath.mpf(x.value), 2))


def _rsq(x: Float) -> Float:
    if x.value == 0:
        return Float(x.kind, math.copysign(math.inf, x.value))
    if math.isnan(x.value) or x.value < 0:
        return Float(x.kind, math.nan)
    return Float(x.kind, 0.0) if math.isinf(x.value) else of_mpmath(x.kind, 1 / mpmath.sqrt(mpmath.mpf(x.value)))


TRANSCENDENTAL: dict[str, Callable[[Float], Float]] = {
    "exp": _exp2,
    "log": _log2,
    "rcp": lambda x: ef.divide(x.kind, 1.0, x.value),
    "rsq": _rsq,
    "sqrt": lambda x: ef.square_root(x.kind, x.value),
}
FLUSHING = {f"{prefix}{name}_f32": name for prefix in ("v_", "v_s_") for name in TRANSCENDENTAL}
FLUSHING["v_rcp_iflag_f32"] = "rcp"


@pytest.mark.parametrize("name", sorted(FLUSHING))
def test_a_transcendental_is_rounded_from_the_exact_value_and_flushes_denormals(name: str) -> None:
    (values,) = samples(name, ("f32",))
    results = run(name, [values])
    for value, result in zip(values, results, strict=True):
        x = flushed(decode("f32", pattern(value)))
        wanted = flushed(TRANSCENDENTAL[FLUSHING[name]](x))
        assert equal("f32", pattern(result), encode(wanted), ulps=1), (name, x.value, result, wanted.value)


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_and_cosine_count_in_turns(name: str, kind: str) -> None:
    (values,) = samples(name, (kind,))
    results = run(f"v_{name}_{kind}", [values])
    function = {"sin": mpmath.sinpi, "cos": mpmath.cospi}[name]
    for value, result in zip(values, results, strict=True):
        x = decode(kind, pattern(value)).value
        if not math.isfinite(x):
            assert math.isnan(result)
            continue
        exact = function(2 * mpmath.mpf(x))
        if exact == 0:
            assert result == 0
        else:
            assert equal(kind, pattern(result), encode(of_mpmath(kind, exact)), ulps=1), (x, result)


ROUNDING = [f"{prefix}_rndne_{kind}" for prefix in ("s", "v") for kind in ("f16", "f32")] + ["v_rndne_f64"]


@pytest.mark.parametrize("name", ROUNDING)
def test_rndne_takes_halves_to_even_and_keeps_the_sign(name: str) -> None:
    kind = name[-3:]
    (values,) = samples(name, (kind,))
    for value, result in zip(values, run(name, [values]), strict=True):
        x = decode(kind, pattern(value))
        wanted = x
        if math.isfinite(x.value):
            wanted = Float(kind, math.copysign(float(round(Fraction(x.value))), x.value))
        assert equal(kind, pattern(result), encode(wanted)), (x.value, result)


def test_nearest_is_the_floor_of_the_exact_value_and_a_half() -> None:
    (values,) = samples("nearest", ("f32",))
    for value, result in zip(values, run("v_cvt_nearest_i32_f32", [values]), strict=True):
        x = float(value)
        if math.isnan(x):
            assert result == 0
        elif math.isinf(x):
            assert result == (2**31 - 1 if x > 0 else -(2**31))
        else:
            assert result == min(max(math.floor(Fraction(x) + Fraction(1, 2)), -(2**31)), 2**31 - 1), x


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_fract_stays_below_one(kind: str) -> None:
    (values,) = samples(f"fract{kind}", (kind,))
    below_one = Fraction(1) - Fraction(2) ** (-FORMATS[kind][0] - 1)
    for value, result in zip(values, run(f"v_fract_{kind}", [values]), strict=True):
        x = decode(kind, pattern(value)).value
        if not math.isfinite(x):
            assert math.isnan(result)
            continue
        exact = Fraction(x) - math.floor(Fraction(x))
        wanted = min(Fraction(ef.rounded(kind, exact).value), below_one)
        assert Fraction(float(result)) == wanted, x


FREXP = [
    ("v_frexp_exp_i32_f32", "v_frexp_mant_f32"),
    ("v_frexp_exp_i32_f64", "v_frexp_mant_f64"),
    ("v_frexp_exp_i16_f16", "v_frexp_mant_f16"),
]


@pytest.mark.parametrize(("exponent", "mantissa"), FREXP)
def test_frexp_takes_a_number_apart(exponent: str, mantissa: str) -> None:
    kind = mantissa[-3:]
    (values,) = samples(mantissa, (kind,))
    for value, power, part in zip(values, run(exponent, [values]), run(mantissa, [values]), strict=True):
        x = decode(kind, pattern(value))
        if not math.isfinite(x.value) or x.value == 0:
            assert power == 0
            assert equal(kind, pattern(part), pattern(value))
            continue
        assert 0.5 <= abs(float(part)) < 1
        assert Fraction(float(part)) * Fraction(2) ** int(power) == Fraction(x.value)


def test_off_i4_is_a_signed_number_of_sixteenths() -> None:
    results = run("v_cvt_off_f32_i4", [np.arange(64, dtype=np.uint32)])
    wanted = [0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, -0.5, -0.4375, -0.375, -0.3125, -0.25, -0.1875,
              -0.125, -0.0625]  # fmt: skip
    assert results.tolist() == wanted * 4


# Kind of the parts of each factor, how many, and kind of the addend and the result.
DOTS = {
    "v_dot2_f32_f16": ("f16", "f16", 2, "f32"),
    "v_dot2acc_f32_f16": ("f16", "f16", 2, "f32"),
    "v_dot2_f32_bf16": ("bf16", "bf16", 2, "f32"),
    "v_dot2acc_f32_bf16": ("bf16", "bf16", 2, "f32"),
    "v_dot2_f16_f16": ("f16", "f16", 2, "f16"),
    "v_dot2_bf16_bf16": ("bf16", "bf16", 2, "bf16"),
    "v_dot4_f32_fp8_fp8": ("fp8", "fp8", 4, "f32"),
    "v_dot4_f32_fp8_bf8": ("fp8", "bf8", 4, "f32"),
    "v_dot4_f32_bf8_fp8": ("bf8", "fp8", 4, "f32"),
    "v_dot4_f32_bf8_bf8": ("bf8", "bf8", 4, "f32"),
}


def exact_dot(kind: str, pairs: list[tuple[float, float]], addend: float) -> Float:
    """The sum of products and an addend rounded once."""
    terms = [*pairs, (addend, 1.0)]
    if all(math.isfinite(a) and math.isfinite(b) for a, b in terms):
        value = sum((Fraction(a) * Fraction(b) for a, b in terms), Fraction(0))
        return ef.rounded(kind, value)
    products = [ef.multiply("f64", a, b).value for a, b in terms]
    return Float(kind, sum(value for value in products if not math.isfinite(value)))


@pytest.mark.parametrize("name", sorted(DOTS))
def test_a_dot_product_is_the_exact_sum_rounded_once(name: str) -> None:
    left, right, count, kind = DOTS[name]
    entry = OPS[name]
    arrays = samples(name, (*entry.src, *([entry.dst[0]] if entry.reads_dst else [])))
    results = run(name, arrays)
    for place, result in enumerate(results):
        a, b, c = (pattern(x[place]) for x in arrays)
        pairs = []
        for at in range(count):
            parts = [
                decode(k, x >> (FORMATS[k][3] * at) & ((1 << FORMATS[k][3]) - 1)) for k, x in ((left, a), (right, b))
            ]
            pairs.append((parts[0].value, parts[1].value))
        wanted = exact_dot(kind, pairs, decode(kind, c).value)
        if wanted.value == 0:
            # The sign of an exact zero is open.
            assert float(decode(kind, pattern(result)).value) == 0
        else:
            assert equal(kind, pattern(result), encode(wanted)), (hex(a), hex(b), hex(c), result, wanted)


@pytest.mark.parametrize("tiny", [0.0, 2.0**-100, -(2.0**-100)])
@pytest.mark.parametrize("exchanged", [False, True])
def test_a_term_far_below_the_others_decides_a_midpoint(tiny: float, exchanged: bool) -> None:
    # The other two terms lie on a midpoint of float32 whose lower neighbour is odd.
    def bf16(value: float) -> int:
        return encode(ef.rounded("bf16", Fraction(value)))

    def both(first: float, second: float) -> Any:
        low, high = (second, first) if exchanged else (first, second)
        return np.array([[bf16(low), bf16(high)]], np.uint16)

    for factors, addend in (
        (((2.0**-12, 2.0**-12), (tiny, 1.0)), 1 + 2.0**-23),
        (((1 + 2.0**-7, 1 + 2.0**-7), (3 * 2.0**-12, 2.0**-12)), tiny),
    ):
        (a, b), (c, d) = factors
        wanted = exact_dot("f32", [(a, b), (c, d)], addend)
        result = run("v_dot2_f32_bf16", [both(a, c), both(b, d), np.array([addend], np.float32)])
        assert float(result[0]) == wanted.value


@pytest.mark.parametrize("name", ["v_swap_b32", "v_swap_b16"])
def test_swap_gives_each_register_the_other(name: str) -> None:
    kind = name[-3:]
    a, b = samples(name, (kind, kind))
    assert [x.tolist() for x in run(name, [a, b])] == [b.tolist(), a.tolist()]


def test_trig_preop_cuts_out_bits_of_two_over_pi() -> None:
    mpmath.mp.prec = 3000
    try:
        bits = int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** 1201))
    finally:
        mpmath.mp.prec = 200
    exponents = [0, 1, 1000, 1076, 1077, 1078, 1100, 1200, 1500, 1967, 1968, 1969, 2046]
    for field in exponents:
        for segment in range(0, 20):
            shift = segment * 53 + max(0, field - 1077)
            # Bit number `shift` after the point is the highest of the 53 kept ones; past bit 1201 there are none.
            wanted = Fraction((bits << shift + 53 >> 1201) & ((1 << 53) - 1)) * Fraction(2) ** (-53 - shift)
            if field >= 1968:
                wanted *= Fraction(2) ** 128
            value = np.array([field << 52], np.uint64).view(np.float64)
            result = run("v_trig_preop_f64", [value, np.array([segment], np.uint32)])
            assert Fraction(float(result[0])) == Fraction(ef.rounded("f64", wanted).value), (field, segment)


CHECKED = {
    *FLUSHING, *ROUNDING, *DOTS, "v_cvt_nearest_i32_f32", "v_cvt_off_f32_i4", "v_swap_b32", "v_swap_b16",
    "v_trig_preop_f64", *(name for pair in FREXP for name in pair),
    *(f"v_fract_{kind}" for kind in ("f16", "f32", "f64")),
    *(f"v_{name}_{kind}" for name in ("sin", "cos") for kind in ("f16", "f32")),
}  # fmt: skip
