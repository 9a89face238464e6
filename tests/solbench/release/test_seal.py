"""Sealing: what a seal says, what keeps a release from getting one, and what a kill leaves."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import official_release
import pytest
import sample_release
from blake3 import blake3

from solbench import canonical
from solbench import store as stores
from solbench.cli import run
from solbench.release.verify import verify
from solbench.workspace import Workspace

ROOT = Path(__file__).resolve().parents[3]
PARAMETERS = """\
release: published
path: aten
targets: [gfx1200, cpu]
capacity_gib: {}
protocol: full
max_call_s: 0.25
budget_s: 60.0
"""
GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed checkout whose release is ready."""
    root = tmp_path_factory.mktemp("sealed") / "checkout"
    (root / "problems").mkdir(parents=True)
    (root / "problems" / "README").write_text("none\n")
    (root / "params.yaml").write_text(PARAMETERS)
    (root / ".gitignore").write_text(
        "/store/*/\n/.solbench/\n/release/*.zip\n/release/*.b3\n/release/*.seal.json\n/release/.*\n"
    )
    shutil.copytree(ROOT / "site_templates", root / "site_templates")
    store = official_release.build_store(root / "store")
    (root / "release").mkdir()
    (root / "release" / "published.json").write_bytes(store.read("release", store.index("release")["release"]))
    subprocess.run([*GIT, "init", "-q"], cwd=root, check=True)
    commit(root)
    return root


@pytest.fixture
def checkout(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "checkout"))


def commit(root: Path) -> None:
    subprocess.run([*GIT, "add", "-A"], cwd=root, check=True)
    subprocess.run([*GIT, "commit", "-qm", "x", "--allow-empty"], cwd=root, check=True)


def seal(root: Path, *options: str) -> int:
    return run(["release", "seal", "--root", str(root), *options])


def test_a_seal_names_archive_root_commit_and_readiness(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert seal(checkout) == 0
    out = capsys.readouterr().out
    assert "cpu full: 4 of 5 ready" in out and "gfx1200 static: 3 of 3 ready" in out
    archive = checkout / "release" / "published.zip"
    statement = canonical.loads((checkout / "release" / "published.zip.seal.json").read_bytes())
    data, release = archive.read_bytes(), (checkout / "release" / "published.json").read_bytes()
    assert statement["subject"] == [
        {"name": name, "digest": {"blake3": blake3(one).hexdigest(), "sha256": hashlib.sha256(one).hexdigest()}}
        for name, one in (("published.zip", data), ("release.json", release))
    ]
    predicate = statement["predicate"]
    head = subprocess.run([*GIT, "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True)
    assert (predicate["root"], predicate["gitCommit"]) == (canonical.digest(release), head.stdout.strip())
    assert [(one["target"], one["level"], one["ready"], one["total"]) for one in predicate["readiness"]] == [
        ("cpu", "static", 3, 3), ("cpu", "full", 4, 5), ("gfx1200", "static", 3, 3),
    ]  # fmt: skip
    assert all(level["state"] in ("verified", "skipped") for level in predicate["levels"])
    assert verify(archive, predicate["root"]).exit_code == 0


def test_sealing_again_changes_nothing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert seal(checkout) == 0
    before = {path.name: path.read_bytes() for path in (checkout / "release").iterdir()}
    capsys.readouterr()
    assert seal(checkout) == 0
    assert "seal.json: as it was" in capsys.readouterr().out
    assert {path.name: path.read_bytes() for path in (checkout / "release").iterdir()} == before


def uncommitted(root: Path) -> None:
    (root / "params.yaml").write_text(PARAMETERS + "# more\n")


def without(name: str) -> Callable[[Path], None]:
    """A release that was made without one matrix."""

    def apply(root: Path) -> None:
        store = Workspace.at(root).store
        index = store.index("readiness")
        gone = index.pop(name)
        (root / "store" / "readiness" / "objects" / gone.path).unlink()
        remake(root, index)

    return apply


def not_run(root: Path) -> None:
    matrix_item(root, "not run: budget")


def matrix_item(root: Path, reason: str) -> None:
    """The release with another word about the baseline's first workload."""

    def new(value: dict[str, Any]) -> dict[str, Any]:
        first = {**value["items"][0], "ready": False, "reason": reason}
        return {**value, "items": [first, *value["items"][1:]], "ready": value["ready"] - 1}

    store = Workspace.at(root).store
    official_release.change(store, "readiness", "cpu/full", new)
    remake(root, store.index("readiness"))


def failing_baseline(root: Path) -> None:
    matrix_item(root, "RUNTIME_ERROR: it crashed")


def remake(root: Path, readiness: dict[str, stores.Descriptor]) -> None:
    """The release over another section readiness, committed."""
    from solbench.release.root import build_release

    (root / "store" / "readiness.json").write_bytes(stores.index_bytes(readiness))
    shutil.rmtree(root / "store" / "release")
    output = sample_release.StageOutput(root / "store" / "release" / "objects")
    output.objects.mkdir(parents=True)
    made = build_release(Workspace.at(root).store, "sample", output)
    (root / "store" / "release.json").write_bytes(stores.index_bytes(output.index))
    (root / "release" / "published.json").write_bytes(made.data)
    commit(root)


def damaged(root: Path) -> None:
    path = next((root / "store" / "bounds" / "objects").glob("*/*"))
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))


def another_release(root: Path) -> None:
    (root / "release" / "published.json").write_text("{}")
    commit(root)


@pytest.mark.parametrize(
    ("damage", "code", "words"),
    [
        (uncommitted, 2, "has changes that are not committed"),
        (without("gfx1200/static"), 2, "readiness: gfx1200/static: is missing, and every target needs it"),
        (without("cpu/full"), 2, "readiness: cpu/full: is missing, and it has times; run `solbench qualify full"),
        (not_run, 2, "1 of 5 hold it back, as DEMO/unit/add/w1/eager: not run: budget"),
        (failing_baseline, 2, "1 of 5 hold it back, as DEMO/unit/add/w1/eager: RUNTIME_ERROR: it crashed"),
        (damaged, 1, "store: digest-mismatch bounds/objects/"),
        (another_release, 2, "is not the release that the store holds"),
        (lambda root: shutil.rmtree(root / ".git"), 2, "is no git checkout"),
    ],
)
def test_what_keeps_a_release_from_being_sealed(
    checkout: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None], code: int, words: str
) -> None:
    damage(checkout)
    assert seal(checkout) == code
    assert words in capsys.readouterr().err
    assert not (checkout / "release" / "published.zip.seal.json").exists()


