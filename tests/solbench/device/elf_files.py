"""Host libraries with device code, put together by hand from the descriptions of the formats."""

from __future__ import annotations

import struct

MACH = {"gfx1200": 0x48, "gfx942": 0x4C, "gfx1100": 0x41, "gfx90a": 0x3F}


def code_object(arch: str) -> bytes:
    """An AMDGPU ELF header alone: e_machine at byte 18, e_flags at byte 48 (ELF-64 object file format)."""
    code = bytearray(64)
    code[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", code, 18, 224)
    struct.pack_into("<I", code, 48, MACH[arch])
    return bytes(code)


def hip_bundle(*archs: str, code: bytes | None = None) -> bytes:
    """A clang offload bundle of an empty host part and one code object an architecture, up to the end of its page;
    ``code`` in place of a mere header."""
    parts = [("host-x86_64-unknown-linux-gnu-", b"")]
    parts += [(f"hipv4-amdgcn-amd-amdhsa--{arch}", code or code_object(arch)) for arch in archs]
    head, body = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(parts)), b""
    for triple, code in parts:
        head += struct.pack("<QQQ", 1024 + len(body), len(code), len(triple)) + triple.encode()
        body += code
    return (head.ljust(1024, b"\0") + body).ljust(4096, b"\0")


def nv_fatbin(*models: int, ptx: tuple[int, ...] = ()) -> bytes:
    """A fat binary of 16 bytes a part: machine code of these models, PTX of those."""
    body = b""
    for kind, model in [*((2, model) for model in models), *((1, model) for model in ptx)]:
        head = struct.pack("<HHIQ", kind, 0x101, 64, 16) + bytes(12) + struct.pack("<I", model)
        body += head.ljust(64, b"\0") + bytes(16)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def elf_with_section(name: str, content: bytes) -> bytes:
    """A 64-bit little-endian ELF file of no section, one of this name, and the table of names."""
    names = b"\0" + name.encode() + b"\0.shstrtab\0"
    table = 64 + len(content) + len(names)
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", header, 18, 62)  # x86-64
    struct.pack_into("<Q", header, 40, table)
    struct.pack_into("<HHH", header, 58, 64, 3, 2)
    sections = [(0, 0, 0, 0), (1, 1, 64, len(content)), (2 + len(name), 3, 64 + len(content), len(names))]
    rows = b"".join(
        struct.pack("<IIQQQQ", word, kind, 0, 0, at, size).ljust(64, b"\0") for word, kind, at, size in sections
    )
    return bytes(header) + content + names + rows
