"""Readiness matrices: what a target has to show, what it shows, and that a run is of this release."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from solbench import store as stores
from solbench.cli import run
from solbench.errors import InputError
from solbench.model.readiness import Readiness
from solbench.release import readiness
from solbench.stages import run_stage
from solbench.store import Store
from solbench.workspace import Workspace
from tests.bundles import sample_release

ROOT = Path(__file__).resolve().parents[3]
SCALE, ADD = "DEMO/unit/scale", "DEMO/unit/add"
PARAMETERS = """\
release: published
path: aten
targets: []
capacity_gib: {}
protocol: full
max_call_s: 0.25
budget_s: 60.0
"""
STAGES = ("corpus", "workloads", "bounds", "code")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return sample_release.build_store(tmp_path / "store")


def sections(store: Store) -> dict[str, Any]:
    return {stage: store.index(stage) for stage in STAGES}


def keys(store: Store, target: str, level: Any) -> list[readiness.Key]:
    return [case.key for case in readiness.cases(sections(store), store.load, target, level)]


def edit(store: Store, stage: str, name: str, **fields: Any) -> None:
    """One artifact with other fields, in the index as well."""
    index = store.index(stage)
    body = {key: value for key, value in store.load(stage, index[name]).items() if key != "kind"}
    index[name] = stores.put_json(store.root / stage / "objects", index[name].kind, {**body, **fields})
    (store.root / f"{stage}.json").write_bytes(stores.index_bytes(index))


def test_what_each_level_holds(store: Store) -> None:
    every = [(ADD, "w1"), (SCALE, "w1"), (SCALE, "w2")]
    assert keys(store, "cpu", "static") == [(*one, "") for one in every]
    # `fast` is PyTorch for the cpu; on gfx1200 only the baseline runs.
    runs = [(ADD, "w1", "eager"), *((SCALE, uuid, name) for uuid in ("w1", "w2") for name in ("eager", "fast"))]
    assert keys(store, "cpu", "full") == runs
    assert keys(store, "gfx1200", "full") == [(*one, "eager") for one in every]


def test_canary_is_the_smallest_and_the_largest_workload_of_each_problem(store: Store) -> None:
    index = store.index("workloads")
    for uuid, n in (("w0", 1 << 21), ("w3", 1 << 23)):
        value = store.load("workloads", index[f"{SCALE}/w1"])
        body = {key: entry for key, entry in value.items() if key != "kind"}
        body["workload"] = {**body["workload"], "uuid": uuid}
        body["axes"] = {"n": n}
        index[f"{SCALE}/{uuid}"] = stores.put_json(store.root / "workloads" / "objects", "workload", body)
    (store.root / "workloads.json").write_bytes(stores.index_bytes(index))
    # 2^20, 2^21, 2^22 and 2^23 elements: w1, w0, w2, w3.
    assert [key[:2] for key in keys(store, "gfx1200", "canary")] == [(ADD, "w1"), (SCALE, "w1"), (SCALE, "w3")]


def test_candidates_that_are_compiled_need_their_code(store: Store) -> None:
    spec = {"languages": ["triton"], "entry_point": "main.py::run", "target_hardware": ["gfx1200", "cpu"]}
    edit(store, "corpus", f"{SCALE}/solutions/fast", spec=spec)
    assert keys(store, "cpu", "full") == [(ADD, "w1", "eager"), (SCALE, "w1", "eager"), (SCALE, "w2", "eager")]
    found = keys(store, "gfx1200", "static")
    assert found == [(ADD, "w1", ""), *((SCALE, uuid, name) for uuid in ("w1", "w2") for name in ("", "fast"))]
    matrix = readiness.static(sections(store), store.load, "gfx1200")
    assert matrix is not None
    reasons = {item.key: item.reason for item in matrix.items}
    assert reasons[SCALE, "w1", "fast"] is None  # the sample holds its code for w1
    assert reasons[SCALE, "w2", "fast"] == "its code was not examined"
    assert (matrix.ready, matrix.total) == (4, 5)
    assert [item.key for item in readiness.unready(matrix)] == []  # without its code it has no result, and loses none


def test_a_bound_that_is_missing_or_not_attested(store: Store) -> None:
    edit(store, "bounds", f"{SCALE}/w1@cpu", result=None, reason="it cannot be priced")
    edit(store, "bounds", f"{SCALE}/w2@cpu", attestation=None)
    index = store.index("bounds")
    del index[f"{ADD}/w1@cpu"]
    (store.root / "bounds.json").write_bytes(stores.index_bytes(index))
    matrix = readiness.static(sections(store), store.load, "cpu")
    assert matrix is not None
    reasons = ["no bound was derived", "it cannot be priced", "its IR is not attested"]
    assert [item.reason for item in matrix.items] == reasons
    assert (matrix.ready, matrix.total, len(readiness.unready(matrix))) == (0, 3, 3)


def test_what_was_run(store: Store) -> None:
    matrix = sample_release.full_matrix(store, sections(store))
    reasons = {item.key: item.reason for item in matrix.items}
    assert reasons[ADD, "w1", "eager"] == "not run: over the cpu budget"
    assert reasons[SCALE, "w1", "eager"] is None
    assert reasons[SCALE, "w2", "fast"] is not None and reasons[SCALE, "w2", "fast"].startswith("INCORRECT_NUMERICAL")
    # A candidate that fails is a result; what the baseline did not run is none.
    assert [item.key for item in readiness.unready(matrix)] == [(ADD, "w1", "eager")]
    assert list(readiness.problems(matrix, sections(store), store.load)) == []


def test_records_of_another_version_did_not_run(store: Store) -> None:
    edit(store, "corpus", f"{SCALE}/solutions/fast", description="another")
    matrix = sample_release.full_matrix(store, sections(store))
    assert {item.reason for item in matrix.items if item.solution == "fast"} == {"not run"}


def test_a_matrix_of_another_release(store: Store) -> None:
    matrix = sample_release.full_matrix(store, sections(store))
    edit(store, "corpus", f"{SCALE}/solutions/fast", description="another")
    found = list(readiness.problems(matrix, sections(store), store.load))
    assert [where for where, _, _ in found] == [f"{SCALE}/w1/fast", f"{SCALE}/w2/fast"]


def test_written_and_read(store: Store, tmp_path: Path) -> None:
    matrix = sample_release.full_matrix(store, sections(store))
    path = readiness.write(matrix, tmp_path / "readiness")
    assert (path.parts[-2:], readiness.read(path)) == (("cpu", "full.json"), matrix)
    moved = path.rename(path.with_name("canary.json"))
    with pytest.raises(InputError, match="holds the full matrix of cpu"):
        readiness.read(moved)
    moved.write_text('{"kind":"release"}')
    with pytest.raises(InputError, match="must be a readiness matrix"):
        readiness.read(moved)


def changed(matrix: Readiness, **fields: Any) -> dict[str, Any]:
    return {**matrix.as_dict(), **fields}


def one_item(matrix: Readiness, **fields: Any) -> dict[str, Any]:
    """The first item that is ready, alone, with other fields."""
    item = next(item for item in matrix.as_dict()["items"] if item["ready"])
    return changed(matrix, items=[{**item, **fields}], total=1, ready=1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: changed(m, ready=5), "do not count"),
        (lambda m: changed(m, items=m.as_dict()["items"][::-1]), "must be sorted"),
        (lambda m: changed(m, place=None), "place: of what was run"),
        (lambda m: one_item(m, reason="x"), "reason: null"),
        (lambda m: one_item(m, candidate=None), "candidate: the"),
        (lambda m: changed(m, items=[], total=0, ready=0), "at least 1 item"),
    ],
)
def test_contract(store: Store, change: Any, words: str) -> None:
    matrix = sample_release.full_matrix(store, sections(store))
    assert Readiness.load(matrix.as_dict(), "test") == matrix
    with pytest.raises(InputError, match=words):
        Readiness.load(change(matrix), "test")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """One problem of two workloads, as the stages make it, without bounds; the cpu has a machine model all the same."""
    name = "AMD_AKA/torch2hip/l1n23_softmax"
    folder = tmp_path / "problems" / name
    shutil.copytree(ROOT / "problems" / name, folder)
    (tmp_path / "params.yaml").write_text(PARAMETERS)
    workspace = Workspace.at(tmp_path)
    for stage in ("corpus", "workloads"):
        run_stage(stage, workspace)
    for stage in ("bounds", "code"):
        (tmp_path / "store" / f"{stage}.json").write_bytes(stores.index_bytes({}))
    index = {
        "hardware/cpu": stores.put_json(tmp_path / "store/bounds/objects", "hardware", sample_release.machine("cpu"))
    }
    (tmp_path / "store" / "bounds.json").write_bytes(stores.index_bytes(index))
    return workspace


@pytest.mark.slow
def test_canary_runs_and_goes_on_where_it_was(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    root = ["--root", str(workspace.root), "--target", "cpu"]
    assert run(["qualify", "canary", *root, "--budget", "1s"]) == 3
    assert "run again" in capsys.readouterr().err
    assert not (workspace.root / "readiness").exists()
    assert run(["qualify", "canary", *root]) == 0
    out = capsys.readouterr().out
    matrix = readiness.read(workspace.root / "readiness" / "cpu" / "canary.json")
    solutions = sorted({item.solution or "" for item in matrix.items})
    assert solutions == ["eager", "openmp"] and (matrix.ready, matrix.total) == (4, 4)
    assert "cpu canary: 4 of 4 ready, blake3:" in out
    assert list((workspace.checkout / ".solbench" / "readiness").iterdir()) == []


def test_a_target_that_is_not_there(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["qualify", "static", "--target", "sm_90", "--root", str(workspace.root)]) == 2
    assert "--target sm_90: is not in this release; it has cpu" in capsys.readouterr().err
    assert run(["qualify", "static", "--target", "cpu", "--root", str(workspace.root)]) == 1
    assert "cpu static: 0 of 4 ready" in capsys.readouterr().out
