"""Stages on a small corpus: what a change recomputes, what a failure leaves, that a rebuild is the same to the byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from solbench import canonical
from solbench.errors import InputError
from solbench.stages import run_stage
from solbench.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
PROBLEMS = ("torch2hip/l1n23_softmax", "torch2hip/l1n1_square_matmul")
PARAMETERS = """\
release: published
path: aten
targets: [gfx1200]
capacity_gib: {}
protocol: full
max_call_s: 0.25
budget_s: 60.0
"""
COMPUTED = (
    "corpus", "workloads", "graphs", "einsums", "code", "verdicts", "bounds", "timings", "scores", "readiness",
    "release",
)  # fmt: skip


@pytest.fixture
def workspace(tmp_path):
    for name in PROBLEMS:
        shutil.copytree(ROOT / "problems" / "AMD_AKA" / name, tmp_path / "problems" / "AMD_AKA" / name)
    (tmp_path / "params.yaml").write_text(PARAMETERS)
    return Workspace.at(tmp_path)


def run(workspace, stages=COMPUTED):
    return {stage: run_stage(stage, workspace) for stage in stages}


def root_of(workspace):
    return canonical.digest((workspace.root / "release" / "published.json").read_bytes())


@pytest.mark.slow
def test_one_changed_workload_recomputes_one_and_a_rebuild_gives_the_same_root(workspace):
    first = run(workspace)
    assert first["workloads"] == "8 workloads, 0 configurations"
    assert first["graphs"].startswith("8 workloads, 8 computed, 0 without")
    assert first["einsums"].startswith("8 graphs, 8 computed, ") and first["einsums"].endswith(" 0 not converted")
    assert first["bounds"] == "8 of 8 bounds on gfx1200"
    before = {stage: workspace.store.index(stage) for stage in COMPUTED}
    root = root_of(workspace)

    again = run(workspace)
    assert "8 workloads, 0 computed" in again["graphs"] and "8 graphs, 0 computed" in again["einsums"]
    assert root_of(workspace) == root

    shutil.rmtree(workspace.memo)
    assert "8 computed" in run(workspace)["einsums"]
    assert root_of(workspace) == root

    path = workspace.problems / "AMD_AKA" / PROBLEMS[1] / "workloads.yaml"
    text = path.read_text()
    assert text.count("M: 512") == 1
    path.write_text(text.replace("M: 512", "M: 500"))
    edited = run(workspace)
    assert "8 workloads, 1 computed" in edited["graphs"] and "8 graphs, 1 computed" in edited["einsums"]
    assert root_of(workspace) != root
    for stage in ("workloads", "graphs", "bounds"):
        after = workspace.store.index(stage)
        changed = {name for name in after if after[name] != before[stage].get(name)}
        assert {name.split("@")[0] for name in changed} == {
            "AMD_AKA/torch2hip/l1n1_square_matmul/aka-l1n1_square_matmul-w3"
        }


@pytest.mark.parametrize(
    ("file", "old", "new", "names"),
    [
        ("workloads.yaml", "M: 512", "Q: 512", "axes.M"),
        ("workloads.yaml", "M: 512", "M: -1", "axes.M"),
        ("problem.yaml", "[M, K]", "[M, Z]", "unknown axis 'Z'"),
        ("problem.yaml", "name:", "nom:", "problem.yaml"),
        ("reference.py", "def run", "def ran", "run"),
        ("reference.py", None, None, "reference.py"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(workspace, file, old, new, names):
    run(workspace, ("corpus", "workloads"))
    before = {path.name: path.read_bytes() for path in (workspace.root / "store").glob("*.json")}
    path = workspace.problems / "AMD_AKA" / PROBLEMS[1] / file
    if old is None:
        path.unlink()
    else:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        run(workspace, ("corpus", "workloads"))
    assert names in str(caught.value) and "\n" not in str(caught.value) and PROBLEMS[1] in str(caught.value)
    assert before == {path.name: path.read_bytes() for path in (workspace.root / "store").glob("*.json")}


def test_every_problem_has_its_reference_run_eagerly_and_compiled(workspace):
    run(workspace, ("corpus",))
    corpus = workspace.store.index("corpus")
    problems = [name for name, entry in corpus.items() if entry.kind == "definition"]
    assert len(problems) == len(PROBLEMS)
    for name in problems:
        reference = workspace.store.load("corpus", corpus[name])["reference"]
        for solution in ("eager", "compile"):
            sources = workspace.store.load("corpus", corpus[f"{name}/solutions/{solution}"])["sources"]
            assert {"path": "reference.py", "content": reference} in sources


@pytest.mark.slow
def test_an_unknown_operator_ends_without_a_bound_and_the_rest_goes_on(workspace):
    path = workspace.problems / "AMD_AKA" / PROBLEMS[1] / "reference.py"
    path.write_text("import torch\n\n\ndef run(A, B):\n    return torch.special.bessel_j0(A) @ B\n")
    done = run(workspace, ("corpus", "workloads", "graphs", "einsums", "bounds"))
    assert done["bounds"] == "4 of 8 bounds on gfx1200"
    missing = [value for _, _, value in workspace.store.items("bounds", "bound") if value["result"] is None]
    assert len(missing) == 4 and all("bessel_j0" in value["reason"] for value in missing)


@pytest.mark.slow
def test_the_path_of_the_parameters_is_the_path_of_the_release(workspace):
    bounds = {}
    for path in ("aten", "torchview"):
        (workspace.root / "params.yaml").write_text(PARAMETERS.replace("path: aten", f"path: {path}"))
        done = run(workspace, ("corpus", "workloads", "graphs", "einsums", "bounds"))
        assert "8 computed" in done["graphs"] and "8 computed" in done["einsums"]
        for stage, kind in (("graphs", "operator-graph"), ("einsums", "einsum-graph")):
            assert {value["path"] for _, _, value in workspace.store.items(stage, kind)} == {path}
        bounds[path] = {name: value["result"]["t_sol_s"] for name, _, value in workspace.store.items("bounds", "bound")}
    assert bounds["aten"] == bounds["torchview"] and len(bounds["aten"]) == 8


def test_a_path_that_does_not_exist_is_refused(workspace):
    (workspace.root / "params.yaml").write_text(PARAMETERS.replace("path: aten", "path: fx"))
    with pytest.raises(InputError, match="path"):
        run(workspace, ("corpus",))
    assert not (workspace.root / "store" / "corpus.json").exists()


@pytest.fixture
def generated(workspace):
    """The same with two Definitions of LLM_CORE and their rules."""
    shutil.copytree(
        ROOT / "problems" / "LLM_CORE",
        workspace.problems / "LLM_CORE",
        ignore=lambda folder, names: [
            name
            for name in names
            if (Path(folder).name == "rules" or (Path(folder) / name / "defaults.yaml").exists())
            and Path(name).stem not in ("norm_activation_rmsnorm", "position_rope_yarn")
        ],
    )
    capacities = "targets: [gfx1200, gfx942]\ncapacity_gib: {gfx1200: 16, gfx942: 192}"
    parameters = PARAMETERS.replace("targets: [gfx1200]\ncapacity_gib: {}", capacities)
    (workspace.root / "params.yaml").write_text(parameters)
    return workspace


@pytest.mark.slow
def test_generated_workloads_are_bound_on_their_own_target(generated):
    done = run(generated)
    assert done["workloads"] == "35 workloads, 2 configurations"
    assert done["bounds"] == "52 of 52 bounds on gfx1200, gfx942"
    targets: dict[str, set[str]] = {}
    for name in generated.store.index("bounds"):
        workload, _, target = name.rpartition("@")
        targets.setdefault(workload, set()).add(target)
    # The largest tensor limits the one, the memory class the other.
    shared = [targets[name] for name in targets if "/norm_activation_rmsnorm/" in name]
    own = [targets[name] for name in targets if "/position_rope_yarn/" in name]
    assert len(shared) == 9 and all(found == {"gfx1200", "gfx942"} for found in shared)
    assert len(own) == 18 and all(len(found) == 1 for found in own)
    release = generated.store.items("release", "release")
    (value,) = (value for _, _, value in release)
    assert value["problems"] == 4 and value["workloads"] == 35
    assert [(state["target"], state["bounds"], state["workloads"]) for state in value["targets"]] == [
        ("gfx1200", 26, 26),
        ("gfx942", 26, 26),
    ]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("gfx1200: 16", "gfx1200: 17", "capacity_gib.gfx1200"),
        ("gfx942: 192", "gfx941: 192", "gfx941"),
    ],
)
def test_a_wrong_capacity_is_one_line_and_changes_nothing(generated, old, new, names):
    path = generated.root / "params.yaml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError) as caught:
        run(generated, ("corpus",))
    assert names in str(caught.value) and "\n" not in str(caught.value)
    assert not (generated.root / "store" / "corpus.json").exists()
