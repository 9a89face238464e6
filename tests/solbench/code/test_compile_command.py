"""``solbench compile``: what it prints, writes and returns, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_problem import write_problem

from solbench import canonical
from solbench.cli import run

KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_shift(x, y, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * scale + 1, mask=at < n)


def run(x, scale):
    if x.numel() == 5000:
        raise ValueError("no more than 1,000 elements")
    y = torch.zeros_like(x)
    scale_shift[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), scale, BLOCK=1024)
    return y
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A problem with a candidate in it that is right for the smaller workload."""
    problem = write_problem(tmp_path / "T" / "tests" / "scale_shift")
    (problem / "solutions" / "triton").mkdir(parents=True)
    (problem / "solutions" / "triton" / "kernel.py").write_text(KERNEL)
    (problem / "solutions" / "triton" / "solution.yaml").write_text(
        "{name: triton, definition: scale_shift, author: tests, sources: [kernel.py],\n"
        " spec: {languages: [triton], target_hardware: [gfx1200], entry_point: 'kernel.py::run'}}\n"
    )
    return problem


def test_one_workload_that_compiles_and_one_that_does_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solution, out = folder / "solutions" / "triton", folder / "out"
    assert run(["compile", str(solution), "--output", str(out)]) == 1
    text = capsys.readouterr().out
    assert "small  COMPILED\n  [1] scale_shift(BLOCK=1024), grid 1x1x1\n" in text
    assert "larger  RUNTIME_ERROR: host code fails on tensors without values: ValueError: no more than 1,000" in text
    assert "PyTorch computes as well: aten.zeros_like.default x1" in text
    assert "1 of 2 workloads compiled and would launch; 1 kernels" in text and "no card was used" in text
    written = json.loads((out / "code.json").read_text())
    assert [code["status"] for code in written["code"]] == ["COMPILED", "RUNTIME_ERROR"]
    ((digest, kernel),) = written["kernels"].items()
    assert canonical.digest(canonical.dumps({**kernel, "kind": "kernel"})) == digest
    for field, suffix in (("code_object", "hsaco"), ("assembly", "s")):
        named = kernel[field]["digest"]
        assert canonical.digest((out / f"{named.removeprefix('blake3:')}.{suffix}").read_bytes()) == named
    assert len(list(out.iterdir())) == 3

    assert run(["compile", str(solution), "--workload", "small", "--json"]) == 0
    (code,) = json.loads(capsys.readouterr().out)["code"]
    assert (code["status"], code["problem"], code["solution"]) == ("COMPILED", "T/tests/scale_shift", "triton")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--target", "gfx906"], 4, "--target gfx906: code is examined for gfx1200"),
        (["--workload", "huge"], 2, "--workload huge: no such workload; T/tests/scale_shift has small, larger"),
        (["--output", "{}"], 2, "exists already; name a new folder"),
    ],
)
def test_bad_arguments(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    arguments = [argument.format(folder) for argument in arguments]
    assert run(["compile", str(folder / "solutions" / "triton"), *arguments]) == code
    out, err = capsys.readouterr()
    assert said in err and out == "" and err.count("\n") == 1


def test_a_language_that_compiles_to_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "plain.py"
    path.write_text("def run(x, scale):\n    return x * scale + 1\n")
    assert run(["compile", str(path), "--problem", str(folder)]) == 4
    assert "plain: pytorch compiles to no code of its own for gfx1200" in capsys.readouterr().err


def test_which_problem(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "elsewhere.py"
    path.write_text(KERNEL)
    assert run(["compile", str(path), "--root", str(tmp_path)]) == 2
    assert "--problem: which one does" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["inf", "nan", "1e12", "0"])
@pytest.mark.parametrize("command", [["compile"], ["code", "record"], ["evaluate", "P", "--solution"], ["analyze"]])
def test_a_limit_that_is_none(command: list[str], seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "nowhere", "--timeout", seconds]) == 2
    assert "--timeout" in capsys.readouterr().err
