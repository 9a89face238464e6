"""A stage replaces its output whole or not at all, and sweeps what a killed one left."""

from __future__ import annotations

import subprocess
import sys

import pytest

from solbench import store
from solbench.errors import InputError
from solbench.workspace import Workspace, new_folder, stage_output, write_file


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_stage_output_writes_objects_and_index(tmp_path):
    with stage_output(tmp_path, "corpus") as output:
        descriptor = output.put("a", "definition", {"schema": "s"})
    found = store.Store(tmp_path)
    assert found.index("corpus") == {"a": descriptor}
    assert found.load("corpus", descriptor) == {"schema": "s", "kind": "definition"}
    assert names(tmp_path) == ["corpus", "corpus.json"]


def test_failure_leaves_the_old_output(tmp_path):
    with stage_output(tmp_path, "corpus") as output:
        output.put("a", "definition", {"schema": "s"})
    before = (tmp_path / "corpus.json").read_bytes()
    with pytest.raises(RuntimeError), stage_output(tmp_path, "corpus") as output:
        output.put("b", "definition", {"schema": "t"})
        raise RuntimeError
    assert (tmp_path / "corpus.json").read_bytes() == before
    assert [name for name, *_ in store.Store(tmp_path).items("corpus")] == ["a"]
    assert names(tmp_path) == ["corpus", "corpus.json"]


def test_leftovers_of_a_killed_run_are_swept(tmp_path):
    (tmp_path / ".corpus-killed" / "objects").mkdir(parents=True)
    with stage_output(tmp_path, "corpus"):
        pass
    assert names(tmp_path) == ["corpus", "corpus.json"]


def test_a_name_is_used_once(tmp_path):
    with pytest.raises(InputError, match="same name"), stage_output(tmp_path, "corpus") as output:
        output.put("a", "definition", {"schema": "s"})
        output.put("a", "definition", {"schema": "t"})


def test_write_file_replaces_and_leaves_nothing_behind(tmp_path):
    write_file(tmp_path / "x" / "y", b"1")
    write_file(tmp_path / "x" / "y", b"2")
    assert (tmp_path / "x" / "y").read_bytes() == b"2"
    assert names(tmp_path / "x") == ["y"]


def test_local_finds_its_checkout_and_parameters_are_linted(tmp_path):
    (tmp_path / "problems").mkdir()
    (tmp_path / "local").mkdir()
    workspace = Workspace.at(tmp_path / "local")
    assert workspace.checkout == tmp_path.resolve()
    (tmp_path / "params.yaml").write_text("release: yes\n")
    with pytest.raises(InputError, match=r"params\.yaml:1"):
        Workspace.at(tmp_path).parameters()
    (tmp_path / "params.yaml").write_text("release: published\nspeed: 3\n")
    with pytest.raises(InputError, match=r"params\.yaml"):
        Workspace.at(tmp_path).parameters()
    with pytest.raises(InputError, match="problems"):
        Workspace.at(tmp_path / "local" / "x")


def test_a_new_folder_is_whole_or_not_there(tmp_path):
    out = tmp_path / "out"
    with new_folder(out) as temporary:
        (temporary / "file").write_text("x")
        assert not out.exists()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "file"]
    assert out.stat().st_mode & 0o777 == 0o755
    with pytest.raises(RuntimeError), new_folder(tmp_path / "other"):
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "exists already; name a new folder"),
        ("file", "exists already; name a new folder"),
        ("link", "exists already; name a new folder"),
        ("none/out", "no such folder"),
        ("/proc/out", "/proc/out: cannot be made: "),
    ],
)
def test_a_new_folder_that_cannot_be(tmp_path, name, said):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(InputError, match=said), new_folder(tmp_path / name):
        raise AssertionError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "link"]


def test_a_kill_leaves_no_half_of_a_new_folder(tmp_path):
    code = """
import os, pathlib
from solbench.workspace import new_folder
with new_folder(pathlib.Path("out")) as temporary:
    (temporary / "half").write_text("x")
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".out-")
    with new_folder(tmp_path / "out"):  # the next one has its way
        pass
