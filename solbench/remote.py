"""DVC remotes as untrusted transport: what comes is checked before it lands, what was sent is looked up again.

DVC names objects by MD5 and, with ``verify = true``, re-hashes files as they arrive; but it takes a directory listing
(a ``.dir`` object) as it comes. So listings are fetched and checked here first and put into the local cache, from
which DVC then reads them; and after a push every object is asked for, since a push skips what it once sent.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from solbench import store
from solbench.errors import IntegrityError, UndecidedError
from solbench.pipeline import PipelineError, repro_lock, run_dvc
from solbench.workspace import Workspace, write_file
from solbench.yaml12 import load_yaml

MAX_LISTING_BYTES = 64 * 2**20
_MD5 = re.compile(r"[0-9a-f]{32}\Z")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]*\Z")


@dataclass(frozen=True)
class Listing:
    """One checked ``.dir`` object: (relative path, MD5) of every file of a directory out."""

    digest: str
    files: tuple[tuple[str, str], ...]


def locked_outs(root: Path) -> list[str]:
    """MD5s (directories end in ``.dir``) of every cached out in ``dvc.lock``."""
    path = root / "dvc.lock"
    lock = load_yaml(path)
    uncached = _uncached_outs(root)
    found = []
    for stage in lock.get("stages", {}).values():
        for out in stage.get("outs", []):
            if out.get("path") not in uncached:
                digest = str(out.get("md5"))
                if not _MD5.match(digest.removesuffix(".dir")):
                    raise IntegrityError(f"{path}: {digest!r} is not an MD5")
                found.append(digest)
    return sorted(set(found))


def parse_listing(data: bytes, digest: str) -> Listing:
    """Check a ``.dir`` object against its name, and every path in it; :class:`IntegrityError` otherwise."""
    if hashlib.md5(data, usedforsecurity=False).hexdigest() != digest.removesuffix(".dir"):
        raise IntegrityError(f"remote: listing {digest} has other bytes than its name says")
    try:
        entries = json.loads(data)
        files = tuple((entry["relpath"], entry["md5"]) for entry in entries)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise IntegrityError(f"remote: listing {digest} is not a list of paths and MD5s") from None
    for path, md5 in files:
        if not isinstance(path, str) or not isinstance(md5, str) or not _MD5.match(md5):
            raise IntegrityError(f"remote: listing {digest} names {md5!r}, not an MD5")
        parts = PurePosixPath(path).parts
        if not parts or "/".join(parts) != path or not all(_PART.match(part) for part in parts):
            raise IntegrityError(f"remote: listing {digest} holds the path {path!r}; nothing was fetched")
    return Listing(digest, files)


def pull(root: Path, remote: str | None = None) -> str:
    """Fetch every out of ``dvc.lock``; afterwards every object of every index was read and its hash was right."""
    workspace = Workspace.at(root)
    with repro_lock(workspace.checkout):
        with _open_remote(workspace, remote) as connection:
            for digest in locked_outs(workspace.root):
                if digest.endswith(".dir"):
                    connection.cache_listing(digest)
        arguments = ["pull", *(["-r", remote] if remote else [])]
        if run_dvc(workspace.root, workspace.checkout, *arguments) != 0:
            raise PipelineError(
                "dvc pull failed; nothing that arrived damaged was checked out; the lines above say what"
            )
    return check_store(workspace.store)


def push(root: Path, remote: str | None = None) -> str:
    """Send every out of ``dvc.lock``, then ask the remote for each object."""
    workspace = Workspace.at(root)
    with repro_lock(workspace.checkout):
        arguments = ["push", *(["-r", remote] if remote else [])]
        if run_dvc(workspace.root, workspace.checkout, *arguments) != 0:
            raise PipelineError("dvc push failed; push again to go on where it stopped")
        with _open_remote(workspace, remote) as connection:
            missing, total = connection.missing(locked_outs(workspace.root))
    if missing:
        listed = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise PipelineError(
            f"{len(missing)} of {total} objects are not on the remote: {listed}; delete .solbench/dvc and push again"
        )
    return f"{total} of {total} objects are on the remote"


def check_store(found: store.Store) -> str:
    """Read every object of every index; :class:`IntegrityError` names the first that is missing or altered."""
    objects = size = 0
    for stage in found.stages():
        for descriptor in set(found.index(stage).values()):
            found.read(stage, descriptor)
            objects += 1
            size += descriptor.size
    if not objects:
        raise IntegrityError(f"{found.root}: no index, no object; nothing was checked")
    return f"{objects} objects, {size} bytes, every hash as the indexes say"


@dataclass
class _Remote:
    """An open DVC remote: reading and existence by MD5, whatever protocol carries it."""

    database: Any
    cache: Path

    def __enter__(self) -> _Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.fs.close() if hasattr(self.database.fs, "close") else None

    def read(self, digest: str) -> bytes:
        path = self.database.oid_to_path(digest)
        try:
            with self.database.fs.open(path, "rb") as file:
                data = bytes(file.read(MAX_LISTING_BYTES + 1))
        except FileNotFoundError:
            raise IntegrityError(f"remote: {digest} is missing; ask its publisher to push again") from None
        if len(data) > MAX_LISTING_BYTES:
            raise IntegrityError(f"remote: listing {digest} is larger than {MAX_LISTING_BYTES} bytes")
        return data

    def cache_listing(self, digest: str) -> Listing:
        """The checked listing, which now lies in the local cache, where DVC looks first."""
        final = self.cache / digest[:2] / digest[2:]
        if final.is_file():
            try:
                return parse_listing(final.read_bytes(), digest)
            except IntegrityError:
                final.unlink()
        data = self.read(digest)
        listing = parse_listing(data, digest)
        write_file(final, data)
        os.chmod(final, 0o444)
        return listing

    def missing(self, digests: list[str]) -> tuple[list[str], int]:
        """Objects that the remote does not hold, of all that ``digests`` and their listings name."""
        wanted = set(digests)
        for digest in digests:
            if digest.endswith(".dir"):
                wanted.update(md5 for _, md5 in self.cache_listing(digest).files)
        absent = [digest for digest in sorted(wanted) if not self.database.fs.exists(self.database.oid_to_path(digest))]
        return absent, len(wanted)


def _open_remote(workspace: Workspace, name: str | None) -> _Remote:
    try:
        from dvc.exceptions import DvcException
        from dvc.repo import Repo
    except ImportError:
        raise UndecidedError("DVC is not installed; run `pip install 'solbench[release]'`") from None
    try:
        repo = Repo(str(workspace.root))
        database = repo.cloud.get_remote_odb(name=name)
        return _Remote(database, Path(repo.cache.local.path))
    except DvcException as error:
        raise UndecidedError(f"remote {name or 'of .dvc/config'}: {error}") from None


def _uncached_outs(root: Path) -> set[str]:
    pipeline = load_yaml(root / "dvc.yaml")
    outs: Iterator[Any] = (out for stage in pipeline["stages"].values() for out in stage.get("outs", []))
    return {path for out in outs if isinstance(out, dict) for path, flags in out.items() if flags.get("cache") is False}
