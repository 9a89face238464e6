"""Triton candidates compiled for gfx1200 on this processor: what is recorded of their launches, and what goes wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from small_problem import WORKLOADS, write_problem

from solbench import canonical
from solbench.code import compiling, recording
from solbench.code.compiling import Limits, Recorded, record_triton
from solbench.corpus.load import Problem, load_problem
from solbench.device import codeobject
from solbench.errors import UnsupportedError
from solbench.model.solution import Solution

LIMITS = Limits()

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def add_max(x, y, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y + at, value * scale + tl.max(value, 0), mask=at < n)
"""
# A kernel in a module of its own, a tuned one that calls Triton's library, memory of a named device, PyTorch's work.
CANDIDATE = """\
import torch
import triton
import triton.language as tl
from parts.kernels import add_max

configs = [triton.Config({"BLOCK": 512}, num_warps=4), triton.Config({"BLOCK": 2048}, num_warps=8)]
configs.append(triton.Config({"BLOCK": 3000}))


@triton.autotune(configs=configs, key=["n"])
@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y, tl.sum(tl.load(x + at, mask=at < n, other=0.0), 0))


@triton.jit
def product(a, b, c):
    at = tl.arange(0, 32)
    at = at[:, None] * 32 + at[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def run(x, scale):
    y = torch.empty_like(x)
    n = x.numel()
    add_max[(triton.cdiv(n, 256),)](x, y, n, scale, BLOCK=256)
    add_max[(triton.cdiv(n, 256),)](x, y, n, scale, BLOCK=256)
    total[(1,)](x[1:], torch.empty(1, device="cuda"), n)
    half = torch.zeros(32, 32, dtype=torch.float16, device=x.device)
    product[lambda meta: (1, 2, 3)](half, half, torch.empty(32, 32, device="cuda:0"))
    return y + 1
"""
# What a call does follows from the length of its input.
TROUBLE = """\
import os
import signal
import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def copy(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def wrong(x, y):
    tl.store(y, tl.load(x) + tl.arange(0, 4)[None, :, :])


def run(x, scale):
    y = torch.empty_like(x)
    n = x.numel()
    if n == 1001:
        print("nothing at all happens here")
        return y
    if n == 1002:
        return y * x.sum().item()
    if n == 1003:
        wrong[(1,)](x, y)
    if n == 1004:
        sys.stderr.write("and then it fell\\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGSEGV)
    before = set(os.listdir("out"))
    copy[(1,)](x, y, BLOCK={1005: 2048, 1006: 4096}.get(n, 1024))
    if n == 1005:
        for name in set(os.listdir("out")) - before:
            with open(f"out/{name}", "ab") as file:
                file.write(b"!")
    if n == 1006:
        for name in set(os.listdir("out")) - before:
            os.remove(f"out/{name}")
            os.symlink("/etc/passwd", f"out/{name}")
    if n == 1007:
        time.sleep(3600)
    return y
"""


def problem_of(folder: Path, sizes: list[int]) -> Problem:
    head = WORKLOADS.partition("workloads:\n")[0]
    listed = "".join(f"  - {{uuid: n{size}, axes: {{N: {size}}}}}\n" for size in sizes)
    return load_problem(write_problem(folder / "T" / "tests" / "scale_shift", workloads=f"{head}workloads:\n{listed}"))


def solution(sources: dict[str, str], **spec: Any) -> Solution:
    spec = {"languages": ["triton"], "entry_point": "kernel.py::run", "target_hardware": ["gfx1200"], **spec}
    listed = [{"path": path, "content": text} for path, text in sources.items()]
    fields = {"name": "triton", "definition": "scale_shift", "author": "tests", "spec": spec, "sources": listed}
    return Solution.load(fields, "solution")


