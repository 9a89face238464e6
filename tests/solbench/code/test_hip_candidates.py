"""HIP candidates beside problems: their own source on a CPU (``hip_on_host``), and what it becomes on gfx1200.

What a card's lanes do at a barrier, by DPP and in a matrix operation is played by fibers, by the instructions' public
description; that a card does the same, only a card can tell.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from solbench.code.hip import compile_hip
from solbench.corpus.load import Problem
from solbench.device import codeobject
from solbench.evaluate import compilers
from solbench.evaluate.build import build_library
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.trace import Status
from tests.solbench.code.test_hip import needs_compiler
from tests.solbench.test_openmp_solutions import native_function, outcome, problem_of, rounds

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = sorted(path.parents[1] for path in (ROOT / "problems").glob("*/*/*/solutions/hip"))
SHIM = Path(__file__).parent / "hip_on_host"

OnHost = Callable[[Problem], Callable[..., None]]

each_problem = pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)


def problem_named(name: str) -> Problem:
    return problem_of(next(folder for folder in FOLDERS if folder.name == name))


def solution_of(problem: Problem) -> Solution:
    return next(solution for solution in problem.solutions if solution.name == "hip")


def built(problem: Problem, folder: Path, without: str | None = None) -> Callable[..., None]:
    """``run`` of the candidate's source, without all occurrences of a text if so asked."""
    solution = solution_of(problem)
    (source,) = solution.sources
    text = source.content
    if without is not None:
        assert without in text
        text = text.replace(without, "")
    (folder / "kernel.cpp").write_text(text)
    compiler = compilers.find("cpp", None)
    command = [compiler.path, "-O2", "-march=native", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror",
               "-Wno-unknown-pragmas", "-I", str(SHIM), "kernel.cpp", "-o", "library.so"]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True)
    return native_function(folder / "library.so", solution.spec.entry_point)


@pytest.fixture(scope="module")
def on_host(tmp_path_factory: pytest.TempPathFactory) -> OnHost:
    """``run`` of a problem's candidate, compiled once."""

    @cache
    def of(name: str) -> Callable[..., None]:
        return built(problem_named(name), tmp_path_factory.mktemp(name))

    return lambda problem: of(problem.definition.name)


def called(run: Callable[..., None], inputs: list[torch.Tensor], outputs: list[torch.Tensor], *axes: int) -> None:
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*inputs, *outputs)]
    run(*pointers, *[ctypes.c_int64(axis) for axis in axes])


def test_there_are_three_of_different_families() -> None:
    assert len({problem_of(folder).definition.op_type for folder in FOLDERS}) >= 3


