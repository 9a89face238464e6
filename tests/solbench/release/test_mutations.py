"""Ten thousand mutations of bundles at random, archive and directory: not one is verified, crashes, or is written.

Most are of the sample release; the rest of a part of the published release, where the store is filled (`solbench
repro` or `solbench pull`): the problems of its smallest objects with all that belongs to them.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forging import Forger, packed, sealed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solbench import store
from solbench.release import bundle, readiness
from solbench.release.root import STAGES, describe, section_object
from solbench.release.verify import verify
from solbench.score.release import score_sections
from solbench.store import Descriptor, Store

CHECKOUT = Path(__file__).resolve().parents[3]
PREDICATE = {"buildDefinition": {"buildType": "test"}, "runDetails": {"builder": {"id": "t"}}}

Draw = random.Random
Change = Callable[[bytes, Draw], bytes]


def _place(data: bytes, draw: Draw) -> tuple[int, int]:
    """A span, short as often as long."""
    start = draw.randrange(len(data))
    return start, min(len(data), start + draw.choice((1, 2, 8, 64, 1000, 50_000)))


def bit(data: bytes, draw: Draw) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def byte(data: bytes, draw: Draw) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]


def truncation(data: bytes, draw: Draw) -> bytes:
    return data[: draw.randrange(len(data))]


def insertion(data: bytes, draw: Draw) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.randbytes(draw.choice((1, 3, 100))) + data[at:]


def deletion(data: bytes, draw: Draw) -> bytes:
    start, stop = _place(data, draw)
    return data[:start] + data[stop:]


def swap(data: bytes, draw: Draw) -> bytes:
    start, stop = _place(data, draw)
    other, end = _place(data, draw)
    if start > other:
        start, stop, other, end = other, end, start, stop
    stop = min(stop, other)
    return data[:start] + data[other:end] + data[stop:other] + data[start:stop] + data[end:]


def duplication(data: bytes, draw: Draw) -> bytes:
    start, stop = _place(data, draw)
    return data[:stop] + data[start:stop] + data[stop:]


def zeros(data: bytes, draw: Draw) -> bytes:
    start, stop = _place(data, draw)
    return data[:start] + bytes(stop - start) + data[stop:]


def digits(data: bytes, draw: Draw) -> bytes:
    """Another digit where one stands: what a forger of numbers would try first."""
    places = [at for at in (draw.randrange(len(data)) for _ in range(50)) if 0x30 <= data[at] <= 0x39]
    at = places[0] if places else draw.randrange(len(data))
    return data[:at] + b"%d" % draw.randrange(10) + data[at + 1 :]


CHANGES: tuple[Change, ...] = (bit, byte, truncation, insertion, deletion, swap, duplication, zeros, digits)


def changed_members(members: dict[str, bytes], draw: Draw) -> dict[str, bytes]:
    """A member renamed, removed, doubled under another name, swapped with another, emptied or changed inside."""
    result = dict(members)
    name, other = draw.sample(sorted(members), 2)
    how = draw.randrange(6)
    if how == 0:
        result[name + draw.choice(("0", "~", ".json"))] = result.pop(name)
    elif how == 1:
        del result[name]
    elif how == 2:
        result[f"site/{draw.randrange(1000)}"] = result[name]
    elif how == 3:
        result[name], result[other] = result[other], result[name]
    elif how == 4:
        result[name] = b""
    else:
        result[name] = draw.choice(CHANGES)(result[name] or b"{}", draw)
    # Some seal again what they have changed. What provenance says of its builder is nobody's derivation, so that a
    # forger who keeps its subject may: the root does not hold it.
    return sealed(result) if draw.random() < 0.5 and name != "provenance.json" else result


def members_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(path: Path) -> None:
    result = verify(path)
    assert result.exit_code in (1, 3, 4), path
    assert result.errors
    json.dumps(result.as_dict())


def mutate_archive(original: bytes, path: Path, draw: Draw) -> bool:
    """One mutation of the archive's own bytes; False where it came out as it was."""
    data = draw.choice(CHANGES)(original, draw)
    if data == original:
        return False
    path.write_bytes(data)
    refused(path)
    return True


def mutate_members(members: dict[str, bytes], path: Path, draw: Draw) -> bool:
    """One mutation of the members, in an archive whose own structure is right."""
    changed = changed_members(members, draw)
    if changed == members:
        return False
    path.write_bytes(packed(changed))
    refused(path)
    return True


def mutate_file(folder: Path, names: list[str], draw: Draw) -> bool:
    """One mutation of a file of a directory, which is put back."""
    path = folder / draw.choice(names)
    content = path.read_bytes()
    data = draw.choice(CHANGES)(content, draw) if content else b"x"
    if data == content:
        return False
    path.write_bytes(data)
    try:
        refused(folder)
    finally:
        path.write_bytes(content)
    return True


def mutate(folder: Path, archive: Path, counts: tuple[int, int, int], seed: int) -> int:
    """So many mutations of (archive bytes, members, files of the directory) as were to be; how many there were."""
    draw = random.Random(seed)
    original, members = archive.read_bytes(), members_of(folder)
    names, path = sorted(members), folder.parent / "mutated.zip"
    before = {name: (folder / name).stat().st_mtime_ns for name in names}
    tried = 0
    for _ in range(counts[0]):
        tried += mutate_archive(original, path, draw)
    for _ in range(counts[1]):
        tried += mutate_members(members, path, draw)
    assert {name: (folder / name).stat().st_mtime_ns for name in names} == before
    for _ in range(counts[2]):
        tried += mutate_file(folder, names, draw)
    assert sorted(members_of(folder)) == names
    assert verify(folder).exit_code == 0
    return tried


