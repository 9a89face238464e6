"""Triton kernels of every family on the emulated card: right results, and nothing to report of a right kernel.

Fast tier: lock-step, with registers and LDS full of NaN and waits held to the letter. Slow tier: two random orders of
waves, and other poison.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from solbench.gfx12.run import Options
from solbench.gfx12.triton_launch import launching
from tests.solbench.gfx12.kernels import (
    atomic,
    attention,
    control,
    conversions,
    elementwise,
    images,
    norms,
    products,
    quantised,
    reductions,
    sequences,
)
from tests.solbench.gfx12.kernels.case import Case

FAMILIES = (
    elementwise, reductions, norms, products, attention, sequences, images, atomic, quantised, control,
    conversions,
)  # fmt: skip
CASES = [case for family in FAMILIES for case in family.CASES]
LOCKSTEP = Options(order="lockstep", poison="nan", strict_waits=True, races=True, uninitialised=True, deadline_s=30.0)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def drawn(case: Case) -> dict[str, Any]:
    return case.inputs(torch.Generator().manual_seed(len(case.name)))


def compared(case: Case, options: Options) -> None:
    expected = case.reference(**drawn(case))
    with launching(options) as launches:
        results = case.run(**drawn(case))
    assert launches.runs
    results, expected = (value if isinstance(value, tuple) else (value,) for value in (results, expected))
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == wanted.shape
        if case.rtol or case.atol or result.is_floating_point():
            result, wanted = result.double(), wanted.double()
        torch.testing.assert_close(result, wanted, rtol=case.rtol, atol=case.atol, equal_nan=True)
        if not (case.rtol or case.atol) and result.is_floating_point():
            assert torch.equal(result.nan_to_num().signbit(), wanted.nan_to_num().signbit())
    assert not launches.findings


def test_there_are_enough_of_different_names() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 120


@each_case
def test_kernel_is_right(case: Case) -> None:
    compared(case, LOCKSTEP)


def test_one_seed_is_one_order() -> None:
    """Sums of float32 by atomics differ in their last bits from order to order, and not within one."""
    case = next(case for case in CASES if case.name == "split_k")

    def bits(seed: int) -> tuple[torch.Tensor, list[int]]:
        with launching(replace(LOCKSTEP, order="permuted", seed=seed)) as launches:
            result = case.run(**drawn(case))
        return result, [launched.outcome.instructions for launched in launches.runs]

    runs = [bits(seed) for seed in (1, 1, 2, 3)]
    assert torch.equal(runs[0][0], runs[1][0]) and runs[0][1] == runs[1][1]
    assert not all(torch.equal(runs[0][0], result) for result, _ in runs[2:])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@each_case
def test_kernel_is_right_in_any_order(case: Case, seed: int) -> None:
    compared(case, replace(LOCKSTEP, order="permuted", seed=seed))


@pytest.mark.slow
@pytest.mark.parametrize("poison", ["zero", "ones"])
@each_case
def test_kernel_does_not_see_what_registers_held(case: Case, poison: Any) -> None:
    compared(case, replace(LOCKSTEP, poison=poison, strict_waits=False))