@each_problem
@pytest.mark.parametrize("reverse", [False, True])
def test_right_on_the_smallest_workload(
    folder: Path, reverse: bool, on_host: OnHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reverse:
        monkeypatch.setenv("HIP_ON_HOST_REVERSE", "1")
    problem = problem_of(folder)
    run = on_host(problem)
    for workload, stress in rounds(problem):
        status, reason = outcome(run, problem, workload, stress)
        assert status is Status.PASSED, f"{workload.uuid}, {stress.label if stress else 'base'}: {reason}"


@pytest.mark.slow
@each_problem
def test_right_on_every_workload(folder: Path, on_host: OnHost) -> None:
    problem = problem_of(folder)
    run = on_host(problem)
    for workload in problem.workloads:
        for stress in (None, *workload.stress_rounds):
            status, reason = outcome(run, problem, workload, stress)
            assert status is Status.PASSED, f"{workload.uuid}, {stress.label if stress else 'base'}: {reason}"


def test_a_missing_barrier_shows(tmp_path: Path) -> None:
    """In one order of the waves at least: the other is the right one by chance."""
    problem = problem_named("per_token_i8_quant")
    run = built(problem, tmp_path, without="__syncthreads();")
    status, _ = outcome(run, problem, *rounds(problem)[0])
    assert status is Status.INCORRECT_NUMERICAL


def test_a_missing_exchange_shows(tmp_path: Path) -> None:
    problem = problem_named("l1n23_softmax")
    run = built(problem, tmp_path, without="value += across<COUNT / 2>(value);")
    status, _ = outcome(run, problem, *rounds(problem)[0])
    assert status is Status.INCORRECT_NUMERICAL


# Around every size at which the host takes another kernel, and one with more than 1,024 pieces of 4,096.
@pytest.mark.parametrize(
    ("m", "n"),
    [(9, 1), (8, 3), (3, 127), (3, 129), (2, 256), (2, 511), (2, 1023), (3, 1025), (2, 2049), (2, 4099), (1, 8192),
     (66, 8193), (1, 20481), pytest.param(1, 4 * 2**20 + 5, marks=pytest.mark.slow)],
)  # fmt: skip
def test_softmax_of_any_size(m: int, n: int, on_host: OnHost) -> None:
    run = on_host(problem_named("l1n23_softmax"))
    x = torch.randn((m, n), generator=torch.Generator().manual_seed(n)) * 3 + 50
    y = torch.full((m, n), float("nan"))
    called(run, [x], [y], m, n)
    exact = torch.softmax(x.double(), 1)
    # exp2 of a rounded argument: |x| up to 30 times 2^-24 of log2(e) and more; the check allows 5e-5.
    assert bool(((y.double() - exact).abs() <= 1e-5 * exact + 1e-12).all())


def test_matrix_product_of_any_size(on_host: OnHost) -> None:
    """Small whole numbers: products and sums are exact in every format, so nothing may differ."""
    run = on_host(problem_named("l1n8_matmul_irregular"))
    draw = torch.Generator().manual_seed(1)
    small = [(1, 1, 1), (65, 33, 63), (3, 100, 130), (128, 7, 9), (17, 64, 8), (64, 31, 64)]
    large = [(64, 32, 64), (65, 33, 65), (100, 95, 127), (129, 64, 130), (64, 63, 191)]
    for m, k, n in small + large:
        a = torch.randint(-4, 5, (m, k), generator=draw).half()
        b = torch.randint(-4, 5, (k, n), generator=draw).half()
        c = torch.full((m * n + 64,), float("nan"), dtype=torch.float16)
        called(run, [a, b], [c], m, k, n)
        assert torch.equal(c[: m * n].reshape(m, n).double(), a.double() @ b.double()), (m, k, n)
        assert bool(c[m * n :].isnan().all()), "written beyond the output"


def test_quantisation_of_any_size(on_host: OnHost) -> None:
    run = on_host(problem_named("per_token_i8_quant"))
    draw = torch.Generator().manual_seed(2)
    for m, n in [(2, 1), (3, 16), (2, 100), (2, 4096), (2, 4112), (1, 8208), (1, 16384), (2, 16400)]:
        x = (torch.randn((m, n), generator=draw) * 10).bfloat16()
        x[0, 0] = 0
        codes, scale = torch.full((m, n), 99, dtype=torch.int8), torch.empty((m, 1))
        called(run, [x], [codes, scale], m, n)
        largest = x.float().abs().amax(1, keepdim=True)
        expected = torch.where(largest == 0, torch.ones(1), largest / 127)
        assert torch.equal(scale, expected), (m, n)
        assert torch.equal(codes, (x.float() / expected).trunc().to(torch.int8)), (m, n)


# What each is to be made of on the card: mnemonic -> at least that often in the compiler's text.
MADE_OF: dict[str, dict[str, int]] = {
    "l1n8_matmul_irregular": {"v_wmma_f32_16x16x16_f16": 8, "ds_load_b128": 8, "global_store_b128": 4},
    "l1n23_softmax": {"global_load_b128": 1, "global_store_b128": 1, "v_exp_f32": 1, "row_xmask:8": 1},
    "per_token_i8_quant": {"global_load_b128": 2, "global_store_b128": 1, "row_xmask:8": 1, "v_permlanex16_b32": 1},
}


@pytest.mark.slow
@needs_compiler
@each_problem
def test_what_it_becomes_on_gfx1200(folder: Path) -> None:
    built = compile_hip(solution_of(problem_of(folder)), "gfx1200", 120)
    text = "\n".join(unit.assembly for unit in built.units)
    for word, count in MADE_OF[folder.name].items():
        assert text.count(word) >= count, word
    found: dict[str, Any] = {}
    for key in ("vgpr_spill_count", "sgpr_spill_count", "private_segment_fixed_size", "wavefront_size"):
        found[key] = set(re.findall(rf"^ +\.{key}: +(\d+)$", text, re.MULTILINE))
    spills = {"0"}  # none, of any kernel
    assert found == {"vgpr_spill_count": spills, "sgpr_spill_count": spills, "private_segment_fixed_size": spills,
                     "wavefront_size": {"32"}}  # fmt: skip


@pytest.mark.slow
@needs_compiler
@each_problem
def test_the_library_that_a_card_would_load(folder: Path, tmp_path: Path) -> None:
    solution = solution_of(problem_of(folder))
    with Session(cache=tmp_path) as session:
        library = build_library(solution, 120, session.zygote(torch=False), tmp_path, arch="gfx1200")
    assert codeobject.library_archs(library, "library") == ("gfx1200",)
    assert b"\0run\0" in library
