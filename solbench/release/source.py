"""Opens a bundle: what it is is told by its first bytes, never by its name. Here also: a bundle as a directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from solbench.release import gz, paths, tar
from solbench.release.findings import Findings
from solbench.release.members import CHUNK, ChangedError, Limits, Source, accept, check_names
from solbench.release.plain import PlainFile
from solbench.release.tar_source import TarSource
from solbench.release.zip_source import SIGNATURES, ZipSource

# What the levels of verification and the store tools need of a bundle.
__all__ = ["ChangedError", "DirectorySource", "Limits", "Source", "open_source", "whole"]

_FORMATS: Final = "a ZIP archive, a tar archive, one in gzip, or a directory"
_OTHER_FORMATS: Final = {
    b"\x28\xb5\x2f\xfd": "Zstandard", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"LZIP": "lzip", b"\x1f\x9d": "compress",
    b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!\x1a\x07": "RAR", b"\x04\x22\x4d\x18": "LZ4",
}  # fmt: skip
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
            source = _open_archive(handle, status.st_size, limits, findings)
        else:
            findings.add("safety", "fs-type", ".", "a directory or a file", _file_type(status.st_mode))
    except OSError as error:
        findings.add("safety", "io-error", ".", found=error.strerror)
    finally:
        if source is None:
            os.close(handle)
    return source


def _open_archive(handle: int, size: int, limits: Limits, findings: Findings) -> Source | None:
    file = PlainFile(handle, size)
    start = file.at(0, tar.BLOCK)
    listed: ZipSource | TarSource
    if start.startswith(SIGNATURES):
        listed = ZipSource(file)
    elif tar.field(start, "magic").startswith(b"ustar"):
        listed = TarSource(file)
    elif start.startswith(gz.MAGIC):
        # Headers and padding of as many members as may be, so that the members' own bytes meet their limit first.
        most = limits.total_bytes + 2 * tar.BLOCK * (limits.files + 1)
        listed = TarSource(gz.Unpacked(file, most, limits.expansion))
    else:
        other = next((name for magic, name in _OTHER_FORMATS.items() if start.startswith(magic)), None)
        code = "unsupported" if other else "archive-structure"
        findings.add("safety", code, ".", _FORMATS, other or f"begins with {start[:4]!r}")
        return None
    return listed if listed.examine(limits, findings) else None


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
        check_names(self._names, findings)

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
                if accept(name, findings):
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


def _file_type(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a character device", stat.S_IFBLK: "a block device",
    }  # fmt: skip
    return kinds.get(stat.S_IFMT(mode), "something else")
