"""The hand-written C++ solutions against the real draws and checks: smallest workload, then every stress round.

All workloads, and code for a processor without AVX, in the slow tier.
"""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from solbench.checks import check_outputs
from solbench.corpus.load import Problem, load_problem
from solbench.corpus.reference import load_reference, named_outputs
from solbench.evaluate import compilers
from solbench.evaluate.session import Session
from solbench.inputs import draw, torch_dtype
from solbench.model.definition import Definition, resolve_shape, storage_bytes
from solbench.model.solution import Solution
from solbench.model.trace import Status
from solbench.model.workload import StressRound, Workload

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path.parents[1] for path in (ROOT / "problems").glob("*/*/*/solutions/openmp"))
SCALARS = {"float32": ctypes.c_float, "float64": ctypes.c_double, "int32": ctypes.c_int32, "int64": ctypes.c_int64}
SEED = 20250731

each_problem = pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)


@cache
def problem_of(folder: Path) -> Problem:
    return load_problem(folder)


def solution_of(problem: Problem) -> Solution:
    return next(solution for solution in problem.solutions if solution.name == "openmp")


def native_function(library: Path, entry_point: str) -> Callable[..., None]:
    function = getattr(ctypes.CDLL(str(library)), entry_point.partition("::")[2])
    function.restype = None
    return function


def built(problem: Problem, folder: Path) -> Callable[..., None]:
    solution = solution_of(problem)
    library = folder / "library.so"
    with Session(cache=ROOT / ".solbench" / "build") as session:
        library.write_bytes(session.library(solution))
    return native_function(library, solution.spec.entry_point)


def poisoned(definition: Definition, axes: dict[str, int]) -> dict[str, torch.Tensor]:
    """Outputs full of bytes 0xA5: no kernel leaves them by right."""
    outputs = {}
    for name, spec in definition.outputs.items():
        raw = torch.full((storage_bytes(spec, axes),), 0xA5, dtype=torch.uint8)
        outputs[name] = raw.view(torch_dtype(spec.dtype)).reshape(resolve_shape(spec, axes))
    return outputs


def called(
    run: Callable[..., None], definition: Definition, axes: dict[str, int], inputs: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    """Outputs of one call: pointers of inputs and outputs, scalars by value, then every axis."""
    outputs = poisoned(definition, axes)
    arguments: list[Any] = []
    for name, spec in definition.inputs.items():
        value = inputs[name]
        tensor = isinstance(value, torch.Tensor) and spec.shape is not None
        arguments.append(ctypes.c_void_p(value.data_ptr()) if tensor else SCALARS[spec.dtype](value))
    arguments += [ctypes.c_void_p(output.data_ptr()) for output in outputs.values()]
    run(*arguments, *[ctypes.c_int64(value) for value in axes.values()])
    return outputs


def size(definition: Definition, axes: dict[str, int]) -> int:
    return sum(storage_bytes(spec, axes) for spec in (*definition.inputs.values(), *definition.outputs.values()))


def outcome(
    run: Callable[..., None], problem: Problem, workload: Workload, stress: StressRound | None
) -> tuple[Status, str | None]:
    definition = problem.definition
    axes = definition.resolve_axes(workload.axes, workload.uuid)
    inputs = draw(definition, workload, axes, SEED, stress=stress)
    before = {name: value.clone() for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    expected = named_outputs(definition, load_reference(definition)(*inputs.values()))
    actual = called(run, definition, axes, inputs)
    for name, value in before.items():
        assert torch.equal(value, inputs[name]), f"{name} was overwritten"
    status, reason, _ = check_outputs(definition, workload, axes, inputs, expected, actual)
    return status, reason


def rounds(problem: Problem) -> list[tuple[Workload, StressRound | None]]:
    """The smallest workload as drawn for timing, and under each of its stress rounds."""
    definition = problem.definition
    workload = min(problem.workloads, key=lambda w: (size(definition, definition.resolve_axes(w.axes, w.uuid)), w.uuid))
    return [(workload, None), *[(workload, stress) for stress in workload.stress_rounds]]


def test_there_are_solutions_for_twelve_problems_or_more() -> None:
    assert len(FOLDERS) >= 12


@each_problem
def test_right_on_the_smallest_workload_and_its_stress_rounds(folder: Path, tmp_path: Path) -> None:
    problem = problem_of(folder)
    run = built(problem, tmp_path)
    for workload, stress in rounds(problem):
        status, reason = outcome(run, problem, workload, stress)
        assert status is Status.PASSED, f"{workload.uuid}, {stress.label if stress else 'base'}: {reason}"


@each_problem
def test_a_kernel_that_writes_nothing_fails(folder: Path) -> None:
    problem = problem_of(folder)
    status, _ = outcome(lambda *arguments: None, problem, *rounds(problem)[0])
    assert status is Status.INCORRECT_NUMERICAL


@pytest.mark.slow
@each_problem
def test_right_on_every_workload(folder: Path, tmp_path: Path) -> None:
    problem = problem_of(folder)
    run = built(problem, tmp_path)
    for workload in problem.workloads:
        for stress in (None, *workload.stress_rounds):
            status, reason = outcome(run, problem, workload, stress)
            assert status is Status.PASSED, f"{workload.uuid}, {stress.label if stress else 'base'}: {reason}"


@pytest.mark.slow
@each_problem
@pytest.mark.parametrize("threads", [1, 3])
def test_right_in_portable_code(folder: Path, tmp_path: Path, threads: int) -> None:
    """The architecture's baseline instead of this processor, other numbers of threads, no warning."""
    problem = problem_of(folder)
    solution = solution_of(problem)
    for source in solution.sources:
        (tmp_path / source.path).write_text(source.content)
    compiler = compilers.find("cpp", None)
    flags = [flag for flag in compiler.flags if not flag.startswith("-march")] + ["-Wall", "-Wextra", "-Werror"]
    library = tmp_path / "library.so"
    names = [source.path for source in solution.sources if source.path.endswith(".cpp")]
    subprocess.run([compiler.path, *flags, *names, "-o", str(library)], cwd=tmp_path, check=True)
    run = native_function(library, solution.spec.entry_point)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)  # the same OpenMP runtime as the solution's
    try:
        for workload, stress in rounds(problem):
            status, reason = outcome(run, problem, workload, stress)
            assert status is Status.PASSED, f"{workload.uuid}, {stress.label if stress else 'base'}: {reason}"
    finally:
        torch.set_num_threads(before)


def test_gelu_on_every_float16(tmp_path: Path) -> None:
    """All 63,488 finite values against the error function of the standard library, in float64."""
    folder = next((path for path in FOLDERS if path.name == "l1n26_gelu"), None)
    assert folder is not None
    problem = problem_of(folder)
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    x = bits.view(torch.float16)
    x = x[torch.isfinite(x)].reshape(1, -1).contiguous()
    axes = {"M": 1, "N": x.shape[1]}
    output = called(built(problem, tmp_path), problem.definition, axes, {"x": x})["output"].double().flatten()
    exact = torch.tensor([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x.double().flatten().tolist()]).double()
    # Half a unit in the last place of float16 (2^-11 relative, 2^-25 absolute), and the polynomial's 5e-6.
    assert bool(((output - exact).abs() <= 5e-6 + 2.0**-25 + 2.0**-11 * exact.abs()).all())
