"""The one tar layout that we write: POSIX ustar, regular files, sorted, fixed times and owners, no extra byte anywhere.

Writer and checker share :func:`header`, so an archive is either exactly what we would write or refused. Layout: for
each member a header block, its bytes, zeros up to a multiple of 512 bytes; then two blocks of zeros, and nothing else
(POSIX pax, "ustar Interchange Format"). It is, byte for byte, what GNU tar writes with ``--format=ustar --owner=0
--group=0 --numeric-owner --mode=0644 --mtime=@0 -b1`` from a sorted list of files.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Final

from solbench.errors import InputError

BLOCK: Final = 512
MAX_MEMBER_BYTES: Final = 8**11 - 1  # eleven octal digits
END: Final = bytes(2 * BLOCK)
REGULAR: Final = b"0"

_NAME_BYTES = 100
_PREFIX_BYTES = 155
# Name of each field and its number of bytes, in order.
FIELDS: Final = (
    ("name", _NAME_BYTES), ("mode", 8), ("uid", 8), ("gid", 8), ("size", 12), ("mtime", 12), ("chksum", 8),
    ("typeflag", 1), ("linkname", 100), ("magic", 6), ("version", 2), ("uname", 32), ("gname", 32), ("devmajor", 8),
    ("devminor", 8), ("prefix", _PREFIX_BYTES), ("padding", 12),
)  # fmt: skip
_STARTS = dict(zip((name for name, _ in FIELDS), itertools.accumulate((size for _, size in FIELDS), initial=0)))
_SIZES = dict(FIELDS)


def header(name: bytes, size: int) -> bytes:
    """The block before a member's bytes; :class:`InputError` where name or size does not fit into its fields."""
    prefix, last = _split(name)
    if size > MAX_MEMBER_BYTES:
        raise InputError(
            name.decode("ascii", "backslashreplace"),
            "8 GiB or more do not fit into a tar archive; use --format directory",
        )
    zero = _octal(0, 8)
    before = last.ljust(_NAME_BYTES, b"\0") + _octal(0o644, 8) + zero + zero + _octal(size, 12) + _octal(0, 12)
    after = REGULAR + bytes(100) + b"ustar\0" + b"00" + bytes(64) + zero + zero + prefix.ljust(_PREFIX_BYTES, b"\0")
    return before + checksum(before + bytes(8) + after) + after + bytes(12)


def checksum(block: bytes) -> bytes:
    """The field ``chksum`` of a header: the sum of its bytes, that field taken as spaces."""
    start = _STARTS["chksum"]
    return _octal(sum(block[:start]) + 8 * ord(" ") + sum(block[start + 8 :]), 7) + b" "


def padding(size: int) -> bytes:
    """The zeros after a member of ``size`` bytes."""
    return bytes(-size % BLOCK)


def field(block: bytes, name: str) -> bytes:
    """One field of a header block as it stands there."""
    return block[_STARTS[name] : _STARTS[name] + _SIZES[name]]


def name_of(block: bytes) -> bytes:
    """The member's name that a header block says, up to the first NUL of either field."""
    prefix, last = (field(block, part).partition(b"\0")[0] for part in ("prefix", "name"))
    return prefix + b"/" + last if prefix else last


def size_of(block: bytes) -> int | None:
    """The member's bytes that a header block says; None where they are not spelt as we do."""
    text = field(block, "size")
    return int(text[:-1], 8) if re.fullmatch(rb"[0-7]{11}\0", text) else None


def differing_field(block: bytes, expected: bytes) -> str:
    """Name of the first field in which two different header blocks differ; of the checksum last."""
    different = [name for name, _ in FIELDS if field(block, name) != field(expected, name)]
    return next((name for name in different if name != "chksum"), different[0])


def pieces(members: Iterable[tuple[bytes, int, Iterable[bytes]]]) -> Iterator[bytes]:
    """The archive of members (name, bytes, content), a piece at a time."""
    for name, size, content in members:
        yield header(name, size)
        yield from content
        yield padding(size)
    yield END


def _split(name: bytes) -> tuple[bytes, bytes]:
    """(prefix, name) of a path: all in ``name`` where it fits, else the longest prefix that its field can hold."""
    if len(name) <= _NAME_BYTES:
        return b"", name
    slash = name.rfind(b"/", 0, _PREFIX_BYTES + 1)
    if slash < 1 or not 0 < len(name) - slash - 1 <= _NAME_BYTES:
        shown = name.decode("ascii", "backslashreplace")
        raise InputError(shown, "does not fit into name and prefix of a tar header; write the bundle with --format zip")
    return name[:slash], name[slash + 1 :]


def _octal(value: int, size: int) -> bytes:
    return b"%0*o\0" % (size - 1, value)
