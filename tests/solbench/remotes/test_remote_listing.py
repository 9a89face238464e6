"""What dvc.lock, listings and indexes name is checked before anything is fetched: bytes, paths, agreement."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solbench.errors import InputError, IntegrityError
from solbench.remotes.wanted import (
    AlteredError,
    Intake,
    Out,
    Wanted,
    distinct,
    folder_objects,
    locked_outs,
    parse_listing,
)
from solbench.store import Descriptor

FILE_MD5 = "d41d8cd98f00b204e9800998ecf8427e"


def listing(entries, files=None):
    data = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return data, Out("site", hashlib.md5(data).hexdigest() + ".dir", None, files)


def entry(path, md5=FILE_MD5):
    return {"md5": md5, "relpath": path}


def test_a_plain_listing_passes():
    paths = ["objects/ab/cd0e", "a", "a.b/c-d_e+f@1", "b/a/c", "b/c"]
    assert parse_listing(*listing([entry(path) for path in paths], 5)) == tuple((p, FILE_MD5) for p in sorted(paths))


@pytest.mark.parametrize(
    "path",
    [
        "../x", "/etc/x", "a/../b", "a//b", "", ".", "..", "a/./b", "a\\b", "C:x\ny", "a/", "-x", "~/x", ".git/config",
        "C:\\x", "\\\\host\\share", "a\0b", "\u202ea", "e\u0301", "x" * 256, "d/" * 600 + "x", " a", "a\n",
    ],
)  # fmt: skip
def test_a_path_that_is_not_plain_is_refused(path):
    with pytest.raises(IntegrityError, match="it holds the path"):
        parse_listing(*listing([entry("fine"), entry(path)]))


@pytest.mark.parametrize("md5", ["../../x", FILE_MD5.upper(), FILE_MD5 + ".dir", FILE_MD5[:-1], None, 7])
def test_a_digest_that_is_none_is_refused(md5):
    with pytest.raises(IntegrityError, match="not an MD5"):
        parse_listing(*listing([entry("a", md5)]))


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ({}, "not a list"),
        ([1], "not a list"),
        ([{"relpath": "a"}], "not a list"),
        ([{**entry("a"), "isexec": True}], "not a list"),
        ("x", "not a list"),
        (None, "not a list"),
        ([entry(7)], "it holds the path"),
        ([entry("a"), entry("a")], "there twice"),
        ([entry("objects/ab"), entry("objects/AB")], "differ in case"),
        ([entry("a"), entry("a/b/c")], "a is a file and a folder"),
        ([entry("A"), entry("a/b")], "a file and a folder"),
        (b"[" * 100_000, "nested deeper"),
        (b'[{"md5":"\xff"}]', "not UTF-8"),
        (b'[{"md5":"a","md5":"b"}]', "duplicate key"),
        (b"\xef\xbb\xbf[]", "byte order mark"),
        (b"[", "Expecting value"),
    ],
)
def test_something_else_than_a_listing(entries, why):
    with pytest.raises(IntegrityError, match=why):
        parse_listing(*listing(entries))


def test_the_number_of_files_is_that_of_the_lock():
    entries = [entry("a"), entry("b")]
    assert len(parse_listing(*listing(entries, 2))) == 2
    with pytest.raises(IntegrityError, match=r"2 files; dvc\.lock says 3"):
        parse_listing(*listing(entries, 3))


def test_a_listing_is_no_longer_than_its_number_of_files_allows():
    out = Out("site", FILE_MD5 + ".dir", None, 10)
    longest = json.dumps([entry("/".join(["d" * 255] * 3 + ["d" * 255 + str(n)])) for n in range(10)], indent=None)
    assert len(longest) <= out.listing.limit < 12_000
    assert Out("site", FILE_MD5 + ".dir", None, None).listing.limit == 64 << 20
    with pytest.raises(AlteredError, match="more than"):
        parse_listing(b" " * (out.listing.limit + 1), out)


@given(st.binary(max_size=80), st.integers(0, 7))
def test_altered_bytes_never_pass(noise, bit):
    data, out = listing([entry("a")])
    for altered in (data + noise + b" ", data[:-1], bytes([data[0] ^ (1 << bit)]) + data[1:]):
        with pytest.raises(AlteredError, match="other bytes"):
            parse_listing(altered, out)


def test_index_and_listing_name_the_same_objects():
    index = {name: Descriptor.of("code-object", name.encode()) for name in ("one", "three")}
    out = Out("store/code", FILE_MD5 + ".dir", 8, 2)
    files = tuple((f"objects/{d.path}", hashlib.md5(name.encode()).hexdigest()) for name, d in index.items())
    wanted = {one.path: one for one in folder_objects(out, files, index)}
    three = wanted[f"store/code/objects/{index['three'].path}"]
    assert (three.size, three.limit, three.digest) == (5, 5, index["three"].digest)
    for listed in (files[:1], (*files, ("objects/ab/cd", FILE_MD5))):
        with pytest.raises(IntegrityError, match="not of one rebuild: 1 objects differ"):
            folder_objects(out, listed, index)


def test_without_an_index_the_lock_bounds_the_size():
    (one,) = folder_objects(Out("site", FILE_MD5 + ".dir", 1234, 1), [("a", FILE_MD5)], None)
    assert (one.limit, one.size, one.digest) == (1234, None, None)


def test_one_md5_is_one_object():
    known = Wanted(FILE_MD5, "store/a", 3, 3, Descriptor.of("x", b"abc").digest)
    other = Wanted(FILE_MD5, "store/b", 3, 3, Descriptor.of("x", b"abd").digest)
    plain = Wanted(FILE_MD5, "site/a", 100)
    assert distinct([plain, known]) == distinct([known, plain]) == {FILE_MD5: known}
    with pytest.raises(IntegrityError, match="same MD5 and another BLAKE3"):
        distinct([known, plain, other])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"abc", None),
        (b"abd", "other bytes"),
        (b"ab", "2 bytes, expected 3"),
        (b"abcd", "more than 3"),
        (b"", "0 bytes"),
    ],
)
def test_intake(data, why):
    wanted = Wanted(hashlib.md5(b"abc").hexdigest(), "x", 3, 3, Descriptor.of("x", b"abc").digest)

    def take():
        intake = Intake(wanted)
        for number in range(len(data)):
            intake.feed(data[number : number + 1])
        intake.finish()

    if why is None:
        take()
        return
    with pytest.raises(AlteredError, match=why):
        take()


def test_intake_wants_both_hashes():
    """Right by one name and wrong by the other: as after a collision, or a listing that lies."""
    md5, digest = hashlib.md5(b"abc").hexdigest(), Descriptor.of("x", b"abc").digest
    for wanted, why in (
        (Wanted(FILE_MD5, "x", 3, 3, digest), "than its name says"),
        (Wanted(md5, "x", 3, 3, Descriptor.of("x", b"abd").digest), "than the index in git says"),
    ):
        intake = Intake(wanted)
        intake.feed(b"abc")
        with pytest.raises(AlteredError, match=why):
            intake.finish()


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ("{path: ../x, hash: md5, md5: MD5, size: 1}", "not a plain path"),
        ("{path: /etc/x, hash: md5, md5: MD5, size: 1}", "not a plain path"),
        ("{path: x, md5: MD5, size: 1}", "hash: md5"),
        ("{path: x, hash: md5, md5: ../../etc, size: 1}", "hash: md5"),
        ("{path: x, hash: md5, md5: MD5, size: -1}", "are numbers"),
        ("{path: x, hash: md5, md5: MD5.dir, size: 1, nfiles: many}", "are numbers"),
    ],
)
def test_a_lock_that_is_not_ours_is_refused(tmp_path, out, why):
    (tmp_path / "dvc.yaml").write_text("stages: {a: {cmd: x, outs: [x]}}")
    good = "{path: x, hash: md5, md5: MD5, size: 1}"
    for text, expected in ((good, None), (out, why)):
        line = text.replace("MD5", f"'{FILE_MD5}'").replace("'.dir", ".dir'")
        (tmp_path / "dvc.lock").write_text(f"stages: {{a: {{cmd: x, outs: [{line}]}}}}")
        if expected is None:
            assert locked_outs(tmp_path) == (Out("x", FILE_MD5, 1, None),)
            continue
        with pytest.raises(InputError, match=expected):
            locked_outs(tmp_path)


def test_outs_of_the_lock(made):
    assert [out.path for out in locked_outs(made.root)] == sorted(("store/corpus", "store/code", "site", "notes.txt"))
    counts = {out.path: out.files for out in locked_outs(made.root)}
    assert counts == {"store/corpus": 120, "store/code": 23, "site": 23, "notes.txt": None}