def recorded(problem: Problem, candidate: Solution, limits: Limits = LIMITS) -> tuple[list[Recorded], dict[str, bytes]]:
    read = [(workload, workload.validate_against(problem.definition, "w")) for workload in problem.workloads]
    return record_triton(problem.definition, candidate, read, "gfx1200", limits)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Recorded], dict[str, bytes]]:
    problem = problem_of(tmp_path_factory.mktemp("problem"), [4096, 4100])
    return recorded(problem, solution({"kernel.py": CANDIDATE, "parts/kernels.py": KERNEL}))


def test_launches_are_those_of_the_call(compiled: Any) -> None:
    (even, odd), files = compiled
    assert (even.status, odd.status, even.reason) == ("COMPILED", "COMPILED", None), (even.log, odd.log)
    names = [(launch.kernel, launch.grid, launch.threads) for launch in even.launches]
    # Twice the first; the tuned one in each configuration, of which the third is no power of two.
    assert names == [
        ("add_max", (16, 1, 1), 128), ("add_max", (16, 1, 1), 128), ("total", (1, 1, 1), 128),
        ("total", (1, 1, 1), 256), ("total", None, None), ("product", (1, 2, 3), 128),
    ]  # fmt: skip
    assert [launch.grid for launch in odd.launches][:1] == [(17, 1, 1)]
    first, tuned, failed, dot = even.launches[0], even.launches[3], even.launches[4], even.launches[5]
    assert first.config is None and first.constexprs == {"BLOCK": 256} and first.dots == ()
    assert tuned.config is not None and "BLOCK: 2048" in tuned.config and tuned.constexprs == {"BLOCK": 2048}
    assert failed.fault == "total: arange's range must be a power of 2 (at 2:9 of its source)"
    assert failed.code_object is None
    assert dot.dots == (("f16", "f16", "f32"),)
    for launch in (first, tuned, dot):
        assert launch.code_object is not None and launch.assembly is not None
        assert codeobject.arch(files[launch.code_object], launch.kernel) == "gfx1200"
        assert f"\t.globl\t{launch.kernel}".encode() in files[launch.assembly]


def test_values_specialise_as_they_would_on_a_card(compiled: Any) -> None:
    """4,096 and 256 are multiples of 16, 4,100 is not; x[1:] is not aligned to 16 bytes, x is."""
    hints = [{a.name: a.hints.get("tt.divisibility") for a in one.launches[0].arguments} for one in compiled[0]]
    assert hints == [{"x": 16, "y": 16, "n": 16, "scale": None}, {"x": 16, "y": 16, "n": None, "scale": None}]
    assert [argument.type for argument in compiled[0][0].launches[0].arguments] == ["*fp32", "*fp32", "i32", "fp32"]
    of_a_view = {
        argument.name: argument.hints.get("tt.divisibility") for argument in compiled[0][0].launches[2].arguments
    }
    assert of_a_view == {"x": None, "y": 16, "n": 16}


def test_what_pytorch_computes_is_counted(compiled: Any) -> None:
    assert compiled[0][0].library_calls == {"aten.add.Tensor": 1, "aten.zeros.default": 1}


def test_the_same_code_wherever_it_is_compiled(compiled: Any, tmp_path: Path) -> None:
    """Another folder, and no name of one, nor of where Triton is installed, in what was compiled."""
    again, files = recorded(
        problem_of(tmp_path, [4096, 4100]), solution({"kernel.py": CANDIDATE, "parts/kernels.py": KERNEL})
    )
    assert files == compiled[1] and [one.launches for one in again] == [one.launches for one in compiled[0]]
    installed = str(Path(compiling.__file__).parents[2]).encode()
    for data in files.values():
        assert installed not in data and b"site-packages" not in data and b"/tmp" not in data
    text = b"\n".join(files.values())
    assert b'"/solution" "kernel.py"' in text and b'"/triton/language" "standard.py"' in text


