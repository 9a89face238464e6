"""Tar and tar.gz bundles that must be refused, each with its stable code. Numbers in comments: the case of a test."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_archives import TARS, gzip_of, packed, put, sealed, tar_of, tar_of_folder, written, zeros_bundle
from sample_release import reseal

from solbench.cli import run
from solbench.release import gz, tar
from solbench.release.source import Limits
from solbench.release.verify import LIMITS, Result, verify

CODE = "archive-structure"
BLOCK = 512


def judged(tmp_path: Path, data: bytes, limits: Limits = LIMITS) -> Result:
    path = tmp_path / "judged"
    path.write_bytes(data)
    return verify(path, limits=limits)


def refused(result: Result, code: str, exit_code: int = 1) -> None:
    codes = [error.code for error in result.errors]
    assert code in codes, codes
    assert result.exit_code == exit_code, result.errors


@pytest.fixture
def plain(sample: Path, tmp_path: Path) -> bytes:
    """The sample release as a tar archive."""
    return written(sample, tmp_path / "sample.tar", "tar").read_bytes()


def test_the_sample_itself_is_verified_in_every_form(sample: Path, tmp_path: Path) -> None:
    results = [verify(sample / "sample.zip")]
    results += [verify(written(sample, tmp_path / f"sample.{form}", form)) for form in ("tar", "tar.gz")]
    assert [result.exit_code for result in results] == [0, 0, 0]
    assert len({result.root for result in results}) == 1
    states = {(level.name, level.state) for result in results for level in result.levels}
    assert {state for name, state in states if name != "replay"} == {"verified"}
    assert ("replay", "skipped") in states  # nobody asked for it


def test_the_name_of_the_file_does_not_matter(sample: Path, tmp_path: Path) -> None:
    for number, form in enumerate(("tar", "tar.gz")):
        path = written(sample, tmp_path / f"x.{form}", form).rename(tmp_path / f"bundle{number}.zip")
        assert verify(path).exit_code == 0


def test_other_limits(plain: bytes, tmp_path: Path) -> None:
    for form in TARS:
        data = packed(form, plain)
        refused(judged(tmp_path, data, Limits(files=10)), "limit-files", 3)
        refused(judged(tmp_path, data, Limits(object_bytes=500)), "limit-object", 3)
        refused(judged(tmp_path, data, Limits(total_bytes=9000)), "limit-total", 3)
        refused(judged(tmp_path, data, Limits(manifest_bytes=64)), "limit-manifest", 3)


# -- one header field that is not ours, with the checksum that fits it


@pytest.mark.parametrize("form", TARS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mode", b"0000755\0"),
        ("mode", b"0100644\0"),
        ("mode", b"644 \0\0\0\0"),
        ("uid", b"0001750\0"),
        ("gid", b"0001750\0"),
        ("uid", b"     0 \0"),
        ("size", b"00000000000 "),
        ("size", b"          0\0"),
        ("size", b"\x80" + bytes(11)),  # base-256
        ("size", b"\xff" * 12),
        ("size", b"-0000000001\0"),
        ("mtime", b"14737130000\0"),
        ("mtime", bytes(12)),
        ("typeflag", b"\0"),  # a regular file as before 1988
        ("typeflag", b"7"),  # contiguous
        ("typeflag", b"x"),  # pax
        ("typeflag", b"g"),
        ("typeflag", b"L"),  # GNU
        ("typeflag", b"K"),
        ("typeflag", b"S"),
        ("typeflag", b"V"),
        ("typeflag", b"9"),
        ("linkname", b"site/y"),
        ("magic", b"ustar "),
        ("magic", b"ustaR\0"),
        ("version", b" \0"),
        ("version", b"01"),
        ("uname", b"root"),
        ("gname", b"root"),
        ("devmajor", bytes(8)),
        ("devminor", b"0000001\0"),
        ("prefix", b"site"),
        ("prefix", b"\0site"),
        ("name", b"site/x\0y"),
        ("padding", b"\0\0x"),
    ],
)
def test_a_field_that_is_not_ours(tmp_path: Path, form: str, field: str, value: bytes) -> None:
    good = tar_of([b"site/x"])
    assert CODE not in [error.code for error in judged(tmp_path, packed(form, good)).errors]
    changed = sealed(put(good[:BLOCK], field, value))
    result = judged(tmp_path, packed(form, changed + good[BLOCK:]))
    refused(result, CODE)


def test_a_prefix_that_the_name_has_room_for(tmp_path: Path) -> None:
    good = tar_of([b"site/x"])
    block = sealed(put(put(good[:BLOCK], "name", b"x\0\0\0\0\0"), "prefix", b"site"))
    result = judged(tmp_path, block + good[BLOCK:])
    refused(result, CODE)
    assert result.errors[0].path == "site/x"


def test_a_long_name_has_one_split(tmp_path: Path) -> None:
    name = b"site/" + b"a" * 60 + b"/" + b"b" * 40 + b"/" + b"c" * 20
    good = tar_of([name])
    assert CODE not in [error.code for error in judged(tmp_path, good).errors]
    head, middle, tail = b"site/" + b"a" * 60, b"b" * 40, b"c" * 20
    assert tar.field(good[:BLOCK], "prefix").rstrip(b"\0") == head + b"/" + middle
    other = put(put(good[:BLOCK], "name", (middle + b"/" + tail).ljust(100, b"\0")), "prefix", head.ljust(155, b"\0"))
    assert tar.name_of(other) == name
    refused(judged(tmp_path, sealed(other) + good[BLOCK:]), CODE)


@pytest.mark.parametrize("form", TARS)
@pytest.mark.parametrize("value", [b"000000\0 ", b"0007341\0", b"007341 \0", bytes(8), b"        "])
def test_a_checksum_that_is_not_ours(tmp_path: Path, form: str, value: bytes) -> None:
    good = tar_of([b"site/x"])
    assert value != tar.field(good[:BLOCK], "chksum")
    refused(judged(tmp_path, packed(form, put(good[:BLOCK], "chksum", value) + good[BLOCK:])), CODE)


@pytest.mark.parametrize("form", TARS)
@pytest.mark.parametrize(
    ("kind", "code"),
    [("1", "fs-type"), ("2", "fs-symlink"), ("3", "fs-type"), ("4", "fs-type"), ("5", "fs-type"), ("6", "fs-type")],
)
def test_a_member_that_is_no_file(plain: bytes, tmp_path: Path, form: str, kind: str, code: str) -> None:  # 15-20
    """In the place of a page: all else of the bundle is read on, and the page is missed."""
    position = offset_of(plain, b"site/index.html")
    size = tar.size_of(plain[position : position + BLOCK])
    assert size
    after = position + BLOCK + size + len(tar.padding(size))
    block = sealed(put(put(tar.header(b"site/index.html", 0), "typeflag", kind.encode()), "linkname", b"/etc/passwd"))
    result = judged(tmp_path, packed(form, plain[:position] + block + plain[after:]))
    refused(result, code)
    refused(result, "missing-file")
    assert result.objects > 40


@pytest.mark.parametrize("kind", ["1", "2", "5"])
def test_a_link_with_content_is_another_archive_to_another_reader(tmp_path: Path, kind: str) -> None:
    good = b"".join(tar.pieces([(b"site/x", 512, [bytes(512)])]))
    refused(judged(tmp_path, sealed(put(good[:BLOCK], "typeflag", kind.encode())) + good[BLOCK:]), CODE)


@pytest.mark.parametrize("form", TARS)
def test_a_link_and_a_file_below_it(tmp_path: Path, form: str) -> None:  # 66
    link = sealed(put(put(tar.header(b"site/sl", 0), "typeflag", b"2"), "linkname", b"/tmp"))
    result = judged(tmp_path, packed(form, link + tar_of([b"site/sl/x"])))
    refused(result, "fs-symlink")
    refused(result, "path-conflict")


def offset_of(data: bytes, name: bytes) -> int:
    """Where a member's header stands, by walking the archive."""
    position = 0
    while tar.name_of(data[position : position + BLOCK]) != name:
        size = tar.size_of(data[position : position + BLOCK])
        assert size is not None
        position += BLOCK + size + len(tar.padding(size))
    return position


