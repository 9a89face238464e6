"""A release as one archive or one directory that anyone can check: the objects, the site, checksums and provenance.

Members: ``release.json`` (the bytes of the release object), ``objects/<2 hex>/<62 hex>`` for everything reachable from
it, ``site/**`` and ``site.json`` where there is a site, ``provenance.json``, and ``SHA256SUMS`` and ``B3SUMS`` over all
of these. The same store, site and provenance give the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from blake3 import blake3

from solbench import canonical
from solbench.errors import InputError, IntegrityError
from solbench.release import archive, gz, paths, references, tar
from solbench.store import RAW_KINDS, Descriptor, Store, check, decode

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://slsa.dev/provenance/v1"
SUMS: Final = ("B3SUMS", "SHA256SUMS")
_CHUNK = 1 << 20

Content = bytes | Path
ArchiveFormat = Literal["zip", "tar", "tar.gz"]


@dataclass(frozen=True)
class Bundle:
    """What was written: ``digest`` is the archive's own, null for a directory."""

    path: Path
    root: Descriptor
    members: int
    objects: int
    size: int
    digest: str | None


@dataclass(frozen=True)
class _Measured:
    content: Content
    size: int
    crc: int
    sha256: str
    blake3: str


def write_bundle(
    store: Store, out: Path, predicate: Mapping[str, Any], site: Path | None = None, form: ArchiveFormat = "zip"
) -> Bundle:
    """Write the release of ``store`` to the archive ``out``, whole or not at all, and ``<out>.b3`` beside it.

    ``predicate``: who built it, from what and with what; it must be a JSON value that does not change between builds
    that should be identical. ``site``: a rendered site with its ``site.json``. :class:`InputError` where the store or
    the site is not of one release, or does not fit into the fields of the format.
    """
    root, members = _members(store, predicate, site)
    digest = blake3()
    size = 0

    def write(file: BinaryIO) -> None:
        nonlocal size
        for piece in _archive(form, members):
            digest.update(piece)
            file.write(piece)
            size += len(piece)

    _write_whole(out, write)
    line = f"{digest.hexdigest()}  {out.name}\n"
    _write_whole(out.with_name(out.name + ".b3"), lambda file: file.write(line.encode()))
    return Bundle(out, root, len(members), _objects(members), size, f"blake3:{digest.hexdigest()}")


def _archive(form: ArchiveFormat, members: Mapping[str, _Measured]) -> Iterator[bytes]:
    """The bytes of the archive; that all of it fits is known before the first of them."""
    names = sorted(members)
    if form == "zip":
        layout = archive.laid_out((name.encode(), members[name].size, members[name].crc) for name in names)
        return archive.pieces(layout, (_unchanged(name, members[name]) for name in names))
    for name in names:
        tar.header(name.encode(), members[name].size)
    plain = tar.pieces((name.encode(), members[name].size, _unchanged(name, members[name])) for name in names)
    return plain if form == "tar" else gz.pack(plain)


def write_directory(store: Store, out: Path, predicate: Mapping[str, Any], site: Path | None = None) -> Bundle:
    """As :func:`write_bundle`, into a directory ``out`` that must not exist yet. Modes are 0755 and 0644, whatever the
    umask."""
    if os.path.lexists(out):
        raise InputError(str(out), "exists; name another directory")
    root, members = _members(store, predicate, site)
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        for name, member in members.items():
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for piece in _unchanged(name, member):
                    file.write(piece)
            path.chmod(0o644)
        for folder in (temporary, *(path for path in temporary.rglob("*") if path.is_dir())):
            folder.chmod(0o755)
        os.rename(temporary, out)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    size = sum(member.size for member in members.values())
    return Bundle(out, root, len(members), _objects(members), size, None)


def reachable(store: Store) -> tuple[Descriptor, dict[str, Path]]:
    """The release's reference, and the file of every object that it leads to, itself included; each one checked."""
    root = store.index("release").get("release")
    if root is None:
        raise IntegrityError(f"{store.root / 'release.json'}: has no entry 'release'; run `solbench repro`")
    where = {
        entry.digest: store.root / stage / "objects" / entry.path
        for stage in store.stages()
        for entry in store.index(stage).values()
    }
    found: dict[str, Path] = {}
    queue = [root]
    while queue:
        descriptor = queue.pop()
        if descriptor.digest in found:
            continue
        path = where.get(descriptor.digest)
        if path is None:
            raise IntegrityError(f"{descriptor.digest} ({descriptor.kind}): referred to, but in no index of the store")
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise IntegrityError(f"{path}: object is missing; run `solbench pull` or `solbench repro`") from None
        found[descriptor.digest] = path
        if descriptor.kind in RAW_KINDS:
            check(data, descriptor, str(path))
        else:
            queue.extend(references.in_artifact(data, decode(data, descriptor, str(path))))
    return root, found