@pytest.fixture(scope="module")
def trouble(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    sizes = [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1008]
    problem = problem_of(tmp_path_factory.mktemp("problem"), sizes)
    found, _ = recorded(problem, solution({"kernel.py": TROUBLE}))
    return {one.workload: one for one in found}


@pytest.mark.parametrize(
    ("workload", "status", "reason"),
    [
        ("n1000", "COMPILED", None),
        ("n1001", "UNSUPPORTED", "it launches no Triton kernel"),
        ("n1002", "RUNTIME_ERROR", "host code fails on tensors without values: RuntimeError: Tensor.item()"),
        ("n1003", "COMPILE_ERROR", "wrong: too many indices for tensor of rank 1 (at 2:29 of its source)"),
        ("n1004", "COMPILE_ERROR", "compiler or host code ended by SIGSEGV"),
        ("n1005", "COMPILE_ERROR", "copy: what was compiled was changed afterwards"),
        ("n1006", "COMPILE_ERROR", "copy: what was compiled is not there"),
        ("n1008", "COMPILED", None),
    ],
)
def test_one_workload_fails_alone(trouble: Any, workload: str, status: str, reason: str | None) -> None:
    found = trouble[workload]
    assert (found.status, found.reason is None) == (status, reason is None), (found.reason, found.log)
    if reason is not None:
        assert found.reason.startswith(reason), found.reason
    if workload == "n1004":
        assert "and then it fell" in found.log
    if workload == "n1003":
        assert "wrong" in found.log and "/tmp" not in found.log + found.reason


@pytest.mark.slow
def test_a_limit_is_for_each_workload(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, [1000, 1007, 1008])
    found, _ = recorded(problem, solution({"kernel.py": TROUBLE}), Limits(timeout_s=30.0))
    assert [one.status for one in found] == ["COMPILED", "COMPILE_ERROR", "COMPILED"]
    assert found[1].reason == "not compiled within 30 s"


def test_sources_that_do_not_load(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, [1000, 1001])
    found, files = recorded(problem, solution({"kernel.py": "import triton\n\n\ndef walk(x, scale):\n    return x\n"}))
    assert [one.status for one in found] == ["RUNTIME_ERROR"] * 2 and not files
    assert "kernel.py defines no function 'run'" in str(found[0].reason)


def test_an_unknown_target_is_refused(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, [1000])
    with pytest.raises(UnsupportedError, match="--target gfx906: code is examined for gfx1200"):
        record_triton(problem.definition, solution({"kernel.py": TROUBLE}), [], "gfx906", LIMITS)


def test_files_that_are_none(tmp_path: Path) -> None:
    """A folder, a link or a pipe in the place of what was compiled, or of the log, is not read."""
    data = b"code"
    digest = canonical.digest(data).removeprefix("blake3:")
    (tmp_path / "file").write_bytes(data)
    assert compiling._file(tmp_path / "file", digest, 4) == data
    assert compiling._file(tmp_path / "file", digest, 3) == "what was compiled is no file of at most 3 bytes"
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "link", "pipe", "nothing"):
        assert compiling._file(tmp_path / name, digest, 4) == "what was compiled is not there"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "log").write_text("it fell")
    assert compiling._lost("w", "timeout", tmp_path / "a", LIMITS).log == "it fell"
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "log").symlink_to(tmp_path / "a" / "log")
    assert compiling._lost("w", "timeout", tmp_path / "b", LIMITS).log == ""


@pytest.mark.parametrize("value", [float("nan"), 1 << 60, "\ud800"])
def test_answers_that_no_artifact_can_hold(value: object) -> None:
    answer = {"workload": "w", "library_calls": {}, "fault": None}
    launch = {"kernel": "k", "config": None, "fault": "it fell", "constexprs": {"N": 1}}
    assert len(list(compiling._read([answer | {"launches": [launch]}], [{"uuid": "w"}]))) == 1
    assert not list(compiling._read([answer | {"launches": [launch | {"constexprs": {"N": value}}]}], [{"uuid": "w"}]))


def test_an_error_says_no_address() -> None:
    """The reason is part of what is recorded, and an object is somewhere else each time."""
    assert recording._fault(TypeError(f"what is {object()}?"))[1] == "TypeError: what is <object object>?"
