"""The put protocol, checked reads, and indexes that nobody edits by hand."""

import errno
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solbench import canonical, store
from solbench.errors import InputError, IntegrityError
from solbench.store import Descriptor, Store

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
DESCRIPTORS = st.builds(
    Descriptor,
    st.sampled_from(["trace", "score"]),
    st.binary(min_size=32, max_size=32).map(lambda raw: "blake3:" + raw.hex()),
    st.integers(0, 2**53 - 1),
)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".put-*")]


def test_put_names_bytes_by_their_digest(tmp_path: Path) -> None:
    descriptor = store.put(tmp_path, "trace", b"hello")
    # BLAKE3 of "hello", from b3sum.
    assert descriptor.digest == "blake3:ea8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f"
    path = tmp_path / "ea" / "8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f"
    assert path.read_bytes() == b"hello"
    assert descriptor.size == 5
    assert stat.S_IMODE(path.stat().st_mode) == 0o444


@given(st.lists(st.binary(max_size=200), max_size=6))
def test_put_is_idempotent_and_leaves_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, blobs: list[bytes]
) -> None:
    objects = tmp_path_factory.mktemp("objects")
    first = [store.put(objects, "trace", data) for data in blobs]
    assert [store.put(objects, "trace", data) for data in blobs] == first
    files = [path for path in objects.rglob("*") if path.is_file()]
    assert sorted(path.read_bytes() for path in files) == sorted(set(blobs))


def test_put_does_not_follow_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        descriptor = store.put(tmp_path, "trace", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / descriptor.path).stat().st_mode) == 0o444


def test_put_refuses_a_damaged_object_instead_of_keeping_it(tmp_path: Path) -> None:
    descriptor = store.put(tmp_path, "trace", b"good")
    path = tmp_path / descriptor.path
    path.chmod(0o644)
    path.write_bytes(b"evil")
    with pytest.raises(IntegrityError, match="digest is"):
        store.put(tmp_path, "trace", b"good")
    assert path.read_bytes() == b"evil"


def test_concurrent_puts_of_the_same_bytes(tmp_path: Path) -> None:
    data = [b"%d" % (i % 5) * 4096 for i in range(200)]
    with ThreadPoolExecutor(8) as pool:
        descriptors = list(pool.map(lambda blob: store.put(tmp_path, "trace", blob), data))
    assert len(set(descriptors)) == 5
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 5
    assert leftovers(tmp_path) == []


