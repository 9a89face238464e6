"""A bundle as a ZIP archive: its members, once every byte of it is what :mod:`solbench.release.archive` would write."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from solbench.release import archive
from solbench.release.findings import Findings
from solbench.release.members import Limits, Source, accept, check_names, text_of
from solbench.release.plain import PlainFile

SIGNATURES: Final = (archive.LOCAL_SIGNATURE, archive.END_SIGNATURE)
Problem = tuple[str, str, object, object]


class ZipSource(Source):
    """A bundle as a ZIP archive of the one layout in :mod:`solbench.release.archive`."""

    def __init__(self, file: PlainFile) -> None:
        super().__init__()
        self._file = file
        self._members: dict[str, archive.Member] = {}

    def examine(self, limits: Limits, findings: Findings) -> bool:
        """Account for every byte; False where the members cannot be listed."""
        found = self._directory(limits, findings)
        if found is None:
            return False
        directory, count = found
        members, problem = _parse_directory(directory)
        if len(members) != count:
            findings.add("safety", "archive-structure", ".", f"{count} members in the central directory")
        names = [text_of(member.name) for member in members]
        for name, member in zip(names, members, strict=True):
            if name in self._members:
                findings.add("safety", "duplicate-entry", name)
            elif accept(name, findings):
                self._members[name] = member
                self.sizes[name] = member.size
                self.crcs[name] = member.crc
        for before, after in itertools.pairwise(members):
            if after.name < before.name:
                findings.add("safety", "unsorted", text_of(after.name), found=f"after {text_of(before.name)}")
        check_names(names, findings)
        if problem is None:
            problem = self._account(members, self._file.size - archive.END.size - len(directory))
        if problem is not None:
            findings.add("safety", *(self._unsupported(directory) or problem))
        # Members that overlap or lie outside are not read: with a broken structure nothing more can be said.
        return problem is None

    def _directory(self, limits: Limits, findings: Findings) -> tuple[bytes, int] | None:
        """The central directory and how many members it is to have, once the end record is what we would write."""
        size = self._file.size
        tail = self._file.at(max(size - archive.END.size, 0), min(archive.END.size, size))
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
        return self._file.at(offset, directory_bytes), count

    def _account(self, members: list[archive.Member], end: int) -> Problem | None:
        """(code, path, expected, found) of the first byte before ``end`` that we would not have written there."""
        position = 0
        for member in members:
            name = text_of(member.name)
            if member.offset != position:
                return "archive-structure", name, f"local header at {position}", member.offset
            expected = archive.local_header(member)
            if self._file.at(position, len(expected)) != expected:
                return "archive-structure", name, "our local header", f"other bytes at {position}"
            position = member.end
            if position > end:
                return "archive-structure", name, f"at most {end} bytes of members", position
        return None if position == end else ("archive-structure", ".", f"members up to {end}", position)

    def _unsupported(self, directory: bytes) -> Problem | None:
        """The first member that is encrypted or compressed, where both of its headers say so: another archive."""
        position = 0
        while position + archive.CENTRAL.size <= len(directory):
            fields = archive.CENTRAL.unpack_from(directory, position)
            local = self._file.at(fields[16], archive.LOCAL.size)
            if (fields[3] & 1 or fields[4]) and len(local) == archive.LOCAL.size:
                flags, method = archive.LOCAL.unpack(local)[2:4]
                if local.startswith(archive.LOCAL_SIGNATURE) and (flags, method) == (fields[3], fields[4]):
                    start = position + archive.CENTRAL.size
                    name = text_of(directory[start : start + fields[10]])
                    return "unsupported", name, "stored members", f"flags {flags:#x}, method {method}"
            position += archive.CENTRAL.size + fields[10] + fields[11] + fields[12]
        return None

    def chunks(self, name: str) -> Iterator[bytes]:
        member = self._members[name]
        return self._file.pieces(member.data_offset, member.size)

    def close(self) -> None:
        self._file.close()


def _parse_directory(data: bytes) -> tuple[list[archive.Member], Problem | None]:
    """Members of a central directory, and the first thing in it that we would not have written."""
    members: list[archive.Member] = []
    problem: Problem | None = None
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
            problem = ("archive-structure", text_of(member.name), "our directory entry", shown)
        members.append(member)
        position = end
    return members, problem
