"""Output checks: shape, dtype and layout first, then every element, in float64, a chunk at a time.

A check says no unless it has evidence: it never compares nothing, and a NaN never passes a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from solbench.errors import InputError
from solbench.inputs import torch_dtype
from solbench.model.definition import Definition, resolve_shape
from solbench.model.expression import evaluate, evaluate_int
from solbench.model.trace import CheckResult, Status
from solbench.model.workload import (
    Check,
    CodeDistanceCheck,
    ExactCheck,
    NumericCheck,
    RoutingCheck,
    SigmoidRoutingCheck,
    Workload,
    checked_outputs,
)

# Of float64 scratch at a time: it stays in a core's cache, and PyTorch wakes no thread for it (its grain is 32,768
# elements), which costs more than the work that a woken one takes over.
CHUNK_ELEMENTS = 2**15
# On a card, where a chunk costs launches: 128 MiB of float64 at a time.
DEVICE_CHUNK_ELEMENTS = 2**24

Tensors = Mapping[str, torch.Tensor]
Outcome = tuple[Status, str | None, tuple[CheckResult, ...]]


def check_outputs(
    definition: Definition,
    workload: Workload,
    axes: Mapping[str, int],
    inputs: Mapping[str, Any],
    expected: Tensors,
    actual: Tensors,
) -> Outcome:
    """Compare ``actual`` with ``expected`` under the workload's checks; both are tensors by output name, on one device.

    ``inputs``: the values of this round, which ``topk_routing`` recomputes the scores from. Returns the status (PASSED,
    INCORRECT_SHAPE for a wrong shape, layout or set of names, INCORRECT_DTYPE, INCORRECT_NUMERICAL), the reason of a
    failure, and one result an output once shapes and dtypes hold. :class:`InputError` if the expected outputs
    themselves are not what the Definition declares, or if a check would compare no element.
    """
    where = f"{definition.name}: {workload.uuid}"
    status, reason = _form(definition, axes, expected)
    if reason is not None:
        raise InputError(f"{where}: expected", reason)
    status, reason = _form(definition, axes, actual, expected)
    if reason is not None:
        return status, reason, ()
    results: list[CheckResult] = []
    for check in workload.checks:
        for output in checked_outputs(check):
            if expected[output].numel() == 0:
                raise InputError(f"{where}: checks.{output}", "compares no element; an axis is 0")
        results += _run_check(check, axes, inputs, expected, actual, where)
    failed = [result for result in results if not result.passed]
    if not failed:
        return Status.PASSED, None, tuple(results)
    return Status.INCORRECT_NUMERICAL, "; ".join(_explain(result) for result in failed), tuple(results)


def _form(
    definition: Definition, axes: Mapping[str, int], outputs: Tensors, beside: Tensors | None = None
) -> tuple[Status, str | None]:
    """What is wrong with the form of ``outputs``, which are on one device with ``beside``."""
    for name in outputs:
        if name not in definition.outputs:
            return Status.INCORRECT_SHAPE, f"{name}: is not an output"
    tensors: dict[str, Any] = {}
    for name in definition.outputs:
        tensor: Any = outputs.get(name)
        plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided
        if not plain or (beside is not None and tensor.device != beside[name].device):
            return Status.INCORRECT_SHAPE, f"{name}: is not there as a plain dense tensor"
        tensors[name] = tensor
    for name, spec in definition.outputs.items():
        shape = resolve_shape(spec, dict(axes))
        if tuple(tensors[name].shape) != shape:
            return Status.INCORRECT_SHAPE, f"{name}: shape is {list(tensors[name].shape)}, declared is {list(shape)}"
    for name, spec in definition.outputs.items():
        if tensors[name].dtype != torch_dtype(spec.dtype):
            found = str(tensors[name].dtype).removeprefix("torch.")
            return Status.INCORRECT_DTYPE, f"{name}: dtype is {found}, declared is {spec.dtype}"
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            return Status.INCORRECT_SHAPE, f"{name}: strides are {list(tensor.stride())}, an output is contiguous"
    return Status.PASSED, None


def _explain(result: CheckResult) -> str:
    text = f"{result.output}: {result.mismatched} of {result.compared} elements fail the {result.type} check"
    if result.max_absolute_error is not None:
        text += f", largest absolute error {result.max_absolute_error:.3g}"
    found = [word for word, flag in (("NaN", result.has_nan), ("infinities", result.has_inf)) if flag]
    return f"{text}; contains {' and '.join(found)}" if found else text


def _run_check(
    check: Check, axes: Mapping[str, int], inputs: Mapping[str, Any], expected: Tensors, actual: Tensors, where: str
) -> list[CheckResult]:
    if isinstance(check, RoutingCheck):
        return _routing(check, axes, inputs, expected, actual, where)
    pair = expected[check.output].detach(), actual[check.output].detach()
    where = f"{where}: checks.{check.output}"
    if isinstance(check, NumericCheck):
        return [_numeric(check, axes, *pair, where)]
    if isinstance(check, ExactCheck):
        return [_exact(check, *pair)]
    return [_code_distance(check, *pair, where)]


@dataclass
class _Tally:
    """Running totals over the chunks of one output."""

    compared: int = 0
    mismatched: int = 0
    absolute: float | None = None
    relative: float | None = None
    nan: bool = False
    inf: bool = False

    def note_values(self, values: torch.Tensor) -> None:
        """Remember whether the candidate's values hold NaN or infinities."""
        if values.is_floating_point():
            self.nan = self.nan or bool(values.isnan().any())
            self.inf = self.inf or bool(values.isinf().any())

    def note_errors(self, error: torch.Tensor, magnitude: torch.Tensor) -> None:
        """``error``: finite absolute errors, ``magnitude``: of the reference's values, both float64; empty tensors say
        nothing."""
        if error.numel() == 0:
            return
        self.absolute = max(self.absolute or 0.0, float(error.max()))
        if float(magnitude.max()) > 0:
            ratio = (error / magnitude).masked_fill_(magnitude == 0, 0.0)
            self.relative = max(self.relative or 0.0, float(ratio.max()))

    def result(self, output: str, kind: str, passed: bool) -> CheckResult:
        finite = [None if x is None or x == float("inf") else x for x in (self.absolute, self.relative)]
        return CheckResult(
            output=output,
            type=kind,
            passed=passed,
            compared=self.compared,
            mismatched=self.mismatched,
            max_absolute_error=finite[0],
            max_relative_error=finite[1],
            has_nan=self.nan,
            has_inf=self.inf,
        )


