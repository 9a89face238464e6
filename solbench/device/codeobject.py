"""Which architecture an AMDGPU code object was compiled for, read from its ELF header.

Format: "User Guide for AMDGPU Backend" of LLVM, ELF Code Object: ``e_machine`` 224, and EF_AMDGPU_MACH in the low eight
bits of ``e_flags``.
"""

from __future__ import annotations

import struct

from solbench.device.card import Card
from solbench.errors import InputError, UnsupportedError

_EM_AMDGPU = 224
_EF_AMDGPU_MACH = 0xFF
_MACH = {
    0x2C: "gfx900", 0x2F: "gfx906", 0x30: "gfx908", 0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950",
    0x36: "gfx1030", 0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103", 0x43: "gfx1150",
    0x4A: "gfx1151", 0x55: "gfx1152", 0x58: "gfx1153", 0x48: "gfx1200", 0x4E: "gfx1201",
}  # fmt: skip


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
