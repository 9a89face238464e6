"""Objects through the file system interface that DVC's plugins share (S3, SSH, ...), here of one in memory."""

from __future__ import annotations

import hashlib

import pytest
from dvc.fs import MemoryFileSystem

from solbench.errors import IntegrityError, UndecidedError
from solbench.remotes.connection import Remote
from solbench.remotes.folder import Folder, MissingError
from solbench.remotes.protocols import Plugin
from solbench.remotes.transfer import ask, fetch, fetch_listing, send
from solbench.remotes.wanted import Wanted
from solbench.store import Descriptor

DATA = [b"", b"one", b"two" * 100_000, b"listing"]


def wanted(data):
    return Wanted(hashlib.md5(data).hexdigest(), "x", len(data), len(data), Descriptor.of("x", data).digest)


@pytest.fixture
def remote(request):
    return Remote("memory", Plugin(MemoryFileSystem(global_store=False), f"/{request.node.name}/files/md5"), 4)


@pytest.fixture
def cache(tmp_path):
    cache = Folder(tmp_path / "cache", "test")
    for data in DATA:
        with cache.incoming(wanted(data)) as feed:
            feed(data)
    return cache


def states(remote, full=False):
    return [answer.state for answer in ask(remote, [wanted(data) for data in DATA], full=full)]


def test_there_and_back(remote, cache, tmp_path):
    everything = [wanted(data) for data in DATA]
    assert states(remote) == states(remote, full=True) == ["missing"] * 4
    with pytest.raises(MissingError):
        fetch(remote, Folder(tmp_path / "other", "test"), everything)
    send(remote, cache, everything)
    assert states(remote) == states(remote, full=True) == ["there"] * 4
    other = Folder(tmp_path / "other", "test")
    fetch(remote, other, everything)
    assert [other.file(one.md5).read_bytes() for one in everything] == DATA
    assert fetch_listing(remote, everything[3]) == b"listing"


def test_altered(remote, cache, tmp_path):
    send(remote, cache, [wanted(data) for data in DATA])
    files = remote.objects._files
    for data, altered, seen in ((b"one", b"onf", "there"), (b"one", b"on", "altered"), (b"one", b"one ", "altered")):
        path = remote.objects._path(wanted(data))
        with files.open(path, "wb") as file:
            file.write(altered)
        assert states(remote)[1] == seen
        assert states(remote, full=True) == ["there", "altered", "there", "there"]
        other = Folder(tmp_path / "other", "test")
        with pytest.raises(IntegrityError):
            fetch(remote, other, [wanted(data)])
        assert not other.file(wanted(data).md5).exists()


def test_a_plugin_that_fails(remote, cache, monkeypatch):
    def fail(*_, **__):
        raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(remote.objects._files, "info", fail)
    monkeypatch.setattr(remote.objects._files, "put_file", fail)
    answers = ask(remote, [wanted(data) for data in DATA])
    assert {answer.state for answer in answers} == {"unknown"}
    assert "remote memory: x (MD5 " in answers[0].why and "Connection reset by peer" in answers[0].why
    with pytest.raises(UndecidedError, match="Connection reset"):
        send(remote, cache, [wanted(b"one")])


def test_after_many_failures_the_rest_is_not_asked_for(remote, monkeypatch):
    asked = []

    def fail(path):
        asked.append(path)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(remote.objects._files, "info", fail)
    monkeypatch.setattr(Plugin, "retries", 0)
    answers = ask(remote, [Wanted(f"{number:032x}", "x", 1) for number in range(500)])
    assert len(answers) == 500 and {answer.state for answer in answers} == {"unknown"}
    assert 16 <= len(asked) < 100
    assert answers[-1].why == "not asked for"
