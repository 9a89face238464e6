"""Read-only access to a bundle's members: an archive or a directory, never extracted, never through a link.

Nothing is written, mapped or followed. What cannot be read is a finding; what changes while being read as well.
"""

from __future__ import annotations

import itertools
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from solbench.release import archive, paths
from solbench.release.findings import Findings

CHUNK: Final = 1 << 20
_OTHER_FORMATS = (
    (0, b"\x1f\x8b", "gzip"), (0, b"\x28\xb5\x2f\xfd", "Zstandard"), (0, b"\xfd7zXZ\0", "xz"), (257, b"ustar", "tar"),
)  # fmt: skip
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Limits:
    """What a verifier is willing to read; beyond it the verdict is "could not decide". Bytes."""

    files: int = 200_000
    manifest_bytes: int = 64 << 20
    object_bytes: int = 8 << 30
    total_bytes: int = 256 << 30


class ChangedError(OSError):
    """A member is not what it was when the bundle was opened."""


class Source(ABC):
    """``sizes``: bytes of every member with a safe name; ``crcs``: stated CRC-32, where the container has them."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.crcs: dict[str, int] = {}

    @abstractmethod
    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes of a member, a piece at a time; :class:`OSError` where that fails."""

    @abstractmethod
    def close(self) -> None: ...

    def read(self, name: str) -> bytes:
        return b"".join(self.chunks(name))


def open_source(path: Path, limits: Limits, findings: Findings) -> Source | None:
    """Open a bundle and list its members; what is unsafe about it goes into ``findings``, level ``safety``.

    None where there is nothing to list. ``path`` itself may be a symbolic link.
    """
    try:
        handle = os.open(os.path.realpath(path), _OPEN_FILE)
    except OSError as error:
        findings.add("safety", "io-error", ".", found=error.strerror)
        return None
    source: Source | None = None
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            source = DirectorySource(handle, limits, findings)
        elif stat.S_ISREG(status.st_mode):
            listed = ArchiveSource(handle, status.st_size)
            source = listed if listed.examine(limits, findings) else None
        else:
            findings.add("safety", "fs-type", ".", "a directory or a file", _file_type(status.st_mode))
    except OSError as error:
        findings.add("safety", "io-error", ".", found=error.strerror)
    finally:
        if source is None:
            os.close(handle)
    return source


def whole(handle: int, size: int) -> Iterator[bytes]:
    """All ``size`` bytes of an open file, a piece at a time; :class:`ChangedError` where it has fewer or more."""
    left = size
    while left:
        piece = os.read(handle, min(CHUNK, left))
        if not piece:
            raise ChangedError(0, "shrank while it was read")
        left -= len(piece)
        yield piece
    if os.read(handle, 1):
        raise ChangedError(0, "grew while it was read")


class DirectorySource(Source):
    """A bundle as a directory."""

    def __init__(self, handle: int, limits: Limits, findings: Findings) -> None:
        super().__init__()
        self._root = handle
        self._folder: tuple[str, int] | None = None
        self._names: list[str] = []
        self._walk(handle, "", limits, findings)
        _check_names(self._names, findings)

    def _walk(self, folder: int, prefix: str, limits: Limits, findings: Findings) -> None:
        with os.scandir(folder) as iterator:
            entries = sorted(iterator, key=lambda entry: entry.name)
        if not entries:
            findings.add("safety", "extra-file", prefix or ".", "members", "an empty directory")
        for entry in entries:
            name = prefix + entry.name
            if len(self._names) >= limits.files:
                findings.add("safety", "limit-files", ".", limits.files)
                return
            try:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    if name.count("/") >= paths.MAX_PATH_LEVELS:
                        findings.add("safety", "limit-path", name, f"{paths.MAX_PATH_LEVELS} levels")
                        continue
                    below = os.open(entry.name, _OPEN_FOLDER, dir_fd=folder)
                    try:
                        self._walk(below, name + "/", limits, findings)
                    finally:
                        os.close(below)
                    continue
            except OSError as error:
                findings.add("safety", "io-error", name, found=error.strerror)
                continue
            self._names.append(name)
            if stat.S_ISREG(status.st_mode):
                if _accept(name, findings):
                    self.sizes[name] = status.st_size
            else:
                code = "fs-symlink" if stat.S_ISLNK(status.st_mode) else "fs-type"
                findings.add("safety", code, name, "a regular file", _file_type(status.st_mode))

    def _open(self, name: str) -> int:
        """Open a member step by step, so that no part of its path is a link."""
        prefix, _, last = name.rpartition("/")
        if self._folder is None or self._folder[0] != prefix:
            current = os.dup(self._root)
            for part in prefix.split("/") if prefix else ():
                try:
                    below = os.open(part, _OPEN_FOLDER, dir_fd=current)
                finally:
                    os.close(current)
                current = below
            if self._folder is not None:
                os.close(self._folder[1])
            self._folder = (prefix, current)
        return os.open(last, _OPEN_FILE, dir_fd=self._folder[1])

    def chunks(self, name: str) -> Iterator[bytes]:
        handle = self._open(name)
        try:
            status = os.fstat(handle)
            left = self.sizes[name]
            if not stat.S_ISREG(status.st_mode) or status.st_size != left:
                raise ChangedError(0, "changed while it was verified")
            yield from whole(handle, left)
        finally:
            os.close(handle)

    def close(self) -> None:
        if self._folder is not None:
            os.close(self._folder[1])
        os.close(self._root)