# -- archives as other programs write them


@pytest.mark.parametrize("form", TARS)
@pytest.mark.parametrize("style", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_another_tar_of_the_same_files(folder: Path, tmp_path: Path, form: str, style: int) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=style) as file:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            file.add(path, path.relative_to(folder).as_posix())
    refused(judged(tmp_path, packed(form, out.getvalue())), CODE)


def test_the_same_files_as_we_lay_them_out(folder: Path, tmp_path: Path) -> None:
    for form in TARS:
        assert judged(tmp_path, packed(form, tar_of_folder(folder))).exit_code == 0


@pytest.mark.parametrize("form", TARS)
def test_a_directory_entry_of_its_own(folder: Path, tmp_path: Path, form: str) -> None:  # 28
    block = sealed(put(tar.header(b"site/", 0), "typeflag", b"5"))
    data = tar_of_folder(folder)
    position = offset_of(data, b"site/assets/site.css")
    result = judged(tmp_path, packed(form, data[:position] + block + data[position:]))
    refused(result, "fs-type")


# -- bytes more or less


@pytest.mark.parametrize("form", TARS)
@pytest.mark.parametrize(
    "change",
    [
        lambda d: d[:-1],  # 69
        lambda d: d[:-512],
        lambda d: d[:-1024],
        lambda d: d[: len(d) // 2],
        lambda d: d[:700],
        lambda d: d[:512],
        lambda d: d + b"\0",
        lambda d: d + b"x",
        lambda d: d + bytes(512),
        lambda d: d + bytes(8192),  # as other programs fill up their last record
        lambda d: d + d,
        lambda d: bytes(512) + d,
        lambda d: b"\0" + d,
        lambda d: d[:300] + d[301:],
        lambda d: d[:-1024] + b"x" + d[-1023:],
        lambda d: d[:-1] + b"x",
        lambda d: b"#!/bin/sh\n" + d,
        lambda d: bytes(1024),
        lambda d: b"",
        lambda d: bytes(512),
    ],
)
def test_a_tar_with_a_byte_more_or_less(
    plain: bytes, tmp_path: Path, form: str, change: Callable[[bytes], bytes]
) -> None:
    data = change(plain)
    result = judged(tmp_path, packed(form, data))
    # Without a member the archive is sound in form, and no bundle.
    empty = form == "tar.gz" and data == bytes(1024)
    refused(result, "missing-file" if empty else CODE)


@pytest.mark.parametrize("form", TARS)
def test_padding_is_zeros(plain: bytes, tmp_path: Path, form: str) -> None:
    size = tar.size_of(plain[:BLOCK])
    assert size and size % BLOCK
    for at in (BLOCK + size, BLOCK + size + len(tar.padding(size)) - 1):
        refused(judged(tmp_path, packed(form, plain[:at] + b"\x01" + plain[at + 1 :])), CODE)


@pytest.mark.parametrize("form", TARS)
def test_a_member_that_says_it_is_larger(tmp_path: Path, form: str) -> None:
    for size in (1, 8**11 - 1):
        data = tar.header(b"site/x", size) + tar.END
        refused(judged(tmp_path, packed(form, data)), CODE)


@pytest.mark.parametrize("form", TARS)
def test_members_twice_or_not_in_order(folder: Path, tmp_path: Path, form: str) -> None:  # 51, 63
    data = tar_of_folder(folder)
    first, second = offset_of(data, b"release.json"), offset_of(data, b"site.json")
    last = offset_of(data, b"site/assets/site.css")
    twice = data[:second] + data[first:second] + data[second:]
    refused(judged(tmp_path, packed(form, twice)), "duplicate-entry")
    refused(judged(tmp_path, packed(form, data[:-1024] + data)), "duplicate-entry")
    swapped = data[:first] + data[second:last] + data[first:second] + data[last:]
    result = judged(tmp_path, packed(form, swapped))
    assert [error.code for error in result.errors] == ["unsorted"]
    assert result.exit_code == 1


# -- gzip around it


def header_with(at: int, value: bytes, extra: bytes = b"") -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + value + data[at + len(value) : 10] + extra + data[10:]


def with_trailer(change: Callable[[int, int], tuple[int, int]]) -> Callable[[bytes], bytes]:
    return lambda data: data[:-8] + struct.pack("<2I", *change(*struct.unpack("<2I", data[-8:])))


@pytest.mark.parametrize(
    "change",
    [
        header_with(2, b"\x07"),
        header_with(3, b"\x01"),
        header_with(3, b"\x08", b"bundle.tar\0"),
        header_with(3, b"\x04", b"\x04\0ab\0\0"),
        header_with(3, b"\x10", b"a remark\0"),
        header_with(3, b"\x02"),
        header_with(3, b"\x80"),
        header_with(4, b"\x01\x02\x03\x04"),
        header_with(8, b"\x02"),
        header_with(9, b"\x03"),
        with_trailer(lambda crc, size: (crc ^ 1, size)),  # 69
        with_trailer(lambda crc, size: (crc, size + 1)),
        with_trailer(lambda crc, size: (size, crc)),
        with_trailer(lambda crc, size: (0, 0)),
        lambda d: d + d,
        lambda d: d + b"\0",
        lambda d: d + bytes(512),
        lambda d: d + gzip_of(b""),
        lambda d: gzip_of(b"") + d,
        lambda d: d[:-1],
        lambda d: d[:-4],
        lambda d: d[:-8],
        lambda d: d[:-9],
        lambda d: d[: len(d) // 2],
        lambda d: d[:11],
        lambda d: d[:10],
        lambda d: d[:9],
        lambda d: d[:2],
        lambda d: d[:10] + b"\x07" + d[11:],
        lambda d: d[:10] + b"\0" + d[10:],
        lambda d: gzip_of(d),
        lambda d: gzip_of(b""),
        lambda d: gzip_of(b"no tar archive"),
        lambda d: gzip_of(bytes(5000)),
    ],
)
def test_a_gzip_that_is_not_ours(plain: bytes, tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    refused(judged(tmp_path, change(gzip_of(plain))), CODE)


def test_two_members_that_unpack_to_the_archive(plain: bytes, tmp_path: Path) -> None:  # 69
    data = gzip_of(plain[:9000]) + gzip_of(plain[9000:])
    assert gzip.decompress(data) == plain
    refused(judged(tmp_path, data), CODE)


def framed(deflated: bytes, plain: bytes) -> bytes:
    return gz.HEADER + deflated + struct.pack("<2I", zlib.crc32(plain), len(plain))


def deflated(
    plain: bytes, level: int = 6, memory: int = 8, strategy: int = 0, flush: int | None = None, cut: int = 5000
) -> bytes:
    coder = zlib.compressobj(level, zlib.DEFLATED, -15, memory, strategy)
    first = coder.compress(plain[:cut]) + (coder.flush(flush) if flush is not None else b"")
    return first + coder.compress(plain[cut:]) + coder.flush()


OTHER_CODINGS: dict[str, dict[str, int]] = {
    "stored": {"level": 0}, "fast": {"level": 1}, "best": {"level": 9}, "memory": {"memory": 9},
    "Huffman": {"strategy": zlib.Z_HUFFMAN_ONLY}, "fixed": {"strategy": zlib.Z_FIXED}, "RLE": {"strategy": zlib.Z_RLE},
    "flushed": {"flush": zlib.Z_FULL_FLUSH}, "an empty block": {"flush": zlib.Z_SYNC_FLUSH},
}  # fmt: skip


@pytest.mark.parametrize("options", OTHER_CODINGS.values(), ids=list(OTHER_CODINGS))
def test_another_coding_of_the_same_bytes_is_never_verified(
    plain: bytes, tmp_path: Path, options: dict[str, int]
) -> None:
    assert framed(deflated(plain), plain) == gzip_of(plain)
    data = framed(deflated(plain, **options), plain)
    assert gzip.decompress(data) == plain
    assert data != gzip_of(plain)
    result = judged(tmp_path, data)
    assert [error.code for error in result.errors] == ["archive-compression"]
    assert result.exit_code == 3


def test_the_bits_after_the_last_code(plain: bytes, tmp_path: Path) -> None:
    """DEFLATE ends within a byte; a reader ignores what is left of it."""
    data = gzip_of(plain)
    ignored = [bit for bit in range(8) if unpacks_to(data[:-9] + bytes([data[-9] ^ 1 << bit]) + data[-8:], plain)]
    assert ignored, "choose another sample: its last byte is full"
    for bit in ignored:
        result = judged(tmp_path, data[:-9] + bytes([data[-9] ^ 1 << bit]) + data[-8:])
        assert [error.code for error in result.errors] == ["archive-compression"]
        assert str(len(data) - 9) in str(result.errors[0].found)


def unpacks_to(data: bytes, plain: bytes) -> bool:
    try:
        return gzip.decompress(data) == plain
    except (OSError, EOFError, zlib.error):
        return False


def test_a_machine_whose_zlib_codes_otherwise_says_what_to_do(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(sample, tmp_path / "bundle.tar.gz", "tar.gz")
    monkeypatch.setattr(gz, "LEVEL", 5)
    assert run(["verify", str(path)]) == 3
    out = capsys.readouterr().out
    assert "archive-compression  .: expected DEFLATE as zlib " in out
    assert "gunzip it and verify the tar archive" in out
    assert "every byte of the archive accounted for" not in out
    assert "CANNOT DECIDE" in out
    (tmp_path / "bundle.tar").write_bytes(gzip.decompress(path.read_bytes()))
    assert run(["verify", str(tmp_path / "bundle.tar")]) == 0


def test_another_coding_does_not_hide_what_is_bad(folder: Path, tmp_path: Path) -> None:
    (folder / "site" / "index.html").write_bytes(b"<p>better numbers")
    reseal(folder)
    plain = tar_of_folder(folder)
    result = judged(tmp_path, framed(deflated(plain, level=9), plain))
    assert [error.code for error in result.errors] == ["archive-compression", "digest-mismatch"]
    assert result.exit_code == 1


# -- what unpacks to too much


def test_a_bundle_that_expands_a_lot_is_read_when_asked_to(sample: Path, tmp_path: Path) -> None:  # 65
    size = 20 << 20
    path = zeros_bundle(sample, tmp_path, size, "tar.gz")
    assert path.stat().st_size * 200 + gz.EXPANSION_SLACK < size
    result = verify(path)
    assert [error.code for error in result.errors] == ["limit-expansion"]
    assert (result.exit_code, result.objects, result.bytes) == (3, 0, 0)
    assert verify(path, limits=Limits(expansion=1100)).exit_code == 0


def test_a_bomb_costs_little_memory(tmp_path: Path) -> None:
    size = 256 << 20
    coder = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = bytes(1 << 20)
    header = tar.header(b"site/zeros", size)
    bomb = gz.HEADER + coder.compress(header) + b"".join(coder.compress(piece) for _ in range(size >> 20))
    path = tmp_path / "bomb"
    path.write_bytes(bomb + coder.flush() + bytes(8))
    tracemalloc.start()
    try:
        result = verify(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    refused(result, "limit-expansion", 3)
    assert peak < 20 << 20


def test_the_limit_of_all_members_holds_while_unpacking(sample: Path, tmp_path: Path) -> None:
    path = zeros_bundle(sample, tmp_path, 20 << 20, "tar.gz")
    result = verify(path, limits=Limits(files=200, total_bytes=1 << 20, expansion=1100))
    assert [error.code for error in result.errors] == ["limit-total"]
    assert (result.exit_code, result.bytes) == (3, 0)


def test_a_small_archive_may_expand(tmp_path: Path) -> None:
    """One short member: far more than 200 times its size, and still not much."""
    data = b"".join(tar.pieces([(b"site/x", 1 << 19, [bytes(1 << 19)])]))
    assert len(data) > 200 * len(gzip_of(data))
    assert "limit-expansion" not in [error.code for error in judged(tmp_path, gzip_of(data)).errors]


def test_an_archive_in_the_archive_is_not_opened(sample: Path, tmp_path: Path) -> None:  # 65
    coder = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(coder.compress(bytes(1 << 20)) for _ in range(64)) + coder.flush()
    inner = b"".join(tar.pieces([(b"site/bomb.tar.gz", len(bomb), [bomb])]))
    result = judged(tmp_path, gzip_of(inner))
    assert "limit-expansion" not in [error.code for error in result.errors]
    assert result.bytes == len(bomb)
