"""Scalars among vector operands: an entry computes the same as with the scalar written out for every lane."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from operand_samples import operands

from solbench.gfx12.lanes import LANES
from solbench.gfx12.ops import OPS

WAVES = 3
VECTOR = sorted(name for name in OPS if name.startswith("v_") and name not in LANES)


def _same(a: Any, b: Any) -> bool:
    a, b = np.broadcast_arrays(a, b)
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


@pytest.mark.parametrize("name", VECTOR)
def test_a_scalar_operand_is_its_value_in_every_lane(name: str) -> None:
    entry = OPS[name]
    kinds = (*entry.src, *([entry.dst[0]] if entry.reads_dst else []))
    full = [x.reshape(WAVES, 32, *x.shape[1:]) for x in operands(kinds, WAVES * 32, zlib.crc32(name.encode()) + 1)]
    # Each operand alone as one value a wave and as one for all waves, then all of them.
    for chosen in [*((number,) for number in range(len(full))), tuple(range(len(full)))]:
        for waves in (WAVES, 1):
            scalars = [x[:waves, :1] if number in chosen else x for number, x in enumerate(full)]
            written = [np.broadcast_to(x, (WAVES, 32, *x.shape[2:])) for x in scalars]
            for function in (entry.apply, entry.clamped):
                if function is None:
                    continue
                with np.errstate(all="ignore"):
                    got, wanted = function(*scalars), function(*written)
                pairs = zip(got, wanted, strict=True) if isinstance(got, tuple) else [(got, wanted)]
                assert all(_same(a, b) and np.asarray(a).dtype == np.asarray(b).dtype for a, b in pairs), chosen


SELECTORS = [0x07060302, 0x05040100, 0x01000302, 0x03020100, 0x07050301, 0x00010203, 0x04040404]


@pytest.mark.parametrize("selector", SELECTORS)
def test_one_selector_for_all_lanes_permutes_like_any(selector: int) -> None:
    high, low = operands(("b32", "b32"), 64, selector)
    chosen = np.full(64, selector, np.uint32)
    mixed = np.append(chosen, np.uint32(0x0C0C0C0C))
    one = OPS["v_perm_b32"].apply(high, low, chosen)
    any_ = OPS["v_perm_b32"].apply(np.append(high, high[:1]), np.append(low, low[:1]), mixed)
    assert one.tolist() == any_[:64].tolist()
