"""The stage ``code`` of a small checkout, and whether what it holds is what the compiler here makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_problem import write_problem

from solbench import store
from solbench.cli import run
from solbench.code import rederive
from solbench.code.rederive import rederived
from solbench.errors import UnsupportedError
from solbench.stages import run_stage
from solbench.workspace import Workspace

PARAMETERS = """\
release: published
path: aten
targets: [gfx1200, gfx942]
capacity_gib: {}
protocol: full
max_call_s: 0.25
budget_s: 60.0
"""
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_shift(x, y, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * scale + 1, mask=at < n)


def run(x, scale):
    y = torch.empty_like(x)
    scale_shift[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), scale, BLOCK=1024)
    return y
"""
HIP = """\
#include <hip/hip_runtime.h>
__global__ void scale_shift(const float* x, double scale, float* y, long n) {
    long i = blockIdx.x * 256l + threadIdx.x;
    if (i < n) y[i] = x[i] * scale + 1;
}
extern "C" void run(const float* x, double scale, float* y, long n) {
    scale_shift<<<(n + 255) / 256, 256>>>(x, scale, y, n);
}
"""


def add_solution(problem: Path, name: str, language: str, file: str, source: str, more: str = "") -> None:
    folder = problem / "solutions" / name
    folder.mkdir(parents=True)
    (folder / file).write_text(source)
    spec = f"languages: [{language}], target_hardware: [gfx1200], entry_point: '{file}::run'{more}"
    (folder / "solution.yaml").write_text(
        f"{{name: {name}, definition: scale_shift, author: tests, sources: [{file}], spec: {{{spec}}}}}\n"
    )


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    root = tmp_path_factory.mktemp("checkout")
    problem = write_problem(root / "problems" / "T" / "tests" / "scale_shift")
    add_solution(problem, "triton", "triton", "kernel.py", KERNEL)
    add_solution(problem, "hip", "hip_cpp", "kernel.hip", HIP, ", binding: c, destination_passing_style: true")
    (root / "params.yaml").write_text(PARAMETERS)
    found = Workspace.at(root)
    said = [run_stage(stage, found) for stage in ("corpus", "workloads", "code")]
    # HIP is in no recorded set here.
    assert said[2] == "2 of 4 workloads of 2 candidates compiled, 1 candidates anew"
    return found


def test_the_stage(workspace: Workspace) -> None:
    records = {name: value for name, _, value in workspace.store.items("code", "code")}
    assert sorted(records) == [
        f"T/tests/scale_shift/{uuid}/{name}@gfx1200" for uuid in ("larger", "small") for name in ("hip", "triton")
    ]
    hip, triton = (records[f"T/tests/scale_shift/small/{name}@gfx1200"] for name in ("hip", "triton"))
    assert (hip["status"], hip["launches"]) == ("UNSUPPORTED", [])
    assert hip["reason"].startswith("language: no recorded set of HIP code holds it")
    (launch,) = triton["launches"]
    kernel = workspace.store.load("code", store.Descriptor(**launch["evidence"]))
    assert kernel["evidence"]["failures"] == [] and kernel["evidence"]["code"]["unread"] == []
    # Two sizes, one of them a multiple of 16 no more than the other: one kernel.
    kinds = [entry.kind for entry in workspace.store.index("code").values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {"code": 4, "kernel": 1, "code-object": 1, "assembly": 1}


def test_nothing_is_compiled_twice(workspace: Workspace) -> None:
    before = workspace.store.index("code")
    assert run_stage("code", workspace) == "2 of 4 workloads of 2 candidates compiled, 0 candidates anew"
    assert workspace.store.index("code") == before


def test_the_same_compiler_makes_the_same(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["code", "check", "--workspace", str(workspace.root)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "same            T/tests/scale_shift  triton@gfx1200",
        "1 of 1 candidates are the same, 0 are not, 0 unknown",
    ]


def test_another_compiler_is_named(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = rederive.toolchain()
    monkeypatch.setattr(rederive, "toolchain", lambda: {**here, "version": "9.9.9"})
    assert run(["code", "check", "--workspace", str(workspace.root)]) == 3
    out = capsys.readouterr().out
    assert f"triton@gfx1200: recorded with triton {here['version']}; here is triton 9.9.9" in out


def test_no_compiler_is_a_verdict(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise UnsupportedError("Triton is not installed")

    monkeypatch.setattr(rederive, "toolchain", none)
    (found,) = rederived(workspace, 120.0)
    assert (found.verdict, found.reason) == ("no compiler", "Triton is not installed")


@pytest.mark.parametrize("kind", ["code-object", "assembly", "kernel", "code"])
def test_another_object_is_seen(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    index = dict(workspace.store.index("code"))
    if kind == "code":  # a record that is another workload's
        name = "T/tests/scale_shift/small/triton@gfx1200"
        index[name] = index["T/tests/scale_shift/larger/triton@gfx1200"]
    else:
        (name,) = (entry for entry in index if entry.startswith(f"{kind}/"))
        del index[name]
    read = store.Store.index
    monkeypatch.setattr(store.Store, "index", lambda self, stage: index if stage == "code" else read(self, stage))
    (found,) = rederived(workspace, 120.0)
    assert (found.verdict, found.reason) == ("differs", f"{name} is another object, or none")


def test_a_candidate_that_has_changed(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    found = rederive.candidates(workspace.store, ["gfx1200"])
    changed = [store.Descriptor("solution", "blake3:" + "0" * 64, 1) for _ in found]
    altered = [type(one)(**{**vars(one), "descriptor": new}) for one, new in zip(found, changed, strict=True)]
    monkeypatch.setattr(rederive, "candidates", lambda *_: altered)
    verdicts: list[Any] = [one.verdict for one in rederived(workspace, 120.0)]
    assert verdicts == ["stale"]
