"""What a store and the memo hold that nothing needs: found and counted, never deleted (that is DVC's to do)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from solbench import canonical
from solbench.errors import IntegrityError
from solbench.release import inventory, reach, schemas
from solbench.store import encode

_KIND_OF: Final = {schema: kind for kind, schema in schemas.SCHEMAS.items()}
_CHECKSUM_BYTES = 65
# As deep as results are nested: a record in a list, or below its digest, in what a stage's function returns.
_LEVELS = 3


@dataclass(frozen=True, order=True)
class Garbage:
    """One file that nothing needs: where it is (below the store or the memo), its bytes, and why it is not needed."""

    path: str
    size: int
    reason: str


@dataclass(frozen=True)
class Sweep:
    """What was found in one place: ``files`` and ``bytes`` are of all that is there."""

    garbage: tuple[Garbage, ...]
    files: int
    bytes: int

    @property
    def garbage_bytes(self) -> int:
        return sum(one.size for one in self.garbage)

    def as_dict(self) -> dict[str, Any]:
        return {
            "unreached": [{"path": g.path, "bytes": g.size, "reason": g.reason} for g in self.garbage],
            "unreached_bytes": self.garbage_bytes,
            "files": self.files,
            "bytes": self.bytes,
        }


def in_store(store: reach.Catalogue) -> Sweep:
    """Objects that neither their stage's index nor the release leads to, and what killed writers left."""
    found: list[Garbage] = []
    unnamed: list[tuple[inventory.Item, str]] = []
    files = total = 0
    for item in inventory.items(store.root):
        if item.what not in ("object", "temporary"):
            continue
        files += 1
        size = inventory.folder_size(store.root, item.path) if item.path.endswith("/") else item.size
        total += size
        if item.what == "temporary":
            found.append(Garbage(item.path, size, "left by a writer that was killed"))
            continue
        assert item.digest is not None
        stages = {entry.stage for entry in store.named.get(item.digest, ())}
        if item.stage not in stages:
            unnamed.append((item, item.digest))
    # Only where the question arises: the walk reads every object.
    reached = reach.closure(store, store.release) if unnamed and store.release is not None else set()
    for item, digest in unnamed:
        names = store.named.get(digest, ())
        if names:
            reason = f"no entry of {item.stage}.json; it is read from the folder of {names[0].stage}"
            found.append(Garbage(item.path, item.size, reason))
        elif digest not in reached:
            found.append(Garbage(item.path, item.size, "in no index, and the release does not lead to it"))
    return Sweep(tuple(sorted(found)), files, total)


def in_memo(memo: Path, stores: Sequence[reach.Catalogue]) -> Sweep:
    """Memo entries of which no index of ``stores`` holds a result; deleting one costs the time to compute it again.

    An entry counts as reached where an artifact, a reason or a replayed program in it is in an index, or is named by an
    attestation. :class:`IntegrityError` where an attestation or a reason of a store cannot be read.
    """
    known = {digest for store in stores for digest in store.named}
    witnessed = {digest for store in stores for digest in _witnessed(store)}
    found: list[Garbage] = []
    files = total = 0
    for path, size in _memo_files(memo):
        files += 1
        total += size
        reason = _unreached(memo, path, known, witnessed)
        if reason is not None:
            found.append(Garbage(path, size, reason))
    return Sweep(tuple(sorted(found)), files, total)


def _unreached(memo: Path, path: str, known: set[str], witnessed: set[str]) -> str | None:
    """Why nothing needs a memo entry, or None."""
    if path.rpartition("/")[2].startswith("."):
        return "left by a writer that was killed"
    try:
        data = inventory.read(memo, path, reach.MAX_MANIFEST)
    except OSError:
        return "no regular file that can be read"
    if data is None:
        return f"larger than {reach.MAX_MANIFEST} bytes"
    body = data[_CHECKSUM_BYTES:]
    if data[:_CHECKSUM_BYTES] != canonical.digest(body).removeprefix("blake3:").encode() + b"\n":
        return "torn or altered, and read by nobody"
    try:
        value = canonical.parse(body, path)
    except IntegrityError:
        return "torn or altered, and read by nobody"
    if any(_among(kind, artifact, known, witnessed) for kind, artifact in _artifacts(value, _LEVELS)):
        return None
    return "no index holds what it computed"


def _artifacts(value: Any, levels: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(kind, artifact) of every result in a memo entry; a reason stands for the record of why there is no graph."""
    if isinstance(value, dict):
        kind = _KIND_OF.get(value["schema"]) if isinstance(value.get("schema"), str) else None
        if kind is not None:
            yield kind, value
        elif levels:
            if isinstance(value.get("reason"), str) and value["reason"]:
                yield "no-graph", {"schema": schemas.SCHEMAS["no-graph"], "reason": value["reason"]}
            for one in value.values():
                yield from _artifacts(one, levels - 1)
    elif isinstance(value, list) and levels:
        for one in value:
            yield from _artifacts(one, levels - 1)


def _among(kind: str, artifact: Mapping[str, Any], known: set[str], witnessed: set[str]) -> bool:
    # Python's own spelling is the canonical one for most artifacts, and far sooner: where it hits there is no doubt.
    quick = json.dumps({**artifact, "kind": kind}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = canonical.digest(quick.encode("utf-8", "surrogatepass"))
    if digest in known or digest in witnessed:
        return True
    try:
        digest = canonical.digest(encode(kind, artifact))
    except IntegrityError:
        return False
    return digest in known or digest in witnessed


def _witnessed(store: reach.Catalogue) -> Iterator[str]:
    """Digests of the programs that attestations were made from."""
    for entry in store.entries():
        if entry.descriptor.kind == "attestation":
            value = canonical.parse(reach.read(store, entry.descriptor), str(entry))
            yield from _digests(value)


def _digests(value: Any) -> Iterator[str]:
    """Every BLAKE3 that an in-toto statement names."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if isinstance(item.get("blake3"), str):
                yield f"blake3:{item['blake3']}"
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif canonical.is_digest(item):
            yield item


def _memo_files(memo: Path) -> Iterator[tuple[str, int]]:
    """(path, bytes) of everything in the two levels of the memo's folders, never through a link."""
    try:
        folders = inventory.scan(memo, "")
    except FileNotFoundError:
        return
    for folder in folders:
        if not folder.folder:
            yield folder.name, folder.size
            continue
        for entry in inventory.scan(memo, folder.name):
            yield f"{folder.name}/{entry.name}", entry.size
