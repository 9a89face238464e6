"""Architectures read from code objects that LLVM wrote, through Triton's compiler, and from headers made by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from solbench.device import codeobject
from solbench.device.card import Card
from solbench.device.codeobject import arch, library_archs, require_arch, require_library_arch
from solbench.errors import InputError, UnsupportedError
from tests.solbench.device.elf_files import code_object, elf_with_section, hip_bundle, nv_fatbin

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def copy(x, y):
    tl.store(y, tl.load(x))
"""


def card(name: str) -> Card:
    return Card("rocm", "u", "n", name, "p", None, None)


def header(machine: int = 224, flags: int = 0x48, kind: bytes = b"\x02\x01") -> bytes:
    """An ELF header alone: e_machine at byte 18, e_flags at byte 48 (ELF-64 object file format)."""
    code = bytearray(64)
    code[:6] = b"\x7fELF" + kind
    struct.pack_into("<H", code, 18, machine)
    struct.pack_into("<I", code, 48, flags)
    return bytes(code)


@pytest.mark.parametrize(("name", "warp"), [("gfx1200", 32), ("gfx1201", 32), ("gfx1100", 32), ("gfx942", 64)])
def test_what_a_compiler_wrote(name: str, warp: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "kernel.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "kernel", raising=False)
    source = ASTSource(fn=__import__("kernel").copy, signature={"x": "*fp32", "y": "*fp32"}, constexprs={})
    code = triton.compile(source, target=GPUTarget("hip", name, warp)).asm["hsaco"]
    assert arch(code, "copy") == name
    require_arch(code, "copy", card(name))
    with pytest.raises(InputError, match=f"copy: compiled for {name}, but the card is gfx1030"):
        require_arch(code, "copy", card("gfx1030"))


@pytest.mark.parametrize(
    ("flags", "name"),
    # AMDGPU backend guide, table of EF_AMDGPU_MACH; bits 8 and up say xnack and sramecc.
    [(0x48, "gfx1200"), (0x4E, "gfx1201"), (0x54C, "gfx942"), (0x53F, "gfx90a"), (0x36, "gfx1030")],
)
def test_flags_beside_the_architecture_do_not_matter(flags: int, name: str) -> None:
    assert arch(header(flags=flags), "x") == name


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (b"", "not an ELF file"),
        (header()[:63], "not an ELF file"),
        (b"\x00" * 64, "not an ELF file"),
        (header(kind=b"\x01\x01"), "not a 64-bit little-endian ELF file"),
        (header(machine=62), "ELF machine 62 is not AMDGPU"),
    ],
)
def test_what_is_no_code_object(code: bytes, said: str) -> None:
    with pytest.raises(InputError, match=f"build/k.hsaco: {said}"):
        arch(code, "build/k.hsaco")


def test_an_unknown_architecture_is_not_guessed() -> None:
    with pytest.raises(UnsupportedError, match="unknown AMDGPU architecture 0xfe"):
        arch(header(flags=0xFE), "x")


@pytest.mark.parametrize(
    ("section", "content", "expected"),
    [
        (".hip_fatbin", hip_bundle("gfx1200"), ("gfx1200",)),
        (".hip_fatbin", hip_bundle("gfx942", "gfx1200") + hip_bundle("gfx90a"), ("gfx1200", "gfx90a", "gfx942")),
        (".nv_fatbin", nv_fatbin(90, ptx=(80,)), ("sm_90",)),
        (".nv_fatbin", nv_fatbin(75) + nv_fatbin(90, 100) + bytes(24), ("sm_100", "sm_75", "sm_90")),
        (".nv_fatbin", nv_fatbin(ptx=(90,)), ()),
        (".data", nv_fatbin(90), ()),
    ],
)
def test_what_a_library_carries(section: str, content: bytes, expected: tuple[str, ...]) -> None:
    assert library_archs(elf_with_section(section, content), "library") == expected


def test_a_library_for_another_card() -> None:
    library = elf_with_section(".hip_fatbin", hip_bundle("gfx942", "gfx1100"))
    require_library_arch(library, "library", "gfx942")
    with pytest.raises(InputError, match="library: compiled for gfx1100, gfx942, but the card is gfx1200"):
        require_library_arch(library, "library", "gfx1200")
    require_library_arch(elf_with_section(".text", b"x"), "library", "gfx1200")


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        (b"", "not a 64-bit"),
        (elf_with_section(".text", b"x")[:100], "ends early"),
        (elf_with_section(".hip_fatbin", b"CCOB" + bytes(60)), "compressed"),
        (elf_with_section(".hip_fatbin", b"something else"), "no offload bundle"),
        (elf_with_section(".hip_fatbin", hip_bundle("gfx1200")[:90]), "ends early"),
        (elf_with_section(".hip_fatbin", hip_bundle("gfx942").replace(code_object("gfx942"), bytes(64))), "not an ELF"),
        (elf_with_section(".nv_fatbin", b"something else, and long enough"), "something else"),
        (elf_with_section(".nv_fatbin", nv_fatbin(90)[:40]), "ends early"),
        (elf_with_section(".nv_fatbin", nv_fatbin(90).replace(b"\2\0\1\1", b"\7\0\1\1")), "unknown kind 7"),
        (elf_with_section(".nv_fatbin", nv_fatbin(*([90] * (codeobject.MAX_PARTS + 1)))), "more than 4096 parts"),
    ],
)  # fmt: skip
def test_device_code_that_cannot_be_read(library: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        library_archs(library, "library")
