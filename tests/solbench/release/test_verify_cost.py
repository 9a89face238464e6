"""What verifying costs, by counting: each file opened once, each artifact parsed once, memory that does not grow."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from forging import packed, sealed
from test_mutations import members_of

from solbench import canonical
from solbench.release import schemas
from solbench.release.verify import verify

MIB = 1 << 20


def test_every_file_is_opened_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Counter[str] = Counter()
    original = os.open

    def counted(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        opened[str(path)] += 1
        return original(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", counted)
    assert verify(folder).exit_code == 0
    names = [path.name for path in folder.rglob("*") if path.is_file()]
    assert {name: opened[name] for name in names} == dict.fromkeys(names, 1)


def test_every_artifact_is_parsed_and_held_against_its_contract_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()

    def counting(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*values: Any, **options: Any) -> Any:
            counts[name] += 1
            return original(*values, **options)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in ((json, "loads"), (orjson, "loads"), (canonical, "read"), (schemas, "violation")):
        counting(owner, name)
    result = verify(folder)
    assert result.exit_code == 0
    raw = 2  # a code object and its assembly
    documents = result.objects - raw
    assert counts["violation"] == documents
    # Provenance and the site's manifest are documents as well.
    assert counts["read"] == documents + 2
    assert counts["loads"] == documents + 2


def with_page(sample: Path, data: bytes) -> dict[str, bytes]:
    """Members of the sample with a page of these bytes."""
    members = members_of(sample / "sample")
    site = canonical.loads(members["site.json"])
    site["pages"]["large.bin"] = canonical.digest(data)
    return sealed({**members, "site/large.bin": data, "site.json": canonical.dumps(site)})


@pytest.mark.parametrize("size", [MIB, MIB + 1, 9 * MIB + 17])
def test_members_of_many_pieces_are_hashed_as_by_anybody(sample: Path, tmp_path: Path, size: int) -> None:
    data = hashlib.shake_128(b"large").digest(size)
    members = with_page(sample, data)
    path = tmp_path / "x.zip"
    path.write_bytes(packed(members))
    assert verify(path).exit_code == 0
    # Of the three, each one alone finds a changed byte: here those of SHA-256 and BLAKE3 in the checksum files.
    for name in ("B3SUMS", "SHA256SUMS"):
        lines = members[name].splitlines(keepends=True)
        (at,) = (i for i, line in enumerate(lines) if line.endswith(b"  site/large.bin\n"))
        lines[at] = (b"1" if lines[at][:1] != b"1" else b"2") + lines[at][1:]
        path.write_bytes(packed({**members, name: b"".join(lines)}))
        result = verify(path)
        assert [error.code for error in result.errors] == ["digest-mismatch"]
    whole = packed(members)
    at = whole.index(data) + size - 1
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    codes = {error.code for error in verify(path).errors}
    assert codes >= {"archive-structure", "digest-mismatch"}


def test_memory_does_not_grow_with_the_bundle(sample: Path, tmp_path: Path) -> None:
    peaks = []
    code = (
        "import sys; from pathlib import Path; from solbench.release.verify import verify\n"
        "assert verify(Path(sys.argv[1])).exit_code == 0\n"
        "print(next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    for size in (2 * MIB, 96 * MIB):
        path = tmp_path / "x.zip"
        path.write_bytes(packed(with_page(sample, bytes(size))))
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) * 1024)
    assert peaks[1] - peaks[0] < 24 * MIB
    assert peaks[1] < 300_000_000
