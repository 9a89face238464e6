import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from solbench.cli import run
from solbench.cli.corpus import corpus

PROBLEM = """\
schema: solbench.definition.v1
name: NAME
suite: tiny
axes:
  M: {type: var}
inputs:
  x: {shape: [M], dtype: float32}
outputs:
  y: {shape: [M], dtype: float32}
"""
WORKLOADS = """\
schema: solbench.workloads.v1
workloads:
  - {uuid: w0, axes: {M: 8}, inputs: {x: {type: normal}}, checks: [{type: numeric, output: y, atol: ATOL, rtol: 0}]}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, atol in (("good", "1.0e-05"), ("loose", "100")):
        folder = tmp_path / "CORPUS" / "tiny" / name
        folder.mkdir(parents=True)
        (folder / "problem.yaml").write_text(PROBLEM.replace("NAME", name))
        (folder / "workloads.yaml").write_text(WORKLOADS.replace("ATOL", atol))
        (folder / "reference.py").write_text("import torch\n\n\ndef run(x):\n    return torch.exp(x)\n")
    return tmp_path


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(corpus, list(arguments))
    return result.exit_code, result.output


def test_list(root: Path) -> None:
    code, text = call("list", "--root", str(root))
    assert code == 0 and "CORPUS/tiny/good" in text and text.endswith("2 problems, 2 workloads\n")
    code, text = call("list", "--root", str(root), "--json")
    assert [row["key"] for row in json.loads(text)["problems"]] == ["CORPUS/tiny/good", "CORPUS/tiny/loose"]


def test_validate_form_only(root: Path) -> None:
    code, text = call("validate", "--root", str(root))
    assert code == 0 and "CORPUS/tiny/loose: 1 workloads are well-formed" in text


def test_validate_controls(root: Path) -> None:
    code, text = call("validate", "good", "--controls", "--root", str(root))
    assert code == 0 and "0 failed" in text
    code, text = call("validate", "--controls", "--root", str(root))
    assert code == 1 and "FAILED w0: y: zeros must fail" in text
    code, text = call("validate", "CORPUS/tiny/loose", "--controls", "--json", "--root", str(root))
    report = json.loads(text)
    failed = {control["control"] for control in report["controls"] if control["state"] == "failed"}
    wrong = ("zeros", "a stale output", "the mean", "half the rows", "a copy of x")
    assert code == 1 and failed == {f"y: {name} must fail" for name in wrong} and report["failed"] == len(wrong)


def test_validate_a_folder(root: Path) -> None:
    assert call("validate", str(root / "CORPUS" / "tiny" / "good"))[0] == 0


def test_bad_input_is_one_line_and_exit_code_2(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "CORPUS" / "tiny" / "good" / "reference.py").unlink()
    for arguments in (["validate", "nope"], ["validate"], ["list"]):
        assert run(["corpus", *arguments, "--root", str(root)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and "reference.py: no such file" in error
