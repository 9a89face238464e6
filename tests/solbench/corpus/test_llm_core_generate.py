"""``solbench corpus generate``: what it writes, what it depends on, what it refuses."""

from __future__ import annotations

import errno
import shutil
import sys
from pathlib import Path

import pytest

from solbench.cli import run
from solbench.corpus.configured import chosen_problems
from solbench.corpus.definitions import load_templates
from solbench.corpus.llm_core import capacity
from solbench.corpus.llm_core.capacity import GIB, HARNESS_RESERVE, Memory, capacity_class, parse_capacity, probe
from solbench.corpus.llm_core.generate import generate, ineligible
from solbench.corpus.llm_core.probe import QUANTUM, STEPS, allocatable_bytes
from solbench.corpus.llm_core.rules import Rule, Rules, load_rules
from solbench.corpus.llm_core.view import write_view
from solbench.corpus.load import load_corpus
from solbench.errors import InputError, UndecidedError
from solbench.yaml12 import load_yaml

KEPT = (
    "linear_matmul_bias", "linear_grouped_matmul", "norm_activation_swiglu", "attention_sliding_window",
    "advanced_attention_indexed_sparse",
)  # fmt: skip
PROBLEMS = Path(__file__).resolve().parents[3] / "problems"


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules(PROBLEMS / "LLM_CORE")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The corpus with five of its rules, as files that a test may break."""
    folder = tmp_path / "problems"
    shutil.copytree(PROBLEMS / "LLM_CORE", folder / "LLM_CORE")
    for path in (folder / "LLM_CORE" / "rules").iterdir():
        if path.stem not in KEPT:
            path.unlink()
    return folder


def call(root: Path, *arguments: str, output: str = "out") -> int:
    output = str(root.parent / output)
    return run(
        ["corpus", "generate", "--root", str(root), "--target-template", "gfx1200", *arguments, "--output", output]
    )


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_writes_a_corpus(root, tmp_path, capsys):
    assert call(root, "--capacity", "16GiB", "--profile", "core") == 0
    assert "4 of 4 Definitions, 36 workloads for gfx1200 in the 16 GiB class" in capsys.readouterr().out
    view = load_yaml(tmp_path / "out" / "view.yaml")
    assert (view["target"], view["capacity_class_gib"], view["profiles"]) == ("gfx1200", 16, ["core"])
    decisions = {row["problem"].rpartition("/")[2]: row for row in view["decisions"]}
    assert set(decisions) == set(KEPT)
    assert decisions["advanced_attention_indexed_sparse"]["status"] == "profile_not_selected"
    problems = {problem.definition.name: problem for problem in load_corpus(tmp_path / "out")}
    assert set(problems) == set(KEPT) - {"advanced_attention_indexed_sparse"}
    for name, problem in problems.items():
        rows = decisions[name]["workloads"]
        assert problem.key == f"LLM_CORE/{problem.definition.suite}/{name}"
        assert [workload.uuid for workload in problem.workloads] == [row["uuid"] for row in rows]
        assert [row["role"] for row in rows].count("smoke") == 1
        assert len(rows) == 9
    # From the table of golden workloads: the last slot of linear_matmul_bias at 16 GiB.
    assert problems["linear_matmul_bias"].workloads[-1].axes == {"M": 74816, "K": 5120, "N": 7168}
    # The window is an axis and a scalar input: a workload repeats it.
    windows = [w.inputs["window"].value for w in problems["attention_sliding_window"].workloads]
    assert windows == [w.axes["W"] for w in problems["attention_sliding_window"].workloads]
    assert set(windows) == {64, 1024}


def test_rules_are_no_problems():
    assert not [problem.key for problem in load_corpus(PROBLEMS) if problem.corpus == "LLM_CORE"]


def test_same_class_same_bytes(root, tmp_path, monkeypatch):
    memory = iter([Memory(20 * GIB, 19 * GIB), Memory(25 * GIB, 17 * GIB)])
    monkeypatch.setattr(capacity, "probe", lambda device: next(memory))
    for name in "ab":
        assert call(root, "--device", "cuda", output=name) == 0
    assert call(root, "--capacity", "13GiB", output="c") == 0
    assert files(tmp_path / "a") == files(tmp_path / "b") == files(tmp_path / "c")
    assert len(files(tmp_path / "a")) == 1 + 3 * len(KEPT)
    assert call(root, "--capacity", "16GiB", output="d") == 0
    assert files(tmp_path / "a") != files(tmp_path / "d")


def test_ids_are_free_of_hardware(rules):
    axes_of = {}
    views = [generate(rules, target, size) for target in ("gfx1200", "gfx942") for size in (8, 16)]
    for view in views:
        for decision in view.generated:
            assert len(decision.workloads) == 9
            for workload in decision.workloads:
                assert axes_of.setdefault(workload.uuid, workload.axes) == workload.axes
    ids = [{w.uuid for d in view.generated for w in d.workloads} for view in views]
    assert all(len(found) == 324 for found in ids)
    assert ids[0] == ids[2]
    assert ids[0] != ids[1]
    # Equal axes in two classes are one workload: where the tensor limit binds before the class does.
    wide = [generate(rules, "gfx942", size, ["quantized"]) for size in (192, 256)]
    assert wide[0].decisions == wide[1].decisions


def test_all_nine_or_none(root, tmp_path, capsys):
    assert call(root, "--capacity", "1GiB", "--profile", "core") == 0
    assert (
        "linear_grouped_matmul: insufficient_capacity: largest common scale 287, nine distinct workloads need 288"
        in (capsys.readouterr().out)
    )
    problems = load_corpus(tmp_path / "out")
    assert [problem.definition.name for problem in problems] == [
        "attention_sliding_window", "linear_matmul_bias", "norm_activation_swiglu",
    ]  # fmt: skip
    assert all(len(problem.workloads) == 9 for problem in problems)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--capacity", "1023MiB"], "capacity: 1023 MiB is below the smallest capacity class, 1 GiB"),
        (["--capacity", "16"], "'16' is not a size"),
        (["--capacity", "16GiB", "--profile", "mega"], "mega: no such profile; known are core, "),
        (["--capacity", "16GiB", "--device", "cpu"], "excludes --device"),
        (["--device", "tpu"], "'tpu' is not a device"),
        (
            ["--capacity", "16GiB", "--target-template", "gfx9"],
            "no such target template; known are gfx1200, gfx942, sm",
        ),
        (["--capacity", "16GiB", "--profile", "moe"], "no Definition of moe fits: no Definition has the profile"),
    ],
)
def test_bad_input_is_one_line(root, tmp_path, capsys, arguments, message):
    refuses(root, capsys, message, *arguments)


def refuses(root: Path, capsys: pytest.CaptureFixture[str], message: str, *arguments: str) -> None:
    assert call(root, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in root.parent.iterdir()] == ["problems"]


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        ("targets/gfx1200.yaml", "1072693248", "1000", "gfx1200 with 16 GiB: no Definition of core"),
        ("rules/linear_matmul_bias.yaml", "smoke: {M: extent, ", "smoke: {", "differs in M"),
        (
            "rules/linear_matmul_bias.yaml",
            "name: linear_matmul_bias",
            "name: other",
            "name: must be linear_matmul_bias",
        ),
        ("rules/linear_matmul_bias.yaml", "profiles: [core]", "profiles: [mega]", "'mega' is not one of core"),
        ("rules/linear_matmul_bias.yaml", "weight: {shape: [N, K]", "weight: {shape: [K, N]", "inputs.weight: the Def"),
        ("targets/gfx942.yaml", "target: gfx942", "target: gfx941", "target: must be gfx942"),
        ("generation.yaml", "peak_divisor: 2", "peak_divisor: 0", "generation.yaml: peak_divisor"),
        ("linear/linear_matmul_bias/problem.yaml", "  N: {type: var", "  O: {type: var", "linear_matmul_bias"),
        ("linear/linear_matmul_bias/defaults.yaml", "output: output", "output: other", "unknown output 'other'"),
    ],
)
def test_broken_file_is_one_line(root, capsys, path, old, new, message):
    file = root / "LLM_CORE" / path
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    refuses(root, capsys, message, "--capacity", "16GiB")


def test_missing_files_are_one_line(root, capsys):
    (root / "LLM_CORE/linear/linear_matmul_bias/defaults.yaml").unlink()
    refuses(root, capsys, "linear_matmul_bias/defaults.yaml: no such file", "--capacity", "16GiB")
    shutil.rmtree(root / "LLM_CORE" / "rules")
    refuses(root, capsys, "rules: has no rules", "--capacity", "16GiB")


def test_existing_output_stays(root, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    assert call(root, "--capacity", "16GiB") == 2
    assert "exists already; name a new folder" in capsys.readouterr().err
    assert files(tmp_path / "out") == {"mine": b"x"}


def test_a_full_disk_leaves_nothing(root, tmp_path, capsys, monkeypatch):
    copied = []

    def full(source, target):
        copied.append(target)
        if len(copied) == 4:
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        Path(target).write_bytes(Path(source).read_bytes())

    monkeypatch.setattr(shutil, "copyfile", full)
    assert call(root, "--capacity", "16GiB") == 3
    error = capsys.readouterr().err
    assert "No space left on device (free some space and run again)" in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["problems"]


def test_every_definition_takes_its_nine_workloads(rules, tmp_path):
    # Each is checked against its Definition on the way: axes, generators, checks, and the tensors of the rule.
    write_view(generate(rules, "gfx942", 192), rules, PROBLEMS / "LLM_CORE", tmp_path / "out")
    problems = load_corpus(tmp_path / "out")
    assert (len(problems), {len(problem.workloads) for problem in problems}) == (36, {9})
    assert [problem.key for problem in problems] == [template.key for template in load_templates(PROBLEMS)]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"targets": ["gfx942"]}, "target_not_eligible"),
        ({"inputs": {"x": {"shape": ["M"], "dtype": "float8_e5m2"}}}, "unsupported_dtype"),
        ({"quantization": "fp4_group"}, "unsupported_quantization"),
        ({"capabilities": ["tensor_memory"]}, "missing_capability"),
    ],
)
def test_ineligible(rules, change, status):
    rule = rules.rules["linear_matmul_bias"]
    assert ineligible(rule, rules.targets["gfx1200"]) is None
    reason = ineligible(Rule.load({**rule.as_dict(), **change}, "rule"), rules.targets["gfx1200"])
    assert reason is not None
    assert reason[0] == status


def test_capacity_class(rules):
    classes = [capacity_class(size, rules.generation) for size in (GIB, 2 * GIB - 1, 16 * GIB, 1000 * GIB)]
    assert classes == [1, 1, 16, 384]
    assert parse_capacity("3MiB") == 3 * 2**20
    assert parse_capacity("7B") == 7
    assert Memory(100 * GIB, 80 * GIB).usable == 68 * GIB - HARNESS_RESERVE
    assert Memory(2**20, 0).usable == 0


@pytest.mark.parametrize("limit", [0, QUANTUM - 1, 10 * GIB, 64 * GIB])
def test_bounded_search(limit):
    attempts: list[int] = []
    found = allocatable_bytes(32 * GIB, lambda size: attempts.append(size) or size <= limit)
    ceiling = 32 * GIB * 90 // 100
    assert len(attempts) <= STEPS
    assert max(attempts) <= ceiling
    assert found <= limit
    assert found >= min(limit, ceiling) - ceiling // 2 ** (STEPS - 1) - QUANTUM


def test_probe_of_this_machine():
    found = probe("cpu")
    assert 0 <= found.allocatable <= found.free * 90 // 100


def test_probe_refuses_what_is_not_there():
    with pytest.raises(InputError, match=r"cuda:99: no such device .*; pass --capacity instead"):
        probe("cuda:99")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import time; time.sleep(60)", "exceeded"),
        ("raise MemoryError('gone')", "MemoryError: gone"),
        ("print('{}')", "exit status 0"),
        ("print('[1]')", "exit status 0"),
    ],
)
def test_probe_that_breaks(tmp_path, monkeypatch, code, message):
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}"\n')
    script.chmod(0o755)
    monkeypatch.setattr(capacity.sys, "executable", str(script))
    monkeypatch.setattr(capacity, "PROBE_LIMIT_S", 1.0)
    with pytest.raises(UndecidedError, match=message):
        probe("cpu")


def test_problems_for_a_capacity():
    # linear_matmul_bias has one scale from 12 GiB on, where the largest tensor binds: table of golden scales.
    chosen = chosen_problems(PROBLEMS, ("linear_matmul_bias", "l1n23_softmax"), "sm_90", "140GiB")
    assert [problem.key for problem in chosen] == [
        "LLM_CORE/linear/linear_matmul_bias",
        "AMD_AKA/torch2hip/l1n23_softmax",
    ]
    assert chosen[0].workloads[-1].axes == {"M": 74816, "K": 5120, "N": 7168}
    assert len(chosen[0].workloads) == 9
    (swiglu,) = chosen_problems(PROBLEMS, ("norm_activation_swiglu",), "sm_90", "140GiB")
    assert "triton" in [solution.name for solution in swiglu.solutions]
    with pytest.raises(InputError, match="linear_matmul_bias: no such problem"):
        chosen_problems(PROBLEMS, ("linear_matmul_bias",), "sm_90", None)
    with pytest.raises(InputError, match="cpu: no such target template"):
        chosen_problems(PROBLEMS, (), "cpu", "16GiB")
