"""CUDA C++ candidates beside problems: their own source on a CPU (``cuda_on_host``), and what nvcc makes of it.

What a card's threads do at a barrier, by a shuffle and in a cluster is played by fibers; that a card does the same,
only a card can tell.
"""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

from solbench.corpus.load import Problem
from solbench.device import codeobject
from solbench.evaluate import compilers
from solbench.evaluate.build import build_library
from solbench.evaluate.session import Session
from solbench.evaluate.support import unsupported
from solbench.model.solution import Solution
from solbench.model.trace import Status
from tests.solbench.test_openmp_solutions import native_function, outcome, problem_of, rounds

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = sorted(path.parents[1] for path in (ROOT / "problems").glob("*/*/*/solutions/cuda"))
SHIM = Path(__file__).parent / "cuda_on_host"

OnHost = Callable[[str], Callable[..., None]]

each_problem = pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)


def problem_named(name: str) -> Problem:
    return problem_of(next(folder for folder in FOLDERS if folder.name == name))


def solution_of(problem: Problem) -> Solution:
    return next(solution for solution in problem.solutions if solution.name == "cuda")


def built(name: str, folder: Path, without: str | None = None) -> Callable[..., None]:
    """``run`` of the candidate's source, without all occurrences of a text if so asked."""
    solution = solution_of(problem_named(name))
    (source,) = solution.sources
    text = source.content
    if without is not None:
        assert without in text
        text = text.replace(without, "")
    (folder / "kernel.cpp").write_text(text)
    compiler = compilers.find("cpp", None)
    # What is loaded under a condition and used under the same one looks unset to this compiler.
    command = [compiler.path, "-O2", "-march=native", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror",
               "-Wno-unknown-pragmas", "-Wno-uninitialized", "-Wno-maybe-uninitialized", "-I", str(SHIM), "kernel.cpp",
               "-o", "library.so"]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True)
    return native_function(folder / "library.so", solution.spec.entry_point)


@pytest.fixture(scope="module")
def on_host(tmp_path_factory: pytest.TempPathFactory) -> OnHost:
    """``run`` of a problem's candidate, compiled once."""

    @cache
    def of(name: str) -> Callable[..., None]:
        return built(name, tmp_path_factory.mktemp(name))

    return of


def called(run: Callable[..., None], *arguments: torch.Tensor | float | int) -> None:
    """Tensors by their addresses, a float as float32, whole numbers as axes."""
    passed: list[ctypes.c_void_p | ctypes.c_float | ctypes.c_int64] = []
    for value in arguments:
        if isinstance(value, torch.Tensor):
            passed.append(ctypes.c_void_p(value.data_ptr()))
        else:
            passed.append(ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int64(value))
    run(*passed)


