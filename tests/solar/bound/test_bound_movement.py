"""Demand through views and copies against PyTorch: the same movements of a tensor of element numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solar.bound import bound
from solar.bound.regions import LARGEST_UNION
from solar.hardware import load

torch = pytest.importorskip("torch")

GFX1200 = load("gfx1200")
SHAPE = (6, 8, 4)
Step = Callable[["torch.Tensor"], "torch.Tensor"]  # type: ignore[name-defined]


@st.composite
def movements(draw: st.DrawFn) -> list[Step]:
    """A few views and copies that fit one after the other, starting from SHAPE."""
    steps: list[Step] = []
    value = torch.zeros(SHAPE, device="meta")
    for _ in range(draw(st.integers(1, 5))):
        step = _step(draw, tuple(value.shape))
        value = step(value)
        steps.append(step)
    return steps


def _step(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    kinds = ["reshape", "unsqueeze"]
    if shape:
        kinds += ["slice", "select", "flip", "roll", "cat", "pad", "expand", "unfold", "repeat"]
    if len(shape) > 1:
        kinds += ["permute", "diagonal", "tril"]
    kind = draw(st.sampled_from(kinds))
    dim = draw(st.integers(0, len(shape) - 1)) if shape else 0
    extent = shape[dim] if shape else 1
    if kind == "reshape":
        flat = 1
        for size in shape:
            flat *= size
        divisors = [d for d in range(1, flat + 1) if flat % d == 0]
        first = draw(st.sampled_from(divisors))
        second = draw(st.sampled_from([d for d in divisors if (flat // first) % d == 0]))
        return lambda x: x.reshape(first, second, flat // first // second)
    if kind == "unsqueeze":
        return lambda x: x.unsqueeze(0)
    if kind == "slice":
        start = draw(st.integers(0, extent - 1))
        stop = draw(st.integers(start + 1, extent))
        step = draw(st.integers(1, 3))
        return lambda x: x[(slice(None),) * dim + (slice(start, stop, step),)]
    if kind == "select":
        index = draw(st.integers(0, extent - 1))
        return lambda x: x.select(dim, index)
    if kind == "flip":
        return lambda x: x.flip(dim)
    if kind == "roll":
        shift = draw(st.integers(-5, 5))
        return lambda x: torch.roll(x, shift, dim)
    if kind == "cat":
        return lambda x: torch.cat((x, x.flip(dim)), dim)
    if kind == "pad":
        before, after = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        return lambda x: torch.nn.functional.pad(x, (before, after), value=-1)
    if kind == "expand":
        return lambda x: x.unsqueeze(0).expand(3, *x.shape)
    if kind == "unfold":
        size, step = draw(st.integers(1, extent)), draw(st.integers(1, 3))
        return lambda x: x.unfold(dim, size, step)
    if kind == "repeat":
        return lambda x: x.repeat(*(2 if i == dim else 1 for i in range(x.dim())))
    if kind == "permute":
        order = draw(st.permutations(range(len(shape))))
        return lambda x: x.permute(*order)
    if kind == "tril":
        diagonal = draw(st.integers(-2, 2))
        return lambda x: torch.tril(x, diagonal)
    offset = draw(st.integers(-2, 2))
    first, second = draw(st.permutations(range(len(shape))))[:2]
    if not -shape[first] < offset < shape[second]:
        offset = 0
    return lambda x: x.diagonal(offset, first, second)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(movements())
def test_the_elements_that_a_movement_shows_are_the_ones_that_are_read(steps: list[Step]) -> None:
    from solar.convert import convert
    from solar.extract.aten import extract
    from solar.graph import Input

    def run(x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        for step in steps:
            x = step(x)
        return x

    numbers = torch.arange(1, 6 * 8 * 4 + 1, dtype=torch.float64).reshape(SHAPE)
    shown = torch.unique(run(numbers))
    expected = int((shown > 0).sum())
    program = convert(extract(run, {"x": Input(SHAPE, "float32")}))
    found = bound(program, GFX1200)["memory"]["live_read_bytes"]
    assert found <= 4 * expected
    # Beyond so many pieces a region is given up in part.
    assert found >= 4 * min(expected, LARGEST_UNION)
