"""Decoding and encoding against PyTorch's own conversions: every pattern, and every number where rounding turns."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from solbench.evaluate.narrow_floats import BF16, FORMATS, RangeError

TYPES = {
    "bf16": (torch.bfloat16, torch.uint16), "fp8e5": (torch.float8_e5m2, torch.uint8),
    "fp8e4nv": (torch.float8_e4m3fn, torch.uint8), "fp8e5b16": (torch.float8_e5m2fnuz, torch.uint8),
    "fp8e4b8": (torch.float8_e4m3fnuz, torch.uint8),
}  # fmt: skip


def every(name: str) -> torch.Tensor:
    dtype, bits = TYPES[name]
    return torch.arange(1 << 8 * dtype.itemsize, dtype=torch.int32).to(bits).view(dtype)


@pytest.mark.parametrize("name", TYPES)
def test_decode(name: str) -> None:
    codes = every(name)
    found = FORMATS[name].decode(codes.view(TYPES[name][1]).numpy())
    expected = codes.float().numpy()
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize("name", TYPES)
def test_encode(name: str) -> None:
    dtype, bits = TYPES[name]
    known = every(name).double()
    known = known[known.isfinite()].unique()
    middles = ((known[1:] + known[:-1]) / 2).float()
    beside = torch.tensor([torch.inf, -torch.inf])
    numbers = torch.cat([known.float(), middles, *(middles.nextafter(end) for end in beside), torch.tensor([-0.0])])
    found = FORMATS[name].encode(numbers.numpy())
    assert np.array_equal(found, numbers.to(dtype).view(bits).numpy())
    assert np.isnan(FORMATS[name].decode(FORMATS[name].encode(np.array([np.nan])))).all()


def test_float64_is_rounded_once() -> None:
    # To float32 first, the middle between two bfloat16 would be hit exactly, and the even one taken.
    numbers = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1 + 2.0**-8, -1 - 2.0**-8 - 2.0**-40])
    assert BF16.decode(BF16.encode(numbers)).tolist() == [1 + 2**-7, 1, 1, -1 - 2**-7]


@pytest.mark.parametrize(("name", "largest", "beyond"), [("fp8e4nv", 464, 465), ("fp8e5", 61439, 61440)])
def test_beyond_the_range(name: str, largest: float, beyond: float) -> None:
    assert np.isfinite(FORMATS[name].decode(FORMATS[name].encode(np.float32(largest))))
    for value in (beyond, -beyond, np.inf):
        with pytest.raises(RangeError, match=name):
            FORMATS[name].encode(np.float32(value))
