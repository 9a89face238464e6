"""Definitions without workloads: read as such, and never taken for a problem of the release."""

from collections import Counter
from pathlib import Path

import pytest

from solbench.corpus.definitions import load_template, load_templates
from solbench.corpus.load import load_corpus
from solbench.errors import InputError

ROOT = Path(__file__).parents[3] / "problems"
PROBLEM = """\
schema: solbench.definition.v1
name: scaled
suite: tiny
axes:
  M: {type: var}
inputs:
  x: {shape: [M], dtype: float32}
outputs:
  y: {shape: [M], dtype: float32}
"""
DEFAULTS = """\
schema: solbench.workload-defaults.v1
inputs:
  x: {type: normal}
checks:
  - {type: numeric, output: y, atol: 0.000001, rtol: 0}
"""


def write(root: Path, defaults: str = DEFAULTS, name: str = "scaled") -> Path:
    folder = root / "CORPUS" / "tiny" / name
    folder.mkdir(parents=True)
    texts = {"problem.yaml": PROBLEM, "reference.py": "def run(x):\n    return 2 * x\n", "defaults.yaml": defaults}
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    return folder


def test_a_definition_gives_workloads_of_any_size(tmp_path: Path) -> None:
    write(tmp_path)
    (template,) = load_templates(tmp_path)
    assert template.key == "CORPUS/tiny/scaled"
    workload = template.workload("w", {"M": 5})
    assert workload.axes == {"M": 5} and workload.inputs["x"].type == "normal" and len(workload.checks) == 1
    with pytest.raises(InputError, match="is not bound"):
        template.workload("w", {})


def test_solutions_stay_beside_a_definition(tmp_path: Path) -> None:
    folder = write(tmp_path) / "solutions" / "fast"
    folder.mkdir(parents=True)
    (folder / "kernel.py").write_text("def run(x):\n    return x + x\n", encoding="utf-8")
    text = """\
schema: solbench.solution.v1
name: fast
definition: scaled
author: nobody
spec: {languages: [pytorch], target_hardware: [cpu], entry_point: "kernel.py::run"}
sources: [kernel.py]
"""
    (folder / "solution.yaml").write_text(text, encoding="utf-8")
    (template,) = load_templates(tmp_path)
    assert [solution.name for solution in template.solutions] == ["fast"]
    (folder / "solution.yaml").write_text(text.replace("scaled", "other"), encoding="utf-8")
    with pytest.raises(InputError, match="definition: is 'other', but the problem is 'scaled'"):
        load_templates(tmp_path)


def test_a_scalar_may_repeat_an_axis(tmp_path: Path) -> None:
    folder = write(tmp_path, DEFAULTS.replace("{type: normal}", "{type: constant, value: 2 * M}"))
    template = load_template(folder, corpus="CORPUS")
    assert template.workload("w", {"M": 5}).inputs["x"].value == 10  # type: ignore[union-attr]
    write(tmp_path / "more", DEFAULTS.replace("{type: normal}", "{type: constant, value: Z}"))
    (other,) = load_templates(tmp_path / "more")
    with pytest.raises(InputError, match=r"inputs\.x\.value"):
        other.workload("w", {"M": 5})


def test_a_frozen_input_is_listed(tmp_path: Path) -> None:
    reference = """\
import torch


def run(x):
    return 2 * x


def custom_inputs(axes, device):
    return {"x": torch.rand(axes["M"])}
"""
    folder = write(tmp_path, DEFAULTS.replace("{type: normal}", "{type: custom, frozen: true}"))
    (folder / "reference.py").write_text(reference, encoding="utf-8")
    (folder / "problem.yaml").write_text(PROBLEM + "custom_inputs_entrypoint: custom_inputs\n", encoding="utf-8")
    template = load_template(folder, corpus="CORPUS")
    first, again, other = (template.workload(name, {"M": 5}).inputs["x"] for name in ("w0", "w0", "w1"))
    assert first.type == "values" and len(first.values) == 5
    assert first == again and first != other
    (folder / "problem.yaml").write_text(PROBLEM, encoding="utf-8")
    with pytest.raises(InputError, match="custom needs a custom_inputs_entrypoint"):
        load_template(folder, corpus="CORPUS").workload("w0", {"M": 5})


def test_stress_rounds_and_rejected_formats(tmp_path: Path) -> None:
    more = "stress_rounds: [{label: far, inputs: {x: {type: constant, value: 2 * M}}}]\nrejected_formats: [int8]\n"
    workload = load_template(write(tmp_path, DEFAULTS + more), corpus="CORPUS").workload("w0", {"M": 5})
    assert workload.rejected_formats == ("int8",)
    assert workload.stress_rounds[0].inputs["x"].model_dump() == {"type": "constant", "value": 10}


def test_all_of_llm_core_is_there() -> None:
    templates = [template for template in load_templates(ROOT) if template.corpus == "LLM_CORE"]
    assert len({template.definition.name for template in templates}) == 36
    assert Counter(template.definition.suite for template in templates) == {
        "linear": 8, "norm_activation": 4, "position": 2, "attention": 6, "advanced_attention": 2, "kv_cache": 4,
        "moe": 6, "quantization": 4,
    }  # fmt: skip
    assert all(template.definition.name.startswith(f"{template.definition.suite}_") for template in templates)


def test_the_corpus_leaves_it_out(tmp_path: Path) -> None:
    folder = write(tmp_path)
    assert load_corpus(tmp_path) == []
    # With workloads it is a problem like any other; without both it is an incomplete one.
    (folder / "workloads.yaml").write_text("schema: solbench.workloads.v1\n", encoding="utf-8")
    with pytest.raises(InputError, match="at least one workload"):
        load_corpus(tmp_path)
    assert load_templates(tmp_path) == []
    (folder / "workloads.yaml").unlink()
    (folder / "defaults.yaml").unlink()
    with pytest.raises(InputError, match=r"workloads\.yaml: no such file"):
        load_corpus(tmp_path)


def test_the_release_holds_what_it_held() -> None:
    problems = load_corpus(ROOT)
    assert {problem.corpus for problem in problems} == {"AMD_AKA"}
    assert len(problems) == 45 and sum(len(problem.workloads) for problem in problems) == 169


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (DEFAULTS.replace("defaults.v1", "defaults.v2"), "schema: must be"),
        (DEFAULTS.replace("checks:", "rules:"), "schema, inputs, checks, perhaps"),
        (DEFAULTS + "stress_rounds: [far]\n", "stress_rounds: must be a list of rounds"),
        (DEFAULTS + "stress_round: []\n", "perhaps stress_rounds"),
        (DEFAULTS.replace("inputs:\n  x: {type: normal}", "inputs: [x]"), "inputs must be a mapping"),
    ],
)
def test_bad_defaults(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        load_template(write(tmp_path, text), corpus="CORPUS")


def test_a_folder_is_its_key(tmp_path: Path) -> None:
    write(tmp_path, name="other")
    with pytest.raises(InputError, match="here CORPUS/tiny/scaled"):
        load_templates(tmp_path)
