"""8-bit floating point: all 256 patterns, rounding of every neighbourhood, saturation, stochastic rounding, bytes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import exact_floats as ef
import numpy as np
import pytest
from exact_floats import FORMATS, Float, decode, encode
from operand_samples import operands, pattern
from pseudocode_values import Int
from test_pseudocode import environment, equal, guide_results

from solbench.gfx12.narrow import narrow, widen
from solbench.gfx12.ops import OPS

KINDS = ("fp8", "bf8")


@pytest.mark.parametrize("kind", KINDS)
def test_every_pattern_has_its_value_and_comes_back(kind: str) -> None:
    codes = np.arange(256, dtype=np.uint32)
    with np.errstate(all="ignore"):
        values = widen(codes, kind)
        back = narrow(values, kind)
    for code in range(256):
        wanted = decode(kind, code)
        assert equal("f32", pattern(values[code]), encode(ef.convert("f32", wanted)))
        assert equal(kind, int(back[code]), code)


def _magnitudes(kind: str) -> Any:
    """float32 values at, between and beside all values of a format, and beyond its range."""
    values = sorted({decode(kind, code).value for code in range(128) if math.isfinite(decode(kind, code).value)})
    middles = [(a + b) / 2 for a, b in itertools.pairwise(values)]
    beyond = [values[-1] * factor for factor in (1.03, 1.0625, 1.07, 1.1, 1.125, 1.25, 2.0, 1e30)]
    points = np.array(values + middles + beyond, np.float32)
    around = np.concatenate([points, np.nextafter(points, np.float32(0)), np.nextafter(points, np.float32(np.inf))])
    special = np.array([0, np.inf, np.nan, 1e-45, 1e-30], np.float32)
    return np.concatenate([around, special, -around, -special])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("saturate", [False, True])
def test_conversion_rounds_to_nearest_even(kind: str, saturate: bool) -> None:
    values = _magnitudes(kind)
    name = f"v_cvt_pk_{kind}_f32"
    with np.errstate(all="ignore"):
        result = OPS[name].apply(values, values[::-1], saturate=saturate)
    largest = 448.0 if kind == "fp8" else 57344.0
    for number, ordered in ((0, values), (1, values[::-1])):
        for value, packed in zip(ordered, result, strict=True):
            wanted = ef.convert(kind, decode("f32", pattern(value)))
            # bf8 has infinities, which FP16_OVFL keeps; of fp8 it makes the largest number of one.
            if saturate and math.isinf(wanted.value) and (kind == "fp8" or math.isfinite(float(value))):
                wanted = Float(kind, math.copysign(largest, wanted.value))
            got = int(packed) >> (8 * number) & 0xFF
            assert equal(kind, got, encode(wanted)), (float(value), hex(got))


@pytest.mark.parametrize("kind", KINDS)
def test_stochastic_rounding_goes_up_as_often_as_the_rest_is_large(kind: str) -> None:
    name, width = f"v_cvt_sr_{kind}_f32", 20 if kind == "fp8" else 21
    values, noise, old = operands(("f32", "u32", "b32"), 1500, 9)
    # Most random float32 are outside the range: bring half of them in.
    values[::2] = np.random.default_rng(1).uniform(-3, 3, len(values[::2]))
    fraction, lowest, _, _ = FORMATS[kind]
    with np.errstate(all="ignore"):
        result = OPS[name].apply(values, noise, old, byte_sel=2)
    checked = 0
    for value, extra, before, word in zip(values, noise, old, result, strict=True):
        assert int(word) & 0xFF00FFFF == int(before) & 0xFF00FFFF
        x = float(value)
        if not math.isfinite(x) or abs(x) >= 256:
            continue
        exponent = max(math.frexp(x)[1] - 1 if x else lowest, lowest)
        quantum = Fraction(2) ** (exponent - fraction)
        steps = math.floor(abs(Fraction(x)) / quantum + Fraction(int(extra) >> (32 - width), 1 << width))
        wanted = Float(kind, math.copysign(float(steps * quantum), x))
        assert int(word) >> 16 & 0xFF == encode(wanted)
        checked += 1
    assert checked > 500


@pytest.mark.parametrize("kind", KINDS)
def test_stochastic_rounding_of_no_number_or_an_overflow(kind: str) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    noise, old = np.zeros(4, np.uint32), np.zeros(4, np.uint32)
    with np.errstate(all="ignore"):
        plain = OPS[f"v_cvt_sr_{kind}_f32"].apply(values, noise, old)
        kept = OPS[f"v_cvt_sr_{kind}_f32"].apply(values, noise, old, saturate=True)
    inf, top = (0x7C, 0x7B) if kind == "bf8" else (0x7F, 0x7E)
    assert plain.tolist() == [0x7F, inf, inf | 0x80, inf]
    assert kept.tolist() == [0x7F, inf if kind == "bf8" else top, (inf if kind == "bf8" else top) | 0x80, top]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("byte", range(4))
def test_byte_sel_is_the_number_of_the_byte(kind: str, byte: int) -> None:
    entry = OPS[f"v_cvt_f32_{kind}"]
    (words,) = operands(entry.src, 300, byte)
    result = entry.apply(words, byte_sel=byte)
    # The encoding's two bits are the byte number with its bits exchanged.
    encoded = {0: 0, 1: 2, 2: 1, 3: 3}[byte]
    for word, got in zip(words, result, strict=True):
        names = environment(entry, [int(word)])
        names["OPSEL"] = Int(encoded)
        wanted = guide_results(entry, names, 0)[0]
        assert equal("f32", pattern(got), wanted & 0xFFFFFFFF)


CHECKED = {f"v_cvt_sr_{kind}_f32" for kind in KINDS}
