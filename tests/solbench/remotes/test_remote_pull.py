"""A pull gives what git states or says what is wrong; whatever a remote, the cache or DVC's memory holds."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from remote_checkout import ROOT, files_below, fresh_clone

from solbench import store
from solbench.evaluate import namespaces
from solbench.remotes import folder as folders
from solbench.remotes.wanted import locked_outs


def object_of(checkout, path):
    """The file on the remote that holds what belongs at ``path``; of a folder its listing."""
    for out in locked_outs(checkout.root):
        if out.path == path:
            return checkout.objects / out.md5[:2] / out.md5[2:]
        if path.startswith(out.path + "/"):
            entries = json.loads((checkout.objects / out.md5[:2] / out.md5[2:]).read_bytes())
            md5 = next(e["md5"] for e in entries if f"{out.path}/{e['relpath']}" == path)
            return checkout.objects / md5[:2] / md5[2:]
    raise KeyError(path)


def replace(path, data):
    path.unlink()
    path.write_bytes(data)


def some(checkout, stage, name):
    index = store.read_index(checkout.root / "store" / f"{stage}.json")
    return f"store/{stage}/objects/{index[name].path}"


def test_pull_from_a_folder_gives_what_was_pushed(made, clone, capfd):
    before = files_below(clone.folder)
    assert clone.run("pull") == 0
    last = capfd.readouterr().out.splitlines()[-1]
    # 120 + 23 + 23 + 1 files; one object is in three of them, one (empty) in two; and three listings.
    assert last.startswith("167 of 167 objects, 164 of them fetched now; 167 files in 4 outs, ")
    assert clone.outs() == made.outs()
    assert files_below(clone.folder) == before
    assert clone.dvc("status", "-q") == 0
    # The second finds everything here, and needs no remote.
    shutil.rmtree(clone.folder)
    assert clone.run("pull") == 0
    assert "0 of them fetched now" in capfd.readouterr().out


def test_a_lost_cache_is_filled_from_what_is_right_here(checkout, capfd):
    before = checkout.outs()
    shutil.rmtree(checkout.cache)
    assert checkout.run("pull") == 0
    assert "0 of them fetched now" in capfd.readouterr().out
    assert len(files_below(checkout.cache)) == 167
    assert checkout.outs() == before


ALTERATIONS = {
    "flipped": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "truncated": lambda data: data[:-1],
    "emptied": lambda data: b"",
    "appended": lambda data: data + b"\n",
}
PLACES = ("artifact", "raw", "page", "file", "listing", "page listing")


def place(clone, which):
    if which == "artifact":
        return some(clone, "corpus", "problem-50")
    if which == "raw":
        return some(clone, "code", "object-3")
    return {"page": "site/page-3.html", "file": "notes.txt", "listing": "store/corpus", "page listing": "site"}[which]


@pytest.mark.parametrize("which", PLACES)
def test_an_altered_object_lands_nowhere(clone, capsys, which):
    path = place(clone, which)
    target = object_of(clone, path)
    good = target.read_bytes()
    for how, alter in ALTERATIONS.items():
        replace(target, alter(good))
        outside = files_below(clone.folder)
        assert clone.run("pull") == 1, how
        said = capsys.readouterr().err
        assert path in said and "nothing was checked out" in said and len(said.splitlines()) == 1
        assert not (clone.cache / target.relative_to(clone.objects)).exists()
        assert not [name for name in clone.outs() if not name.endswith((".json", ".gitignore"))]
        assert files_below(clone.folder) == outside
        assert not list(clone.cache.glob(".incoming*"))


@pytest.mark.parametrize("what", ["missing", "listing", "link", "pipe", "folder"])
def test_something_else_under_the_name_of_an_object(clone, capsys, tmp_path, what):
    path = place(clone, "artifact")
    target = object_of(clone, path)
    target.unlink()
    secret = tmp_path / "secret"
    secret.write_text("not to be copied")
    if what == "listing":
        target.write_bytes(object_of(clone, "store/corpus").read_bytes())
    elif what == "link":
        target.symlink_to(secret)
    elif what == "pipe":
        os.mkfifo(target)
    elif what == "folder":
        target.mkdir()
    assert clone.run("pull") == 1
    assert path in capsys.readouterr().err
    assert b"not to be copied" not in files_below(clone.root).values()


@pytest.mark.slow
def test_a_remote_of_links_to_the_right_bytes_will_do(made, clone, tmp_path):
    target = object_of(clone, place(clone, "artifact"))
    target.rename(tmp_path / "elsewhere")
    target.symlink_to(tmp_path / "elsewhere")
    assert clone.run("pull") == 0
    assert clone.outs() == made.outs()


def test_a_lock_that_names_a_hostile_listing(clone, capsys, tmp_path):
    """As in a bad commit: the listing has the bytes that its name says, and leads out of the folder."""
    import hashlib

    (site,) = (out for out in locked_outs(clone.root) if out.path == "site")
    entries = json.loads(object_of(clone, "site").read_bytes())
    entries[0]["relpath"] = "../../planted"
    data = json.dumps(entries).encode()
    name = hashlib.md5(data).hexdigest() + ".dir"
    (clone.objects / name[:2]).mkdir(exist_ok=True)
    (clone.objects / name[:2] / name[2:]).write_bytes(data)
    lock = clone.root / "dvc.lock"
    lock.write_text(lock.read_text().replace(site.md5, name))
    outside = set(os.listdir(tmp_path))
    assert clone.run("pull") == 1
    assert "it holds the path '../../planted'" in capsys.readouterr().err
    assert set(os.listdir(tmp_path)) == outside and not (clone.root / "planted").exists()
    assert not (clone.cache / name[:2] / name[2:]).exists()


def test_an_index_of_another_commit_is_refused(clone, capsys):
    path = clone.root / "store" / "corpus.json"
    index = store.read_index(path)
    del index["problem-9"]
    path.write_bytes(store.index_bytes(index))
    assert clone.run("pull") == 1
    assert "not of one rebuild: 1 objects differ" in capsys.readouterr().err


def test_a_poisoned_cache_is_no_source(made, checkout):
    """Objects and a listing altered at mode 0444, which DVC takes for proof, and no file of theirs is left here."""
    for path in (some(checkout, "corpus", "problem-50"), "site/page-3.html", "store/code"):
        relative = object_of(checkout, path).relative_to(checkout.objects)
        data = (checkout.cache / relative).read_bytes()
        replace(checkout.cache / relative, bytes([data[0] ^ 1]) + data[1:])
        (checkout.cache / relative).chmod(0o444)
    for out in ("store/corpus", "store/code", "site"):
        shutil.rmtree(checkout.root / out)
    assert checkout.run("pull") == 0
    assert checkout.outs() == made.outs()
    assert files_below(checkout.cache) == files_below(made.cache)


def test_what_dvc_remembers_is_not_believed(made, clone):
    """A file altered in place with size, time and inode as DVC knows them: DVC sees no change, a pull does."""
    assert clone.run("pull") == 0
    victim = clone.root / some(clone, "corpus", "problem-50")
    status = victim.stat()
    data = victim.read_bytes()
    with victim.open("r+b") as file:
        file.write(bytes([data[0] ^ 1]))
    os.utime(victim, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert clone.dvc("status", "-q") == 0
    assert clone.run("pull") == 0
    assert clone.outs() == made.outs()


@pytest.mark.slow
def test_what_a_plain_pull_from_a_tampered_remote_left_is_not_believed(made, clone):
    """DVC may keep a wrong listing in the cache and in its own database; none of it survives a pull."""
    target = object_of(clone, "site")
    good = target.read_bytes()
    entries = json.loads(good)
    entries.append({"md5": entries[0]["md5"], "relpath": "planted.html"})
    replace(target, json.dumps(entries).encode())
    clone.dvc("pull", "-q", "site")
    shutil.rmtree(clone.root / "site", ignore_errors=True)
    replace(target, good)
    assert clone.run("pull") == 0
    assert clone.outs() == made.outs()


@pytest.mark.slow
@pytest.mark.parametrize(
    "where", ["store/corpus/objects/ab/planted", "store/planted/objects/x", "store/x.txt", "site/x"]
)
def test_a_file_that_does_not_belong_there_is_refused(checkout, capfd, where):
    planted = checkout.root / where
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text("mine")
    assert checkout.run("pull") == 1
    said = capfd.readouterr().err
    assert where in said and "move" in said.splitlines()[-1]
    assert planted.read_text() == "mine"
    planted.unlink()


@pytest.mark.slow
def test_an_edited_page_is_not_overwritten(checkout, capfd):
    page = checkout.root / "site" / "index.html"
    page.write_text("mine")
    assert checkout.run("pull") == 1
    assert "move them away" in capfd.readouterr().err.splitlines()[-1]
    assert page.read_text() == "mine"


@pytest.mark.parametrize("where", ["store", "store/corpus", "site/assets", "site/index.html"])
def test_a_link_in_the_way_is_not_followed(checkout, capsys, tmp_path, where):
    path = checkout.root / where
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    elsewhere = files_below(tmp_path / "elsewhere") if path.is_dir() else path.read_bytes()
    assert checkout.run("pull") == 2
    assert f"{where}: neither a file nor a folder" in capsys.readouterr().err
    assert (files_below(tmp_path / "elsewhere") if path.is_dir() else path.read_bytes()) == elsewhere


@pytest.mark.parametrize("verb", [("pull",), ("push",), ("remote", "check")])
def test_a_remote_without_verify_is_refused(checkout, capsys, verb, tmp_path):
    checkout.add_remote("bare", str(tmp_path / "remote"))
    checkout.add_remote("off", str(tmp_path / "remote"), "verify = false")
    (checkout.root / ".dvc" / "config.local").write_text(f"['remote \"mine\"']\n    url = {tmp_path / 'remote'}\n")
    for name, level in (("bare", ""), ("off", ""), ("mine", "--local ")):
        assert checkout.run(*verb, "-r", name) == 2
        said = capsys.readouterr().err
        assert f"remote {name}: has no `verify = true`" in said
        assert f"remote modify {level}{name} verify true`" in said
    assert checkout.run(*verb, "-r", "folder") == 0


@pytest.mark.slow
def test_the_command_that_is_named_sets_verify(checkout, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(checkout.root)
    (checkout.root / ".dvc" / "config.local").write_text(f"['remote \"mine\"']\n    url = {tmp_path / 'remote'}\n")
    assert checkout.run("remote", "check", "-r", "mine") == 2
    command = capsys.readouterr().err.split("`")[3]
    assert command == "dvc remote modify --local mine verify true"
    assert checkout.dvc(*command.split()[1:]) == 0
    assert checkout.run("remote", "check", "-r", "mine") == 0


def test_no_such_remote(clone, capsys):
    assert clone.run("pull", "-r", "nowhere") == 2
    assert "no such remote" in capsys.readouterr().err
    clone.add_remote("bucket", "s3://bucket/path", "verify = true")
    assert clone.run("pull", "-r", "bucket") == 4
    assert "requires 'dvc-s3' to be installed" in capsys.readouterr().err
    shutil.rmtree(clone.folder)
    assert clone.run("pull") == 3
    assert "no such folder" in capsys.readouterr().err


@pytest.mark.slow
def test_the_local_root(made, clone, capsys):
    """`local/` is a DVC root of its own inside a checkout, whose lock it shares."""
    inner = fresh_clone(made, clone.root / "local", clone.folder)
    shutil.rmtree(inner.root / "problems")
    assert inner.run("pull") == 0
    assert inner.outs() == made.outs()
    assert (clone.root / ".solbench" / "repro.lock").exists() and not (inner.root / ".solbench").exists()
    assert inner.run("push") == inner.run("remote", "check") == 0
    assert "167 of 167 objects are there" in capsys.readouterr().out


@pytest.mark.slow
def test_the_run_cache_is_never_pulled(made, clone):
    shutil.copytree(made.root / ".dvc" / "cache" / "runs", clone.folder / "runs")
    assert clone.run("pull") == 0
    assert not (clone.root / ".dvc" / "cache" / "runs").exists()


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_the_next_pull_goes_on(made, clone, capsys, monkeypatch):
    written = 0
    real = os.write

    def write(handle, data):
        nonlocal written
        written += 1
        if written > 30:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(folders.os, "write", write)
    assert clone.run("pull") == 3
    said = capsys.readouterr().err
    assert "cannot be written: No space left on device; free some space and run again" in said
    monkeypatch.undo()
    kept = len(files_below(clone.cache))
    assert 0 < kept < 100 and not list(clone.cache.glob(".incoming*"))
    assert clone.run("pull") == 0
    assert f"{167 - kept} of them fetched now" in capsys.readouterr().out.splitlines()[-1]
    assert clone.outs() == made.outs()


@pytest.mark.skipif(namespaces.missing() is not None, reason=str(namespaces.missing()))
def test_a_read_only_workspace_is_one_line(clone):
    command = namespaces.command(reads=[clone.root, clone.folder, ROOT], cwd=clone.root)
    program = "import sys; from solbench.cli import run; sys.exit(run(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, sys.executable, "-c", program, "pull", "--root", str(clone.root)],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "Read-only file system" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_stage_that_is_gone_is_not_asked_for(made, clone):
    """DVC keeps in dvc.lock what it once locked; nobody needs it."""
    lock = clone.root / "dvc.lock"
    gone = "  gone:\n    cmd: x\n    outs:\n    - {path: store/gone, hash: md5, md5: MD5.dir, size: 1, nfiles: 1}\n"
    lock.write_text(lock.read_text() + gone.replace("MD5", "0123456789abcdef" * 2))
    assert clone.run("pull") == 0
    assert clone.outs() == made.outs()


def test_nothing_is_not_everything(clone, capsys):
    (clone.root / "dvc.lock").write_text("schema: '2.0'\nstages: {}\n")
    for verb in (("pull",), ("push",), ("remote", "check")):
        assert clone.run(*verb) == 1
        assert "nothing was checked" in capsys.readouterr().err
    assert not Path(clone.cache).exists()
