"""What lies below ``store/``: every file and what it is, and its bytes, never through a link.

A store that came from elsewhere may hold links, pipes, huge files and any name; listing and reading it must be safe.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from blake3 import blake3

from solbench.errors import InputError
from solbench.release.source import ChangedError, whole

What = Literal["index", "object", "temporary", "stray", "link", "special", "unreadable"]

_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TWO = re.compile(r"[0-9a-f]{2}\Z")
_OTHERS = re.compile(r"[0-9a-f]{62}\Z")
# As `put` and the writers of indexes and stages name what they have not finished.
_TEMPORARY = re.compile(r"\..+-[A-Za-z0-9_]+\Z", re.DOTALL)
_MAX_LEVELS = 32


@dataclass(frozen=True)
class Item:
    """One thing below ``store/``: ``path`` relative to it, bytes, its stage, and of an object the digest in its name.

    ``temporary``: left by a killed writer. ``stray``: a file or a whole folder that has no place in a store.
    """

    what: What
    path: str
    size: int
    stage: str = ""
    digest: str | None = None

    @property
    def names_index(self) -> bool:
        """Whether it stands where an index of a stage does, whatever it is."""
        return self.path == f"{self.stage}.json"


@dataclass(frozen=True)
class Entry:
    """One name in a folder, as it stands there: of a link its own mode, not that of what it leads to."""

    name: str
    mode: int
    size: int

    @property
    def folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


def items(root: Path) -> Iterator[Item]:
    """Everything below the store ``root``, in name order. :class:`InputError` where there is no such folder."""
    try:
        top = scan(root, "")
    except OSError as error:
        link = " (it is a link, and none is followed)" if root.is_symlink() else ""
        raise InputError(str(root), f"no store here: {error.strerror}{link}; run `solbench pull` or `repro`") from None
    for entry in top:
        if entry.name == ".gitignore" and stat.S_ISREG(entry.mode):
            continue
        if entry.name.startswith("."):
            yield _odd(entry, entry.name, "", _unfinished(entry.name))
        elif entry.folder:
            yield from _stage(root, entry.name)
        elif entry.name.endswith(".json"):
            yield _odd(entry, entry.name, entry.name.removesuffix(".json"), "index")
        else:
            yield _odd(entry, entry.name, "", "stray")


def _stage(root: Path, stage: str) -> Iterator[Item]:
    found = _scan(root, stage, stage)
    if isinstance(found, Item):
        yield found
        return
    if not found:
        yield Item("stray", f"{stage}/", 0, stage)
    for entry in found:
        if entry.name == "objects" and entry.folder:
            yield from _objects(root, stage)
        else:
            yield _odd(entry, f"{stage}/{entry.name}", stage, _unfinished(entry.name))


def _objects(root: Path, stage: str) -> Iterator[Item]:
    base = f"{stage}/objects"
    found = _scan(root, base, stage)
    if isinstance(found, Item):
        yield found
        return
    for folder in found:
        path = f"{base}/{folder.name}"
        if not folder.folder or not _TWO.match(folder.name):
            yield _odd(folder, path, stage, _unfinished(folder.name))
            continue
        below = _scan(root, path, stage)
        if isinstance(below, Item):
            yield below
            continue
        for entry in below:
            if _OTHERS.match(entry.name) and stat.S_ISREG(entry.mode):
                yield Item("object", f"{path}/{entry.name}", entry.size, stage, f"blake3:{folder.name}{entry.name}")
            else:
                yield _odd(entry, f"{path}/{entry.name}", stage, _unfinished(entry.name))


def scan(root: Path, folder: str) -> list[Entry]:
    """The entries of ``folder`` below ``root``, by name; :class:`OSError` where it is none or a link."""
    handle = _open(root, folder, _OPEN_FOLDER)
    try:
        found = []
        with os.scandir(handle) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                found.append(Entry(entry.name, status.st_mode, status.st_size))
    finally:
        os.close(handle)
    return sorted(found, key=lambda entry: entry.name)


def folder_size(root: Path, folder: str) -> int:
    """Bytes of all regular files below ``folder``, as far as it can be listed."""
    total = 0
    stack = [folder.rstrip("/")]
    while stack:
        here = stack.pop()
        try:
            found = scan(root, here)
        except OSError:
            continue
        total += sum(entry.size for entry in found if stat.S_ISREG(entry.mode))
        if here.count("/") < _MAX_LEVELS:
            stack.extend(f"{here}/{entry.name}" for entry in found if entry.folder)
    return total


def size(root: Path, path: str) -> int:
    """Bytes of the regular file ``path`` below ``root``; :class:`OSError` where it is none, or behind a link."""
    handle = _open(root, path, _OPEN_FILE)
    try:
        status = os.fstat(handle)
    finally:
        os.close(handle)
    if not stat.S_ISREG(status.st_mode):
        raise ChangedError(0, "not a regular file")
    return status.st_size


def chunks(root: Path, path: str) -> Iterator[bytes]:
    """The bytes of the regular file ``path`` below ``root``, a piece at a time; :class:`OSError` where that fails."""
    handle = _open(root, path, _OPEN_FILE)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ChangedError(0, "not a regular file")
        yield from whole(handle, status.st_size)
    finally:
        os.close(handle)


def read(root: Path, path: str, limit: int) -> bytes | None:
    """All bytes of a file, or None where they are more than ``limit``; :class:`OSError` as :func:`chunks`."""
    pieces, size = [], 0
    for piece in chunks(root, path):
        size += len(piece)
        if size > limit:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def digest_of(root: Path, path: str, keep: int = 0) -> tuple[str, bytes | None]:
    """Digest of a file, and its bytes where they are at most ``keep``; :class:`OSError` as :func:`chunks`."""
    hasher, kept, size = blake3(), [], 0
    for piece in chunks(root, path):
        hasher.update(piece)
        size += len(piece)
        if size <= keep:
            kept.append(piece)
        else:
            kept.clear()
    return f"blake3:{hasher.hexdigest()}", b"".join(kept) if size <= keep else None


def _open(root: Path, path: str, flags: int) -> int:
    """Open step by step, so that no part of ``path``, nor ``root``'s own last part, is a link."""
    parts = path.split("/") if path else []
    current = os.open(root, _OPEN_FOLDER)
    for number, part in enumerate(parts, 1):
        try:
            below = os.open(part, flags if number == len(parts) else _OPEN_FOLDER, dir_fd=current)
        finally:
            os.close(current)
        current = below
    return current


def _scan(root: Path, folder: str, stage: str) -> list[Entry] | Item:
    try:
        return scan(root, folder)
    except OSError:
        return Item("unreadable", f"{folder}/", 0, stage)


def _unfinished(name: str) -> What:
    return "temporary" if _TEMPORARY.match(name) else "stray"


def _odd(entry: Entry, path: str, stage: str, what: What) -> Item:
    if stat.S_ISLNK(entry.mode):
        return Item("link", path, 0, stage)
    if entry.folder:
        return Item("temporary" if what == "temporary" else "stray", f"{path}/", 0, stage)
    if not stat.S_ISREG(entry.mode):
        return Item("special", path, 0, stage)
    return Item(what, path, entry.size, stage)
