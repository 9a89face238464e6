"""What a checkout needs of a remote: every object that ``dvc.lock`` names, and what git states about each."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blake3 import blake3

from solbench import canonical
from solbench.errors import InputError, IntegrityError
from solbench.store import Index
from solbench.yaml12 import load_yaml

MAX_LISTING_BYTES = 64 * 2**20
MAX_OBJECT_BYTES = 8 * 2**30
_MAX_PATH = 1024
# An entry of a listing beside its path: braces, names, quotes, an MD5.
_ENTRY_BYTES = 80
_MD5 = re.compile(r"[0-9a-f]{32}\Z")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]{0,254}\Z")


class AlteredError(IntegrityError):
    """Bytes are not those of the object that was asked for."""


@dataclass(frozen=True)
class Out:
    """One cached out of ``dvc.lock``: path below the DVC root, MD5 (of a folder's listing), bytes and files in all."""

    path: str
    md5: str
    size: int | None
    files: int | None

    @property
    def is_folder(self) -> bool:
        return self.md5.endswith(".dir")

    @property
    def listing(self) -> Wanted:
        """The folder's listing as an object; how long it can be follows from the number of files."""
        limit = MAX_LISTING_BYTES
        if self.files is not None:
            limit = min(limit, 2 + self.files * (_MAX_PATH + _ENTRY_BYTES))
        return Wanted(self.md5, f"the listing of {self.path}", limit)


@dataclass(frozen=True)
class Wanted:
    """One object: its name on a remote, what it is for, and what its bytes must be.

    ``limit``: no more bytes than this are taken from anybody. ``size`` and ``digest`` (BLAKE3) where git states them.
    """

    md5: str
    path: str
    limit: int
    size: int | None = None
    digest: str | None = None

    def __str__(self) -> str:
        return f"{self.path} (MD5 {self.md5})"


class Intake:
    """Counts and hashes the bytes of one object as they come; :class:`AlteredError` as soon as they cannot be it."""

    def __init__(self, wanted: Wanted, *, md5: bool = True) -> None:
        self.wanted = wanted
        self.size = 0
        self._md5 = hashlib.md5(usedforsecurity=False) if md5 or wanted.digest is None else None
        self._blake3 = blake3() if wanted.digest is not None else None

    def feed(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self.wanted.limit:
            raise AlteredError(f"{self.wanted}: more than {self.wanted.limit} bytes")
        if self._md5 is not None:
            self._md5.update(piece)
        if self._blake3 is not None:
            self._blake3.update(piece)

    def finish(self) -> None:
        """:class:`AlteredError` unless size and hashes are right."""
        wanted = self.wanted
        if wanted.size is not None and self.size != wanted.size:
            raise AlteredError(f"{wanted}: {self.size} bytes, expected {wanted.size}")
        if self._md5 is not None and self._md5.hexdigest() != wanted.md5.removesuffix(".dir"):
            raise AlteredError(f"{wanted}: other bytes than its name says")
        if self._blake3 is not None and f"blake3:{self._blake3.hexdigest()}" != wanted.digest:
            raise AlteredError(f"{wanted}: other bytes than the index in git says")


def locked_outs(root: Path) -> tuple[Out, ...]:
    """Every cached out that ``dvc.lock`` states for a stage of ``dvc.yaml``, by path; :class:`InputError` for a lock
    that we do not read."""
    path = root / "dvc.lock"
    lock, pipeline = load_yaml(path), load_yaml(root / "dvc.yaml")
    stages, declared = _mapping(lock, path, "stages"), _mapping(pipeline, root / "dvc.yaml", "stages")
    uncached = _uncached(declared)
    outs: dict[str, Out] = {}
    for name, stage in stages.items():
        # DVC keeps what it once locked of stages that are gone.
        if str(name).partition("@")[0] not in declared or not isinstance(stage, dict):
            continue
        for entry in stage.get("outs", ()):
            out = _out(entry, f"{path}: {name}")
            if out.path in outs:
                raise InputError(f"{path}: {name}", f"{out.path} is an out of two stages")
            if out.path not in uncached:
                outs[out.path] = out
    return tuple(outs[path] for path in sorted(outs))


def parse_listing(data: bytes, out: Out) -> tuple[tuple[str, str], ...]:
    """(Path below the folder, MD5) of every file of ``out``, from the bytes of its listing.

    :class:`AlteredError` where the bytes are not those that ``dvc.lock`` names; :class:`IntegrityError` for anything
    but a list of distinct plain paths, none of which leaves the folder, is another's folder, or differs from another in
    case only.
    """
    intake = Intake(out.listing)
    intake.feed(data)
    intake.finish()
    where = str(out.listing)
    entries = canonical.parse(data, where)
    if not isinstance(entries, list):
        raise IntegrityError(f"{where}: not a list of paths and MD5s")
    files: dict[str, str] = {}
    for entry in entries:
        if not isinstance(entry, dict) or set(entry) != {"md5", "relpath"}:
            raise IntegrityError(f"{where}: not a list of paths and MD5s")
        path, md5 = entry["relpath"], entry["md5"]
        if not isinstance(md5, str) or not _MD5.match(md5):
            raise IntegrityError(f"{where}: {str(md5)[:80]!r} is not an MD5")
        if not isinstance(path, str) or not _plain(path):
            raise IntegrityError(f"{where}: it holds the path {str(path)[:80]!r}")
        if path in files:
            raise IntegrityError(f"{where}: {path} is there twice")
        files[path] = md5
    if out.files is not None and len(files) != out.files:
        raise IntegrityError(f"{where}: {len(files)} files; dvc.lock says {out.files}")
    folded = {path.casefold() for path in files}
    if len(folded) != len(files):
        raise IntegrityError(f"{where}: two paths differ in case only")
    for path in folded:
        parent = path.rpartition("/")[0]
        while parent:
            if parent in folded:
                raise IntegrityError(f"{where}: {parent} is a file and a folder")
            parent = parent.rpartition("/")[0]
    return tuple(sorted(files.items()))


def folder_objects(out: Out, files: Iterable[tuple[str, str]], index: Index | None) -> tuple[Wanted, ...]:
    """What each file of ``out`` must be; ``index``: of the stage whose folder it is, None for anything else.

    :class:`IntegrityError` where listing and index do not name the same objects.
    """
    if index is None:
        limit = out.size if out.size is not None else MAX_OBJECT_BYTES
        return tuple(Wanted(md5, f"{out.path}/{path}", limit) for path, md5 in files)
    stated = {f"objects/{descriptor.path}": descriptor for descriptor in index.values()}
    listed = dict(files)
    differing = sorted(stated.keys() ^ listed.keys())
    if differing:
        side = "the index only" if differing[0] in stated else "the listing only"
        raise IntegrityError(
            f"{out.path}.json and dvc.lock are not of one rebuild: {len(differing)} objects differ, {differing[0]} is "
            f"in {side}; check out both files of one commit, or run `solbench repro`"
        )
    return tuple(
        Wanted(listed[path], f"{out.path}/{path}", stated[path].size, stated[path].size, stated[path].digest)
        for path in sorted(listed)
    )


def distinct(wanted: Iterable[Wanted]) -> dict[str, Wanted]:
    """One :class:`Wanted` an MD5, the one that git says most about; :class:`IntegrityError` where two contradict."""
    found: dict[str, Wanted] = {}
    for one in wanted:
        other = found.setdefault(one.md5, one)
        if other.digest is None and one.digest is not None:
            found[one.md5] = one
        elif one.digest is not None and one.digest != other.digest:
            raise IntegrityError(f"{one}: {other.path} has the same MD5 and another BLAKE3")
    return found


def _plain(path: str) -> bool:
    return len(path) <= _MAX_PATH and all(_PART.match(part) for part in path.split("/"))


def _mapping(value: Any, path: Path, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, dict):
        raise InputError(str(path), f"has no {key}")
    return found


def _uncached(stages: Mapping[str, Any]) -> set[str]:
    outs: Iterator[Any] = (out for stage in stages.values() for out in stage.get("outs", ()))
    return {path for out in outs if isinstance(out, dict) for path, flags in out.items() if flags.get("cache") is False}


def _out(entry: Any, where: str) -> Out:
    if not isinstance(entry, dict):
        raise InputError(where, "an out has path, hash, md5 and size")
    path, md5 = entry.get("path"), entry.get("md5")
    if entry.get("hash") != "md5" or not isinstance(md5, str) or not _MD5.match(md5.removesuffix(".dir")):
        raise InputError(f"{where}: {path}", "not an out with `hash: md5`; run `solbench repro` with DVC 3")
    if not isinstance(path, str) or not all(_PART.match(part) for part in path.split("/")):
        raise InputError(f"{where}: {path}", "not a plain path below the DVC root")
    numbers = (entry.get("size"), entry.get("nfiles"))
    if not all(n is None or (isinstance(n, int) and n >= 0) for n in numbers):
        raise InputError(f"{where}: {path}", "size and nfiles are numbers")
    return Out(path, md5, *numbers)
