"""Consistent forgeries: an object changed, and every hash above it made anew, up to the root and the checksum files."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.release import archive, bundle
from solbench.store import RAW_KINDS

PREDICATE = {"buildDefinition": {"buildType": "forged"}, "runDetails": {"builder": {"id": "forger"}}}
_HEX = re.compile(r"[0-9a-f]{64}")
REFERENCE = {"kind", "digest", "size"}


@dataclass(frozen=True)
class Forger:
    """All objects of a bundle without site, by hex digest, those that an object refers to before it."""

    objects: Mapping[str, bytes]
    kinds: Mapping[str, str]
    names: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]
    root: str

    @classmethod
    def of(cls, folder: Path) -> Forger:
        """From a directory bundle."""
        objects = {
            path.parent.name + path.name: path.read_bytes()
            for path in (folder / "objects").rglob("*")
            if path.is_file()
        }
        root = canonical.digest((folder / "release.json").read_bytes()).removeprefix("blake3:")
        kinds, names = {root: "release"}, {}
        for reference in canonical.loads(objects[root])["sections"].values():
            digest = reference["digest"].removeprefix("blake3:")
            kinds[digest] = "section"
            section = canonical.loads(objects[digest])
            for name, entry in section["entries"].items():
                hexadecimal = entry["digest"].removeprefix("blake3:")
                kinds[hexadecimal] = entry["kind"]
                names.setdefault(hexadecimal, []).append(f"{section['stage']}: {name}")
        below = {
            digest: set() if kinds[digest] in RAW_KINDS else set(_HEX.findall(data.decode())) & objects.keys()
            for digest, data in objects.items()
        }
        order: list[str] = []
        while len(order) < len(objects):
            order += sorted(d for d in objects if d not in order and below[d] <= set(order))
        return cls(objects, kinds, {d: tuple(sorted(n)) for d, n in names.items()}, tuple(order), root)

    def forged(self, digest: str, data: bytes) -> dict[str, bytes]:
        """Members of a bundle in which the object ``digest`` has the bytes ``data``, and all else fits."""
        replaced: dict[str, tuple[str, int]] = {}
        objects: dict[str, bytes] = {}
        root = self.objects[self.root]
        for old in self.order:
            new = data if old == digest else self._referring(old, replaced)
            name = canonical.digest(new).removeprefix("blake3:")
            if name != old:
                replaced[old] = (name, len(new))
            objects[f"objects/{name[:2]}/{name[2:]}"] = new
            if old == self.root:
                root = new
        members = {
            **objects,
            "release.json": root,
            "provenance.json": canonical.dumps(bundle.statement("forged", root, PREDICATE)),
        }
        return sealed(members)

    def _referring(self, old: str, replaced: Mapping[str, tuple[str, int]]) -> bytes:
        data = self.objects[old]
        if self.kinds[old] in RAW_KINDS or not any(one.encode() in data for one in replaced):
            return data
        return canonical.dumps(_renewed(canonical.loads(data), replaced))


def _renewed(value: Any, replaced: Mapping[str, tuple[str, int]]) -> Any:
    if isinstance(value, dict):
        if value.keys() == REFERENCE and str(value["digest"])[7:] in replaced:
            digest, size = replaced[value["digest"][7:]]
            return {**value, "digest": f"blake3:{digest}", "size": size}
        return {_renewed(key, replaced): _renewed(entry, replaced) for key, entry in value.items()}
    if isinstance(value, list):
        return [_renewed(entry, replaced) for entry in value]
    if isinstance(value, str):
        return _HEX.sub(lambda match: replaced.get(match[0], (match[0], 0))[0], value)
    return value


def sealed(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """The members with both checksum files over them."""
    plain = {name: data for name, data in members.items() if name not in bundle.SUMS}
    return {
        **plain,
        "B3SUMS": bundle.sums({n: canonical.digest(d).removeprefix("blake3:") for n, d in plain.items()}),
        "SHA256SUMS": bundle.sums({n: hashlib.sha256(d).hexdigest() for n, d in plain.items()}),
    }


def packed(members: Mapping[str, bytes]) -> bytes:
    """The archive of these members."""
    parts, entries, position = [], [], 0
    for name in sorted(members):
        entry = archive.Member(name.encode(), len(members[name]), zlib.crc32(members[name]), position)
        entries.append(entry)
        parts += [archive.local_header(entry), members[name]]
        position = entry.end
    directory = b"".join(map(archive.central_header, entries))
    return b"".join([*parts, directory, archive.end_record(len(entries), len(directory), position)])
