"""Does a problem's check say yes to what is right and no to what is wrong? Controls run and tell.

Every control is named and judged, so that a report shows what was tried: the reference twice, in float64, summed in
another order, and against itself; zeros, the mean, a copy of an input and a stale output in the place of each output;
the stress rounds; and whether the declared ``rejected_formats`` hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from solbench.checks import check_outputs
from solbench.corpus.load import Problem
from solbench.corpus.reduce import Instance, reduced
from solbench.corpus.reference import load_reference, named_outputs
from solbench.corpus.variants import format_evidence, in_another_order, in_float64
from solbench.errors import InputError
from solbench.inputs import Input, draw
from solbench.model.trace import Status
from solbench.model.workload import StressRound

Tensors = dict[str, torch.Tensor]
SEEDS = (0, 1, 2)
MORE_SEEDS = 20


@dataclass(frozen=True)
class Finding:
    """One control on one workload: what was tried, whether it ended as it must (None: it could not be tried, which is
    no pass), and what was seen."""

    problem: str
    workload: str
    control: str
    ok: bool | None
    detail: str = ""


def validate(problem: Problem) -> list[Finding]:
    """Run every control on every workload (at reduced sizes where the workload is large; ``detail`` says so).

    Workloads that are the same once reduced are run once. ``ok`` is false for whatever a person has to repair.
    """
    findings: list[Finding] = []
    seen: dict[str, str] = {}
    for workload in problem.workloads:
        instance = reduced(problem.definition, workload)
        same = instance.workload.model_copy(update={"uuid": "-"}).model_dump_json() + str(instance.axes)
        detail = instance.note or ""
        if same in seen:
            detail = f"{detail}; the same as {seen[same]}".lstrip("; ")
        findings.append(Finding(problem.key, workload.uuid, "resolves", True, detail))
        if same not in seen:
            seen[same] = workload.uuid
            for control, ok, text in _controls(instance, problem):
                findings.append(Finding(problem.key, workload.uuid, control, ok, text))
    return findings


Verdict = tuple[str, bool | None, str]


def _controls(instance: Instance, problem: Problem) -> Iterator[Verdict]:
    try:
        rounds = [_round(instance, problem, seed) for seed in SEEDS]
    except InputError as error:
        yield "reference runs", False, str(error)
        return
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        yield "reference runs", False, f"{type(error).__name__}: {error}".splitlines()[0]
        return
    inputs, expected = rounds[0]
    yield "reference runs", True, ""
    yield from _repeats(instance, problem, inputs, expected)
    verdict = _judge(instance, "reference passes its checks", inputs, expected, expected, passes=True)
    yield verdict
    if not verdict[1]:
        return
    yield _depends_on_draw(instance, problem, [values for _, values in rounds])
    yield from _wrong_outputs(instance, inputs, expected, rounds[1][1])
    yield from _variants(instance, inputs, expected)
    for stress in instance.workload.stress_rounds:
        given, values = _round(instance, problem, SEEDS[0], stress)
        yield _judge(instance, f"stress round: {stress.label}", given, values, values, passes=True)
    yield from _formats(instance)


def _round(
    instance: Instance, problem: Problem, seed: int, stress: StressRound | None = None
) -> tuple[dict[str, Input], Tensors]:
    inputs = draw(instance.definition, instance.workload, instance.axes, seed, stress=stress, folder=problem.path)
    result = load_reference(instance.definition)(**_copies(inputs))
    return inputs, named_outputs(instance.definition, result)


def _copies(inputs: Mapping[str, Input]) -> dict[str, Input]:
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    # NaN differs from itself as a number, and float8 has no comparison.
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(_bits(left), _bits(right))


def _repeats(instance: Instance, problem: Problem, inputs: Mapping[str, Input], expected: Tensors) -> Iterator[Verdict]:
    definition = instance.definition
    again = draw(definition, instance.workload, instance.axes, SEEDS[0], folder=problem.path)
    changed = [
        name for name, value in inputs.items() if isinstance(value, torch.Tensor) and not _same(value, again[name])
    ]
    yield "inputs repeat from their seed", not changed, ", ".join(changed)
    given = _copies(inputs)
    second = named_outputs(definition, load_reference(definition)(**given))
    changed = [name for name in expected if not _same(expected[name], second[name])]
    yield "reference repeats", not changed, ", ".join(changed)
    changed = [
        name
        for name, value in given.items()
        if isinstance(value, torch.Tensor) and name not in definition.in_place and not _same(value, again[name])
    ]
    yield "reference leaves its inputs alone", not changed, ", ".join(changed)


def _depends_on_draw(instance: Instance, problem: Problem, drawn: list[Tensors]) -> Verdict:
    """A small output, one scale byte say, may repeat by chance: only after further draws is it called constant."""
    first = drawn[0]
    constant = {name for name in first if all(_same(first[name], other[name]) for other in drawn[1:])}
    for seed in range(max(SEEDS) + 1, max(SEEDS) + 1 + MORE_SEEDS):
        if not constant:
            break
        _, values = _round(instance, problem, seed)
        constant = {name for name in constant if _same(first[name], values[name])}
    return "outputs depend on the draw", not constant, f"constant: {', '.join(sorted(constant))}" if constant else ""


def _judge(
    instance: Instance,
    control: str,
    inputs: Mapping[str, Input],
    expected: Tensors,
    actual: Tensors,
    *,
    passes: bool,
) -> Verdict:
    try:
        status, reason, _ = check_outputs(
            instance.definition, instance.workload, instance.axes, inputs, expected, actual
        )
    except InputError as error:
        return control, False, str(error)
    ok = (status is Status.PASSED) == passes
    return control, ok, "" if ok else reason or "the checks accept it"


def _wrong_outputs(
    instance: Instance, inputs: Mapping[str, Input], expected: Tensors, stale: Tensors
) -> Iterator[Verdict]:
    """Each output replaced alone, the others right. A replacement that happens to be right is no control."""
    for name, right in expected.items():
        wrong = {"zeros": torch.zeros_like(right), "a stale output": stale[name]}
        if right.numel() > 1:
            mean = right.double().mean()
            wrong["the mean"] = torch.full(right.shape, float(mean), dtype=torch.float64).to(right.dtype)
        for source, value in inputs.items():
            if isinstance(value, torch.Tensor) and value.shape == right.shape and value.dtype == right.dtype:
                wrong[f"a copy of {source}"] = value
        for control, value in wrong.items():
            if _same(value, right):
                continue
            actual = {**expected, name: value}
            yield _judge(instance, f"{name}: {control} must fail", inputs, expected, actual, passes=False)


def _variants(instance: Instance, inputs: Mapping[str, Input], expected: Tensors) -> Iterator[Verdict]:
    for control, variant in (("float64", in_float64), ("another order of summation", in_another_order)):
        control = f"{control} must pass"
        try:
            actual = variant(instance, inputs)
        except (RuntimeError, NotImplementedError, InputError) as error:
            yield control, None, f"{type(error).__name__}: {error}".splitlines()[0]
        else:
            yield _judge(instance, control, inputs, expected, actual, passes=True)


def _formats(instance: Instance) -> Iterator[Verdict]:
    declared = instance.workload.rejected_formats
    evidence = format_evidence(instance, SEEDS)
    known = {entry.format for entry in evidence}
    for name in declared:
        if name not in known:
            yield f"rejected format {name}", False, "the reference has no contraction, or no such format is tried"
    for entry in evidence:
        shares = f"fails on {min(entry.failing):.2%} to {max(entry.failing):.2%} of the elements"
        if entry.format in declared:
            yield f"rejected format {entry.format}", entry.rejects, shares
        else:
            yield f"admitted format {entry.format}", True, shares
