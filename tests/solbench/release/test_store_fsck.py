"""`solbench store fsck`: every fault of a store has a code, hostile content is survived, nothing is written."""

from __future__ import annotations

import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solbench import canonical, store
from solbench.cli import run
from solbench.errors import InputError
from solbench.release import inventory
from solbench.release.findings import MAX_FINDINGS
from solbench.release.fsck import fsck
from solbench.release.source import Limits
from solbench.store import Descriptor, Store

REPEATED = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture
def root(sample: Path, tmp_path: Path) -> Path:
    """A store that a test may damage, in a checkout."""
    (tmp_path / "checkout" / "problems").mkdir(parents=True)
    return Path(shutil.copytree(sample / "store", tmp_path / "checkout" / "store"))


def codes(root: Path, **limits: int) -> set[str]:
    return {finding.code for finding in fsck(root, Limits(**limits)).findings}


def entry(root: Path, stage: str, name: str | None = None) -> tuple[str, Descriptor]:
    index = Store(root).index(stage)
    found = name or min(index)
    return found, index[found]


def file_of(root: Path, stage: str, name: str | None = None) -> Path:
    return root / stage / "objects" / entry(root, stage, name)[1].path


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.chmod(0o644)
    path.write_bytes(data)


def replace(root: Path, stage: str, data: bytes, kind: str | None = None) -> None:
    """Another object in the place of a stage's first one: file, name, size and index fit."""
    name, old = entry(root, stage)
    index = Store(root).index(stage)
    (root / stage / "objects" / old.path).unlink()
    index[name] = Descriptor.of(kind or old.kind, data)
    write(root / stage / "objects" / index[name].path, data)
    write(root / f"{stage}.json", store.index_bytes(index))


def reindex(root: Path, stage: str, change: Callable[[store.Index], None]) -> None:
    index = Store(root).index(stage)
    change(index)
    write(root / f"{stage}.json", store.index_bytes(index))


def link(path: Path) -> None:
    """The same bytes, or folder, behind a link."""
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    write(path, bytes(data))