def test_what_the_machine_cannot_hold_is_told(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix_item(checkout, "UNSUPPORTED: memory: needs about 26 GiB, 20 GiB are available")
    assert seal(checkout) == 0
    assert "cpu full: 3 of 5 ready" in capsys.readouterr().out


def test_a_seal_does_not_outlive_its_archive(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert seal(checkout) == 0

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("solbench.release.bundle._write_whole", fails)
    assert seal(checkout) == 3
    assert not (checkout / "release" / "published.zip.seal.json").exists()


def test_a_directory_cannot_be_sealed(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert seal(checkout, "--format", "directory") == 2
    capsys.readouterr()
    assert seal(checkout, "--output", str(checkout / "release" / "x.tar.gz")) == 0
    statement = json.loads((checkout / "release" / "x.tar.gz.seal.json").read_bytes())
    assert statement["subject"][0]["name"] == "x.tar.gz"


def killed_after(root: Path, seconds: float) -> bool:
    """Run the command in a group of its own and kill that; whether it was still running."""
    code = "import sys; from solbench.cli import run; sys.exit(run(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "release", "seal", "--root", str(root)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd=ROOT,
    )  # fmt: skip
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True


@pytest.mark.slow
def test_killed_at_any_moment_the_next_run_seals(checkout: Path, built: Path) -> None:
    assert seal(checkout) == 0
    names = ("published.zip", "published.zip.b3", "published.zip.seal.json")
    whole = {name: (checkout / "release" / name).read_bytes() for name in names}
    took_s, kills = 600.0, 0
    for step in range(-1, 20):
        begun = time.monotonic()
        killed = killed_after(checkout, took_s * (step + 0.5) / 20 if step >= 0 else took_s)
        if not killed:  # the first run, and one that was quicker than those before
            took_s = min(took_s, time.monotonic() - begun)
        kills += killed
        path = checkout / "release" / names[2]
        if path.exists():
            # Where there is a seal, the archive beside it is the one that it names.
            digest = json.loads(path.read_bytes())["subject"][0]["digest"]["sha256"]
            assert hashlib.sha256((checkout / "release" / names[0]).read_bytes()).hexdigest() == digest
    assert kills >= 10
    assert seal(checkout) == 0
    assert sorted(path.name for path in (checkout / "release").iterdir()) == sorted([*names, "published.json"])
    assert {name: (checkout / "release" / name).read_bytes() for name in names} == whole
