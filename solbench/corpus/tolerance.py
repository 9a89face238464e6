"""How much of a check's tolerance a result uses: 0 is equality, 1 the last value that the check accepts.

A verdict says on which side of a check a result is; the share says how far from it. Shares of different outputs can be
compared, and so can those of different processors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from solbench.checks import check_outputs
from solbench.corpus.reduce import Instance
from solbench.model.expression import evaluate
from solbench.model.workload import CodeDistanceCheck, NumericCheck, RoutingCheck, SigmoidRoutingCheck

Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Observed:
    """The largest shares of several runs: by (output, variant), and those of a rounding step by output."""

    shares: dict[tuple[str, str], float] = field(default_factory=dict)
    steps: dict[str, float] = field(default_factory=dict)

    def note(
        self, variant: str, instance: Instance, inputs: Mapping[str, Any], expected: Tensors, actual: Tensors
    ) -> None:
        """Take in what one variant made of one draw."""
        for output, share in used_shares(instance, inputs, expected, actual).items():
            self.shares[output, variant] = max(share, self.shares.get((output, variant), 0.0))
        for output, step in step_shares(instance, expected).items():
            self.steps[output] = max(step, self.steps.get(output, 0.0))


def used_shares(
    instance: Instance, inputs: Mapping[str, Any], expected: Tensors, actual: Tensors
) -> dict[str, float]:  # fmt: skip
    """Share of its tolerance that each output of ``actual`` uses, by output; those with an exact check have none.

    All are at most 1 where the checks pass, and one is above where they do not; a share is infinite where no tolerance
    of that kind would admit the result (a NaN, a difference where none is allowed). Both sides are CPU tensors of the
    declared shapes and dtypes.
    """
    shares: dict[str, float] = {}
    for check in instance.workload.checks:
        if isinstance(check, NumericCheck):
            shares[check.output] = _numeric(check, instance.axes, expected[check.output], actual[check.output])
        elif isinstance(check, CodeDistanceCheck):
            shares[check.output] = _codes(check, expected[check.output], actual[check.output])
        elif isinstance(check, RoutingCheck):
            shares |= _routing(check, instance, inputs, expected, actual)
    return shares


def step_shares(instance: Instance, expected: Tensors) -> dict[str, float]:
    """What one rounding step of an output's own dtype uses at most: nothing that is computed comes closer than that.

    A step of a code is 1. Where a tolerance is 0 nothing but equality passes, and a step says 0.
    """
    steps: dict[str, float] = {}
    for check in instance.workload.checks:
        if isinstance(check, NumericCheck):
            value = expected[check.output]
            size = value.double().abs() * torch.finfo(value.dtype).eps
            steps[check.output] = _step(size, _allowed(check, instance.axes, value))
        elif isinstance(check, CodeDistanceCheck):
            steps[check.output] = _step(torch.ones(1), torch.tensor(check.max_distance))
        elif isinstance(check, RoutingCheck):
            tie, band = _bounds(check, instance)
            weights = expected[check.weights_output]
            eps = torch.finfo(weights.dtype).eps
            steps[check.weights_output] = _step(weights.double().abs() * eps, band)
            steps[check.ids_output] = _step(torch.tensor([eps]), tie)  # of a score near 1
    return steps


def _allowed(check: NumericCheck, axes: Mapping[str, int], expected: torch.Tensor) -> torch.Tensor:
    magnitude = expected.double().abs()
    magnitude = torch.where(magnitude.isfinite(), magnitude, 0.0)
    if check.mode == "normalized_max":
        magnitude = magnitude.max()
    absolute, relative = (float(evaluate(bound, axes, check.output)) for bound in (check.atol, check.rtol))
    return absolute + relative * magnitude


def _bounds(check: RoutingCheck, instance: Instance) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(  # type: ignore[return-value]
        torch.tensor(float(evaluate(bound, instance.axes, check.ids_output)), dtype=torch.float64)
        for bound in (check.tie_atol, check.weight_atol)
    )


def _ratio(error: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    return torch.where(error == 0, 0.0, error / allowed)


def _step(size: torch.Tensor, allowed: torch.Tensor) -> float:
    return float(torch.where(allowed == 0, 0.0, size / allowed).max())


def _numeric(check: NumericCheck, axes: Mapping[str, int], expected: torch.Tensor, actual: torch.Tensor) -> float:
    reference, value = expected.double().reshape(-1), actual.double().reshape(-1)
    error = (value - reference).abs()
    if check.allow_negative_inf:
        error[(reference == -torch.inf) & (value == -torch.inf)] = 0.0
    if not bool(error.isfinite().all()):
        return torch.inf
    ratio = _ratio(error, _allowed(check, axes, expected).reshape(-1))
    needed = math.ceil(check.required_matched_ratio * ratio.numel()) if check.mode == "elementwise" else ratio.numel()
    share = float(ratio.kthvalue(needed).values)
    return max(share, float(error.max()) / check.max_error_cap) if check.max_error_cap else share


def _codes(check: CodeDistanceCheck, expected: torch.Tensor, actual: torch.Tensor) -> float:
    if check.mode == "raw_bits":
        width = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32}[expected.element_size()]
        expected, actual = expected.view(width), actual.view(width)
    distance = (actual.long() - expected.long()).abs()
    limits = torch.tensor([check.max_distance, 1 - check.min_identical_fraction], dtype=torch.float64)
    return float(_ratio(torch.stack((distance.max().double(), (distance != 0).double().mean())), limits).max())


def _routing(
    check: RoutingCheck, instance: Instance, inputs: Mapping[str, Any], expected: Tensors, actual: Tensors
) -> dict[str, float]:
    """Ids: how far the best score left out is above the lowest one chosen. Weights: the error that the check finds."""
    if isinstance(check, SigmoidRoutingCheck):
        score = torch.sigmoid(expected[check.logits_output].double())
    else:
        score = torch.softmax(inputs[check.gating_input].double(), dim=-1)
    if check.bias_input:
        score = score + inputs[check.bias_input].double()
    chosen = torch.zeros_like(score, dtype=torch.bool).scatter_(-1, actual[check.ids_output].long(), True)
    lowest = torch.where(chosen, score, torch.inf).amin(-1)
    gap = (torch.where(chosen, -torch.inf, score).amax(-1) - lowest).clamp(min=0)
    _, _, results = check_outputs(instance.definition, instance.workload, instance.axes, inputs, expected, actual)
    found = {result.output: result for result in results}[check.weights_output]
    error = torch.inf if found.max_absolute_error is None or found.has_nan else found.max_absolute_error
    tie, band = _bounds(check, instance)
    return {
        check.weights_output: float(_ratio(torch.tensor(error).double(), band)),
        check.ids_output: float(_ratio(gap.max(), tie)),
    }
