"""Taps against PyTorch: what interpolation makes of each unit vector is the matrix of its weights."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from solar.convert.resampling import taps

SIZES = [(1, 4), (4, 1), (3, 7), (7, 3), (5, 5), (6, 9), (10, 4), (13, 5), (2, 17)]
MODES = {
    "nearest": ("nearest", False, False),
    "nearest_exact": ("nearest-exact", False, False),
    "linear": ("bilinear", True, False),
    "cubic": ("bicubic", True, False),
    "linear_smooth": ("bilinear", True, True),
    "cubic_smooth": ("bicubic", True, True),
}


def matrix(mode: str, inner: int, outer: int, align: bool, given: float | None) -> torch.Tensor:
    """[outer, inner]: row i holds the weights of result i."""
    table = taps(mode, inner, outer, align, given)
    found = torch.zeros(outer, inner)
    for row, (places, weights) in enumerate(zip(table.places, table.weights, strict=True)):
        for place, weight in zip(places, weights, strict=True):
            found[row, place] += weight
    return found


def of_pytorch(mode: str, inner: int, outer: int, align: bool, given: float | None) -> torch.Tensor:
    name, aligned, antialias = MODES[mode]
    units = torch.eye(inner).reshape(inner, 1, inner, 1).expand(inner, 1, inner, 2)
    size = {"scale_factor": (given, 1.0)} if given else {"size": (outer, 2)}
    options = {"align_corners": align} if aligned else {}
    result = F.interpolate(units, mode=name, antialias=antialias, **size, **options)
    return result[:, 0, :, 0].t()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("align", [False, True])
def test_sizes(mode: str, align: bool) -> None:
    for inner, outer in SIZES:
        expected = of_pytorch(mode, inner, outer, align, None)
        found = matrix(mode, inner, outer, align and MODES[mode][1], None)
        torch.testing.assert_close(found, expected, atol=2e-6, rtol=0, msg=f"{mode} {inner}->{outer}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("given", [0.6, 1.7, 2.0, 3.3])
def test_scale_factors(mode: str, given: float) -> None:
    for inner in (5, 8, 11):
        expected = of_pytorch(mode, inner, 0, False, given)
        found = matrix(mode, inner, expected.shape[0], False, given)
        torch.testing.assert_close(found, expected, atol=2e-6, rtol=0, msg=f"{mode} {inner} by {given}")


def test_a_wrong_convention_is_seen() -> None:
    expected = of_pytorch("linear", 5, 9, True, None)
    assert not torch.allclose(matrix("linear", 5, 9, False, None), expected, atol=1e-3)


def test_what_costs_nothing_is_left_out() -> None:
    assert taps("linear", 4, 4).plain
    assert taps("nearest", 4, 8).plain
    assert not taps("linear", 4, 8).plain
    # Every third element falls on a place: no second tap.
    assert len(taps("linear", 9, 3).places[0]) == 1