def to_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def move(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    path.rename(to)


def sparse(path: Path, size: int) -> None:
    write(path, b"")
    os.truncate(path, size)


def artifact(root: Path) -> bytes:
    return file_of(root, "bounds").read_bytes()


def with_reference(reference: dict[str, object]) -> bytes:
    return canonical.dumps({"kind": "score", "schema": "s.v1", "of": {"kind": "trace", "size": 1, **reference}})


def refer_to_known(root: Path, **change: object) -> bytes:
    return with_reference({**entry(root, "timings")[1].as_dict(), **change})


FAULTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a flipped bit": ("digest-mismatch", lambda r: flip(file_of(r, "bounds"))),
    "a flipped bit of a raw object": ("digest-mismatch", lambda r: flip(file_of(r, "code", _raw(r)))),
    "a byte more": ("size-mismatch", lambda r: write(file_of(r, "graphs"), file_of(r, "graphs").read_bytes() + b"\n")),
    "a lost object": ("missing-object", lambda r: file_of(r, "bounds").unlink()),
    "a lost stage": ("missing-object", lambda r: shutil.rmtree(r / "bounds")),
    "an object too many": ("extra-object", lambda r: store.put(r / "scores" / "objects", "score", b"{}")),
    "a file beside the indexes": ("extra-file", lambda r: write(r / "notes.txt", b"x")),
    "a hidden file": ("extra-file", lambda r: write(r / ".DS_Store", b"x")),
    "a file beside objects/": ("extra-file", lambda r: write(r / "code" / "x\x1b[2J\n", b"x")),
    "a file among objects": ("extra-file", lambda r: write(r / "code" / "objects" / "README", b"x")),
    "an empty folder of no stage": ("extra-file", lambda r: (r / "folder").mkdir()),
    "a folder among objects": ("extra-file", lambda r: (r / "code" / "objects" / "xy").mkdir()),
    "another two digits": ("object-path", lambda r: move(file_of(r, "code"), r / "code/objects/00" / ("0" * 62))),
    "another stage's folder": (
        "object-path", lambda r: move(file_of(r, "code"), r / "scores" / "objects" / entry(r, "code")[1].path)
    ),
    "an object under a plain name": ("object-path", lambda r: move(file_of(r, "code"), r / "code" / "copy.json")),
    "a put that was killed": ("temporary", lambda r: write(file_of(r, "code").parent / ".put-x1", b"half")),
    "a stage that was killed": ("temporary", lambda r: (r / ".corpus-x1" / "objects").mkdir(parents=True)),
    "an index that was killed": ("temporary", lambda r: write(r / ".corpus.json-x1", b"{")),
    "an object behind a link": ("fs-symlink", lambda r: link(file_of(r, "code"))),
    "a stage behind a link": ("fs-symlink", lambda r: link(r / "code")),
    "an index behind a link": ("fs-symlink", lambda r: link(r / "code.json")),
    "an object that is a pipe": ("fs-type", lambda r: to_fifo(file_of(r, "code"))),
    "an index that is a pipe": ("fs-type", lambda r: to_fifo(r / "code.json")),
    "spaces": ("json-canonical", lambda r: replace(r, "bounds", artifact(r).replace(b'":', b'": ', 1))),
    "no JSON": ("json-syntax", lambda r: replace(r, "bounds", b"{")),
    "a key twice": ("json-duplicate-key", lambda r: replace(r, "bounds", b'{"kind":"bound","kind":"bound"}')),
    "not UTF-8": ("json-encoding", lambda r: replace(r, "bounds", b'"\xff"')),
    "nested deeply": ("limit-depth", lambda r: replace(r, "bounds", b"[" * 500 + b"]" * 500)),
    "another kind": ("media-type", lambda r: replace(r, "bounds", artifact(r), "trace")),
    "no artifact": ("media-type", lambda r: replace(r, "bounds", b"[]")),
    "two kinds of one object": (
        "media-type", lambda r: reindex(r, "code", lambda i: i.update(x=Descriptor("x", *_tail(r, "bounds"))))
    ),
    "two sizes of one object": (
        "size-mismatch",
        lambda r: reindex(r, "bounds", lambda i: i.update(x=Descriptor("hardware", _tail(r, "bounds")[0], 7))),
    ),
    "no schema": ("schema", lambda r: replace(r, "scores", b'{"kind":"score"}')),
    "a reference to nothing": (
        "dangling-reference", lambda r: replace(r, "scores", with_reference({"digest": "blake3:" + "0" * 64}))
    ),
    "a reference of another kind": ("media-type", lambda r: replace(r, "scores", refer_to_known(r, kind="bound"))),
    "a reference of another size": ("size-mismatch", lambda r: replace(r, "scores", refer_to_known(r, size=1))),
    "a weaker digest": ("algorithm", lambda r: replace(r, "scores", with_reference({"digest": "md5:" + "0" * 32}))),
    "a cut digest": ("digest-format", lambda r: replace(r, "scores", with_reference({"digest": "blake3:00"}))),
    "a negative size": ("size-format", lambda r: replace(r, "scores", refer_to_known(r, size=-1))),
    "an index edited by hand": (
        "index-format", lambda r: write(r / "code.json", (r / "code.json").read_bytes() + b" ")
    ),
    "an index that is no JSON": ("json-syntax", lambda r: write(r / "code.json", b"{")),
    "an index that went on": (
        "stale-release", lambda r: reindex(r, "code", lambda i: i.pop(min(i)))
    ),
    "a lost index": ("missing-file", lambda r: (r / "scores.json").unlink()),
    "a release index without release": (
        "missing-entry", lambda r: reindex(r, "release", lambda i: i.pop("release"))
    ),
    "a huge file in an object's place": ("size-mismatch", lambda r: sparse(file_of(r, "code"), 1 << 40)),
    "a huge file anywhere": ("extra-file", lambda r: sparse(r / "huge", 1 << 40)),
    "a huge object that nobody names": ("limit-object", lambda r: sparse(r / "code/objects/00" / ("0" * 62), 1 << 40)),
    "a huge index": ("limit-manifest", lambda r: sparse(r / "code.json", 1 << 40)),
}  # fmt: skip


def _raw(root: Path) -> str:
    return next(name for name, one in Store(root).index("code").items() if one.kind == "code-object")


def _tail(root: Path, stage: str) -> tuple[str, int]:
    descriptor = entry(root, stage)[1]
    return descriptor.digest, descriptor.size


def test_a_sound_store(root: Path) -> None:
    report = fsck(root)
    distinct = {(s, e.digest) for s in Store(root).stages() for e in Store(root).index(s).values()}
    assert (report.findings, report.verdict, report.exit_code) == ((), "verified", 0)
    assert report.objects == report.sound == len(distinct)
    assert report.present == report.entries == sum(len(Store(root).index(stage)) for stage in Store(root).stages())
    assert report.bytes == sum(path.stat().st_size for path in root.glob("*/objects/*/*"))


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_has_its_code(root: Path, fault: str) -> None:
    code, damage = FAULTS[fault]
    assert code not in codes(root)
    damage(root)
    report = fsck(root)
    assert code in {finding.code for finding in report.findings}
    assert report.exit_code in (1, 3)
    assert all(text.isascii() and text.isprintable() for f in report.findings for text in f.as_dict().values() if text)