def test_a_lost_race_checks_what_the_winner_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_wins(source: str, target: str | Path) -> None:
        Path(target).write_bytes(b"torn")
        raise OSError(errno.EEXIST, "exists")

    monkeypatch.setattr(os, "link", other_wins)
    with pytest.raises(IntegrityError):
        store.put(tmp_path, "trace", b"whole")
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(source: str, target: str | Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    descriptor = store.put(tmp_path, "trace", b"x")
    assert (tmp_path / descriptor.path).read_bytes() == b"x"
    assert leftovers(tmp_path) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        store.put(tmp_path, "trace", b"x")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


KILLED = """
import os, signal, sys
from pathlib import Path
from solbench import store
original = getattr(os, sys.argv[2])
def last(*arguments, **options):
    if sys.argv[3] == "after":
        original(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[2], last)
store.put(Path(sys.argv[1]), "trace", b"whole object")
"""


@pytest.mark.parametrize("step", ["fchmod", "fsync", "link", "unlink"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_between_steps_leaves_no_torn_object(tmp_path: Path, step: str, when: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), step, when], check=False)
    assert done.returncode == -signal.SIGKILL
    descriptor = Descriptor.of("trace", b"whole object")
    final = tmp_path / descriptor.path
    assert not final.exists() or final.read_bytes() == b"whole object"
    assert store.put(tmp_path, "trace", b"whole object") == descriptor
    assert final.read_bytes() == b"whole object"


def test_an_artifact_names_kind_and_schema(tmp_path: Path) -> None:
    descriptor = store.put_json(tmp_path, "score", {"schema": "s.v1", "s": 0.5})
    data = (tmp_path / descriptor.path).read_bytes()
    assert data == b'{"kind":"score","s":0.5,"schema":"s.v1"}'
    assert store.decode(data, descriptor) == {"kind": "score", "s": 0.5, "schema": "s.v1"}
    with pytest.raises(IntegrityError, match="schema"):
        store.put_json(tmp_path, "score", {"s": 0.5})


def test_decode_refuses_another_kind_other_bytes_and_other_spelling() -> None:
    data = b'{"kind":"score","schema":"s.v1"}'
    with pytest.raises(IntegrityError, match="not an artifact of kind"):
        store.decode(data, Descriptor.of("trace", data))
    with pytest.raises(IntegrityError, match="bytes, expected"):
        store.decode(data + b" ", Descriptor.of("score", data))
    with pytest.raises(IntegrityError, match="digest is"):
        store.decode(data.replace(b"v1", b"v2"), Descriptor.of("score", data))
    spaced = data.replace(b",", b", ")
    with pytest.raises(IntegrityError, match="canonical"):
        store.decode(spaced, Descriptor.of("score", spaced))
    with pytest.raises(IntegrityError, match="not an artifact"):
        store.decode(b"[]", Descriptor.of("score", b"[]"))


@given(st.dictionaries(NAMES, DESCRIPTORS, max_size=5))
def test_an_index_reads_back(tmp_path_factory: pytest.TempPathFactory, index: dict[str, Descriptor]) -> None:
    path = tmp_path_factory.mktemp("store") / "scores.json"
    path.write_bytes(store.index_bytes(index))
    assert store.read_index(path) == index
    assert path.read_bytes().count(b"\n") == (len(index) + 5 if index else 4)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b'"size":3', b'"size": 3'),
        lambda data: data.replace(b'"size":3', b'"size":-3'),
        lambda data: data.replace(b'"size":3', b'"size":"3"'),
        lambda data: data.replace(b'"size":3', b'"size":true'),
        lambda data: data.replace(b"blake3:", b"BLAKE3:"),
        lambda data: data.replace(b'"kind":"k",', b""),
        lambda data: data.replace(b"index.v1", b"index.v2"),
        lambda data: data[:-1],
        lambda data: b"\n".join(reversed(data.split(b"\n"))),
        lambda data: b"[]",
        lambda data: data.replace(b'"a"', b'"b"'),
    ],
)
def test_an_edited_index_is_refused(tmp_path: Path, change: object) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(store.index_bytes({"a": Descriptor.of("k", b"abc"), "b": Descriptor.of("k", b"def")}))
    assert set(store.read_index(path)) == {"a", "b"}
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(IntegrityError):
        store.read_index(path)


def test_a_missing_index_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="solbench repro"):
        Store(tmp_path).index("scores")


def test_a_store_checks_every_read(tmp_path: Path) -> None:
    descriptor = store.put_json(tmp_path / "scores" / "objects", "score", {"schema": "s.v1"})
    (tmp_path / "scores.json").write_bytes(store.index_bytes({"a": descriptor}))
    one = Store(tmp_path)
    assert one.stages() == ["scores"]
    assert [(name, value["kind"]) for name, _, value in one.items("scores")] == [("a", "score")]
    assert list(one.items("scores", "entry")) == []
    path = tmp_path / "scores" / "objects" / descriptor.path
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    with pytest.raises(IntegrityError, match=path.name):
        one.load("scores", descriptor)
    path.unlink()
    with pytest.raises(IntegrityError, match="solbench pull"):
        one.load("scores", descriptor)


def test_the_empty_object_is_legal(tmp_path: Path) -> None:
    descriptor = store.put(tmp_path, "assembly", b"")
    assert descriptor.size == 0
    assert (tmp_path / descriptor.path).read_bytes() == b""
    assert canonical.is_digest(descriptor.digest)
