"""Instructions that look at other lanes, against the ISA guide's pseudocode over a whole wave, and modifiers."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from pseudocode import Lane
from pseudocode_values import Int

from solbench.gfx12.ops import OPS

WAVES = 12


def _random(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def _words(random: np.random.Generator, *shape: int) -> Any:
    return random.integers(0, 2**32, shape, dtype=np.uint32)


def _execs(random: np.random.Generator) -> Any:
    """EXEC of some waves: all, none, one lane, any."""
    found = random.random((WAVES, 32)) < 0.5
    found[0], found[1] = True, False
    found[2] = np.arange(32) == 31
    found[3] = np.arange(32) == 0
    return found


def guide_wave(name: str, registers: dict[int, Any], execute: Any, scalars: dict[str, int]) -> Any:
    """Register 10 of each lane after the pseudocode, which reads register 0 as SRC0 and 1 as SRC1."""
    vgpr = {lane: {number: Int(int(values[lane])) for number, values in registers.items()} for lane in range(32)}
    bits = sum(int(on) << lane for lane, on in enumerate(execute))
    names = {"VGPR": vgpr, "SRC0": Int(0), "SRC1": Int(1), "VDST": Int(10), "EXEC": Int(bits, 64)}
    after = Lane({**names, **{key: Int(value, 64) for key, value in scalars.items()}}).run(name)
    return after, [vgpr[lane][10].value for lane in range(32)]


@pytest.mark.parametrize("name", ["v_permlane16_b32", "v_permlanex16_b32"])
def test_permlane16_by_scalar_selects(name: str) -> None:
    random = _random(name)
    x, old, execute = _words(random, WAVES, 32), _words(random, WAVES, 32), _execs(random)
    low, high = _words(random, WAVES, 1), _words(random, WAVES, 1)
    result = OPS[name].apply(x, low, high, execute, old, fi=True)
    for wave in range(WAVES):
        scalars = {"S1": int(low[wave, 0]), "S2": int(high[wave, 0])}
        _, wanted = guide_wave(name, {0: x[wave], 10: old[wave]}, execute[wave], scalars)
        assert np.where(execute[wave], result[wave], old[wave]).tolist() == wanted


@pytest.mark.parametrize("name", ["v_permlane16_var_b32", "v_permlanex16_var_b32"])
def test_permlane16_by_lane_selects(name: str) -> None:
    random = _random(name)
    x, old, lanes = _words(random, WAVES, 32), _words(random, WAVES, 32), _words(random, WAVES, 32)
    execute = _execs(random)
    result = OPS[name].apply(x, lanes, execute, old, fi=True)
    for wave in range(WAVES):
        _, wanted = guide_wave(name, {0: x[wave], 1: lanes[wave], 10: old[wave]}, execute[wave], {})
        assert np.where(execute[wave], result[wave], old[wave]).tolist() == wanted


@pytest.mark.parametrize("bc", [False, True])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("row", [0, 16])
def test_a_lane_that_is_off_gives_zero_or_the_old_value(bc: bool, same: bool, row: int) -> None:
    # The guide's text leaves the two modifiers out; their meaning is that of DPP's FI and BOUND_CTRL.
    random = _random("off")
    x, old, execute = _words(random, WAVES, 32), _words(random, WAVES, 32), _execs(random)
    selects = np.broadcast_to(np.array([[0x01234567, 0x89ABCDEF]], np.uint32), (WAVES, 2)).copy()
    if not same:
        selects = _words(random, WAVES, 2)
    name = "v_permlanex16_b32" if row else "v_permlane16_b32"
    result = OPS[name].apply(x, selects[:, :1], selects[:, 1:], execute, old, bc=bc)
    for wave in range(WAVES):
        choices = int(selects[wave, 0]) | int(selects[wave, 1]) << 32
        for lane in range(32):
            source = ((lane & 16) ^ row) + (choices >> 4 * (lane % 16) & 15)
            off = 0 if bc else old[wave, lane]
            assert result[wave, lane] == (x[wave, source] if execute[wave, source] else off)


def test_permlane64_does_nothing_in_a_wave_of_32() -> None:
    x, old = np.arange(32, dtype=np.uint32)[None], np.arange(32, 64, dtype=np.uint32)[None]
    assert OPS["v_permlane64_b32"].apply(x, old).tolist() == old.tolist()


def test_readfirstlane_takes_the_lowest_lane_that_is_on_or_lane_0() -> None:
    random = _random("first")
    x, execute = _words(random, WAVES, 32), _execs(random)
    result = OPS["v_readfirstlane_b32"].apply(x, execute)
    assert result.shape == (WAVES, 1)
    for wave in range(WAVES):
        after, _ = guide_wave("v_readfirstlane_b32", {0: x[wave], 10: x[wave]}, execute[wave], {})
        assert result[wave, 0] == after["D0"].value
    # A scalar is the same in every lane.
    assert OPS["v_readfirstlane_b32"].apply(x[:, :1], execute).tolist() == x[:, :1].tolist()


def test_readlane_and_writelane_take_five_bits_of_the_lane() -> None:
    random = _random("lane")
    x, old = _words(random, WAVES, 32), _words(random, WAVES, 32)
    lanes = _words(random, WAVES, 1)
    value = _words(random, WAVES, 1)
    read = OPS["v_readlane_b32"].apply(x, lanes)
    written = OPS["v_writelane_b32"].apply(value, lanes, old)
    assert read.shape == (WAVES, 1) and OPS["v_writelane_b32"].whole
    for wave in range(WAVES):
        scalars = {"S1": int(lanes[wave, 0]), "S0": int(value[wave, 0])}
        after, _ = guide_wave("v_readlane_b32", {0: x[wave], 10: old[wave]}, [True] * 32, scalars)
        assert read[wave, 0] == after["D0"].value
        _, wanted = guide_wave("v_writelane_b32", {0: x[wave], 10: old[wave]}, [False] * 32, scalars)
        assert written[wave].tolist() == wanted


CHECKED = {
    "v_permlane16_b32", "v_permlanex16_b32", "v_permlane16_var_b32", "v_permlanex16_var_b32", "v_permlane64_b32",
    "v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32",
}  # fmt: skip
