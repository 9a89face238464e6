"""What a validation is of, and how it counts both corpora."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from solbench.cli import run
from solbench.corpus.definitions import load_template
from solbench.corpus.llm_core.scale import envelope
from solbench.corpus.llm_core.small import LIMIT_BYTES, small_instances
from solbench.corpus.wellformed import Subjects, subjects
from solbench.errors import InputError

ROOT = Path(__file__).parents[3] / "problems"
COUNTS = (
    "AMD_AKA: 45 problems, 169 workloads; scored 43 / 163; files are those of the manifest",
    "LLM_CORE: 36 Definitions, 36 rules, 9 slots; 324 workloads for gfx1200 in the 16 GiB class",
)


@pytest.fixture(scope="module")
def everything() -> Subjects:
    return subjects(ROOT)


def test_counts_of_both_corpora(everything: Subjects) -> None:
    assert everything.counts == COUNTS
    assert [len(subject.problem.workloads) for subject in everything.found if subject.decision] == [9] * 36
    keys = [subject.problem.key for subject in everything.found]
    assert len(set(keys)) == 81 and keys == sorted(keys)


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["corpus", "validate", "--root", str(ROOT)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert tuple(lines[-2:]) == COUNTS and len(lines) == 83
    assert "LLM_CORE/moe/moe_route_top2: 9 workloads are well-formed" in lines


def test_small_instances_of_every_definition(everything: Subjects) -> None:
    assert everything.rules is not None
    for subject in everything.found:
        if subject.decision is None:
            continue
        rule, problem = everything.rules.rules[subject.decision.name], subject.problem
        template = load_template(problem.path, corpus=problem.corpus)
        instances = small_instances(template, rule, everything.rules.generation, subject.decision)
        assert [one.workload.uuid for one in instances] == [one.uuid for one in problem.workloads]
        assert len({str(instance.axes) for instance in instances}) >= 8, problem.key
        for instance, workload in zip(instances, problem.workloads, strict=True):
            assert envelope(rule, instance.workload.axes).peak_bytes <= LIMIT_BYTES, workload.uuid
            changed = instance.workload.axes != workload.axes
            assert (instance.note is not None) == changed and "reduced: " in (instance.note or "reduced: ")
            assert all(size <= workload.axes[name] for name, size in instance.workload.axes.items())


@pytest.mark.parametrize(
    "name",
    ["linear_matmul_relu", "LLM_CORE/linear/linear_matmul_relu", str(ROOT / "LLM_CORE/linear/linear_matmul_relu")],
)
def test_a_definition_by_name(name: str) -> None:
    found = subjects(ROOT, [name, "l1n23_softmax"]).found
    assert [subject.problem.definition.name for subject in found] == ["l1n23_softmax", "linear_matmul_relu"]
    with pytest.raises(InputError, match="no such problem"):
        subjects(ROOT, [name, "linear_matmul_rel"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of both corpora."""
    shutil.copytree(ROOT / "AMD_AKA", tmp_path / "AMD_AKA", ignore=shutil.ignore_patterns("__pycache__", "solutions"))
    shutil.copytree(ROOT / "LLM_CORE", tmp_path / "LLM_CORE", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def drop_rule(root: Path) -> None:
    (root / "LLM_CORE/rules/moe_route_top2.yaml").unlink()


def drop_definition(root: Path) -> None:
    shutil.rmtree(root / "LLM_CORE/moe/moe_route_top2")


def change_reference(root: Path) -> None:
    with (root / "AMD_AKA/torch2hip/l1n23_softmax/reference.py").open("a") as file:
        file.write("# changed\n")


def corrupt_manifest(root: Path) -> None:
    (root / "AMD_AKA/manifest.yaml").write_text("schema: [")


def drop_an_axis(root: Path) -> None:
    path = root / "LLM_CORE/moe/moe_route_top2/problem.yaml"
    path.write_text(path.read_text().replace("  I: {type: var", "  J: {type: var"))


@pytest.mark.parametrize(
    ("break_it", "complaint"),
    [
        (drop_rule, "moe_route_top2: has no rule"),
        (drop_definition, "moe_route_top2: is a rule without a Definition"),
        (change_reference, "reference.py: is not the file that the manifest pins"),
        (corrupt_manifest, "manifest.yaml"),
        (drop_an_axis, "problem.yaml"),
    ],
)
def test_what_is_malformed_is_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], break_it: Callable[[Path], None], complaint: str
) -> None:
    break_it(root)
    assert run(["corpus", "validate", "--root", str(root)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and complaint in error


@pytest.mark.slow
def test_controls_of_a_definition(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["corpus", "validate", "norm_activation_swiglu", "--controls", "--json", "--root", str(ROOT)]
    assert run(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["failed"], report["not_run"]) == (0, 0)
    assert len({control["workload"] for control in report["controls"]} - {"all workloads"}) == 9
    reductions = [c["detail"] for c in report["controls"] if c["control"] == "resolves"]
    assert sum("reduced: " in detail for detail in reductions) == 8  # all but the smoke slot
