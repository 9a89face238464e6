"""Sections, symbols and notes of a 64-bit little-endian ELF file.

Format: "ELF-64 Object File Format" 1.5. The file is hostile: every offset is checked, counts are limited, and what is
wrong ends as :class:`InputError`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from solbench.errors import InputError

# More is no candidate's.
MAX_BYTES = 256 << 20
MAX_SECTIONS = 4096
MAX_SYMBOLS = 1 << 14
MAX_NAME_BYTES = 4096
UNDEFINED = 0
SHT_SYMTAB, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 7, 8, 11


@dataclass(frozen=True)
class Section:
    """One section. ``address``: where it is loaded, 0 if it is not. ``link``: the number of a section it refers to."""

    name: str
    kind: int
    address: int
    size: int
    link: int
    content: bytes


@dataclass(frozen=True)
class Symbol:
    """One symbol. ``section``: its section's number, :data:`UNDEFINED` where another file must bring it."""

    name: str
    section: int
    address: int
    size: int


@dataclass(frozen=True)
class Note:
    """One note: its owner, its type as the owner numbers them, and its content."""

    owner: str
    kind: int
    content: bytes


def sections(file: bytes, where: str) -> tuple[Section, ...]:
    """All sections in order, the empty one at 0 included. ``where`` names the file in errors."""
    if file[:6] != b"\x7fELF\x02\x01":
        raise InputError(where, "not a 64-bit little-endian ELF file")
    if len(file) > MAX_BYTES:
        raise InputError(where, f"more than {MAX_BYTES} bytes")
    try:
        (table,) = struct.unpack_from("<Q", file, 40)
        entry, count, names = struct.unpack_from("<HHH", file, 58)
        if count > MAX_SECTIONS:
            raise InputError(where, f"more than {MAX_SECTIONS} sections")
        if count and entry < 64:
            raise InputError(where, f"section headers of {entry} bytes; they have 64")
        if table + count * entry > len(file):
            raise InputError(where, "an ELF file that ends early")
        headers = [struct.unpack_from("<IIQQQQI", file, table + number * entry) for number in range(count)]
    except struct.error:
        raise InputError(where, "an ELF file that ends early") from None
    if sum(header[5] for header in headers if header[1] not in (0, SHT_NOBITS)) > len(file):
        raise InputError(where, "an ELF file that ends early, or whose sections overlap")
    strings = _content(file, headers[names], where) if names < count else b""
    return tuple(
        Section(_text(strings, header[0]), header[1], header[3], header[5], header[6], _content(file, header, where))
        for header in headers
    )


def symbols(parts: Sequence[Section], where: str) -> tuple[Symbol, ...]:
    """Symbols of every symbol table, in order; a name that two tables hold appears twice."""
    found: list[Symbol] = []
    for part in parts:
        if part.kind not in (SHT_SYMTAB, SHT_DYNSYM):
            continue
        if part.link >= len(parts):
            raise InputError(where, f"{part.name} refers to section {part.link}, which is not there")
        strings = parts[part.link].content
        if len(found) + len(part.content) // 24 > MAX_SYMBOLS:
            raise InputError(where, f"more than {MAX_SYMBOLS} symbols")
        for name, _, _, section, address, size in struct.iter_unpack(
            "<IBBHQQ", part.content[: len(part.content) // 24 * 24]
        ):
            found.append(Symbol(_text(strings, name), section, address, size))
    return tuple(found)


def notes(parts: Sequence[Section], where: str) -> tuple[Note, ...]:
    """Notes of every note section, in order."""
    found: list[Note] = []
    for part in parts:
        place = 0
        while part.kind == SHT_NOTE and place < len(part.content):
            try:
                owner, size, kind = struct.unpack_from("<III", part.content, place)
            except struct.error:
                raise InputError(where, f"{part.name} ends within a note") from None
            start = place + 12 + _aligned(owner)
            place = start + _aligned(size)
            if start + size > len(part.content):
                raise InputError(where, f"{part.name} ends within a note")
            name = part.content[start - _aligned(owner) :][:owner].rstrip(b"\0").decode("ascii", "replace")
            found.append(Note(name, kind, part.content[start : start + size]))
    return tuple(found)


def loaded(parts: Sequence[Section], address: int, size: int, where: str) -> bytes:
    """The ``size`` bytes that lie at ``address`` once the file is loaded."""
    for part in parts:
        if part.address and part.kind != SHT_NOBITS and part.address <= address:
            start = address - part.address
            if start + size <= len(part.content):
                return part.content[start : start + size]
    raise InputError(where, f"no section holds {size} bytes at address {address:#x}")


def _content(file: bytes, header: Sequence[int], where: str) -> bytes:
    kind, offset, size = header[1], header[4], header[5]
    if kind in (0, SHT_NOBITS):
        return b""
    if offset + size > len(file):
        raise InputError(where, "an ELF file that ends early")
    return file[offset : offset + size]


def _text(strings: bytes, place: int) -> str:
    """The name at ``place`` of a string table; empty beyond its end."""
    end = strings.find(b"\0", place, place + MAX_NAME_BYTES)
    return strings[place : end if end >= 0 else place + MAX_NAME_BYTES].decode("utf-8", "replace")


def _aligned(size: int) -> int:
    return (size + 3) // 4 * 4
