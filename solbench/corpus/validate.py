"""Does a problem's check say yes to what is right and no to what is wrong? Controls run and tell.

Every control is named and judged, so that a report shows what was tried: the reference twice; whether it reads every
input and follows the draw; the reference in other ways that are right, also in the stress rounds, and whether they use
as much of the tolerances as the committed calibration says; what is wrong (:mod:`solbench.corpus.wrong`) in the place
of each output; and whether the declared ``rejected_formats`` hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from solbench.checks import check_outputs
from solbench.corpus.calibration import compare, load_calibration
from solbench.corpus.formats import copied, format_evidence, same_bits
from solbench.corpus.load import Problem
from solbench.corpus.precision import required_variants
from solbench.corpus.reduce import Instance, reduced
from solbench.corpus.reference import load_reference, named_outputs
from solbench.corpus.tolerance import Observed
from solbench.corpus.variants import RIGHT
from solbench.corpus.wrong import LEAST_TERMS, with_low_accumulation, wrong_outputs
from solbench.errors import InputError
from solbench.inputs import Input, draw
from solbench.model.trace import Status
from solbench.model.workload import StressRound

Tensors = dict[str, torch.Tensor]
Inputs = dict[str, Input]
State = Literal["holds", "failed", "not run", "not applicable"]
Verdict = tuple[str, State, str]
SEEDS = (0, 1, 2)
MORE_SEEDS = 20
# What running a reference may raise, in its own code or in PyTorch's.
RAISED = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)


@dataclass(frozen=True)
class Finding:
    """One control on one workload: what was tried, how it ended, and what was seen.

    ``not run``: it could not be tried, which is no pass. ``not applicable``: there is nothing to try, ``detail`` says
    why.
    """

    problem: str
    workload: str
    control: str
    state: State
    detail: str = ""


def validate(problem: Problem, instances: Sequence[Instance] | None = None) -> list[Finding]:
    """Run every control on every workload, or on these ``instances`` of them.

    Where a workload is large its instance is small, and ``detail`` says so. Workloads that are the same once reduced
    are run once. What ``failed`` a person has to repair.
    """
    if instances is None:
        instances = [reduced(problem.definition, workload) for workload in problem.workloads]
    calibration, observed = load_calibration(problem), Observed()
    findings: list[Finding] = []
    seen: dict[str, str] = {}
    for instance in instances:
        workload = instance.workload
        same = instance.content
        detail = instance.note or ""
        if same in seen:
            detail = f"{detail}; the same as {seen[same]}".lstrip("; ")
        findings.append(Finding(problem.key, workload.uuid, "resolves", "holds", detail))
        if same not in seen:
            seen[same] = workload.uuid
            for control, state, text in _controls(instance, problem, observed):
                findings.append(Finding(problem.key, workload.uuid, control, state, text))
    for control, holds, text in compare(calibration, observed.shares, observed.steps) if calibration else ():
        findings.append(Finding(problem.key, "all workloads", control, "holds" if holds else "failed", text))
    return findings


def _controls(instance: Instance, problem: Problem, observed: Observed) -> Iterator[Verdict]:
    try:
        rounds = [_round(instance, problem, seed) for seed in SEEDS]
    except InputError as error:
        yield "reference runs", "failed", str(error)
        return
    except RAISED as error:
        yield "reference runs", "failed", _first_line(error)
        return
    inputs, expected = rounds[0]
    yield "reference runs", "holds", ""
    yield from _repeats(instance, problem, inputs, expected)
    verdict = _judge(instance, "reference passes its checks", inputs, expected, expected, passes=True)
    yield verdict
    if verdict[1] == "failed":
        return
    yield _depends_on_draw(instance, problem, [values for _, values in rounds])
    yield from _reads_inputs(instance, problem, inputs, expected)
    stale = rounds[1][1]
    for name, right in expected.items():
        for control, value in wrong_outputs(name, right, inputs, stale[name]):
            if isinstance(value, str):
                yield control, "not applicable", value
            else:
                yield _judge(instance, control, inputs, expected, {**expected, name: value}, passes=False)
    yield from _low_accumulation(instance, inputs, expected)
    yield from _variants(instance, inputs, expected, observed)
    for stress in instance.workload.stress_rounds:
        given, values = _round(instance, problem, SEEDS[0], stress)
        verdict = _judge(instance, f"stress round: {stress.label}", given, values, values, passes=True)
        yield verdict
        if verdict[1] == "holds":
            yield from _variants(instance, given, values, None, f", {stress.label}")
    yield from _formats(instance, rounds)


def _round(
    instance: Instance, problem: Problem, seed: int, stress: StressRound | None = None
) -> tuple[Inputs, Tensors]:
    inputs = draw(instance.definition, instance.workload, instance.axes, seed, stress=stress, folder=problem.path)
    return inputs, _run(instance, inputs)


def _run(instance: Instance, inputs: Mapping[str, Input]) -> Tensors:
    return named_outputs(instance.definition, load_reference(instance.definition)(**copied(inputs)))


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _ended(control: str, wrong: list[str], what: str = "") -> Verdict:
    """Holds where nothing is ``wrong``; else these names are."""
    return control, "failed" if wrong else "holds", f"{what}{', '.join(sorted(wrong))}" if wrong else ""


def _repeats(instance: Instance, problem: Problem, inputs: Mapping[str, Input], expected: Tensors) -> Iterator[Verdict]:
    definition = instance.definition
    again = draw(definition, instance.workload, instance.axes, SEEDS[0], folder=problem.path)
    tensors = {name: value for name, value in again.items() if isinstance(value, torch.Tensor)}

    def changed(values: Mapping[str, Input]) -> list[str]:
        return [name for name, value in tensors.items() if not same_bits(value, values[name])]  # type: ignore[arg-type]

    yield _ended("inputs repeat from their seed", changed(inputs))
    given = copied(inputs)
    second = named_outputs(definition, load_reference(definition)(**given))
    yield _ended("reference repeats", [name for name in expected if not same_bits(expected[name], second[name])])
    written = [name for name in changed(given) if name not in definition.in_place]
    yield _ended("reference leaves its inputs alone", written)
    zeros = [name for name, value in tensors.items() if not value.double().any()]
    # A workload without a bias, or with nothing masked, may say so by zeros.
    yield _ended("no input is all zeros", [n for n in zeros if definition.inputs[n].role not in ("bias", "mask")])


def _depends_on_draw(instance: Instance, problem: Problem, drawn: list[Tensors]) -> Verdict:
    """A small output, one scale byte say, may repeat by chance: only after further draws is it called constant."""
    first = drawn[0]
    constant = {name for name in first if all(same_bits(first[name], other[name]) for other in drawn[1:])}
    for seed in range(max(SEEDS) + 1, max(SEEDS) + 1 + MORE_SEEDS):
        if not constant:
            break
        _, values = _round(instance, problem, seed)
        constant = {name for name in constant if same_bits(first[name], values[name])}
    return _ended("outputs depend on the draw", list(constant), "constant: ")


def _reads_inputs(
    instance: Instance, problem: Problem, inputs: Mapping[str, Input], expected: Tensors
) -> Iterator[Verdict]:
    """Each tensor input changed alone has to change a bit of some output."""
    redrawn = [
        draw(instance.definition, instance.workload, instance.axes, seed, folder=problem.path) for seed in SEEDS[1:]
    ]
    for name, value in inputs.items():
        if not isinstance(value, torch.Tensor):
            continue
        state: State = "not run"
        for other in _others(value, [values[name] for values in redrawn]):
            try:
                outputs = _run(instance, {**inputs, name: other})
            except RAISED:  # it is out of its range, or fits nothing else
                continue
            state = "failed"
            if not all(same_bits(expected[output], outputs[output]) for output in expected):
                state = "holds"
                break
        details = {"failed": "no output changes with it", "not run": "no other value of it runs"}
        yield f"the reference reads {name}", state, details.get(state, "")


def _others(value: torch.Tensor, redrawn: Sequence[Input]) -> Iterator[torch.Tensor]:
    """Other values of an input: other draws of it or, where all are the same, reversed, or one element less by one."""
    tensors = [other for other in redrawn if isinstance(other, torch.Tensor) and not same_bits(other, value)]
    yield from tensors
    if not tensors:
        flat = value.flatten()
        if not same_bits(flat.flip(0), flat):
            yield flat.flip(0).reshape(value.shape)
        for place in range(len(flat) - 1, max(-1, len(flat) - 1 - MORE_SEEDS), -1):
            other = flat.clone()
            other[place] = ~flat[place] if value.dtype == torch.bool else flat[place] - 1
            yield other.reshape(value.shape)


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
        return control, "failed", str(error)
    if (status is Status.PASSED) == passes:
        return control, "holds", ""
    return control, "failed", reason or "the checks accept it"


def _low_accumulation(instance: Instance, inputs: Mapping[str, Input], expected: Tensors) -> Iterator[Verdict]:
    """Sums in bfloat16 must fail or, where a check admits them with reason (its output is of few bits), in float8."""
    left = {f"{name}: low-precision accumulation must fail": name for name in expected}
    details = dict.fromkeys(left, f"no sum of {LEAST_TERMS} terms and more leads to it")
    states: dict[str, State] = dict.fromkeys(left, "not applicable")
    plain = expected
    for dtype in (None, torch.bfloat16, torch.float8_e5m2):
        try:
            actual = with_low_accumulation(instance, inputs, dtype)
        except (*RAISED, InputError) as error:
            states |= dict.fromkeys(left, "not run")
            details |= dict.fromkeys(left, _first_line(error))
            break
        if dtype is None:
            plain = actual
            continue
        format_name = str(dtype).removeprefix("torch.")
        for control, name in list(left.items()):
            if same_bits(actual[name], plain[name]):
                continue
            _, states[control], seen = _judge(
                instance, control, inputs, expected, {**expected, name: actual[name]}, passes=False
            )
            details[control] = f"in {format_name}: {seen}" if seen else f"in {format_name}"
            if states[control] == "holds":
                del left[control]
    for control, state in states.items():
        yield control, state, details[control]


def _variants(
    instance: Instance, inputs: Mapping[str, Input], expected: Tensors, observed: Observed | None, where: str = ""
) -> Iterator[Verdict]:
    """What is right must pass. ``observed``: takes in the shares of an ordinary draw; None in a stress round, where
    rounded operands may be far off: the score of a key near 100 by a tenth and more."""
    for name, variant in (RIGHT if observed is None else required_variants(instance)).items():
        control = f"{name} must pass{where}"
        try:
            actual = variant(instance, inputs)
        except (RuntimeError, NotImplementedError, InputError) as error:
            yield control, "not run", _first_line(error)
        else:
            yield _judge(instance, control, inputs, expected, actual, passes=True)
            if observed is not None:
                observed.note(name, instance, inputs, expected, actual)


def _formats(instance: Instance, rounds: Sequence[tuple[Inputs, Tensors]]) -> Iterator[Verdict]:
    declared = instance.workload.rejected_formats
    evidence = format_evidence(instance, rounds)
    known = {entry.format for entry in evidence}
    for name in declared:
        if name not in known:
            yield f"rejected format {name}", "failed", "the reference has no contraction, or no such format is tried"
    for entry in evidence:
        shares = f"fails on {min(entry.failing):.2%} to {max(entry.failing):.2%} of the elements"
        if entry.format in declared:
            yield f"rejected format {entry.format}", "holds" if entry.rejects else "failed", shares
        else:
            yield f"admitted format {entry.format}", "holds", shares
