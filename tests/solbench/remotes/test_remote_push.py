"""A push sends what was found right here, all that the remote lacks, whatever DVC believes; a check says what lacks."""

from __future__ import annotations

import json
import shutil

import pytest
from remote_checkout import files_below
from test_remote_pull import ALTERATIONS, object_of, place, replace, some

from solbench.remotes.folder import Folder


def test_push_to_an_empty_folder(checkout, made, capsys):
    shutil.rmtree(checkout.folder)
    assert checkout.run("push") == 0
    assert "167 of 167 objects are on the remote, 167 of them sent now" in capsys.readouterr().out
    assert files_below(checkout.folder) == files_below(made.folder)
    assert checkout.run("push") == 0
    assert "0 of them sent now" in capsys.readouterr().out


@pytest.mark.slow
def test_dvc_pushes_the_same(checkout, made, capsys):
    shutil.rmtree(checkout.folder)
    assert checkout.dvc("push", "-q") == 0
    assert files_below(checkout.folder) == files_below(made.folder)
    # What DVC believes to be there, and is not, is sent.
    object_of(checkout, place(checkout, "artifact")).unlink()
    assert checkout.dvc("push") == 0
    assert files_below(checkout.folder) != files_below(made.folder)
    assert checkout.run("push") == 0
    assert "1 of them sent now" in capsys.readouterr().out
    assert files_below(checkout.folder) == files_below(made.folder)


@pytest.mark.parametrize("which", ["artifact", "page", "file", "listing"])
def test_a_damaged_object_on_the_remote(checkout, made, capsys, which):
    target = object_of(checkout, place(checkout, which))
    good = target.read_bytes()
    for how, alter in ALTERATIONS.items():
        replace(target, alter(good))
        # Of the same size: only reading tells.
        assert checkout.run("remote", "check") == (0 if how == "flipped" else 1), how
        assert checkout.run("remote", "check", "--full") == 1
        assert "1 altered" in capsys.readouterr().out
        assert checkout.run("push", *(["--full"] if how == "flipped" else [])) == 0
        assert "1 of them sent now" in capsys.readouterr().out
        assert files_below(checkout.folder) == files_below(made.folder)


def test_a_damaged_object_is_never_pushed(checkout, capsys):
    """Damaged here in the cache and in the workspace: named, and nothing is sent."""
    shutil.rmtree(checkout.folder)
    path = some(checkout, "corpus", "problem-50")
    cached = checkout.cache / object_of_made(checkout, path)
    data = cached.read_bytes()
    for damaged in (cached, checkout.root / path):
        replace(damaged, bytes([data[0] ^ 1]) + data[1:])
    assert checkout.run("push") == 1
    said = capsys.readouterr().err
    assert f"1 of 164 objects are missing or damaged here, {path} for one; nothing was sent" in said
    assert "delete store/corpus and run `solbench repro`" in said
    assert files_below(checkout.folder) == {}
    assert not cached.exists()


@pytest.mark.slow
def test_what_the_message_says_helps(checkout, made, capsys, tmp_path):
    test_a_damaged_object_is_never_pushed(checkout, capsys)
    shutil.rmtree(checkout.root / "store" / "corpus")
    assert checkout.dvc("repro", "-q") == 0
    assert checkout.run("push") == 0
    assert files_below(checkout.folder) == files_below(made.folder)


def object_of_made(checkout, path):
    """Where DVC's cache keeps what belongs at ``path``."""
    checkout.objects, remembered = checkout.cache, checkout.objects
    try:
        return object_of(checkout, path).relative_to(checkout.cache)
    finally:
        checkout.objects = remembered


@pytest.mark.parametrize("damaged", ["cache", "workspace"])
def test_one_right_copy_is_enough(checkout, made, damaged):
    shutil.rmtree(checkout.folder)
    path = some(checkout, "corpus", "problem-50")
    victim = checkout.cache / object_of_made(checkout, path) if damaged == "cache" else checkout.root / path
    replace(victim, b"damaged")
    assert checkout.run("push") == 0
    assert files_below(checkout.folder) == files_below(made.folder)
    assert files_below(checkout.cache) == files_below(made.cache)


def test_nothing_to_push(clone, capsys):
    assert clone.run("push") == 2
    said = capsys.readouterr().err
    assert said.startswith("solbench: the listing of site (MD5 ")
    assert "is not in DVC's cache; run `solbench pull` or `solbench repro`" in said


def test_a_remote_that_cannot_be_written(checkout, capsys):
    shutil.rmtree(checkout.folder)
    checkout.folder.write_text("a file where a folder should be")
    assert checkout.run("push") == 3
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_what_does_not_arrive_is_named(checkout, capsys, monkeypatch):
    """A remote that takes everything and keeps nothing."""
    shutil.rmtree(checkout.folder)
    monkeypatch.setattr(Folder, "put", lambda *_: None)
    assert checkout.run("push") == 1
    assert "167 of 167 objects did not arrive" in capsys.readouterr().err


def test_check_names_what_is_missing(checkout, clone_of, capsys):
    assert checkout.run("remote", "check") == 0
    assert capsys.readouterr().out == "remote folder: 167 of 167 objects are there by name and size\n"
    paths = [some(checkout, "corpus", f"problem-{number}") for number in range(40, 52)]
    for path in paths:
        object_of(checkout, path).unlink()
    for side in (checkout, clone_of(checkout)):
        assert side.run("remote", "check") == 1
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 12 and lines[-2] == "... and 2 more missing; --json prints all"
        assert lines[-1] == "remote folder: 155 of 167 objects are there by name and size; 12 missing"
        assert side.run("remote", "check", "--json") == 1
        report = json.loads(capsys.readouterr().out)
        assert {row["path"] for row in report["missing"]} == set(paths)
        assert (report["objects"], report["there"], report["altered"], report["not_asked"]) == (167, 155, [], [])


def test_check_without_a_listing(checkout, clone_of, capsys):
    object_of(checkout, "store/corpus").unlink()
    assert checkout.run("remote", "check") == 1
    assert "166 of 167 objects are there by name and size; 1 missing" in capsys.readouterr().out
    # Nobody here knows what it would name, but dvc.lock says how many.
    side = clone_of(checkout)
    for arguments in ((), ("--full",)):
        assert side.run("remote", "check", *arguments) == 1
        assert "1 missing, 120 that a listing would name" in capsys.readouterr().out
    assert not side.cache.exists()


def test_check_changes_nothing(checkout):
    (checkout.cache / object_of_made(checkout, "site/page-3.html")).unlink()
    replace(checkout.cache / object_of_made(checkout, "notes.txt"), b"damaged")
    before = files_below(checkout.cache), files_below(checkout.folder), checkout.outs()
    assert checkout.run("remote", "check") == checkout.run("remote", "check", "--full") == 0
    assert (files_below(checkout.cache), files_below(checkout.folder), checkout.outs()) == before
    assert not (checkout.root / ".solbench").exists()


def test_what_cannot_be_read_is_not_called_missing(checkout, capsys, monkeypatch):
    from solbench.remotes import folder

    real = folder.os.stat

    def stat(path, *arguments, **options):
        if str(path).startswith(str(checkout.objects) + "/"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(folder.os, "stat", stat)
    assert checkout.run("remote", "check") == 3
    out = capsys.readouterr().out
    assert "Permission denied" in out and "0 of 167 objects are there by name and size; 167 not known" in out
    assert checkout.run("push") == 3
    assert "could not be asked for" in capsys.readouterr().err
