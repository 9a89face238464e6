"""``solbench release diff``: what it shows of two releases, from wherever they are read."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import sample_release
from sample_release import rewrite

from solbench import store
from solbench.cli import run
from solbench.errors import IntegrityError
from solbench.release import bundle
from solbench.release.diff import Field, diff
from solbench.release.reading import from_root, opened
from solbench.store import Descriptor, Store

SCALE = "DEMO/unit/scale"
SCORE = f"{SCALE}/w1@cpu/fast"


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["release", "diff", "--json", *arguments]) == 0
    return dict(json.loads(capsys.readouterr().out))


def changes(value: dict[str, Any], stage: str) -> dict[str, dict[str, tuple[Any, Any]]]:
    [found] = [one for one in value["stages"] if one["stage"] == stage]
    return {
        change["name"]: {field["field"]: (field["old"], field["new"]) for field in change["fields"]}
        for change in found["changed"]
    }


def artifact(sample: Path, stage: str, name: str) -> dict[str, Any]:
    one = Store(sample / "store")
    return one.load(stage, one.index(stage)[name])


def test_the_same_release_in_any_form_is_one_line(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Store(sample / "store").index("release")["release"].digest
    packed = tmp_path / "sample.tar.gz"
    bundle.write_bundle(Store(sample / "store"), packed, sample_release.PREDICATE, form="tar.gz")
    for other in (sample / "sample", sample / "sample.zip", sample, sample / "store", packed):
        assert run(["release", "diff", "--exit-code", str(sample / "sample.zip"), str(other)]) == 0
        assert capsys.readouterr().out == f"identical: {root}\n"


def test_numbers_old_and_new_with_their_ratio(sample: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    score = artifact(sample, "scores", SCORE)
    entry = artifact(sample, "scores", "cpu/fast")

    def slower(value: dict[str, Any]) -> dict[str, Any]:
        t_k = {**value["t_k"], "point_s": value["t_k"]["point_s"] * 2}
        return {**value, "t_k": t_k, "s": value["s"] / 4, "state": "too_narrow"}

    rewrite(folder, "scores", SCORE, slower)
    rewrite(folder, "scores", "cpu/fast", lambda value: {**value, "s": 0.125, "scored": 0, "failed": 3})
    both = str(sample / "sample.zip"), str(folder)
    assert changes(document(capsys, *both), "scores") == {
        SCORE: {
            "state": ("scored", "too_narrow"),
            "s": (score["s"], score["s"] / 4),
            "t_k_s": (score["t_k"]["point_s"], score["t_k"]["point_s"] * 2),
        },
        "cpu/fast": {"s": (entry["s"], 0.125), "scored": (entry["scored"], 0), "failed": (entry["failed"], 3)},
    }
    assert run(["release", "diff", "--exit-code", *both]) == 1
    out = capsys.readouterr().out
    [line] = [line for line in out.splitlines() if SCORE in line]
    assert "state scored -> too_narrow" in line and "(x0.25)" in line and "(x2)" in line
    others = len(Store(sample / "store").index("scores")) - 2
    assert f"scores: 0 added, 0 removed, 2 changed, {others} same" in out
    assert "cpu       timed, 2 of 3 timed" in out and "bounds: 0 added, 0 removed, 0 changed" in out


def test_bounds_and_machine_models(sample: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{SCALE}/w1@gfx1200"
    old = artifact(sample, "bounds", name)["result"]["t_sol_s"]

    def other(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "result": {**value["result"], "t_sol_s": old * 3, "binds": "valu"}}

    rewrite(folder, "bounds", name, other)
    found = changes(document(capsys, str(sample / "sample"), str(folder)), "bounds")
    assert found == {name: {"t_sol_s": (old, old * 3), "binds": ("memory", "valu")}}


def test_kernels_by_the_launch_that_uses_them(sample: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [kernel] = [name for name in Store(sample / "store").index("code") if name.startswith("kernel/")]
    resources = artifact(sample, "code", kernel)["evidence"]["resources"]

    def bigger(value: dict[str, Any]) -> dict[str, Any]:
        new = {**resources, "vgprs": resources["vgprs"] + 7, "vgpr_spills": 5, "lds_bytes": 4096}
        return {**value, "evidence": {**value["evidence"], "resources": new}}

    rewrite(folder, "code", kernel, bigger)
    value = document(capsys, str(sample / "sample"), str(folder))
    assert changes(value, "code") == {
        f"{SCALE}/w1/fast@gfx1200": {
            "product: vgprs": (resources["vgprs"], resources["vgprs"] + 7),
            "product: vgpr_spills": (resources["vgpr_spills"], 5),
            "product: lds_bytes": (resources["lds_bytes"], 4096),
        }
    }
    assert run(["release", "diff", str(sample / "sample"), str(folder)]) == 0
    out = capsys.readouterr().out
    assert "  + 1 x kernel\n" in out and "  - 1 x kernel\n" in out and kernel not in out


def test_emulated_verdicts(sample: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 2^20 elements the fixture says that 2^20 / 128 waves executed five instructions each."""
    name = f"{SCALE}/w1/fast@gfx1200"

    def slower(value: dict[str, Any]) -> dict[str, Any]:
        whole, small = value["emulation"]["instances"]
        executed = {**whole["executed"], "instructions": 7}
        instances = [{**whole, "executed": executed}, {**small, "ended": "too long"}]
        toolchain = {**value["toolchain"], "emulator": "blake3:" + "f" * 64}
        return {**value, "toolchain": toolchain, "emulation": {**value["emulation"], "instances": instances}}

    rewrite(folder, "verdicts", name, slower)
    assert changes(document(capsys, str(sample / "sample"), str(folder)), "verdicts") == {
        name: {
            "emulator": ("blake3:" + "e" * 64, "blake3:" + "f" * 64),
            "whole: instructions": (5 * 2**20 // 128, 7),
            "reduced: n: ended": (None, "too long"),
        }
    }


def test_texts_as_lines_and_escaped(sample: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def longer(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "reference": "# \x1b[2J\n" + value["reference"], "description": "\x1b[2J\u202e"}

    def rewritten(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "sources": [{"path": "main.py", "content": "import torch\n\n\ndef run(x):\n    return x\n"}]}

    rewrite(folder, "corpus", SCALE, longer)
    rewrite(folder, "corpus", f"{SCALE}/solutions/fast", rewritten)
    found = changes(document(capsys, str(sample / "sample"), str(folder)), "corpus")
    assert found == {
        SCALE: {"description": (None, "\x1b[2J\u202e"), "reference (lines)": ("2 (-0)", "3 (+1)")},
        f"{SCALE}/solutions/fast": {"sources.main.py (lines)": ("2 (-1)", "5 (+4)")},
    }
    assert run(["release", "diff", str(sample / "sample"), str(folder)]) == 0
    out = capsys.readouterr().out
    assert r"description none -> \x1b[2J\u202e" in out
    assert all(character.isprintable() or character == "\n" for character in out)


# -- folders with a store, and revisions


@pytest.fixture
def checkout(sample: Path, tmp_path: Path) -> Path:
    """A git repository that tracks the indexes and the root, as ours does."""
    root = tmp_path / "checkout"
    shutil.copytree(sample / "store", root / "store")
    (root / "release").mkdir()
    one = Store(root / "store")
    (root / "release" / "published.json").write_bytes(one.read("release", one.index("release")["release"]))
    git(root, "init", "-q")
    git(root, "add", "store/*.json", "release/published.json")
    git(root, "commit", "-q", "-m", "one")
    return root


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=tests", "-c", "user.email=tests@example.org")
    subprocess.run(["git", *identity, "-C", str(root), *arguments], check=True, capture_output=True)


def set_index(root: Path, stage: str, change: Any) -> None:
    path = root / "store" / f"{stage}.json"
    index = store.read_index(path)
    change(index)
    path.write_bytes(store.index_bytes(index))


def object_of(root: Path, stage: str, name: str) -> Path:
    return root / "store" / stage / "objects" / Store(root / "store").index(stage)[name].path


def test_a_revision_and_what_is_no_longer_here(
    sample: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = "git:HEAD", str(checkout), "--root", str(checkout)
    assert run(["release", "diff", *both]) == 0
    assert capsys.readouterr().out.startswith("identical: blake3:")
    # The next release: new scores, and the old objects are gone, as DVC replaces a stage's folder.
    names = [f"{SCALE}/w1@cpu/{name}" for name in ("eager", "fast")]
    for name in names:
        path = object_of(checkout, "scores", name)
        value = json.loads(path.read_bytes())
        new = store.put_json(checkout / "store" / "scores" / "objects", "score", {**value, "s": 0.25})
        set_index(checkout, "scores", lambda index, name=name, new=new: index.update({name: new}))
        if name == names[0]:
            path.unlink()
    value = document(capsys, *both)
    assert value["compared"] == [1, 2]
    assert changes(value, "scores") == {
        names[0]: {},
        names[1]: {"s": (artifact(sample, "scores", names[1])["s"], 0.25)},
    }
    assert run(["release", "diff", *both]) == 0
    out = capsys.readouterr().out
    assert f"{names[0]}: the old content is not here" in out
    assert "1 of 2 changed artifacts compared" in out and "2 changed (1 compared)" in out
    # What can be shown comes first.
    assert out.index(names[1]) < out.index(names[0])
    # Two revisions of which the store holds neither object.
    git(checkout, "commit", "-q", "-a", "-m", "two")
    object_of(checkout, "scores", names[0]).unlink()
    found = document(capsys, "git:HEAD~1", "git:HEAD", "--root", str(checkout))
    [scores] = [one for one in found["stages"] if one["stage"] == "scores"]
    assert scores["changed"][0]["not_here"] == ["old", "new"]


def test_added_removed_moved(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Path(shutil.copytree(checkout, checkout.parent / "other"))

    def change(index: dict[str, Descriptor]) -> None:
        index["moved/w1"] = index.pop("DEMO/unit/add/w1")
        del index[f"{SCALE}/w2"]
        for number in range(25):
            index[f"new/{number:02}"] = Descriptor("operator-graph", "blake3:" + f"{number:064}", 1)

    set_index(other, "graphs", change)
    assert run(["release", "diff", str(checkout), str(other)]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("graphs: 25 added, 1 removed, 1 moved, 0 changed, 1 same")
    assert lines[start + 1] == "  > DEMO/unit/add/w1 -> moved/w1"
    assert lines[start + 21] == "  ... and 7 more (--all)"
    assert run(["release", "diff", "--all", str(checkout), str(other)]) == 0
    assert f"  - {SCALE}/w2" in capsys.readouterr().out.splitlines()


def test_every_object_is_checked(
    sample: Path, folder: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(folder, "scores", SCORE, lambda value: {**value, "s": 0.125})
    path = object_of(checkout, "scores", SCORE)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"fast", b"fasT"))
    assert run(["release", "diff", str(checkout), str(folder)]) == 1
    assert "digest is blake3:" in capsys.readouterr().err
    with opened(str(folder), checkout) as one, pytest.raises(IntegrityError):
        diff(from_root(checkout), one)


def test_a_bundle_that_is_not_safe_to_read_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "objects" / "link").symlink_to("/etc/passwd")
    assert run(["release", "diff", str(folder), str(folder)]) == 1
    assert "run `solbench verify` on it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["git:nope", "git:--help", "git:", "nowhere.zip", "git:HEAD:store"])
def test_what_is_no_release(checkout: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(["release", "diff", str(checkout), name, "--root", str(checkout)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (2, 1, 0.5),
        (2.0, 5, 2.5),
        (0, 1, None),
        (None, 1, None),
        (True, 1, None),
        ("1", "2", None),
        (1e-300, 1e300, None),
    ],
)
def test_ratio(old: Any, new: Any, expected: float | None) -> None:
    found = Field("x", old, new).ratio
    assert found == expected


def test_an_older_release_has_fewer_fields(sample: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(folder, "scores", SCORE, lambda value: {"kind": "score", "schema": "solbench.score.v0", "t_k": 3})
    found = changes(document(capsys, str(sample / "sample"), str(folder)), "scores")[SCORE]
    assert found["t_k_s"][1] is None and found["state"] == ("scored", None)