@pytest.mark.parametrize(
    ("fault", "others"),
    [
        ("a flipped bit", set()),
        ("a byte more", set()),
        ("a lost object", set()),
        ("a lost stage", set()),
        ("an object too many", set()),
        ("a put that was killed", set()),
        ("an object under a plain name", {"missing-object"}),
        ("a lost index", set()),
        ("an index that is a pipe", set()),
        ("an index that is no JSON", set()),
        ("an object behind a link", {"missing-object", "object-path"}),
    ],
)
def test_one_fault_is_not_many(root: Path, fault: str, others: set[str]) -> None:
    code, damage = FAULTS[fault]
    damage(root)
    report = fsck(root)
    assert {finding.code for finding in report.findings} - {"extra-file"} == {code, *others}
    assert len(report.findings) <= 3


@pytest.mark.parametrize("limit", ["manifest_bytes", "object_bytes", "total_bytes"])
def test_beyond_a_limit_it_cannot_decide(root: Path, limit: str) -> None:
    report = fsck(root, Limits(**{limit: 64}))
    assert report.verdict == "undecided"
    assert report.exit_code == 3
    assert f"limit-{limit.partition('_')[0]}" in {finding.code for finding in report.findings}


def test_what_cannot_be_read_is_not_called_bad(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(inventory, "digest_of", refuse)
    report = fsck(root)
    assert {finding.code for finding in report.findings} == {"io-error"}
    assert report.exit_code == 3
    assert report.sound == 0


def test_a_folder_that_cannot_be_listed_is_not_called_empty(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = inventory.scan

    def refuse(where: Path, folder: str) -> list[inventory.Entry]:
        if folder == "code/objects":
            raise PermissionError(13, "Permission denied")
        return scan(where, folder)

    monkeypatch.setattr(inventory, "scan", refuse)
    report = fsck(root)
    assert {finding.code for finding in report.findings} == {"io-error"}
    assert report.exit_code == 3
    assert report.present < report.entries


def test_a_flood_of_findings_is_counted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(MAX_FINDINGS + 7):
        (root / f"stray-{number}").touch()
    assert run(["store", "fsck", "--root", str(root.parent)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == MAX_FINDINGS + 2
    assert lines[-2] == "... and 7 more"


def test_nothing_is_never_ok(root: Path) -> None:
    for stage in Store(root).stages():
        (root / f"{stage}.json").unlink()
        shutil.rmtree(root / stage)
    assert codes(root) == {"missing-object"}
    root.rmdir()
    with pytest.raises(InputError, match="no store here"):
        fsck(root)


def test_a_store_behind_a_link_is_not_followed(root: Path) -> None:
    link(root)
    with pytest.raises(InputError, match="none is followed"):
        fsck(root)


def test_a_large_object_is_never_held(root: Path) -> None:
    size = 48 << 20
    digest = store.put(root / "code" / "objects", "assembly", bytes(size)).digest
    reindex(root, "code", lambda index: index.update(large=Descriptor("assembly", digest, size)))
    tracemalloc.start()
    try:
        report = fsck(root)
        assert tracemalloc.get_traced_memory()[1] < size // 4
    finally:
        tracemalloc.stop()
    assert {finding.code for finding in report.findings} == {"stale-release"}


@REPEATED
@given(data=st.data())
def test_no_flipped_byte_is_accepted(root: Path, data: st.DataObject) -> None:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(files))
    before = path.read_bytes()
    position = data.draw(st.integers(0, len(before) - 1))
    changed = bytearray(before)
    changed[position] ^= data.draw(st.integers(1, 255))
    write(path, bytes(changed))
    try:
        assert fsck(root).exit_code != 0
    finally:
        write(path, before)
    assert fsck(root).exit_code == 0


@REPEATED
@given(
    name=st.binary(min_size=1, max_size=40).filter(lambda n: not {0, 47} & set(n) and n not in (b".", b"..")),
    where=st.sampled_from(["", "code", "code/objects", "code/objects/00"]),
    what=st.sampled_from(["file", "folder", "link", "pipe"]),
)
def test_any_name_is_reported_on_one_printable_line(
    root: Path, capsys: pytest.CaptureFixture[str], name: bytes, where: str, what: str
) -> None:
    path = os.path.join(os.fsencode(root / where), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        return
    {"file": lambda: open(path, "wb").close(), "folder": lambda: os.mkdir(path), "pipe": lambda: os.mkfifo(path),
     "link": lambda: os.symlink(b"/etc/passwd", path)}[what]()  # fmt: skip
    try:
        capsys.readouterr()
        # An empty folder that could be one of objects is no fault.
        harmless = what == "folder" and where == "code/objects" and len(name) == 2 and name.isalnum()
        assert run(["store", "fsck", "--root", str(root.parent)]) == 1 or harmless
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 2 or harmless
        assert all(line.isascii() and line.isprintable() for line in lines)
    finally:
        os.rmdir(path) if what == "folder" else os.unlink(path)
