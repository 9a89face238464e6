"""A bundle as a tar archive, plain or in gzip: its members, once every byte of it is what we would write."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Final, Protocol

from solbench.errors import InputError
from solbench.release import tar
from solbench.release.findings import Findings
from solbench.release.members import Limits, RefusedError, Source, accept, check_names, text_of

# What a tar member may be that we never write, by its type flag.
_OTHER_TYPES: Final = {
    b"1": ("fs-type", "a hard link"), b"2": ("fs-symlink", "a symbolic link"),
    b"3": ("fs-type", "a character device"), b"4": ("fs-type", "a block device"),
    b"5": ("fs-type", "a directory"), b"6": ("fs-type", "a FIFO"),
}  # fmt: skip


class Stream(Protocol):
    """Bytes that are listed once from front to back, then read anywhere: of a plain file, or of what one unpacks to."""

    def read(self, size: int) -> bytes: ...
    def skip(self, size: int) -> None: ...
    def finish(self) -> int | None: ...
    def pieces(self, offset: int, size: int) -> Iterator[bytes]: ...
    def close(self) -> None: ...


class TarSource(Source):
    """A bundle as a tar archive of the one layout in :mod:`solbench.release.tar`."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream
        self._names: list[bytes] = []
        self._offsets: dict[str, int] = {}

    def examine(self, limits: Limits, findings: Findings) -> bool:
        """Account for every byte; False where the members cannot be listed."""
        try:
            self._list(limits, findings)
            differs_at = self._stream.finish()
        except RefusedError as refusal:
            findings.add("safety", refusal.code, refusal.path, refusal.expected, refusal.found)
            return False
        finally:
            for before, after in itertools.pairwise(self._names):
                if after < before:
                    findings.add("safety", "unsorted", text_of(after), found=f"after {text_of(before)}")
            check_names(map(text_of, self._names), findings)
        if differs_at is not None:
            # A forger's coding or another zlib's: which of them cannot be told here.
            self.accounted = False
            expected = f"DEFLATE as zlib {zlib.ZLIB_RUNTIME_VERSION} codes it here"
            found = f"another coding of the same bytes from {differs_at} on; gunzip it and verify the tar archive"
            findings.add("safety", "archive-compression", ".", expected, found)
        return True

    def _list(self, limits: Limits, findings: Findings) -> None:
        """Every member up to the two blocks of zeros; :class:`RefusedError` at what we would not write."""
        position = 0
        while True:
            block = self._stream.read(tar.BLOCK)
            if block == tar.END[: tar.BLOCK]:
                break
            if len(block) < tar.BLOCK:
                found = f"cut off after {position + len(block)} bytes"
                raise RefusedError("archive-structure", "members, then two blocks of zeros", found)
            if len(self._names) >= limits.files:
                raise RefusedError("limit-files", limits.files, "more")
            size, regular = self._header(block, findings)
            raw = tar.name_of(block)
            name = text_of(raw)
            self._names.append(raw)
            position += tar.BLOCK
            if name in self._offsets:
                findings.add("safety", "duplicate-entry", name)
            elif accept(name, findings) and regular:
                self._offsets[name] = position
                self.sizes[name] = size
            padding = tar.padding(size)
            self._stream.skip(size)
            if self._stream.read(len(padding)) != padding:
                raise RefusedError("archive-structure", f"{len(padding)} zeros after the member", "other bytes", name)
            position += size + len(padding)
        if self._stream.read(tar.BLOCK) != block:
            raise RefusedError("archive-structure", "two blocks of zeros at the end", "one")

    def _header(self, block: bytes, findings: Findings) -> tuple[int, bool]:
        """(bytes of the member, whether it is a regular file), where the block says so in our spelling."""
        raw, size, kind = tar.name_of(block), tar.size_of(block), tar.field(block, "typeflag")
        name = text_of(raw)
        if tar.field(block, "magic") + tar.field(block, "version") != b"ustar\x0000":
            raise RefusedError("archive-structure", "a ustar header", _shown(block, "magic"), name)
        if tar.field(block, "chksum") != tar.checksum(block):
            raise RefusedError("archive-structure", f"chksum {tar.checksum(block)!r}", _shown(block, "chksum"), name)
        if size is None:
            raise RefusedError("archive-structure", "size as eleven octal digits", _shown(block, "size"), name)
        if kind in _OTHER_TYPES and size == 0:
            code, what = _OTHER_TYPES[kind]
            findings.add("safety", code, name, "a regular file", what)
            return size, False
        try:
            expected = tar.header(raw, size)
        except InputError:
            raise RefusedError("archive-structure", "a name in the fields name and prefix", "neither", name) from None
        if block != expected:
            differing = tar.differing_field(block, expected)
            raise RefusedError("archive-structure", _shown(expected, differing), _shown(block, differing), name)
        return size, True

    def chunks(self, name: str) -> Iterator[bytes]:
        return self._stream.pieces(self._offsets[name], self.sizes[name])

    def close(self) -> None:
        self._stream.close()


def _shown(block: bytes, field: str) -> str:
    value = tar.field(block, field)
    return f"{field} {value.rstrip(bytes(1))!r}" if len(value) > 12 else f"{field} {value!r}"
