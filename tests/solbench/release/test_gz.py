"""Reading what a gzip file of ours unpacks to: anywhere, in bounded memory, and exactly those bytes."""

from __future__ import annotations

import gzip
import itertools
import os
import random
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solbench.release import gz
from solbench.release.members import ChangedError, RefusedError
from solbench.release.plain import PlainFile


def text(size: int, seed: int = 1) -> bytes:
    """Something that compresses about as artifacts do, and differently from place to place."""
    draw = random.Random(seed)
    data = b"".join(b'{"name":"w%d","time":%.9f}\n' % (draw.randrange(999), draw.random()) for _ in range(size // 25))
    return data[:size].ljust(size, b"\n")


DATA = text(3 << 20)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gz") / "data.gz"
    path.write_bytes(b"".join(gz.pack([DATA])))
    return path


def opened(path: Path, **limits: int) -> gz.Unpacked:
    options = {"max_bytes": 1 << 40, "max_expansion": 200, **limits}
    return gz.Unpacked(PlainFile(os.open(path, os.O_RDONLY), path.stat().st_size), **options)


@pytest.fixture
def unpacked(file: Path) -> Iterator[gz.Unpacked]:
    """Read through once, ready for reading anywhere."""
    one = opened(file)
    one.skip(1 << 60)
    assert one.finish() is None
    yield one
    one.close()


def test_gunzip_reads_it(file: Path) -> None:
    assert gzip.decompress(file.read_bytes()) == DATA


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(1, 300_000), max_size=12))
def test_the_bytes_do_not_depend_on_the_pieces(sizes: list[int]) -> None:
    data = DATA[: 1 << 20]
    cuts, at = [], 0
    for size in sizes:
        cuts.append(data[at : at + size])
        at += size
    assert b"".join(gz.pack([*cuts, data[at:]])) == b"".join(gz.pack([data]))


def test_from_front_to_back(file: Path) -> None:
    one = opened(file)
    draw, position = random.Random(2), 0
    while position < len(DATA):
        size = draw.choice([1, 511, 512, 70_000])
        if draw.random() < 0.5:
            one.skip(size)
        else:
            assert one.read(size) == DATA[position : position + size]
        position += size
    assert one.read(5) == b""
    assert one.finish() is None
    one.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(offset=st.integers(0, len(DATA)), size=st.integers(0, 400_000))
def test_from_anywhere(unpacked: gz.Unpacked, offset: int, size: int) -> None:
    size = min(size, len(DATA) - offset)
    assert b"".join(unpacked.pieces(offset, size)) == DATA[offset : offset + size]


def test_two_readers_at_once_do_not_disturb_each_other(unpacked: gz.Unpacked) -> None:
    first, second = unpacked.pieces(100, 2_000_000), unpacked.pieces(1_500_000, 1_000_000)
    taken = list(itertools.zip_longest(first, second, fillvalue=b""))
    assert b"".join(one for one, _ in taken) == DATA[100:2_000_100]
    assert b"".join(two for _, two in taken) == DATA[1_500_000:2_500_000]


def test_readers_in_threads(unpacked: gz.Unpacked) -> None:
    wrong: list[int] = []

    def reader(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(20):
            offset = draw.randrange(len(DATA) - 5000)
            if b"".join(unpacked.pieces(offset, 5000)) != DATA[offset : offset + 5000]:
                wrong.append(offset)

    threads = [threading.Thread(target=reader, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_beyond_the_end_is_a_change(unpacked: gz.Unpacked) -> None:
    with pytest.raises(ChangedError, match="shrank"):
        list(unpacked.pieces(len(DATA) - 10, 11))
    with pytest.raises(ChangedError, match="shrank"):
        list(unpacked.pieces(len(DATA) + 100_000, 1))


def test_a_file_that_changes_after_the_first_pass(tmp_path: Path) -> None:
    path = tmp_path / "data.gz"
    path.write_bytes(b"".join(gz.pack([DATA])))
    one = opened(path)
    one.skip(1 << 60)
    one.finish()
    path.write_bytes(random.Random(5).randbytes(path.stat().st_size))
    with pytest.raises(ChangedError, match="changed while"):
        list(one.pieces(1_000_000, 1_000_000))
    path.write_bytes(b"")
    with pytest.raises(ChangedError, match="shrank while"):
        list(one.pieces(1_000_000, 1_000_000))
    one.close()


def test_places_to_come_back_to_stay_few(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gz, "_MAX_PLACES", 4)
    one = opened(file)
    one.skip(1 << 60)
    one.finish()
    assert 2 <= len(one._places) <= 4
    assert one._spacing > gz._FIRST_SPACING
    for offset in range(0, len(DATA) - 1000, 333_333):
        assert b"".join(one.pieces(offset, 1000)) == DATA[offset : offset + 1000]
    one.close()


def test_reading_one_place_unpacks_little(unpacked: gz.Unpacked, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the nearest place kept, and not from the front."""
    read = 0
    original = PlainFile.at

    def counted(self: PlainFile, offset: int, size: int) -> bytes:
        nonlocal read
        data = original(self, offset, size)
        read += len(data)
        return data

    monkeypatch.setattr(PlainFile, "at", counted)
    for offset in (2_900_000, 100_000, 1_500_000):
        assert len(b"".join(unpacked.pieces(offset, 100))) == 100
    # At most the spacing, which unpacks from fewer bytes than that, and what zlib is fed at a time.
    assert read < 3 * (gz._FIRST_SPACING + 2 * gz._READ)
    assert read < len(b"".join(gz.pack([DATA]))) / 2


@pytest.mark.slow
def test_memory_does_not_grow_with_the_archive(tmp_path: Path) -> None:
    piece = os.urandom(1 << 16) + bytes(3 << 16)
    path = tmp_path / "large.gz"
    with path.open("wb") as out:
        for packed in gz.pack(piece for _ in range(1024)):  # 256 MiB
            out.write(packed)
    one = opened(path)
    tracemalloc.start()
    try:
        one.skip(1 << 60)
        assert one.finish() is None
        assert one._spacing > gz._FIRST_SPACING
        for offset in (1 << 27, 1 << 20, (1 << 28) - 512):
            assert len(b"".join(one.pieces(offset, 512))) == 512
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        one.close()
    # zlib's states are outside tracemalloc: at most _MAX_PLACES of them, some 40 KB each.
    assert peak + gz._MAX_PLACES * 48_000 < 100 << 20


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_sizes_around_what_zlib_is_fed(tmp_path: Path, size: int) -> None:
    path = tmp_path / "data.gz"
    path.write_bytes(b"".join(gz.pack([DATA[:size]])))
    one = opened(path)
    assert one.read(size + 1) == DATA[:size]
    assert one.finish() is None
    one.close()


def test_more_than_was_read_is_refused(file: Path) -> None:
    one = opened(file)
    one.skip(len(DATA) - 1)
    with pytest.raises(RefusedError, match="archive-structure"):
        one.finish()
    one.close()


@pytest.mark.parametrize(
    ("limits", "code"), [({"max_bytes": len(DATA) - 1}, "limit-total"), ({"max_expansion": 1}, "limit-expansion")]
)
def test_limits(file: Path, limits: dict[str, int], code: str) -> None:
    one = opened(file, **limits)
    with pytest.raises(RefusedError) as caught:
        one.skip(1 << 60)
    assert caught.value.code == code
    one.close()
    one = opened(file, max_bytes=len(DATA), max_expansion=10)
    one.skip(1 << 60)
    assert one.finish() is None
    one.close()
