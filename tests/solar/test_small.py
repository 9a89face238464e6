"""Attestation of plain files, at their own sizes and at smaller ones."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import solar
from solar import small
from solar.analysis import record
from solar.einsum import Program
from solar.errors import ReplayError
from solar.module import Module, load
from solar.small import attest_module

FILE = """
import torch
rows = {rows}
inner = {inner}
def run(x, w, index):
    {body}
def get_inputs():
    return [torch.randn(rows, inner), torch.randn(inner, {columns}), torch.randint(0, {columns}, (6,))]
"""


def write(folder: Path, *, rows: object = 40, inner: object = 24, columns: object = 16, body: str = "") -> Path:
    path = folder / "given.py"
    path.write_text(
        FILE.format(rows=rows, inner=inner, columns=columns, body=body or "return torch.relu(x @ w)[:, index]")
    )
    return path


def recorded(module: Module) -> Program:
    return record(module.run, module.inputs)[1]


def attested(path: Path, program: Program | None = None) -> dict | str:
    program = recorded(load(path)) if program is None else program
    return attest_module(path, program, recorded, subject={"module": "none:0"}, digest=lambda value: "none:0")


def test_small_files_are_attested_at_their_own_sizes(tmp_path):
    statement = attested(write(tmp_path))
    assert statement["predicate"]["sizes"] == "whole"
    assert statement["predicate"]["kinds"] == ["random", "zeros", "boundary"]
    assert statement["predicate"]["shapes"]["inputs"]["x"] == [40, 24]


def test_large_files_are_attested_at_smaller_sizes(tmp_path):
    """2^34 elements of x: nothing of that size is run."""
    statement = attested(write(tmp_path, rows=1 << 20, inner=1 << 14))
    assert statement["predicate"]["sizes"] == "small"
    rows, inner = statement["predicate"]["shapes"]["inputs"]["x"]
    assert rows * inner + inner * 16 <= small.DECLARED_ELEMENTS
    assert statement["predicate"]["shapes"]["inputs"]["index"] == [6]


def test_sizes_that_differ_stay_in_order_when_they_are_halved_together(tmp_path):
    """At rows = inner the slice would be no operation, and the program another one."""
    path = write(tmp_path, rows=1 << 12, inner=1 << 11, body="return x[:inner] @ w")
    statement = attested(path)
    rows, inner = statement["predicate"]["shapes"]["inputs"]["x"]
    assert rows > inner


def test_a_size_that_must_stay_is_left_and_another_is_halved(tmp_path):
    """Sixty-four steps are not the same program as thirty-two."""
    path = write(tmp_path, rows=1 << 16, inner=64, body="for step in range(inner): x = x + step\n    return x")
    statement = attested(path)
    assert statement["predicate"]["shapes"]["inputs"]["x"][1] == 64


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({"rows": "1 << 20", "inner": "1 << 9"}, "assigns no sizes to names"),
        ({"rows": 20, "inner": 20, "columns": 1 << 20}, "does not make it small enough"),
        ({"rows": 1 << 20, "body": f"return x[{(1 << 20) - 1}] @ w"}, "at smaller sizes .* not the same program"),
    ],
)
def test_what_cannot_be_made_small_says_why(tmp_path, sizes, reason):
    said = attested(write(tmp_path, **sizes))
    assert isinstance(said, str)
    assert said.startswith("too large to run here")
    assert re.search(reason, said)


def test_a_program_that_is_not_the_module_is_refused(tmp_path):
    path = write(tmp_path)
    program = recorded(load(path))
    wrong = replace(
        program, ops=tuple(replace(op, function="abs") if op.function == "relu" else op for op in program.ops)
    )
    assert wrong != program
    with pytest.raises(ReplayError, match="seed 11, random: output"):
        attested(path, wrong)


def test_kinds_of_inputs_that_the_module_refuses_are_left_out(tmp_path):
    """A target of cross entropy lies between 0 and 1: -1 is refused, 0 is not."""
    path = tmp_path / "given.py"
    path.write_text(
        "import torch\ndef run(x, target): return torch.nn.functional.binary_cross_entropy(x.sigmoid(), target)\n"
        "def get_inputs(): return [torch.randn(4, 8), torch.rand(4, 8)]\n"
    )
    assert attested(path)["predicate"]["kinds"] == ["random", "zeros"]


@pytest.mark.parametrize(("option", "held"), [("", False), ("AS_DRAWN = ('scale',)\n", True)])
def test_inputs_that_stay_as_drawn_are_not_replaced_by_zeros(tmp_path, option, held):
    """The file refuses a scale of zero."""
    path = tmp_path / "given.py"
    path.write_text(
        f"import torch\n{option}def run(x, scale):\n    assert not scale.is_cpu or scale.all()\n    return x / scale\n"
        "def get_inputs(): return [torch.randn(4, 8), torch.rand(8) + 0.1]\n"
    )
    assert attested(path)["predicate"]["kinds"] == (["random", "zeros", "boundary"] if held else ["random"])


def test_statistics_ask_for_no_gradient(tmp_path):
    """Batch norm refuses a gradient to them; asked for, each other input would be tried by itself."""
    path = tmp_path / "given.py"
    path.write_text(
        "import torch\nnorm = torch.nn.BatchNorm1d(3)\ndef run(x): return norm(x)\n"
        "def get_inputs(): return [torch.randn(8, 3)]\n"
    )
    compared = attested(path)["predicate"]["gradients"]
    assert compared["inputs"] == ["x", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"]


def test_analysis_with_attestation_a_reason_or_neither(tmp_path):
    module, machine = solar.load_module(write(tmp_path)), solar.load_machine("gfx1200")
    analyze = solar.analyze
    statement = {"predicate": {"verdict": "passed"}}
    analysis = analyze(module.run, module.inputs, machine, attestor=lambda program: statement)
    assert (analysis.attestation, analysis.not_attested) == (statement, None)
    assert analysis.bound["t_sol_s"] > 0
    assert analysis.bound["path"] == analysis.graph.path == analysis.program.path == "aten"
    said = analyze(module.run, module.inputs, machine, attestor=lambda program: "too large")
    assert (said.attestation, said.not_attested) == (None, "too large")
    assert analyze(module.run, module.inputs, machine).not_attested == "not asked for"
    other = analyze(module.run, module.inputs, machine, path="torchview")
    assert (other.graph.path, other.bound["t_sol_s"]) == ("torchview", analysis.bound["t_sol_s"])