def placed(value: torch.Tensor, offset: int) -> torch.Tensor:
    """The same values, ``offset`` elements behind an address that 64 divides, in memory with NaN or 99 around them."""
    filler = math.nan if value.is_floating_point() else 99
    room = torch.full((value.numel() + 160,), filler, dtype=value.dtype)
    first = -room.data_ptr() // room.element_size() % 64 + 64 // room.element_size() + offset
    view = room[first : first + value.numel()].view(value.shape)
    view.copy_(value)
    return view


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def empty(m: int, n: int, offset: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    filler = math.nan if dtype.is_floating_point else 99
    return placed(torch.full((m, n), filler, dtype=dtype), offset)


def nothing_beyond(output: torch.Tensor) -> bool:
    """Whether the sixteen elements before and behind an output of :func:`empty` are as they were."""
    first = output.storage_offset()
    room = torch.tensor([], dtype=output.dtype).set_(output.untyped_storage())
    around = torch.cat([room[first - 16 : first], room[first + output.numel() :][:16]])
    return bool((around.isnan() if output.is_floating_point() else around == 99).all())


def test_at_least_three_run_on_sm_90_alone() -> None:
    assert len(FOLDERS) >= 3
    for folder in FOLDERS:
        problem = problem_of(folder)
        assert unsupported(problem.definition, solution_of(problem), "sm_90") is None
        assert unsupported(problem.definition, solution_of(problem), "gfx1200") is not None


@each_problem
@pytest.mark.parametrize("reverse", [False, True])
def test_right_on_the_smallest_workload(
    folder: Path, reverse: bool, on_host: OnHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reverse:
        monkeypatch.setenv("HIP_ON_HOST_REVERSE", "1")
    problem = problem_of(folder)
    run = on_host(problem.definition.name)
    for workload, stress in rounds(problem):
        status, reason = outcome(run, problem, workload, stress)
        assert status is Status.PASSED, f"{workload.uuid}, {stress.label if stress else 'base'}: {reason}"


@pytest.mark.slow
@each_problem
def test_right_on_every_workload(folder: Path, on_host: OnHost) -> None:
    problem = problem_of(folder)
    run = on_host(problem.definition.name)
    for workload in problem.workloads:
        for stress in (None, *workload.stress_rounds):
            status, reason = outcome(run, problem, workload, stress)
            assert status is Status.PASSED, f"{workload.uuid}, {stress.label if stress else 'base'}: {reason}"


def test_a_missing_barrier_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one order of the warps at least: in the other, the first one reads what the rest have left."""
    run = built("l1n47_sum_reduction", tmp_path, without="__syncthreads();")
    wrong = []
    for order in ("", "1"):
        monkeypatch.setenv("HIP_ON_HOST_REVERSE", order) if order else monkeypatch.delenv("HIP_ON_HOST_REVERSE", False)
        x, sums = draw(1, 3, 4096), empty(3, 1)
        called(run, x, sums, 3, 4096)
        wrong.append(not torch.allclose(sums, x.sum(1, keepdim=True), atol=1e-3))
    assert any(wrong)


def test_a_missing_exchange_between_blocks_shows(tmp_path: Path) -> None:
    run = built("l1n23_softmax", tmp_path, without="cluster.sync();")
    x, y = draw(1, 1, 40000), empty(1, 40000)
    called(run, x, y, 1, 40000)
    assert not torch.allclose(y, torch.softmax(x, 1), rtol=1e-4)


# Around every size at which the host takes another kernel; rows that start anywhere in a vector.
@pytest.mark.parametrize(
    ("m", "n"),
    [(5, 1), (5, 2), (8, 3), (9, 125), (9, 126), (4, 128), (4, 129), (2, 256), (2, 509), (2, 781), (3, 1021), (3, 1022),
     (3, 1024), (2, 1028), (2, 2047), (2, 2048), (1, 4097), (2, 8190), (1, 8192), (1, 8196), (1, 16387), (1, 32768),
     (1, 32769), (3, 33000), (1, 131072), (1, 131073), (1, 270005), (8193, 4)],
)  # fmt: skip
def test_softmax_of_any_size(m: int, n: int, on_host: OnHost) -> None:
    run = on_host("l1n23_softmax")
    for of_x, of_y in ((0, 0), (1, 1), (3, 3), (0, 1)) if n < 9000 and m < 99 else ((0, 0),):
        x, y = placed(draw(n, m, n) * 3 + 50, of_x), empty(m, n, of_y)
        called(run, x, y, m, n)
        exact = torch.softmax(x.double(), 1)
        # exp2 of a rounded argument: |x| up to 30 times 2^-24 of log2(e) and more; the check allows 5e-5.
        assert bool(((y.double() - exact).abs() <= 1e-5 * exact + 1e-12).all()), (of_x, of_y)
        assert nothing_beyond(y), (of_x, of_y)


@pytest.mark.parametrize("n", [100, 131073, 300000])
def test_softmax_of_infinities(n: int, on_host: OnHost) -> None:
    """Minus infinity is nothing, also where a thread, a warp or a block has nothing else."""
    run = on_host("l1n23_softmax")
    x, y = torch.full((2, n), -math.inf), empty(2, n)
    x[0, 7] = 3
    x[1, n - 2 :] = -1e30
    called(run, x, y, 2, n)
    expected = torch.zeros((2, n))
    expected[0, 7] = 1
    expected[1, n - 2 :] = 0.5
    assert torch.equal(y, expected)


@pytest.mark.parametrize(
    ("m", "n"),
    [(3, 1), (5, 3), (7, 63), (33, 64), (9, 65), (9, 68), (4, 127), (4, 1023), (4, 1024), (2, 1025), (2, 4096),
     (2, 8189), (2, 8192), (2, 20001), (16385, 8), (8193, 130)],
)  # fmt: skip
def test_sums_of_any_size(m: int, n: int, on_host: OnHost) -> None:
    """Small whole numbers: no order of adding changes a sum."""
    run = on_host("l1n47_sum_reduction")
    values = torch.randint(-9, 10, (m, n), generator=torch.Generator().manual_seed(n)).float()
    for offset in (0, 1, 2, 3) if m < 99 else (0,):
        x, sums = placed(values, offset), empty(m, 1)
        called(run, x, sums, m, n)
        assert torch.equal(sums, values.sum(1, keepdim=True)), offset
        assert nothing_beyond(sums)


def test_sums_of_nothing(on_host: OnHost) -> None:
    x, sums = torch.zeros(1), empty(5, 1)
    called(on_host("l1n47_sum_reduction"), x, sums, 5, 0)
    assert torch.equal(sums, torch.zeros(5, 1)) and nothing_beyond(sums)


@pytest.mark.parametrize(
    "n", [1, 4, 127, 128, 132, 256, 260, 512, 516, 1024, 1028, 2048, 2052, 4096, 4100, 8192, 8196, 16384, 16388]
)
def test_layer_norm_of_any_size(n: int, on_host: OnHost) -> None:
    run = on_host("l1n40_layernorm")
    for offset in (0, 1):
        x, weight, bias = placed(draw(n, 2, n) * 2 + 50, offset), draw(1, n) + 1, draw(2, n)
        y = empty(2, n)
        called(run, x, weight, bias, 1e-5, y, 2, n)
        value = x.double()
        centred = value - value.mean(1, keepdim=True)
        inverse = (centred.square().mean(1, keepdim=True) + 1e-5).rsqrt()
        exact = centred * inverse * weight.double() + bias.double()
        # Differences from the mean are off by a rounding of the mean, 2^-18, which the inverse root makes larger.
        allowed = 1e-4 + 2**-17 * float(inverse.max() * weight.abs().max())
        assert float((y.double() - exact).abs().max()) <= allowed, offset
        assert nothing_beyond(y)


@pytest.mark.parametrize("half", [1, 7, 8, 1016, 1024, 1032, 2047, 2056, 4104])
def test_gated_of_any_size(half: int, on_host: OnHost) -> None:
    run = on_host("silu_and_mul_bf16")
    # The last one with more vectors than the card holds threads for: two a thread.
    for m, offset in ((3, 0), (3, 8), (2, 1), *(((132 * 2048 * 8 // half + 1, 0),) if half == 4104 else ())):
        x = placed((draw(half, m, 2 * half) * 4).bfloat16(), offset)
        y = empty(m, half, dtype=torch.bfloat16)
        called(run, x, y, m, 2 * half, half)
        gate, linear = x.double().chunk(2, dim=1)
        exact = gate / (1 + (-gate).exp()) * linear
        assert bool(((y.double() - exact).abs() <= 2**-8 * exact.abs() + 1e-30).all()), (m, offset)
        assert nothing_beyond(y)


@pytest.mark.parametrize("n", [1, 8, 1000, 1024, 1032, 2048, 2056, 4096, 4104, 8192, 8200, 16384, 16392, 32768, 32776])
def test_added_and_normalised_of_any_size(n: int, on_host: OnHost) -> None:
    run = on_host("fused_add_rmsnorm_bf16")
    for offset in (0, 1):
        x, residual = placed(draw(n, 2, n).bfloat16(), offset), draw(n + 1, 2, n).bfloat16()
        weight = (draw(1, n) + 1).bfloat16()
        y, total = empty(2, n, dtype=torch.bfloat16), empty(2, n, dtype=torch.bfloat16)
        called(run, x, weight, residual, 1e-5, y, total, 2, n)
        assert torch.equal(total, x + residual)
        value = total.double()
        exact = value * (value.square().mean(1, keepdim=True) + 1e-5).rsqrt() * weight.double()
        assert bool(((y.double() - exact).abs() <= 1.01 * 2**-8 * exact.abs() + 1e-30).all()), offset
        assert nothing_beyond(y) and nothing_beyond(total)


def quantised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and scales by true divisions in float32."""
    largest = x.float().abs().amax(1, keepdim=True)
    scale = torch.where(largest == 0, torch.ones(1), largest / 127)
    return (x.float() / scale).trunc().to(torch.int8), scale


def test_quantisation_of_any_size(on_host: OnHost) -> None:
    run = on_host("per_token_i8_quant")
    for n in (1, 16, 100, 2048, 2064, 4096, 4112, 8192, 8208, 16384, 16400, 32768, 32784):
        for offset in (0, 1):
            x = placed((draw(n, 3, n) * 10).bfloat16(), offset)
            x[1] = 0
            codes, scale = empty(3, n, dtype=torch.int8), empty(3, 1)
            called(run, x, codes, scale, 3, n)
            expected = quantised(x)
            assert torch.equal(codes, expected[0]) and torch.equal(scale, expected[1]), (n, offset)
            assert nothing_beyond(codes) and nothing_beyond(scale)


# At both sides of 2^-60 and 2^60 the kernel takes to true divisions; the last ones are the ends of the normal range.
@pytest.mark.parametrize("exponent", [0, -20, 20, -50, -55, 62, 68, -110, 119])
def test_quotients_of_all_significands(exponent: int, on_host: OnHost) -> None:
    """128 rows, one for each significand of a largest value; in each all significands in eight binades up to it."""
    significands = torch.arange(128, 256).double()
    below = torch.cat([significands * 2.0 ** (exponent - 7 - binade) for binade in range(8)])
    largest = (significands * 2.0 ** (exponent - 7))[:, None]
    x = torch.where(below <= largest, below, 0 * below) * torch.tensor([1.0, -1.0]).repeat(512)
    x = torch.cat([largest, x, torch.zeros(128, 15)], 1).bfloat16()
    m, n = x.shape
    codes, scale = empty(m, n, dtype=torch.int8), empty(m, 1)
    called(on_host("per_token_i8_quant"), x, codes, scale, m, n)
    expected = quantised(x)
    assert torch.equal(scale, expected[1]) and torch.equal(codes, expected[0])


@pytest.mark.slow
@each_problem
def test_the_library_that_a_card_would_load(folder: Path, tmp_path: Path) -> None:
    try:
        compilers.find("cuda_cpp", "sm_90")
    except compilers.NoCompiler as error:
        pytest.skip(str(error))
    solution = solution_of(problem_of(folder))
    with Session(cache=tmp_path) as session:
        library = build_library(solution, 120, session.zygote(torch=False), tmp_path, arch="sm_90")
    assert codeobject.library_archs(library, "library") == ("sm_90",)
    assert b"\0run\0" in library
