"""One small workload of an LLM_CORE Definition: drawn, computed, checked, and taken through the analysis."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from solbench.bounds import bound_artifact, bounds_for, convert_and_attest, machine_for, record_graph
from solbench.checks import check_outputs
from solbench.corpus.definitions import Template, load_templates
from solbench.corpus.load import Problem
from solbench.corpus.reference import load_reference, named_outputs
from solbench.inputs import draw, torch_dtype
from solbench.model.trace import Status
from solbench.model.workload import Workload

ROOT = Path(__file__).parents[3] / "problems"
TEMPLATES = {template.definition.name: template for template in load_templates(ROOT)}
Arrays = Mapping[str, Any]
# The outputs in declared order, from the inputs in float64 (whole numbers as int64) and the axes.
Formula = Callable[[Arrays, Mapping[str, int]], tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class Smoke:
    """A workload's inputs and what the reference makes of them."""

    template: Template
    workload: Workload
    axes: Mapping[str, int]
    inputs: Mapping[str, Any]
    expected: Mapping[str, torch.Tensor]

    def verdict(self, actual: Mapping[str, torch.Tensor]) -> str | None:
        """Null if ``actual`` passes the checks, else the reason."""
        definition = self.template.definition
        status, reason, _ = check_outputs(definition, self.workload, self.axes, self.inputs, self.expected, actual)
        assert (status is Status.PASSED) == (reason is None)
        return reason


def smoke(name: str, seed: int = 1, **bound: int) -> Smoke:
    template = TEMPLATES[name]
    definition = template.definition
    workload = template.workload(f"{name}-smoke", bound)
    axes = definition.resolve_axes(workload.axes, name)
    inputs = draw(definition, workload, axes, seed)
    before = {key: value.clone() for key, value in inputs.items() if isinstance(value, torch.Tensor)}
    expected = named_outputs(definition, load_reference(definition)(*inputs.values()))
    for key, value in before.items():  # as bytes: NaN-free, and float8 has no comparison
        assert torch.equal(value.view(torch.uint8), inputs[key].view(torch.uint8)), f"{name} changes {key}"
    return Smoke(template, workload, axes, inputs, expected)


def by_formula(drawn: Smoke, formula: Formula) -> dict[str, torch.Tensor]:
    """The formula's outputs, in the declared dtypes."""
    arrays: dict[str, Any] = {}
    for name, value in drawn.inputs.items():
        if not isinstance(value, torch.Tensor):
            arrays[name] = value
        else:
            arrays[name] = (value.double() if value.is_floating_point() else value).numpy()
    specs = drawn.template.definition.outputs
    results = formula(arrays, drawn.axes)
    return {
        name: torch.from_numpy(np.ascontiguousarray(result)).to(torch_dtype(spec.dtype))
        for (name, spec), result in zip(specs.items(), results, strict=True)
    }


def analysed(drawn: Smoke) -> dict[str, Any]:
    """The bound on gfx1200, after extraction, conversion and attestation; fails where a step gives a reason."""
    definition = drawn.template.definition.as_dict()
    instance = {"problem": drawn.template.key, "workload": drawn.workload.as_dict(), "axes": dict(drawn.axes)}
    recorded = record_graph(instance, {**definition, "path": "aten"})
    assert recorded["reason"] is None, recorded["reason"]
    converted = convert_and_attest(instance, {**definition, "graph": recorded["graph"]})
    assert converted["reason"] is None, converted["reason"]
    bound = bound_artifact(instance, {}, converted["program"], machine_for("gfx1200"), None)
    assert bound["reason"] is None, bound["reason"]
    return dict(bound["result"])


def bounded(name: str, uuid: str, axes: Mapping[str, int]) -> tuple[Workload, dict[str, Any]]:
    """A workload of any size and its bound on gfx1200; nothing of that size is allocated."""
    template = TEMPLATES[name]
    workload = template.workload(uuid, axes)
    problem = Problem(template.path, template.corpus, template.definition, (workload,), ())
    result = bounds_for(problem, workload, machine_for("gfx1200"))
    assert not isinstance(result, str), result
    return workload, result


def macs(name: str, **axes: int) -> int:
    """Multiply-adds that the bound on gfx1200 counts."""
    return int(bounded(name, f"{name}-large", axes)[1]["macs"])


def formula_tests(
    formulas: Mapping[str, tuple[dict[str, int], Formula]], mistakes: Mapping[str, tuple[str, Callable[..., Any]]]
) -> tuple[Callable[..., None], Callable[..., None], Callable[..., None]]:
    """Three tests: references are their formulas, zeros fail, and formulas with mistaken inputs fail."""

    @pytest.mark.parametrize("name", formulas)
    @pytest.mark.parametrize("seed", [1, 2])
    def the_reference_is_its_formula(name: str, seed: int) -> None:
        axes, formula = formulas[name]
        drawn = smoke(name, seed, **axes)
        assert drawn.verdict(drawn.expected) is None
        assert drawn.verdict(by_formula(drawn, formula)) is None

    @pytest.mark.parametrize("name", formulas)
    def zeros_fail(name: str) -> None:
        drawn = smoke(name, **formulas[name][0])
        zeros = {key: torch.zeros(value.shape).to(value.dtype) for key, value in drawn.expected.items()}
        assert drawn.verdict(zeros) is not None

    @pytest.mark.parametrize("label", mistakes)
    def a_mistake_fails(label: str) -> None:
        name, change = mistakes[label]
        axes, formula = formulas[name]
        drawn = smoke(name, **axes)

        def mistaken(arrays: Arrays, axes: Mapping[str, int]) -> tuple[np.ndarray, ...]:
            inputs, sizes = dict(arrays), dict(axes)
            change(inputs, sizes)
            return formula(inputs, sizes)

        assert drawn.verdict(by_formula(drawn, mistaken)) is not None

    return the_reference_is_its_formula, zeros_fail, a_mistake_fails
