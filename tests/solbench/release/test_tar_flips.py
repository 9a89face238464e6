"""No mutation of a tar or tar.gz bundle is ever accepted: one byte anywhere, many bytes, pieces moved."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_archives import packed, written

from solbench.release import gz
from solbench.release.verify import verify

BLOCK = 512
KINDS = ["release.json", "provenance.json", "site.json", "SHA256SUMS", "B3SUMS", "site/index.html", "objects/"]


@pytest.fixture
def tar_file(sample: Path, tmp_path: Path) -> Path:
    return written(sample, tmp_path / "bundle.tar", "tar")


@pytest.fixture
def gz_file(sample: Path, tmp_path: Path) -> Path:
    return written(sample, tmp_path / "bundle.tar.gz", "tar.gz")


def flipped(path: Path, offset: int, mask: int = 1) -> int:
    """Exit code with one byte changed; the file is restored."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ mask]))
        file.flush()
        try:
            return verify(path).exit_code
        finally:
            file.seek(offset)
            file.write(bytes([byte]))


def regions(path: Path) -> Iterator[tuple[str, range]]:
    """(what, where) of every part of a tar archive, with nothing but the format's numbers."""
    data = path.read_bytes()
    position = 0
    while data[position]:
        name = data[position : position + 100].rstrip(b"\0").decode()
        size = int(data[position + 124 : position + 135], 8)
        content = position + BLOCK
        end = content + -(-size // BLOCK) * BLOCK
        yield f"header of {name}", range(position, content)
        yield f"content of {name}", range(content, content + size)
        yield f"padding of {name}", range(content + size, end)
        position = end
    yield "end", range(position, len(data))


def test_the_regions_are_the_whole_file(tar_file: Path) -> None:
    found = list(regions(tar_file))
    assert sum(len(part) for _, part in found) == tar_file.stat().st_size
    assert [len(part) for name, part in found if name == "end"] == [2 * BLOCK]
    assert verify(tar_file).exit_code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_of_the_header_of_each_kind_of_member(tar_file: Path, kind: str) -> None:
    part = next(part for name, part in regions(tar_file) if name.startswith(f"header of {kind}"))
    for offset in part:
        assert flipped(tar_file, offset, 1 << offset % 8) == 1, offset


def test_every_byte_of_some_padding_and_of_the_end(tar_file: Path) -> None:
    found = dict(regions(tar_file))
    for part in (found["padding of release.json"], found["end"]):
        assert len(part)
        for offset in part:
            assert flipped(tar_file, offset, 1 << offset % 8) == 1, offset


@pytest.mark.parametrize("kind", KINDS)
def test_a_byte_of_the_content_of_each_kind_of_member(tar_file: Path, kind: str) -> None:
    for name, part in regions(tar_file):
        if name.startswith(f"content of {kind}"):
            offset = part[len(name) * 37 % len(part)]
            assert flipped(tar_file, offset, 1 << offset % 8) == 1, (name, offset)


def test_every_bit_of_the_gzip_header_and_trailer(gz_file: Path) -> None:
    size = gz_file.stat().st_size
    for offset in [*range(len(gz.HEADER)), *range(size - gz.TRAILER.size, size)]:
        for bit in range(8):
            assert flipped(gz_file, offset, 1 << bit) in (1, 4), (offset, bit)
    assert verify(gz_file).exit_code == 0


def test_bytes_of_the_compressed_data(gz_file: Path) -> None:
    size = gz_file.stat().st_size
    for offset in [*range(10, 60), *range(60, size - 20, 997), *range(size - 20, size - 8)]:
        assert flipped(gz_file, offset, 1 << offset % 8) == expected(gz_file, offset, 1 << offset % 8), offset


def expected(path: Path, offset: int, mask: int) -> int:
    """3 where Python's own gzip still unpacks the same bytes, else 1."""
    data = path.read_bytes()
    changed = data[:offset] + bytes([data[offset] ^ mask]) + data[offset + 1 :]
    try:
        return 3 if gzip.decompress(changed) == gzip.decompress(data) else 1
    except (OSError, EOFError, zlib.error):
        return 1


@pytest.mark.slow
def test_every_byte_of_the_structure_and_some_of_the_rest(tar_file: Path) -> None:
    for name, part in regions(tar_file):
        step = 31 if name.startswith("content") else 1
        for offset in part[::step]:
            assert flipped(tar_file, offset, 1 << offset % 8) == 1, (name, offset)
    assert verify(tar_file).exit_code == 0


@pytest.mark.slow
def test_every_fifth_byte_of_compressed_data(gz_file: Path) -> None:
    size = gz_file.stat().st_size
    for offset in range(len(gz.HEADER), size - gz.TRAILER.size, 5):
        mask = 1 << offset % 8
        assert flipped(gz_file, offset, mask) == expected(gz_file, offset, mask), offset
    assert verify(gz_file).exit_code == 0


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
@pytest.mark.parametrize("form", ["tar", "tar.gz", "tar then gzip"])
def test_no_mutation_is_accepted_and_nothing_is_written(sample: Path, tmp_path: Path, form: str, data: object) -> None:
    """``tar then gzip``: a changed tar archive, packed as we do."""
    source = tmp_path / "original"
    if not source.exists():
        written(sample, source, "tar.gz" if form == "tar.gz" else "tar")
    original = source.read_bytes()
    draw = data.draw  # type: ignore[attr-defined]
    how = draw(st.sampled_from(["flip", "set", "insert", "delete", "repeat", "move", "reverse", "truncate", "double"]))
    at = draw(st.integers(0, len(original) - 1))
    length = draw(st.sampled_from([1, 7, 511, 512, 1024, 1536, 5000]))
    if draw(st.booleans()):
        at -= at % BLOCK
    extra = draw(st.one_of(st.binary(min_size=1, max_size=40), st.just(bytes(BLOCK))))
    piece, rest = original[at : at + length], original[:at] + original[at + length :]
    to = draw(st.integers(0, len(rest)))
    changed = {
        "flip": original[:at] + bytes([original[at] ^ 1 << length % 8]) + original[at + 1 :],
        "set": original[:at] + extra + original[at + len(extra) :],
        "insert": original[:at] + extra + original[at:],
        "delete": rest,
        "repeat": original[:at] + piece + original[at:],
        "move": rest[:to] + piece + rest[to:],
        "reverse": original[:at] + piece[::-1] + original[at + length :],
        "truncate": original[:at],
        "double": original + original[at:],
    }[how]
    path = tmp_path / "mutated"
    path.write_bytes(packed("tar.gz", changed) if form == "tar then gzip" else changed)
    before = snapshot(tmp_path)
    result = verify(path)
    assert snapshot(tmp_path) == before
    if changed == original:
        assert result.exit_code == 0
    else:
        assert result.exit_code in ((1, 3, 4) if form == "tar.gz" else (1, 4))
        json.dumps(result.as_dict())


def test_verifying_reads_only(tar_file: Path, gz_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.open

    def reading(path: object, flags: int, *rest: object, **options: object) -> int:
        assert flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) == 0
        assert flags & os.O_NOFOLLOW
        return original(path, flags, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", reading)
    assert verify(tar_file).exit_code == 0
    assert verify(gz_file).exit_code == 0


def test_it_opens_one_file_and_closes_it(tar_file: Path, gz_file: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for path in (tar_file, gz_file):
        verify(path)
        data = path.read_bytes()
        path.write_bytes(data[:-1])
        verify(path)
    assert os.listdir("/proc/self/fd") == before