def statement(name: str, release: bytes, predicate: Mapping[str, Any]) -> dict[str, Any]:
    """in-toto statement about a release: its subject is the release object by BLAKE3 and SHA-256."""
    digests = {"blake3": blake3(release).hexdigest(), "sha256": hashlib.sha256(release).hexdigest()}
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": digests}],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(predicate),
    }


def sums(digests: Mapping[str, str]) -> bytes:
    """A checksum file as ``sha256sum`` and ``b3sum`` read it: hex digest and member, sorted by member."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()


def _members(store: Store, predicate: Mapping[str, Any], site: Path | None) -> tuple[Descriptor, dict[str, _Measured]]:
    root, objects = reachable(store)
    release = objects[root.digest].read_bytes()
    name = str(decode(release, root)["name"])
    contents: dict[str, Content] = {
        "release.json": release,
        "provenance.json": canonical.dumps(statement(name, release, predicate)),
    }
    for digest, path in objects.items():
        contents[f"objects/{Descriptor('', digest, 0).path}"] = path
    if site is not None:
        contents |= _site(site, root)
    members = {member: _measure(content) for member, content in contents.items()}
    for digest in objects:
        member = f"objects/{Descriptor('', digest, 0).path}"
        if f"blake3:{members[member].blake3}" != digest:
            raise IntegrityError(f"{contents[member]!s}: changed while it was read")
    b3sums = sums({member: measured.blake3 for member, measured in members.items()})
    sha256sums = sums({member: measured.sha256 for member, measured in members.items()})
    members["B3SUMS"], members["SHA256SUMS"] = _measure(b3sums), _measure(sha256sums)
    return root, members


def _site(folder: Path, root: Descriptor) -> dict[str, Content]:
    """Members of a rendered site; its ``site.json`` stands beside ``site/``."""
    manifest = folder / "site.json"
    if not manifest.is_file():
        raise InputError(str(manifest), "no such file; render the site first")
    stated = canonical.loads(manifest.read_bytes(), str(manifest))
    if not isinstance(stated, dict) or stated.get("release") != root.as_dict():
        raise InputError(str(manifest), f"is the site of another release than {root.digest}; run `solbench repro`")
    contents: dict[str, Content] = {"site.json": manifest}
    for path in sorted(folder.rglob("*")):
        if path == manifest or (path.is_dir() and not path.is_symlink()):
            continue
        name = f"site/{path.relative_to(folder).as_posix()}"
        codes = list(paths.problems_of(name))
        if codes or path.is_symlink() or not path.is_file():
            raise InputError(str(path), f"cannot be in a bundle: {', '.join(codes) or 'not a regular file'}")
        contents[name] = path
    for code, name in paths.clashes(contents):
        raise InputError(name, f"cannot be in a bundle: {code}")
    return contents


def _measure(content: Content) -> _Measured:
    size, crc, sha256, b3 = 0, 0, hashlib.sha256(), blake3()
    for piece in _pieces(content):
        size += len(piece)
        crc = zlib.crc32(piece, crc)
        sha256.update(piece)
        b3.update(piece)
    return _Measured(content, size, crc, sha256.hexdigest(), b3.hexdigest())


def _unchanged(name: str, member: _Measured) -> Iterator[bytes]:
    """The bytes that were measured; :class:`IntegrityError` where the file is another by now."""
    b3 = blake3()
    for piece in _pieces(member.content):
        b3.update(piece)
        yield piece
    if b3.hexdigest() != member.blake3:
        raise IntegrityError(f"{name}: changed while the bundle was written; run again")


def _pieces(content: Content) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while piece := file.read(_CHUNK):
            yield piece


def _objects(members: Mapping[str, _Measured]) -> int:
    return sum(name.startswith("objects/") for name in members)


def _write_whole(path: Path, write: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
