"""Which architecture device code was compiled for: an AMDGPU code object, or what a host library carries.

Formats: "User Guide for AMDGPU Backend" of LLVM, ELF Code Object: ``e_machine`` 224, and EF_AMDGPU_MACH in the low
eight bits of ``e_flags``; "Clang Offload Bundler", in section ``.hip_fatbin``. The fat binaries in section
``.nv_fatbin`` are read as nvcc 12 and 13 write them, of which there is no public description: anything else is an
error.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from solbench.device import elf
from solbench.device.card import Card
from solbench.errors import InputError, UnsupportedError

# Device code objects in one library; more are no candidate's.
MAX_PARTS = 4096
_PAGE = 4096
_EM_AMDGPU = 224
_EF_AMDGPU_MACH = 0xFF
_MACH = {
    0x2C: "gfx900", 0x2F: "gfx906", 0x30: "gfx908", 0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950",
    0x36: "gfx1030", 0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103", 0x43: "gfx1150",
    0x4A: "gfx1151", 0x55: "gfx1152", 0x58: "gfx1153", 0x48: "gfx1200", 0x4E: "gfx1201",
}  # fmt: skip
ARCHITECTURES = tuple(_MACH.values())


def arch(code: bytes, where: str) -> str:
    """Architecture of a code object, ``where`` in errors. :class:`InputError` for anything that is none."""
    if len(code) < 64 or code[:4] != b"\x7fELF":
        raise InputError(where, "not an ELF file")
    if code[4:6] != b"\x02\x01":
        raise InputError(where, "not a 64-bit little-endian ELF file")
    machine, flags = struct.unpack_from("<H", code, 18)[0], struct.unpack_from("<I", code, 48)[0]
    if machine != _EM_AMDGPU:
        raise InputError(where, f"ELF machine {machine} is not AMDGPU ({_EM_AMDGPU})")
    name = _MACH.get(flags & _EF_AMDGPU_MACH)
    if name is None:
        raise UnsupportedError(f"{where}: unknown AMDGPU architecture {flags & _EF_AMDGPU_MACH:#x} in e_flags")
    return name


def require_arch(code: bytes, where: str, card: Card) -> None:
    """Raise :class:`InputError` when a code object was compiled for another architecture than the card's."""
    built = arch(code, where)
    if built != card.arch:
        raise InputError(where, f"compiled for {built}, but the card is {card.arch}; compile it for the card")


def library_archs(library: bytes, where: str) -> tuple[str, ...]:
    """Architectures of the device code in a host shared library, sorted; empty when it carries none.

    Of CUDA only machine code counts (``sm_90``): PTX would be compiled by the driver of whoever loads it.
    :class:`InputError` for a library or a bundle that is not as described above.
    """
    try:
        sections = {section.name: section.content for section in elf.sections(library, where)}
        hip = (built for built, _ in _bundled(sections.get(".hip_fatbin", b""), where))
        cuda = _fatbins(sections.get(".nv_fatbin", b""), where)
        return tuple(sorted({*hip, *cuda}))
    except struct.error:
        raise InputError(where, "device code that ends early") from None


def library_code(library: bytes, where: str, wanted: str) -> list[bytes]:
    """HIP code objects for ``wanted`` in a host shared library; :class:`InputError` as :func:`library_archs`."""
    try:
        sections = {section.name: section.content for section in elf.sections(library, where)}
        return [code for built, code in _bundled(sections.get(".hip_fatbin", b""), where) if built == wanted]
    except struct.error:
        raise InputError(where, "device code that ends early") from None


def require_library_arch(library: bytes, where: str, wanted: str) -> None:
    """Raise :class:`InputError` when a host library carries device code, but none for ``wanted``."""
    built = library_archs(library, where)
    if built and wanted not in built:
        raise InputError(where, f"compiled for {', '.join(built)}, but the card is {wanted}; compile it for the card")


def _bundled(section: bytes, where: str) -> Iterator[tuple[str, bytes]]:
    """Architecture and bytes of the code objects in the bundles of one section, each of which starts on a page."""
    start, used, parts = 0, len(section.rstrip(b"\0")), 0
    while start < used:
        if section.startswith(b"CCOB", start):
            raise InputError(where, "its HIP code is compressed, which is not read; compile with --no-offload-compress")
        if not section.startswith(b"__CLANG_OFFLOAD_BUNDLE__", start):
            raise InputError(where, ".hip_fatbin holds no offload bundle")
        (count,) = struct.unpack_from("<Q", section, start + 24)
        parts += count
        _few(parts, where)
        place = end = start + 32
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", section, place)
            triple = section[place + 24 : place + 24 + length].decode("ascii", "replace")
            place += 24 + length
            end = max(end, start + offset + size, place)
            if not triple.startswith("host"):
                code = section[start + offset : start + offset + size]
                yield arch(code, f"{where}: {triple}"), code
        start = (end + _PAGE - 1) // _PAGE * _PAGE


def _fatbins(section: bytes, where: str) -> Iterator[str]:
    """Architectures of the machine code in the fat binaries of one section, eight bytes aligned."""
    start, used, parts = 0, len(section.rstrip(b"\0")), 0
    while start < used:
        if section.startswith(bytes(8), start):
            start += 8
            continue
        if struct.unpack_from("<IHH", section, start) != (0xBA55ED50, 1, 16):
            raise InputError(where, ".nv_fatbin holds something else than fat binaries of nvcc")
        place = start + 16
        start = place + struct.unpack_from("<Q", section, start + 8)[0]
        while place < start:
            kind, _, header_bytes, content_bytes = struct.unpack_from("<HHIQ", section, place)
            (model,) = struct.unpack_from("<I", section, place + 28)
            parts += 1
            _few(parts, where)
            if kind not in (1, 2) or header_bytes < 32:
                raise InputError(where, f".nv_fatbin holds a part of unknown kind {kind}")
            if kind == 2:  # 1 is PTX
                yield f"sm_{model}"
            place += header_bytes + content_bytes


def _few(parts: int, where: str) -> None:
    if parts > MAX_PARTS:
        raise InputError(where, f"more than {MAX_PARTS} parts of device code")
