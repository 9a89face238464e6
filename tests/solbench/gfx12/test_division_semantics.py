"""The division instructions: the compiler's sequences give correctly rounded quotients, and each part its own table."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import exact_floats as ef
import numpy as np
import pytest
from exact_floats import Float, decode, encode
from operand_samples import operands, pattern
from test_pseudocode import equal

from solbench.gfx12.ops import OPS


def _op(name: str, *arrays: Any) -> Any:
    return OPS[name].apply(*arrays)


def divide_f32(n: Any, d: Any) -> Any:
    """LLVM's sequence for an IEEE division of float32 (AMDGPU backend, lowering of FDIV32)."""
    one = np.ones_like(d)
    ds, _ = _op("v_div_scale_f32", d, d, n)
    ns, flag = _op("v_div_scale_f32", n, d, n)
    r = _op("v_rcp_f32", ds)
    r = _op("v_fma_f32", _op("v_fma_f32", -ds, r, one), r, r)
    q = _op("v_mul_f32", ns, r)
    q = _op("v_fma_f32", _op("v_fma_f32", -ds, q, ns), r, q)
    last = _op("v_fma_f32", -ds, q, ns)
    return _op("v_div_fixup_f32", _op("v_div_fmas_f32", last, r, q, flag), d, n)


def divide_f64(n: Any, d: Any) -> Any:
    """LLVM's sequence for a division of float64 (FDIV64)."""
    one = np.ones_like(d)
    ds, _ = _op("v_div_scale_f64", d, d, n)
    ns, flag = _op("v_div_scale_f64", n, d, n)
    r = _op("v_rcp_f64", ds)
    r = _op("v_fma_f64", r, _op("v_fma_f64", -ds, r, one), r)
    r = _op("v_fma_f64", r, _op("v_fma_f64", -ds, r, one), r)
    q = _op("v_mul_f64", ns, r)
    last = _op("v_fma_f64", -ds, q, ns)
    return _op("v_div_fixup_f64", _op("v_div_fmas_f64", last, r, q, flag), d, n)


@pytest.mark.parametrize(("kind", "divide", "count"), [("f32", divide_f32, 20000), ("f64", divide_f64, 6000)])
def test_the_compilers_sequence_divides_correctly(kind: str, divide: Any, count: int) -> None:
    n, d = operands((kind, kind), count, 12)
    with np.errstate(all="ignore"):
        results = divide(n, d)
    for top, bottom, result in zip(n, d, results, strict=True):
        wanted = ef.divide(kind, float(top), float(bottom))
        assert equal(kind, pattern(result), encode(wanted)), (top, bottom, result, wanted.value)


@pytest.mark.parametrize(("kind", "power"), [("f32", 64), ("f64", 128)])
def test_fmas_scales_in_the_same_rounding(kind: str, power: int) -> None:
    a, b, c, flag = operands((kind, kind, kind, "vcc"), 3000, 5)
    with np.errstate(all="ignore"):
        results = _op(f"v_div_fmas_{kind}", a, b, c, flag)
    for x, y, z, scaled, result in zip(a, b, c, flag, results, strict=True):
        numbers = [float(v) for v in (x, y, z)]
        wanted = ef.fma(kind, *numbers)
        if scaled and all(math.isfinite(v) for v in numbers):
            value = Fraction(numbers[0]) * Fraction(numbers[1]) + Fraction(numbers[2])
            factor = Fraction(2) ** (power if abs(numbers[2]) >= 1 else -power)
            wanted = ef.rounded(kind, value * factor) if value else wanted
        assert equal(kind, pattern(result), encode(wanted)), (numbers, scaled, result, wanted.value)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_fixup_knows_the_special_quotients(kind: str) -> None:
    q, d, n = operands((kind, kind, kind), 3000, 6)
    with np.errstate(all="ignore"):
        results = _op(f"v_div_fixup_{kind}", q, d, n)
    for quotient, bottom, top, result in zip(q, d, n, results, strict=True):
        x, y, z = (decode(kind, pattern(v)) for v in (quotient, bottom, top))
        sign = -1.0 if y.negative != z.negative else 1.0
        difference = _field(kind, top) - _field(kind, bottom)
        if math.isnan(y.value) or math.isnan(z.value):
            wanted = math.nan
        elif y.value == 0 or math.isinf(z.value):
            wanted = math.nan if z.value == 0 or math.isinf(y.value) else math.copysign(math.inf, sign)
        elif math.isinf(y.value) or z.value == 0 or difference < {"f16": -99, "f32": -150, "f64": -1075}[kind]:
            wanted = math.copysign(0.0, sign)
        elif math.isnan(x.value):
            wanted = math.copysign(math.inf, sign)
        else:
            wanted = math.copysign(x.value, sign)
        assert equal(kind, pattern(result), encode(Float(kind, wanted))), (quotient, bottom, top, result)


def _field(kind: str, value: Any) -> int:
    fraction, _, _, size = ef.FORMATS[kind]
    return pattern(value) >> fraction & ((1 << (size - 1 - fraction)) - 1)


@pytest.mark.parametrize(("kind", "power"), [("f32", 64), ("f64", 128)])
def test_scale_multiplies_by_one_of_three_powers(kind: str, power: int) -> None:
    d, n = operands((kind, kind), 3000, 7)
    with np.errstate(all="ignore"):
        scaled = [_op(f"v_div_scale_{kind}", value, d, n) for value in (d, n)]
    for place in range(len(d)):
        bottom, top = float(d[place]), float(n[place])
        if not (math.isfinite(bottom) and math.isfinite(top)):
            continue
        if bottom == 0 or top == 0:
            assert all(math.isnan(result[place]) and not flag[place] for result, flag in scaled)
            continue
        new = [Fraction(float(result[place])) for result, _ in scaled]
        factors = [new[0] / Fraction(bottom), new[1] / Fraction(top)]
        allowed = {Fraction(1), Fraction(2) ** power, Fraction(2) ** -power}
        assert set(factors) <= allowed
        # Only FMAS can undo a difference of the two scales, and only where it is told to.
        flags = {bool(flag[place]) for _, flag in scaled}
        assert flags == {factors[0] != factors[1]}


def test_a_double_rounding_would_show() -> None:
    # 1 + 2**-23 + 2**-24 - 2**-70 lies below the midpoint of two float32, and float64 rounds it to that midpoint.
    x, y, z = (np.array([v], np.float32) for v in (2.0**-24 * (1 - 2.0**-23), 1 + 2.0**-23, 1 + 2.0**-23))
    assert np.float32(np.float64(x[0]) * np.float64(y[0]) + np.float64(z[0])) == np.float32(1 + 2.0**-22)
    assert OPS["v_fma_f32"].apply(x, y, z)[0] == np.float32(1 + 2.0**-23)
    # The same of float16 by way of float32.
    x, y, z = (np.array([v], np.float16) for v in (2.0**-11 * (1 - 2.0**-10), 1 + 2.0**-10, 1 + 2.0**-10))
    assert np.float16(np.float32(x[0]) * np.float32(y[0]) + np.float32(z[0])) == np.float16(1 + 2.0**-9)
    assert OPS["v_fma_f16"].apply(x, y, z)[0] == np.float16(1 + 2.0**-10)


CHECKED = {f"v_div_{part}_{kind}" for part in ("scale", "fmas") for kind in ("f32", "f64")} | {
    f"v_div_fixup_{kind}" for kind in ("f16", "f32", "f64")
}