def test_mutations_of_the_sample(folder: Path, archive_file: Path) -> None:
    assert mutate(folder, archive_file, (60, 60, 40), 1) > 150


@pytest.mark.slow
def test_ten_thousand_mutations(folder: Path, archive_file: Path) -> None:
    assert mutate(folder, archive_file, (4400, 4000, 2100), 2) > 10_000


def real_part(root: Path, problems: int = 3) -> Store | None:
    """A release of the problems of the published store that take least, with all that belongs to them; None where the
    store holds no objects."""
    published = Store(CHECKOUT / "store")
    if not all((published.root / stage / "objects").is_dir() for stage in (*STAGES, "release")):
        return None
    sections = {stage: published.index(stage) for stage in STAGES}
    sizes: dict[str, int] = {}
    for name, entry in sections["einsums"].items():
        key = name.rpartition("/")[0].rpartition("/")[0]
        sizes[key] = sizes.get(key, 0) + entry.size
    chosen = tuple(f"{key}/" for key in sorted(sizes, key=lambda key: (sizes[key], key))[:problems])
    kept = {
        stage: {name: entry for name, entry in index.items() if f"{name}/".startswith(chosen)}
        for stage, index in sections.items()
    }
    kept["bounds"] |= {n: e for n, e in sections["bounds"].items() if e.kind == "hardware"}
    kept["scores"], kept["code"], kept["timings"], kept["readiness"] = {}, {}, {}, {}
    for stage, index in kept.items():
        for entry in index.values():
            store.put(root / stage / "objects", entry.kind, published.read(stage, entry))
    one = Store(root)

    def add(stage: str, name: str, kind: str, value: dict[str, object]) -> Descriptor:
        descriptor = store.put_json(root / stage / "objects", kind, value)
        kept.setdefault(stage, {})[name] = descriptor
        return descriptor

    for name, kind, value in score_sections(kept, one.load):
        add("scores", name, kind, value)
    for target in readiness.targets_of(kept):
        static = readiness.static(kept, one.load, target)
        if static is not None:
            add("readiness", f"{target}/static", "readiness", static.as_dict())
    references = {
        stage: add("release", f"sections/{stage}", "section", section_object(stage, kept[stage])) for stage in STAGES
    }
    stages = {stage: kept[stage] for stage in STAGES}
    add("release", "release", "release", describe("part", stages, one.load, references).as_dict())
    for stage, index in kept.items():
        (root / f"{stage}.json").write_bytes(store.index_bytes(index))
    return one


@pytest.mark.slow
def test_mutations_of_a_part_of_the_published_release(tmp_path: Path) -> None:
    one = real_part(tmp_path / "store")
    if one is None:
        pytest.skip("the store holds no objects; run `solbench repro` or `solbench pull`")
    archive = bundle.write_bundle(one, tmp_path / "part.zip", PREDICATE).path
    folder = bundle.write_directory(one, tmp_path / "part", PREDICATE).path
    assert verify(archive).exit_code == 0
    assert mutate(folder, archive, (400, 300, 300), 3) > 950


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_the_same_answer_twice(sample: Path, tmp_path: Path, seed: int) -> None:
    """Whatever the mutation, the verdict is the same to the byte, and no crash."""
    draw = random.Random(seed)
    path = tmp_path / "mutated.zip"
    members = members_of(sample / "sample")
    path.write_bytes(packed(changed_members(members, draw)))
    first, second = verify(path), verify(path)
    assert first.exit_code in ((1, 3, 4) if path.read_bytes() != packed(members) else (0,))
    assert json.dumps(first.as_dict()) == json.dumps(second.as_dict())


def test_a_forgery_looks_the_same_anywhere(sample: Path, tmp_path: Path) -> None:
    """One language or another, no home, no permission to write anywhere: the same bytes, and nothing new."""
    forger = Forger.of(sample / "sample")
    (digest,) = (one for one, names in forger.names.items() if "scores: cpu/fast" in names)
    folder = tmp_path / "here"
    folder.mkdir()
    data = forger.objects[digest].replace(b'"scored":1', b'"scored":2')
    assert data != forger.objects[digest]
    (folder / "x.zip").write_bytes(packed(forger.forged(digest, data)))
    (folder / "x.zip").chmod(0o444)
    folder.chmod(0o555)
    code = "import sys; from solbench.cli import main; main(sys.argv[1:])"
    found = set()
    for environment in ({"LANG": "C"}, {"LANG": "tr_TR.UTF-8", "HOME": "/nowhere"}, {"PYTHONHASHSEED": "3"}):
        arguments = [sys.executable, "-B", "-c", code, "verify", "--json", "x.zip"]
        paths = {key: os.environ[key] for key in ("PYTHONPATH",) if key in os.environ}
        done = subprocess.run(arguments, cwd=folder, env={**paths, **environment}, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (1, b"")
        found.add(done.stdout)
    assert len(found) == 1
    assert [path.name for path in folder.iterdir()] == ["x.zip"]
    folder.chmod(0o755)
