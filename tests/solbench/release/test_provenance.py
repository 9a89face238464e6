"""What the statement beside a release says: the shape of SLSA provenance v1, and what was measured where."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import sample_release

from solbench import canonical
from solbench.release.provenance import measured, predicate
from solbench.store import Store, index_bytes, put_json

# Fields of the specification (slsa.dev/spec/v1.1/provenance, in-toto attestation v1: resource descriptor).
PREDICATE = {"buildDefinition", "runDetails"}
DEFINITION = {"buildType", "externalParameters", "internalParameters", "resolvedDependencies"}
DETAILS = {"builder", "metadata", "byproducts"}
BUILDER = {"id", "version", "builderDependencies"}
DESCRIPTOR = {"name", "uri", "digest", "content", "downloadLocation", "mediaType", "annotations"}


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git repository with one commit, and the files that say what is built."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("dvc.yaml", "params.yaml"):
        (folder / name).write_text(f"# {name}\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def nulls(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(nulls, value.values()))
    if isinstance(value, list):
        return sum(map(nulls, value))
    return value is None


def test_the_shape(sample: Path, checkout: Path) -> None:
    value = predicate(checkout, checkout, Store(sample / "store"))
    assert value.keys() == PREDICATE
    definition, details = value["buildDefinition"], value["runDetails"]
    assert {"buildType", "externalParameters"} <= definition.keys() <= DEFINITION
    assert {"builder"} <= details.keys() <= DETAILS
    assert {"id"} <= details["builder"].keys() <= BUILDER
    for uri in (definition["buildType"], details["builder"]["id"]):
        assert re.match(r"https://[a-z.]+/", uri)
    assert all(isinstance(version, str) for version in details["builder"]["version"].values())
    for descriptor in definition["resolvedDependencies"] + details["byproducts"]:
        assert descriptor.keys() <= DESCRIPTOR
        assert descriptor["digest"]
        for algorithm, digits in descriptor["digest"].items():
            assert re.fullmatch(r"[0-9a-f]{40}" if algorithm == "gitCommit" else r"[0-9a-f]{64}", digits)
    assert nulls(value) == 0
    canonical.dumps(value)


def test_source_and_files(sample: Path, checkout: Path) -> None:
    def dependencies() -> dict[str, Any]:
        value = predicate(checkout, checkout, Store(sample / "store"))["buildDefinition"]
        return {"clean": value["internalParameters"], **{d["name"]: d["digest"] for d in value["resolvedDependencies"]}}

    found = dependencies()
    assert found["source"] == {"gitCommit": git(checkout, "rev-parse", "HEAD")}
    assert found["clean"] == {"source_clean": True}
    digest = canonical.digest(b"# params.yaml\n").removeprefix("blake3:")
    assert found["params.yaml"] == {"blake3": digest}
    assert "dvc.lock" not in found
    (checkout / "params.yaml").write_text("# changed\n")
    assert dependencies()["clean"] == {"source_clean": False}
    assert dependencies()["params.yaml"] != found["params.yaml"]


def test_outside_git_there_is_no_revision_and_no_null(sample: Path, tmp_path: Path) -> None:
    value = predicate(tmp_path, tmp_path, Store(sample / "store"))
    assert value["buildDefinition"]["resolvedDependencies"] == []
    assert value["buildDefinition"]["internalParameters"] == {}
    assert nulls(value) == 0


def test_the_local_release_says_so(sample: Path, checkout: Path) -> None:
    for root, release in ((checkout, "published"), (checkout / "local", "local")):
        value = predicate(checkout, root, Store(sample / "store"))
        assert value["buildDefinition"]["externalParameters"] == {"release": release}


def test_what_was_measured_where(sample: Path) -> None:
    store = Store(sample / "store")
    assert measured(store) == [
        {
            "name": "cpu/full",
            "digest": {"blake3": store.index("timings")["cpu/full/header"].digest.removeprefix("blake3:")},
            "mediaType": "application/json",
            "annotations": {
                "target": "cpu",
                "origin": "own",
                "device": "Example CPU",
                "protocol": {
                    "name": "full", "processes": 6, "samples": 6, "max_call_s": 0.25, "isolation": ["rlimits"],
                },
                "harness": "blake3:" + "1" * 64,
                "environment": {"torch": "2.13.0"},
            },
        }
    ]  # fmt: skip


def added(store: Store, name: str, **changes: Any) -> None:
    value = {**sample_release.header().as_dict(), **changes}
    index = store.index("timings")
    index[name] = put_json(store.root / "timings" / "objects", "measurement-set", value)
    (store.root / "timings.json").write_bytes(index_bytes(index))


def test_sets_are_in_the_order_of_targets_and_names(sample: Path, tmp_path: Path) -> None:
    store = Store(Path(shutil.copytree(sample / "store", tmp_path / "store")))
    added(store, "gfx1200/one/header", target="gfx1200", device={"name": "Example card", "arch": "gfx1200"})
    added(store, "cpu/imported/theirs/header", device={"model": "Another CPU"})
    added(store, "cpu/a/header", device={"cores": 2})
    found = measured(store)
    assert [one["name"] for one in found] == ["cpu/a", "cpu/full", "cpu/imported/theirs", "gfx1200/one"]
    assert [one["annotations"].get("device") for one in found] == [None, "Example CPU", "Another CPU", "Example card"]
    assert "device" not in found[0]["annotations"]
    assert [one["annotations"]["origin"] for one in found] == ["own", "own", "imported", "own"]
    assert measured(store) == found


def test_without_measurements_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "timings.json").write_bytes(index_bytes({}))
    assert measured(Store(tmp_path)) == []


def test_no_time_host_or_path(sample: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = canonical.dumps(predicate(checkout, checkout, Store(sample / "store"))).decode()
    assert str(checkout) not in text and str(sample) not in text
    copy = checkout.parent / "elsewhere"
    shutil.copytree(checkout, copy)
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.chdir(sample)
    assert canonical.dumps(predicate(copy, copy, Store(sample / "store"))).decode() == text