class ArchiveSource(Source):
    """A bundle as a ZIP archive of the one layout in :mod:`solbench.release.archive`."""

    def __init__(self, handle: int, size: int) -> None:
        super().__init__()
        self._handle = handle
        self._size = size
        self._members: dict[str, archive.Member] = {}

    def examine(self, limits: Limits, findings: Findings) -> bool:
        """Account for every byte; False where the members cannot be listed."""
        directory = self._directory(limits, findings)
        if directory is None:
            return False
        members, problem = _parse_directory(directory)
        names = [_decode(member.name) for member in members]
        for name, member in zip(names, members, strict=True):
            if name in self._members:
                findings.add("safety", "duplicate-entry", name)
            elif _accept(name, findings):
                self._members[name] = member
                self.sizes[name] = member.size
                self.crcs[name] = member.crc
        for before, after in itertools.pairwise(members):
            if after.name < before.name:
                findings.add("safety", "unsorted", _decode(after.name), found=f"after {_decode(before.name)}")
        _check_names(names, findings)
        if problem is None:
            problem = self._account(members, self._size - archive.END.size - len(directory))
        if problem is not None:
            findings.add("safety", *(self._unsupported(directory) or problem))
        # Members that overlap or lie outside are not read: with a broken structure nothing more can be said.
        return problem is None

    def _directory(self, limits: Limits, findings: Findings) -> bytes | None:
        """The central directory, once the end record is what we would write."""
        size = self._size
        tail = self._at(max(size - archive.END.size, 0), min(archive.END.size, size))
        start = self._at(0, min(4, size))
        other = next((name for at, magic, name in _OTHER_FORMATS if self._at(at, len(magic)) == magic), None)
        if other is not None:
            findings.add("safety", "unsupported", ".", "a ZIP archive or a directory", other)
            return None
        if start not in (archive.LOCAL_SIGNATURE, archive.END_SIGNATURE):
            findings.add("safety", "archive-structure", ".", "a ZIP archive", f"begins with {start!r}")
            return None
        if len(tail) < archive.END.size or not tail.startswith(archive.END_SIGNATURE):
            findings.add("safety", "archive-structure", ".", "an end record in the last 22 bytes")
            return None
        fields = archive.END.unpack(tail)
        count, directory_bytes, offset = fields[4], fields[5], fields[6]
        if tail != archive.end_record(count, directory_bytes, offset):
            findings.add("safety", "archive-structure", ".", "our end record", "other values in its fields")
            return None
        if offset + directory_bytes + archive.END.size != size:
            found = f"{offset} + {directory_bytes} + {archive.END.size} bytes of {size}"
            findings.add("safety", "archive-structure", ".", "members, directory and end record, no gap", found)
            return None
        if count > limits.files:
            findings.add("safety", "limit-files", ".", limits.files, count)
            return None
        if directory_bytes > limits.manifest_bytes:
            findings.add("safety", "limit-manifest", ".", limits.manifest_bytes, directory_bytes)
            return None
        directory = self._at(offset, directory_bytes)
        if len(_parse_directory(directory)[0]) != count:
            findings.add("safety", "archive-structure", ".", f"{count} members in the central directory")
        return directory

    def _account(self, members: list[archive.Member], end: int) -> tuple[str, str, object, object] | None:
        """(code, path, expected, found) of the first byte before ``end`` that we would not have written there."""
        position = 0
        for member in members:
            name = _decode(member.name)
            if member.offset != position:
                return "archive-structure", name, f"local header at {position}", member.offset
            expected = archive.local_header(member)
            if self._at(position, len(expected)) != expected:
                return "archive-structure", name, "our local header", f"other bytes at {position}"
            position = member.end
            if position > end:
                return "archive-structure", name, f"at most {end} bytes of members", position
        return None if position == end else ("archive-structure", ".", f"members up to {end}", position)

    def _unsupported(self, directory: bytes) -> tuple[str, str, object, object] | None:
        """The first member that is encrypted or compressed, where both of its headers say so: another archive."""
        position = 0
        while position + archive.CENTRAL.size <= len(directory):
            fields = archive.CENTRAL.unpack_from(directory, position)
            local = self._at(fields[16], archive.LOCAL.size)
            if (fields[3] & 1 or fields[4]) and len(local) == archive.LOCAL.size:
                flags, method = archive.LOCAL.unpack(local)[2:4]
                if local.startswith(archive.LOCAL_SIGNATURE) and (flags, method) == (fields[3], fields[4]):
                    start = position + archive.CENTRAL.size
                    name = _decode(directory[start : start + fields[10]])
                    return "unsupported", name, "stored members", f"flags {flags:#x}, method {method}"
            position += archive.CENTRAL.size + fields[10] + fields[11] + fields[12]
        return None

    def _at(self, offset: int, size: int) -> bytes:
        pieces = []
        while size > 0:
            piece = os.pread(self._handle, min(size, CHUNK), offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def chunks(self, name: str) -> Iterator[bytes]:
        member = self._members[name]
        offset, left = member.data_offset, member.size
        while left:
            piece = os.pread(self._handle, min(CHUNK, left), offset)
            if not piece:
                raise ChangedError(0, "shrank while it was read")
            offset += len(piece)
            left -= len(piece)
            yield piece

    def close(self) -> None:
        os.close(self._handle)


def _parse_directory(data: bytes) -> tuple[list[archive.Member], tuple[str, str, object, object] | None]:
    """Members of a central directory, and the first thing in it that we would not have written."""
    members: list[archive.Member] = []
    problem: tuple[str, str, object, object] | None = None
    position = 0
    while position < len(data):
        header = data[position : position + archive.CENTRAL.size]
        if len(header) < archive.CENTRAL.size or not header.startswith(archive.CENTRAL_SIGNATURE):
            return members, problem or ("archive-structure", ".", "a directory entry", f"other bytes at {position}")
        fields = archive.CENTRAL.unpack(header)
        flags, method, crc, size = fields[3], fields[4], fields[7], fields[9]
        name_bytes, extra_bytes, comment_bytes, offset = fields[10], fields[11], fields[12], fields[16]
        start = position + archive.CENTRAL.size
        member = archive.Member(data[start : start + name_bytes], size, crc, offset)
        end = start + name_bytes + extra_bytes + comment_bytes
        if problem is None and data[position:end] != archive.central_header(member):
            shown = f"flags {flags:#x}, method {method}, {extra_bytes} extra and {comment_bytes} comment bytes"
            problem = ("archive-structure", _decode(member.name), "our directory entry", shown)
        members.append(member)
        position = end
    return members, problem


def _decode(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _accept(name: str, findings: Findings) -> bool:
    """Whether a member with this name may be read on; its problems are recorded."""
    codes = list(paths.problems_of(name))
    if not codes:
        misplaced = paths.misplaced(name)
        codes = [misplaced] if misplaced else []
    for code in codes:
        findings.add("safety", code, name)
    return not codes


def _check_names(names: list[str], findings: Findings) -> None:
    for code, name in paths.clashes(names):
        findings.add("safety", code, name)


def _file_type(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a character device", stat.S_IFBLK: "a block device",
    }  # fmt: skip
    return kinds.get(stat.S_IFMT(mode), "something else")
