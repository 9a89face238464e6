"""Architectures read from code objects that LLVM wrote, through Triton's compiler, and from headers made by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from solbench.device.card import Card
from solbench.device.codeobject import arch, require_arch
from solbench.errors import InputError, UnsupportedError

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
