"""Every Triton and HIP candidate of AMD_AKA on the emulated card, at shapes small enough for it.

Inputs, references and checks are those of the problem's first workload; where a shape is part of the definition itself
(layers of 4,096 and more), it is made smaller too: candidates take shapes from their tensors.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from solbench.checks import check_outputs
from solbench.code.hip import compile_hip
from solbench.corpus.load import Problem, load_problem
from solbench.corpus.reference import load_reference, named_outputs
from solbench.gfx12.hip_launch import HipHost
from solbench.gfx12.hip_library import host_library
from solbench.gfx12.launches import Launches
from solbench.gfx12.run import Options
from solbench.gfx12.triton_launch import launching
from solbench.inputs import draw, torch_dtype
from solbench.model.definition import AxisVar, Definition, resolve_shape
from solbench.model.trace import Status
from solbench.model.workload import Values
from tests.solbench.code.test_hip import needs_compiler

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = Options(poison="nan", strict_waits=True, races=True, uninitialised=True, deadline_s=120.0)
SEED = 20_260_801
# Axes by problem; several shapes where candidates have a path for each.
SHAPES: dict[str, list[dict[str, int]]] = {
    "rmsnorm_bwd": [{"M": 5, "N": 1024}, {"M": 3, "N": 301}],
    "dynamic_mxfp8_quant": [{"M": 7, "K": 96}, {"M": 32, "K": 64}],
    "fused_add_rmsnorm_bf16": [{"M": 3, "N": 1000}, {"M": 2, "N": 4096}],
    "moe_topk_softmax": [{"T": 9, "E": 64, "K": 2}],
    "per_token_i8_quant": [{"M": 5, "N": 4096}, {"M": 3, "N": 1001}],
    "rope_thd_fwd_bf16": [{"T": 40, "H": 3, "D": 64, "S1": 4}],
    "silu_and_mul_bf16": [{"M": 5, "D": 600}, {"M": 3, "D": 4096}],
    "14007_kd_loss": [{"N": 3, "C": 5, "H": 9, "W": 11}],
    "dot_product_attention": [{"B": 2, "H": 4, "W": 4}, {"B": 1, "H": 12, "W": 9}],
    "gpumode_mlp": [{"B": 5, "IN4": 4, "H1": 512, "H2": 256, "H3": 128, "H4": 128, "H5": 64, "H6": 32}],
    "gpumode_softmax_3d": [{"N": 9}],
    "gpumode_transpose": [{"A": 3, "B": 5, "C": 17, "D": 33}],
    "l1n1_square_matmul": [{"M": 64, "K": 64, "N": 64}, {"M": 50, "K": 40, "N": 70}],
    "l1n23_softmax": [{"M": 5, "N": 128}, {"M": 3, "N": 700}, {"M": 2, "N": 5000}, {"M": 2, "N": 20_001}],
    "l1n26_gelu": [{"M": 9, "N": 333}],
    "l1n2_standard_matmul": [{"M": 128, "K": 64, "N": 64}, {"M": 70, "K": 50, "N": 90}],
    "l1n36_rmsnorm": [{"B": 5, "F": 256}, {"B": 3, "F": 1001}],
    "l1n3_batched_matmul": [{"Batch": 2, "M": 64, "K": 64, "N": 64}, {"Batch": 2, "M": 40, "K": 50, "N": 60}],
    "l1n40_layernorm": [{"B": 5, "N": 256}, {"B": 3, "N": 777}],
    "l1n47_sum_reduction": [{"M": 5, "N": 256}, {"M": 3, "N": 1001}],
    "l1n4_matrix_vector": [{"M": 50, "K": 1000}],
    "l1n63_conv2d": [{"B": 2, "C": 3, "H": 10, "W": 9, "O": 5}],
    "l1n8_matmul_irregular": [{"M": 70, "K": 127, "N": 90}, {"M": 20, "K": 17, "N": 30}],
    "l1n95_cross_entropy": [{"B": 9, "C": 500}],
    "l1n9_tall_skinny_matmul": [{"M": 200, "K": 32, "N": 40}],
    "l2n37_groupnorm_fused": [{"B": 4, "IN": 64, "OUT": 128}],
    "l2n86_matmul_divide_gelu": [{"B": 40, "IN": 64, "OUT": 96}],
}

# Inputs that name sizes themselves.
VALUES = {"rope_thd_fwd_bf16": {"cu_seqlens": Values(type="values", values=(0, 13, 13, 40))}}


def cases(language: str) -> list[Any]:
    folders = sorted((ROOT / "problems" / "AMD_AKA").glob(f"*/*/solutions/{language}"))
    return [
        pytest.param(folder.parents[1], axes, id=f"{folder.parents[1].name}-{'x'.join(map(str, axes.values()))}")
        for folder in folders
        for axes in SHAPES[folder.parents[1].name]
    ]


@cache
def problem_of(folder: Path) -> Problem:
    return load_problem(folder)


def resized(definition: Definition, axes: Mapping[str, int]) -> tuple[Definition, dict[str, int]]:
    """The definition with all axes that are named here open, and every axis resolved."""
    axes_of = {**definition.axes, **{name: AxisVar(type="var") for name in axes}}
    open_definition = definition.model_copy(update={"axes": axes_of})
    return open_definition, dict(open_definition.resolve_axes(dict(axes), "reduced"))


def judged(folder: Path, axes: Mapping[str, int], call: Any) -> None:
    """One round as the referee has it: the checks of the problem, inputs as they were, and nothing found."""
    problem = problem_of(folder)
    definition, every = resized(problem.definition, axes)
    workload = problem.workloads[0]
    if "K" in axes and "topk" in definition.inputs:
        workload = next(w for w in problem.workloads if w.axes["K"] == axes["K"])
    if definition.name in VALUES:
        workload = workload.model_copy(update={"inputs": {**workload.inputs, **VALUES[definition.name]}})
    inputs = draw(definition, workload, every, SEED)
    before = {name: value.clone() for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    expected = named_outputs(definition, load_reference(definition)(*inputs.values()))
    result, launches = call(definition, every, inputs)
    actual = named_outputs(definition, result)
    status, reason, _ = check_outputs(definition, workload, every, inputs, expected, actual)
    assert launches.runs
    assert not launches.findings, [str(finding) for finding in launches.findings]
    assert status is Status.PASSED, reason
    for name, value in before.items():
        assert torch.equal(value, inputs[name]), f"{name} was overwritten"


def protected(launches: Launches, inputs: Mapping[str, Any]) -> None:
    for value in inputs.values():
        if isinstance(value, torch.Tensor):
            launches.storages.protect(value)


def test_every_candidate_has_shapes() -> None:
    named = {folder.parents[1].name for language in ("triton", "hip")
             for folder in (ROOT / "problems" / "AMD_AKA").glob(f"*/*/solutions/{language}")}  # fmt: skip
    assert named == set(SHAPES)


@cache
def module_of(folder: Path) -> Any:
    path = folder / "solutions" / "triton" / "kernel.py"
    spec = importlib.util.spec_from_file_location(f"candidate_{folder.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def triton_call(folder: Path, options: Options, configuration: str | None = None) -> Any:
    def call(definition: Definition, every: Mapping[str, int], inputs: Mapping[str, Any]) -> tuple[Any, Launches]:
        with launching(options, configuration=configuration) as launches:
            protected(launches, inputs)
            return module_of(folder).run(*inputs.values()), launches

    return call


@pytest.mark.parametrize(("folder", "axes"), cases("triton"))
def test_triton_candidate(folder: Path, axes: Mapping[str, int]) -> None:
    judged(folder, axes, triton_call(folder, OPTIONS))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("folder", "axes"), cases("triton"))
def test_triton_candidate_in_any_order(folder: Path, axes: Mapping[str, int], seed: int) -> None:
    judged(folder, axes, triton_call(folder, replace(OPTIONS, order="permuted", seed=seed)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "axes"),
    [case for case in cases("triton") if "autotune" in (case.values[0] / "solutions/triton/kernel.py").read_text()],
)
def test_every_configuration_of_a_triton_candidate(folder: Path, axes: Mapping[str, int]) -> None:
    judged(folder, axes, triton_call(folder, OPTIONS, "each"))


@cache
def hip_of(folder: Path) -> tuple[Any, bytes]:
    solution = next(solution for solution in problem_of(folder).solutions if solution.name == "hip")
    return compile_hip(solution, "gfx1200", 120), host_library(solution, "gfx1200", 120)


@needs_compiler
@pytest.mark.parametrize(("folder", "axes"), cases("hip"))
def test_hip_candidate(folder: Path, axes: Mapping[str, int], tmp_path: Path) -> None:
    def call(definition: Definition, every: Mapping[str, int], inputs: Mapping[str, Any]) -> tuple[Any, Launches]:
        code, library = hip_of(folder)
        (tmp_path / "host.so").write_bytes(library)
        host = HipHost(code, tmp_path / "host.so", OPTIONS)
        protected(host.launches, inputs)
        outputs = {name: torch.full(resolve_shape(spec, dict(every)), 85, dtype=torch_dtype(spec.dtype))
                   for name, spec in definition.outputs.items()}  # fmt: skip
        sizes = {f"axis {name}": ctypes.c_int64(size) for name, size in every.items()}
        host.call("run", {**inputs, **outputs, **sizes})
        return tuple(outputs.values()), host.launches

    judged(folder, axes, call)
