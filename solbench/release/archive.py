"""The one ZIP layout that we write: stored, sorted, fixed dates and attributes, no extra byte anywhere.

Writer and checker share the three functions below, so an archive is either exactly what we would write or refused.
Layout: for each member a local header and its bytes; then the central directory; then the end record (APPNOTE 6.3.3,
4.3.7, 4.3.12, 4.3.16). 32-bit fields only: at most 65,534 members and 4 GiB; a larger bundle is a tar archive.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from solbench.errors import InputError

LOCAL: Final = struct.Struct("<4s5H3I2H")
CENTRAL: Final = struct.Struct("<4s6H3I5H2I")
END: Final = struct.Struct("<4s4H2IH")
LOCAL_SIGNATURE: Final = b"PK\x03\x04"
CENTRAL_SIGNATURE: Final = b"PK\x01\x02"
END_SIGNATURE: Final = b"PK\x05\x06"
MAX_MEMBERS: Final = 0xFFFE
MAX_BYTES: Final = 0xFFFFFFFE

_VERSION = 20
_MADE_BY = (3 << 8) | _VERSION  # UNIX, so that the attributes below are file modes
_STORED = 0
_TIME = 0
_DATE = (0 << 9) | (1 << 5) | 1  # 1980-01-01, the first day that the format can say
_MODE = 0o100644 << 16


@dataclass(frozen=True)
class Member:
    """One file of an archive: its ASCII name, number of bytes, CRC-32, and where its local header stands."""

    name: bytes
    size: int
    crc: int
    offset: int

    @property
    def data_offset(self) -> int:
        return self.offset + LOCAL.size + len(self.name)

    @property
    def end(self) -> int:
        return self.data_offset + self.size


def local_header(member: Member) -> bytes:
    """What stands before a member's bytes."""
    return (
        LOCAL.pack(
            LOCAL_SIGNATURE, _VERSION, 0, _STORED, _TIME, _DATE,
            member.crc, member.size, member.size, len(member.name), 0,
        )
        + member.name
    )  # fmt: skip


def central_header(member: Member) -> bytes:
    """A member's entry in the central directory."""
    return (
        CENTRAL.pack(
            CENTRAL_SIGNATURE, _MADE_BY, _VERSION, 0, _STORED, _TIME, _DATE,
            member.crc, member.size, member.size, len(member.name), 0, 0, 0, 0, _MODE, member.offset,
        )
        + member.name
    )  # fmt: skip


def end_record(members: int, directory_bytes: int, directory_offset: int) -> bytes:
    """The last 22 bytes of an archive."""
    return END.pack(END_SIGNATURE, 0, 0, members, members, directory_bytes, directory_offset, 0)


def laid_out(members: Iterable[tuple[bytes, int, int]]) -> list[Member]:
    """Where members of (name, bytes, CRC-32) stand; :class:`InputError` where that needs more than 32-bit fields."""
    found: list[Member] = []
    for name, size, crc in members:
        found.append(Member(name, size, crc, found[-1].end if found else 0))
    entries = sum(CENTRAL.size + len(member.name) for member in found)
    if len(found) > MAX_MEMBERS or (found[-1].end if found else 0) + entries > MAX_BYTES:
        raise InputError("--format zip", "holds at most 65,534 members and 4 GiB; write the bundle with --format tar")
    return found


def pieces(members: Sequence[Member], contents: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """The archive of members that are laid out and their contents, a piece at a time."""
    for member, content in zip(members, contents, strict=True):
        yield local_header(member)
        yield from content
    directory = b"".join(map(central_header, members))
    yield directory
    yield end_record(len(members), len(directory), members[-1].end if members else 0)
