"""HIP on the emulated card: what its programming model has beyond Triton's, and the runtime behind its host code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from solbench.code.hip import compile_hip
from solbench.errors import UnsupportedError
from solbench.evaluate.build import BuildFailure
from solbench.gfx12.hip_launch import HipHost
from solbench.gfx12.hip_library import host_library
from solbench.gfx12.run import Options
from solbench.model.solution import Solution
from tests.solbench.code.test_hip import needs_compiler

SOURCE = (Path(__file__).parent / "kernels" / "plain.hip").read_text()
OPTIONS = Options(poison="nan", strict_waits=True, races=True, uninitialised=True, deadline_s=60.0)
Run = Callable[..., HipHost]
N = 200

pytestmark = needs_compiler


def solution_of(source: str) -> Solution:
    spec = {
        "languages": ["hip_cpp"], "entry_point": "plain.hip::calls_", "binding": "c", "target_hardware": ["gfx1200"],
        "destination_passing_style": True, "compile_options": {"hip_cflags": ["-g1"]},
    }  # fmt: skip
    sources = [{"path": "plain.hip", "content": source}]
    named = {"name": "plain", "definition": "d", "author": "a", "spec": spec, "sources": sources}
    return Solution.load(named, "plain.hip")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    solution = solution_of(SOURCE)
    library = tmp_path_factory.mktemp("plain") / "host.so"
    library.write_bytes(host_library(solution, "gfx1200", 120))
    return compile_hip(solution, "gfx1200", 120), library


@pytest.fixture(params=["lockstep", pytest.param("permuted", marks=pytest.mark.slow)])
def run(request: pytest.FixtureRequest, built: tuple[Any, Path]) -> Run:
    """Calls a host function on arguments by name; all launches are clean."""

    def called(function: str, **arguments: Any) -> HipHost:
        host = HipHost(*built, replace(OPTIONS, order=request.param, seed=5))
        host.call(f"{function}_", arguments)
        assert not host.launches.findings, [str(finding) for finding in host.launches.findings]
        return host

    return called


@pytest.fixture
def g() -> torch.Generator:
    return torch.Generator().manual_seed(11)


def close(result: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(result.double(), expected.double(), rtol=tolerance, atol=tolerance)


def test_groups_and_threads_of_three_dimensions(run: Run) -> None:
    out = torch.zeros(3, 7, 11, dtype=torch.int32)
    host = run("numbers", out=out, nx=11, ny=7, nz=3)
    assert host.launches.runs[0].grid == (2, 2, 2) and host.launches.runs[0].block == (8, 4, 2)
    row = torch.arange(7, dtype=torch.int32) % 4
    expected = 2 + 20 + 200 + 1000 * row[None, :, None] + 80_000 + torch.zeros_like(out)
    assert torch.equal(out, expected)


def test_last_wave_of_a_group_is_not_whole(run: Run, g: torch.Generator) -> None:
    x, out = torch.randn(150, generator=g), torch.full((150,), math.nan)
    run("ragged", x=x, out=out)
    assert torch.equal(out, x * torch.tensor([0.5, -1, 2, 0.25])[torch.arange(150) % 50 % 4])


def test_calls(run: Run, g: torch.Generator) -> None:
    x, out = torch.rand(N, generator=g), torch.empty(N)
    run("calls", x=x, out=out, n=N)
    expected = x.double()
    for step in range(3):
        then = expected * 2 - expected * expected
        expected = then if step < 2 else torch.where(torch.arange(N) % 2 == 1, then, expected)
    close(out, expected)


@pytest.mark.parametrize("which", [0, 1])
def test_call_by_pointer(run: Run, g: torch.Generator, which: int) -> None:
    x, out = torch.rand(N, generator=g), torch.empty(N)
    run("by_pointer", x=x, out=out, n=N, which=which)
    assert torch.equal(out, x * 2 if which else x * x)


def test_recursion(run: Run) -> None:
    x, out = torch.arange(32, dtype=torch.int32) % 9, torch.zeros(32, dtype=torch.int32)
    run("recursive", x=x, out=out)
    assert out.tolist() == [[0, 1, 1, 2, 3, 5, 8, 13, 21][i % 9] for i in range(32)]


def test_switch(run: Run) -> None:
    x, out = torch.arange(N, dtype=torch.int32), torch.zeros(N, dtype=torch.int32)
    run("dispatched", x=x, out=out, n=N)
    cases: list[Callable[[int], int]] = [
        lambda v: v + 3, lambda v: v * 7, lambda v: v ^ 0x55, lambda v: v // 3, lambda v: -v, lambda v: v << 2,
        lambda v: v % 11, lambda v: v | 0x100, lambda v: v * v, lambda v: v >> 1, lambda v: ~v,
    ]  # fmt: skip
    assert out.tolist() == [cases[v & 15](v) if v & 15 < 11 else 1000 for v in range(N)]


def test_lanes_leave_loops_at_different_times(run: Run, g: torch.Generator) -> None:
    x = torch.randint(1, 200, (N,), generator=g, dtype=torch.int32)
    out = torch.zeros_like(x)
    run("divergent", x=x, out=out, n=N)
    expected = []
    for v in x.tolist():
        steps = 0
        while v > 1 and steps <= 6:
            v //= next(k for k in range(2, v + 1) if v % k == 0)
            steps += 1
        expected.append(steps * 1000 + v)
    assert out.tolist() == expected


def test_arrays_of_a_lane(run: Run, g: torch.Generator) -> None:
    x = torch.randint(-99, 99, (128, 24), generator=g, dtype=torch.int32)
    out = torch.zeros_like(x)
    run("sorted", x=x, out=out)
    assert torch.equal(out, x.sort(1).values)


def test_lanes_pass_values_on(run: Run, g: torch.Generator) -> None:
    x = torch.randint(-90, 120, (192,), generator=g, dtype=torch.int32)
    x[70] = 77
    out = torch.zeros_like(x)
    run("lanes", x=x, out=out)
    lane = torch.arange(32)
    w = x.view(6, 32)
    expected = w[:, lane ^ 5] + 3 * w[:, (lane - 1).clamp(min=0)] + 5 * w.flip(1)
    expected += (7 * (w > 0).sum(1) + 11 * (w == 77).any(1) + 13 * (w < 100).all(1))[:, None].int()
    assert torch.equal(out, expected.flatten())


def test_lds_of_fixed_size_and_of_the_launch(run: Run, g: torch.Generator) -> None:
    x, out = torch.randn(N, generator=g), torch.empty(N)
    run("shared_memory", x=x, out=out, n=N)
    v = torch.cat([x, torch.zeros(56)]).view(4, 64).double()
    expected = v.sum(1, keepdim=True) + 2 * v[:, torch.arange(64) ^ 1]
    close(out, expected.flatten()[:N])


def test_atomics(run: Run, g: torch.Generator) -> None:
    x = torch.randint(0, 1000, (N,), generator=g, dtype=torch.int32)
    out, total, wide = torch.zeros(11, dtype=torch.int32), torch.zeros(1), torch.zeros(1, dtype=torch.int64)
    out[8:10] = torch.tensor([-1, 9999])
    run("atomics", x=x, out=out, sum=total, wide=wide, n=N)
    mixed = 0
    for v in x.tolist():
        mixed ^= v
    assert out.tolist() == [*torch.bincount(x & 7, minlength=8).tolist(), int(x.max()), int(x.min()), mixed]
    assert total.item() == x.sum() and wide.item() == int(x.sum()) << 20


def test_functions_of_the_device_library(run: Run, g: torch.Generator) -> None:
    x, out = torch.randn(N, generator=g) * 5, torch.empty(N)
    run("functions", x=x, out=out, n=N)
    v = x.double()
    close(out, v.sin() + (v * float(torch.tensor(0.1))).exp() + v.abs().log1p() + v.abs() ** 1.5 + v.tanh())
    y = torch.empty(N, dtype=torch.float64)
    run("wide_functions", x=v, out=y, n=N)
    close(y, v.sin() + (v * 0.1).exp() + v.abs().sqrt() / (1 + v * v), 1e-13)


def test_memory_of_the_module_lives_on(run: Run) -> None:
    x, out = torch.tensor([2.5]), torch.empty(64)
    run("module_memory", x=x, out=out)
    assert torch.equal(out, 5 + 2 * torch.arange(64).float())


def test_pointers_in_structures_and_memory_of_the_runtime(run: Run, g: torch.Generator) -> None:
    x, out = torch.randn(N, generator=g), torch.empty(N)
    run("from_structure", x=x, out=out, n=N)
    assert torch.equal(out, x * 3)
    assert len(run("allocated", x=x, out=out, n=N).launches.runs) == 2
    assert torch.equal(out, x * 4)


def test_pointers_to_lds_or_memory(run: Run, g: torch.Generator) -> None:
    x, out = torch.randn(32, generator=g), torch.empty(4, 32)
    run("generic", x=x, out=out)
    assert torch.equal(out, x.flip(0) * torch.tensor([1.0, -1, 1, -1])[:, None])


def nibbles(words: torch.Tensor, signed: bool) -> torch.Tensor:
    """16 rows of K values from words as lanes hold them: lane l has row l % 16 at the eight k from 8 * (l / 16) on."""
    codes = torch.stack([words >> 4 * i & 15 for i in range(8)], 2).double()
    codes = torch.where(codes > 7, codes - 16, codes) if signed else codes
    return torch.cat([torch.cat([block[:16], block[16:]], 1) for block in codes], 1)


def by_lanes(product: torch.Tensor) -> torch.Tensor:
    return torch.stack([product[lane // 16 * 8 : lane // 16 * 8 + 8, lane % 16] for lane in range(32)])


def test_more_formats_of_the_matrix_unit(run: Run, g: torch.Generator) -> None:
    a, b = (torch.randint(-(2**31), 2**31, (2, 32), generator=g).int() for _ in range(2))
    c, d = (torch.zeros(32, 8, dtype=torch.int32) for _ in range(2))
    e = (torch.randint(-8, 9, (2, 32, 8), generator=g) / 4).half()
    f, h = torch.zeros(32, 8, dtype=torch.float16), torch.zeros(32, 8, dtype=torch.bfloat16)
    run("matrices", a=a, b=b, c=c, d=d, e=e, f=f, g=e.bfloat16(), h=h)
    assert torch.equal(c.double(), by_lanes(nibbles(a[:1], True) @ nibbles(b[:1], True).mT))
    assert torch.equal(d.double(), by_lanes(nibbles(a, False) @ nibbles(b, True).mT))
    left, right = (torch.cat([v[:16], v[16:]], 1).double() for v in e)
    assert torch.equal(f.double(), by_lanes(left @ right.mT))
    assert torch.equal(h, by_lanes(left @ right.mT).bfloat16())


def test_errors_of_launches(run: Run) -> None:
    out = torch.zeros(2, dtype=torch.int32)
    assert run("errors", out=out).launches.runs == []
    assert out.tolist() == [1, 0]


def test_a_runtime_function_that_is_not_here_is_named() -> None:
    source = SOURCE + '\nextern "C" void more_() { (void)hipDeviceReset(); }\n'
    with pytest.raises(BuildFailure, match="undefined reference to `hipDeviceReset'"):
        host_library(solution_of(source), "gfx1200", 120)


def test_what_is_not_emulated_ends_the_call(built: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The host function runs on to its end; its later launches fail."""
    host = HipHost(*built, OPTIONS)
    asked = []

    def launch(kernel: str, *_: Any) -> None:
        asked.append(kernel)
        raise UnsupportedError("v_new at 0x10: no such instruction")

    monkeypatch.setattr(host.launches, "launch", launch)
    with pytest.raises(UnsupportedError, match="v_new at 0x10"):
        host.call("module_memory_", {"x": torch.zeros(1), "out": torch.zeros(64)})
    assert len(asked) == 1
