"""The content-addressed store: immutable objects named by their BLAKE3-256, and one index a stage.

Layout: ``<root>/<stage>/objects/<2 hex>/<62 hex>`` and ``<root>/<stage>.json`` (logical name -> descriptor).
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.errors import InputError, IntegrityError

INDEX_SCHEMA = "solbench.index.v1"
RAW_KINDS = frozenset({"code-object", "assembly"})
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})


@dataclass(frozen=True, order=True)
class Descriptor:
    """Reference to one object: its kind, the digest of its bytes, and their number."""

    kind: str
    digest: str
    size: int

    @classmethod
    def of(cls, kind: str, data: bytes) -> Descriptor:
        return cls(kind, canonical.digest(data), len(data))

    @classmethod
    def parse(cls, value: Any, where: str) -> Descriptor:
        if not isinstance(value, dict) or set(value) != {"kind", "digest", "size"}:
            raise IntegrityError(f"{where}: a reference has exactly kind, digest and size")
        kind, digest, size = value["kind"], value["digest"], value["size"]
        if not isinstance(kind, str) or not kind:
            raise IntegrityError(f"{where}.kind: not a name")
        if not canonical.is_digest(digest):
            raise IntegrityError(f"{where}.digest: not 'blake3:' and 64 lower-case hex digits")
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise IntegrityError(f"{where}.size: not a non-negative integer")
        return cls(kind, digest, size)

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "digest": self.digest, "size": self.size}

    @property
    def path(self) -> str:
        """Path below ``objects/``: two hex digits, a slash, the other 62."""
        hexadecimal = self.digest.removeprefix("blake3:")
        return f"{hexadecimal[:2]}/{hexadecimal[2:]}"


Index = dict[str, Descriptor]


def encode(kind: str, value: Mapping[str, Any]) -> bytes:
    """Bytes of an artifact: the canonical JSON of ``value`` with its ``kind``; ``value`` must carry ``schema``."""
    if "schema" not in value:
        raise IntegrityError(f"{kind}: an artifact names its schema")
    return canonical.dumps({**value, "kind": kind})


def without_kind(artifact: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a parsed artifact, as its contract reads them: all but the kind, which :func:`encode` adds."""
    return {name: value for name, value in artifact.items() if name != "kind"}


def decode(data: bytes, descriptor: Descriptor, where: str = "") -> dict[str, Any]:
    """Check ``data`` against ``descriptor`` and return the artifact (with ``kind``)."""
    return decoded(data, descriptor, where)[0]


def decoded(data: bytes, descriptor: Descriptor, where: str = "") -> tuple[dict[str, Any], bool]:
    """As :func:`decode`, and whether :func:`solbench.canonical.loads_plain` will do the next time."""
    where = where or descriptor.digest
    check(data, descriptor, where)
    value, again = canonical.read(data, where)
    if not isinstance(value, dict) or value.get("kind") != descriptor.kind:
        raise IntegrityError(f"{where}: not an artifact of kind {descriptor.kind!r}")
    return value, again is not None


def check(data: bytes, descriptor: Descriptor, where: str = "") -> None:
    """Raise :class:`IntegrityError` unless size and digest are the descriptor's."""
    where = where or descriptor.digest
    if len(data) != descriptor.size:
        raise IntegrityError(f"{where}: {len(data)} bytes, expected {descriptor.size}")
    found = canonical.digest(data)
    if found != descriptor.digest:
        raise IntegrityError(f"{where}: digest is {found}, expected {descriptor.digest}")


def put(objects: Path, kind: str, data: bytes) -> Descriptor:
    """Store ``data`` below ``objects``: temporary file, fsync, link without overwriting, unlink. Safe to repeat."""
    descriptor = Descriptor.of(kind, data)
    final = objects / descriptor.path
    if final.exists():
        check(final.read_bytes(), descriptor, str(final))
        return descriptor
    final.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".put-", dir=final.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), 0o444)
            os.fsync(file.fileno())
        try:
            os.link(temporary, final)
        except FileExistsError:
            check(final.read_bytes(), descriptor, str(final))
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            # Renaming may overwrite, but only with the same bytes.
            os.rename(temporary, final)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return descriptor


def put_json(objects: Path, kind: str, value: Mapping[str, Any]) -> Descriptor:
    """Store one artifact in canonical form."""
    return put(objects, kind, encode(kind, value))


def _is_plain(item: tuple[str, Descriptor]) -> bool:
    name, entry = item
    return name.isascii() and entry.kind.isascii() and entry.digest.isascii() and entry.size <= canonical.MAX_INTEGER


def index_bytes(index: Mapping[str, Descriptor]) -> bytes:
    """The index file of a stage: sorted, one entry a line, so that a diff shows what changed."""
    # Python's writer is quick, and writes ASCII strings and sizes as RFC 8785 does.
    dumps = canonical.written if all(map(_is_plain, index.items())) else lambda value: canonical.dumps(value).decode()
    lines = [f"{dumps(name)}: {dumps(index[name].as_dict())}" for name in sorted(index)]
    body = ",\n".join(f"    {line}" for line in lines)
    entries = "{\n" + body + "\n  }" if lines else "{}"
    return ('{\n  "schema": "' + INDEX_SCHEMA + '",\n  "entries": ' + entries + "\n}\n").encode()


def read_index(path: Path) -> Index:
    """Read ``<stage>.json``; the bytes must be exactly what :func:`index_bytes` writes."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(str(path), "no such index; run `solbench repro` first") from None
    return parse_index(data, str(path))


def parse_index(data: bytes, where: str) -> Index:
    """The index that ``data`` is; the bytes must be exactly what :func:`index_bytes` writes."""
    value = canonical.parse(data, where)
    if not isinstance(value, dict) or value.get("schema") != INDEX_SCHEMA or not isinstance(value.get("entries"), dict):
        raise IntegrityError(f"{where}: not an index of schema {INDEX_SCHEMA}")
    index = {name: Descriptor.parse(entry, f"{where}: {name}") for name, entry in value["entries"].items()}
    if index_bytes(index) != data:
        raise IntegrityError(f"{where}: not sorted, one entry a line; it was edited by hand")
    return index


@dataclass(frozen=True)
class Store:
    """Read access to the stages below ``root`` (``store/``); checks every object at every read."""

    root: Path

    def index(self, stage: str) -> Index:
        return read_index(self.root / f"{stage}.json")

    def stages(self) -> list[str]:
        return sorted(path.stem for path in self.root.glob("*.json"))

    def read(self, stage: str, descriptor: Descriptor) -> bytes:
        path = self.root / stage / "objects" / descriptor.path
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise IntegrityError(f"{path}: object is missing; run `solbench pull` or `solbench repro`") from None
        check(data, descriptor, str(path))
        return data

    def load(self, stage: str, descriptor: Descriptor) -> dict[str, Any]:
        return decode(self.read(stage, descriptor), descriptor)

    def items(self, stage: str, kind: str | None = None) -> Iterator[tuple[str, Descriptor, dict[str, Any]]]:
        """Every (logical name, descriptor, artifact) of a stage, in name order, optionally of one kind."""
        for name, descriptor in sorted(self.index(stage).items()):
            if kind is None or descriptor.kind == kind:
                yield name, descriptor, self.load(stage, descriptor)