def _chunks(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """The same stretch of several contiguous tensors of one shape, flat."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    step = _chunk_elements(flat[0])
    for start in range(0, flat[0].numel(), step):
        yield tuple(tensor[start : start + step] for tensor in flat)


def _chunk_elements(tensor: torch.Tensor) -> int:
    return CHUNK_ELEMENTS if tensor.device.type == "cpu" else DEVICE_CHUNK_ELEMENTS


def _numeric(
    check: NumericCheck, axes: Mapping[str, int], expected: torch.Tensor, actual: torch.Tensor, where: str
) -> CheckResult:
    """NaN and infinities decide first: none may occur on either side, but -inf in both where the check allows it."""
    absolute = float(evaluate(check.atol, axes, f"{where}.atol"))
    relative = float(evaluate(check.rtol, axes, f"{where}.rtol"))
    whole = check.mode == "normalized_max"
    largest = _largest_magnitude(expected) if whole else 0.0
    tally = _Tally()
    forbidden = capped = 0
    for reference, value in _chunks(expected, actual):
        reference, value = reference.double(), value.double()
        tally.compared += value.numel()
        error = (value - reference).abs_()
        # One pass tells the usual case: the largest difference is finite only where all values on both sides are.
        if not math.isfinite(float(error.max())):
            tally.note_values(value)
            finite = reference.isfinite() & value.isfinite()
            allowed = torch.zeros_like(finite)
            if check.allow_negative_inf:
                allowed = (reference == -torch.inf) & (value == -torch.inf)
            forbidden += int((~finite & ~allowed).sum())
            reference, error = reference[finite], error[finite]
        magnitude = reference.abs()
        within = error <= (absolute + relative * largest if whole else magnitude * relative + absolute)
        tally.mismatched += within.numel() - int(within.count_nonzero())
        if check.max_error_cap is not None:
            capped += int((error > check.max_error_cap).sum())
        tally.note_errors(error, magnitude)
    passed = tally.mismatched == 0 if whole else tally.compared - tally.mismatched >= _needed(check, tally.compared)
    tally.mismatched += forbidden
    return tally.result(check.output, check.type, passed and not forbidden and not capped)


def _needed(check: NumericCheck, compared: int) -> float:
    return check.required_matched_ratio * compared


def _largest_magnitude(tensor: torch.Tensor) -> float:
    largest = 0.0
    for (chunk,) in _chunks(tensor):
        magnitude = chunk.double().abs()
        magnitude = magnitude[magnitude.isfinite()]
        if magnitude.numel():
            largest = max(largest, float(magnitude.max()))
    return largest


def _exact(check: ExactCheck, expected: torch.Tensor, actual: torch.Tensor) -> CheckResult:
    tally = _Tally()
    for reference, value in _chunks(expected, actual):
        if reference.dtype.is_floating_point:
            reference, value = reference.double(), value.double()  # float8 has no comparison of its own
        tally.compared += value.numel()
        tally.note_values(value)
        equal = reference == value
        if reference.dtype.is_floating_point:
            equal |= reference.isnan() & value.isnan()
        tally.mismatched += int((~equal).sum())
        reference, value = reference.double(), value.double()
        finite = reference.isfinite() & value.isfinite()
        tally.note_errors((value - reference).abs()[finite], reference[finite].abs())
    return tally.result(check.output, check.type, tally.mismatched == 0)


_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def _code_distance(check: CodeDistanceCheck, expected: torch.Tensor, actual: torch.Tensor, where: str) -> CheckResult:
    if check.mode == "value" and (expected.dtype.is_floating_point or expected.dtype == torch.bool):
        raise InputError(where, f"a distance of values needs integer codes, not {expected.dtype}")
    if check.mode == "raw_bits" and expected.element_size() not in _BITS:
        raise InputError(where, f"a distance of raw bits needs codes of at most 32 bits, not {expected.dtype}")
    tally = _Tally()
    identical = 0
    for reference, value in _chunks(expected, actual):
        tally.compared += value.numel()
        if value.dtype.is_floating_point:
            tally.note_values(value.double())
        if check.mode == "raw_bits":
            size = reference.element_size()
            mask = (1 << (8 * size)) - 1
            reference, value = (part.view(_BITS[size]).long() & mask for part in (reference, value))
        reference, value = reference.long(), value.long()
        distance = (value - reference).abs()
        tally.mismatched += int((distance > check.max_distance).sum())
        identical += int((distance == 0).sum())
        tally.note_errors(distance.double(), reference.double().abs())
    passed = tally.mismatched == 0 and identical >= check.min_identical_fraction * tally.compared
    return tally.result(check.output, check.type, passed)


def _routing(
    check: RoutingCheck,
    axes: Mapping[str, int],
    inputs: Mapping[str, Any],
    expected: Tensors,
    actual: Tensors,
    where: str,
) -> list[CheckResult]:
    """Judged by the scores, recomputed in float64, not by the expected ids: any order, any choice among ties.

    p = softmax(gating) over the last axis or sigmoid(expected logits), score = p + bias. A row's ids pass if they are
    distinct, in range, and no id left out scores more than ``tie_atol`` above the lowest one chosen. A weight passes if
    it is within ``weight_atol`` of scale * p at its own id, of sigmoids over the sum of the row's.
    """
    sigmoid = isinstance(check, SigmoidRoutingCheck)
    if isinstance(check, SigmoidRoutingCheck):
        gating, scale = expected[check.logits_output], check.scale
    else:
        gating = inputs[check.gating_input]
        scale = float(inputs[check.scale_input]) if check.scale_input else 1.0
    ids, weights = actual[check.ids_output], actual[check.weights_output]
    topk = evaluate_int(check.topk, axes, f"{where}: checks.{check.ids_output}.topk")
    tie = float(evaluate(check.tie_atol, axes, f"{where}: checks.{check.ids_output}.tie_atol"))
    band = float(evaluate(check.weight_atol, axes, f"{where}: checks.{check.weights_output}.weight_atol"))
    experts = gating.shape[-1]
    if ids.shape != weights.shape or ids.shape[:-1] != gating.shape[:-1] or ids.shape[-1] != topk or topk > experts:
        raise InputError(f"{where}: checks.{check.ids_output}", "ids, weights, gating and topk do not fit together")
    bias = inputs[check.bias_input].double() if check.bias_input else torch.zeros((), dtype=torch.float64)
    chosen, weighed = _Tally(), _Tally()
    gating, ids, weights = gating.reshape(-1, experts), ids.reshape(-1, topk).long(), weights.reshape(-1, topk)
    rows = max(1, _chunk_elements(gating) // experts)
    for start in range(0, len(gating), rows):
        stretch = slice(start, start + rows)
        logits = gating[stretch].double()
        probability = torch.sigmoid(logits) if sigmoid else torch.softmax(logits, dim=1)
        score = (probability + bias).expand_as(probability)
        inside = (ids[stretch] >= 0) & (ids[stretch] < experts)
        safe = torch.where(inside, ids[stretch], 0)
        taken = torch.zeros_like(probability).scatter_add_(1, safe, inside.double())
        lowest = torch.where(taken > 0, score, torch.inf).amin(dim=1, keepdim=True)
        left_out = (taken == 0) & (score > lowest + tie)
        good_row = inside.all(1) & (taken <= 1).all(1) & ~left_out.any(1)
        chosen.compared += safe.numel()
        chosen.mismatched += int((~good_row).sum()) * topk
        value, wanted = weights[stretch].double(), scale * probability.gather(1, safe)
        if sigmoid:
            wanted = wanted / probability.gather(1, safe).sum(1, keepdim=True)
        weighed.compared += value.numel()
        weighed.note_values(value)
        error = (value - wanted).abs()
        weighed.mismatched += int((~((error <= band) & inside)).sum())
        finite = error.isfinite()
        weighed.note_errors(error[finite], wanted[finite].abs())
    return [
        weighed.result(check.weights_output, check.type, weighed.mismatched == 0),
        chosen.result(check.ids_output, check.type, chosen.mismatched == 0),
    ]
