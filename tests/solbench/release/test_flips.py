"""No mutation of a bundle is ever accepted: one byte anywhere, many bytes, pieces moved, members changed."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solbench.release import archive
from solbench.release.verify import verify

KINDS = ["release.json", "provenance.json", "site.json", "SHA256SUMS", "B3SUMS", "site/index.html", "objects/"]


def members(path: Path) -> list[archive.Member]:
    """Members by walking the central directory with nothing but the format's numbers."""
    data = path.read_bytes()
    _, _, _, _, count, _, position, _ = archive.END.unpack(data[-archive.END.size :])
    found = []
    for _ in range(count):
        fields = archive.CENTRAL.unpack_from(data, position)
        start = position + archive.CENTRAL.size
        found.append(archive.Member(data[start : start + fields[10]], fields[9], fields[7], fields[16]))
        position = start + fields[10]
    return found


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
    """Every part of an archive that its own format is made of."""
    listed = members(path)
    for member in listed:
        yield f"local header of {member.name.decode()}", range(member.offset, member.data_offset)
    position = listed[-1].end
    for member in listed:
        size = len(archive.central_header(member))
        yield f"directory entry of {member.name.decode()}", range(position, position + size)
        position += size
    yield "end record", range(position, path.stat().st_size)


def test_regions_and_members_are_the_whole_file(archive_file: Path) -> None:
    covered = sum(len(part) for _, part in regions(archive_file)) + sum(member.size for member in members(archive_file))
    assert covered == archive_file.stat().st_size
    assert verify(archive_file).exit_code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_of_the_headers_of_each_kind_of_member(archive_file: Path, kind: str) -> None:
    first = {}
    for name, part in regions(archive_file):
        if f" of {kind}" in name:
            first.setdefault(name.split(" of ")[0], part)
    assert sorted(first) == ["directory entry", "local header"]
    for part in first.values():
        for offset in part:
            assert flipped(archive_file, offset, 1 << offset % 8) == 1, offset


def test_every_bit_of_the_end_record(archive_file: Path) -> None:
    size = archive_file.stat().st_size
    for offset in range(size - archive.END.size, size):
        for bit in range(8):
            assert flipped(archive_file, offset, 1 << bit) == 1, offset


@pytest.mark.parametrize("kind", KINDS)
def test_a_byte_of_the_content_of_each_kind_of_member(archive_file: Path, kind: str) -> None:
    draw = random.Random(kind)
    for member in members(archive_file):
        if not member.name.decode().startswith(kind):
            continue
        offsets = {member.data_offset, member.end - 1, draw.randrange(member.data_offset, member.end)}
        for offset in sorted(offsets):
            assert flipped(archive_file, offset, 1 << draw.randrange(8)) == 1, member.name
    assert verify(archive_file).exit_code == 0


def test_a_byte_of_every_file_of_a_directory(folder: Path) -> None:
    draw = random.Random(3)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        offset = draw.randrange(path.stat().st_size)
        assert flipped_file(path, folder, offset) == 1, path


def flipped_file(path: Path, folder: Path, offset: int) -> int:
    data = path.read_bytes()
    path.write_bytes(data[:offset] + bytes([data[offset] ^ 0x20]) + data[offset + 1 :])
    try:
        return verify(folder).exit_code
    finally:
        path.write_bytes(data)


@pytest.mark.slow
def test_every_byte_of_the_structure_and_every_seventh_of_the_rest(archive_file: Path) -> None:
    structure = {offset for _, part in regions(archive_file) for offset in part}
    for offset in range(archive_file.stat().st_size):
        if offset in structure or offset % 7 == 0:
            assert flipped(archive_file, offset, 1 << offset % 8) == 1, offset
    assert verify(archive_file).exit_code == 0


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_mutation_of_an_archive_is_accepted_and_nothing_is_written(
    sample: Path, tmp_path: Path, data: object
) -> None:
    original = (sample / "sample.zip").read_bytes()
    draw = data.draw  # type: ignore[attr-defined]
    how = draw(st.sampled_from(["set", "insert", "delete", "repeat", "swap", "truncate", "splice"]))
    at = draw(st.integers(0, len(original) - 1))
    length = draw(st.integers(1, 300))
    extra = draw(st.binary(min_size=1, max_size=40))
    piece = original[at : at + length]
    changed = {
        "set": original[:at] + extra + original[at + len(extra) :],
        "insert": original[:at] + extra + original[at:],
        "delete": original[:at] + original[at + length :],
        "repeat": original[:at] + piece + original[at:],
        "swap": original[:at] + piece[::-1] + original[at + length :],
        "truncate": original[:at],
        "splice": original[length : at + length] + original[at:],
    }[how]
    path = tmp_path / "mutated.zip"
    path.write_bytes(changed)
    before = snapshot(tmp_path)
    result = verify(path)
    assert snapshot(tmp_path) == before
    if changed == original:
        assert result.exit_code == 0
    else:
        assert result.exit_code in (1, 4)
        json.dumps(result.as_dict())


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_mutation_of_a_directory_is_accepted(sample: Path, folder: Path, data: object) -> None:
    draw = data.draw  # type: ignore[attr-defined]
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    path = folder / draw(st.sampled_from(files))
    content = path.read_bytes()
    how = draw(st.sampled_from(["write", "remove", "rename", "append", "empty"]))
    try:
        if how == "remove":
            path.unlink()
        elif how == "rename":
            path.rename(path.with_name(path.name + draw(st.sampled_from(["~", ".bak", "0", "\u202e", "\n"]))))
        else:
            extra = draw(st.binary(min_size=1, max_size=20))
            path.write_bytes({"write": extra, "append": content + extra, "empty": b""}[how])
        result = verify(folder)
        assert result.exit_code == 0 if path.exists() and path.read_bytes() == content else result.exit_code == 1
        assert "".join(json.dumps(result.as_dict())).isascii()
    finally:
        for other in path.parent.glob(f"{path.name}?*"):
            other.unlink()
        path.write_bytes(content)


def test_verifying_reads_only(archive_file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.open

    def reading(path: object, flags: int, *rest: object, **options: object) -> int:
        assert flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) == 0
        assert flags & os.O_NOFOLLOW
        return original(path, flags, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", reading)
    assert verify(archive_file).exit_code == 0
    assert verify(folder).exit_code == 0
