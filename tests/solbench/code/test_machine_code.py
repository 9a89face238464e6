"""Machine code of gfx12, against words that the guide gives and against LLVM where it is installed."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from solbench.code import kernels
from solbench.code.agreement import base_name
from solbench.code.machine_code import Instruction, decode
from solbench.code.mix import engine
from solbench.code.opcodes import MNEMONICS, OPCODES

OBJECTS = Path(__file__).resolve().parent / "objects"
OBJDUMP = shutil.which("llvm-objdump-22")
ASSEMBLER = shutil.which("llvm-mc-22")
ATTRIBUTES = ("--mcpu=gfx1200", "--mattr=+real-true16")


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


# Words and texts as LLVM's assembler gives them for gfx1200.
KNOWN = [
    ((0xBF850001,), "SOPP", "s_clause"),
    ((0x84068675,), "SOP2", "s_lshl_b32"),
    ((0x9307FF74, 0x50019), "SOP2", "s_bfe_u32"),
    ((0xA2800201, 0x1234), "SOP2", "s_fmaak_f32"),
    ((0xBE804CC1,), "SOP1", "s_sendmsg_rtn_b32"),
    ((0xBF028009,), "SOPC", "s_cmp_gt_i32"),
    ((0xB980F801, 5), "SOPK", "s_setreg_imm32_b32"),
    ((0x7E0A0280,), "VOP1", "v_mov_b32"),
    ((0x7E0002FA, 0xFF011101), "VOP1", "v_mov_b32"),  # DPP
    ((0x7E0002E9, 0xFAC68101), "VOP1", "v_mov_b32"),  # DPP8
    ((0x38040 << 12 | 0x4A0,), "VOP2", "v_or_b32"),
    ((0x5A000501, 0x1234), "VOP2", "v_fmaak_f32"),
    ((0xD7006A24, 0x02020604), "VOP3", "v_add_co_u32"),
    ((0xD5030000, 0x000204FA, 0xFF011101), "VOP3", "v_add_f32"),  # DPP
    ((0xD4CA007E, 0x00020300), "VOP3", "v_cmpx_eq_u32"),
    ((0xCC504000 | 10, 0x1C220500), "VOP3P", "v_swmmac_f32_16x16x32_f16"),
    ((0xCD000000, 0x040E0501), "VINTERP", "v_interp_p10_f32"),
    ((0xF4000240, 0xF8000000), "SMEM", "s_load_b32"),
    ((0xDB800000, 0x01020100), "DS", "ds_bvh_stack_push4_pop1_rtn_b32"),
    ((0xC405007C, 0x40800800, 1), "VBUFFER", "buffer_load_b32"),
    ((0xC404807C, 0x40800800, 1), "VBUFFER", "buffer_load_u16"),
    ((0xEE05C07C, 5, 3), "VGLOBAL", "global_load_b128"),
    ((0xEE0AC07C, 0x40000, 0), "VGLOBAL", "global_inv"),
    ((0xE446C001, 0x06000800, 0x0201), "VSAMPLE", "image_sample"),
    ((0xD3E04010, 0x09000009, 0x06030113), "VIMAGE", "image_bvh8_intersect_ray"),
    ((0xF800000F, 0x03020100), "EXPORT", "export"),
]


@pytest.mark.parametrize(("encoded", "encoding", "name"), KNOWN)
def test_one_instruction_of_each_encoding(encoded: tuple[int, ...], encoding: str, name: str) -> None:
    # A second instruction shows that the size is right.
    found, unread = decode(words(*encoded, 0xBFB00000))
    assert not unread
    assert [(i.offset, i.size, i.encoding, i.name) for i in found] == [
        (0, 4 * len(encoded), encoding, name),
        (4 * len(encoded), 4, "SOPP", "s_endpgm"),
    ]


def test_two_instructions_in_one() -> None:
    ((dual,), unread) = decode(words(0xCA240080, 0x06140083))
    assert not unread
    assert (dual.name, dual.paired, dual.size) == ("v_dual_mov_b32", "v_dual_and_b32", 8)
    ((literal,), _) = decode(words(0xCA2400FF, 0x06140083, 0x1234))
    assert literal.size == 12


def test_branches_lead_somewhere() -> None:
    found, _ = decode(words(0xBFA20008, 0xBFA0FFFE))
    assert [instruction.branch for instruction in found] == [32, -8]


@pytest.mark.parametrize(
    ("code", "offset", "reason", "read"),
    [
        (words(0xBF800000, 0xC0000000, 0xBFB00000), 4, "no gfx12 encoding starts with it", 1),
        (words(0xBF800000, 0xFFFFFFFF), 4, "no gfx12 encoding starts with it", 1),
        (words(0xBF800000, 0xEE05C07C, 5), 4, "VGLOBAL that ends early", 1),
        (words(0x7E00FE00, 0xBFB00000), 0, "VOP1 has no such opcode", 2),
        (words(0xBF800000) + b"\x01\x02", 4, "less than one word", 1),
    ],
)
def test_what_is_not_understood_is_said(code: bytes, offset: int, reason: str, read: int) -> None:
    found, unread = decode(code)
    assert [(word.offset, word.reason) for word in unread] == [(offset, reason)]
    assert len(found) == read


def test_every_name_has_one_engine() -> None:
    assert not [name for name in MNEMONICS if engine(name) is None]
    assert engine("v_mfma_f32_16x16x16f16") is None  # of other cards


def test_names_are_those_of_the_guide() -> None:
    assert OPCODES["VOP3P"][0x40] == "v_wmma_f32_16x16x16_f16"
    assert OPCODES["SOPP"][0x30] == "s_endpgm"
    assert OPCODES["VOP3"][0x100 + 3] == OPCODES["VOP2"][3] == "v_add_f32"
    assert 0x100 + 60 not in OPCODES["VOP3"]  # v_pk_fmac_f16 has no long form


def disassembled(path: Path) -> dict[str, list[tuple[int, int, tuple[str, ...]]]]:
    """Address, size and names of every instruction, by function, from LLVM."""
    done = subprocess.run([str(OBJDUMP), "-d", *ATTRIBUTES, str(path)], capture_output=True, text=True, check=True)
    found: dict[str, list[tuple[int, int, tuple[str, ...]]]] = {}
    for line in done.stdout.splitlines():
        if function := re.match(r"[0-9a-f]+ <(.*)>:", line):
            current = found.setdefault(function[1], [])
        elif shown := re.match(r"\s+(\S.*?)\s*// ([0-9A-F]+): ([0-9A-F ]+)", line):
            names = tuple(base_name(half.split()[0]) for half in shown[1].split(" :: "))
            current.append((int(shown[2], 16), 4 * len(shown[3].split()), names))
    return found


def as_llvm(instruction: Instruction, start: int) -> tuple[int, int, tuple[str | None, ...]]:
    names = (instruction.name,) if instruction.paired is None else (instruction.name, instruction.paired)
    return start + instruction.offset, instruction.size, names


def agrees_with_llvm(path: Path) -> int:
    """Compare every instruction of every kernel with LLVM's disassembly; how many there were."""
    held = kernels.read(path.read_bytes(), path.name)
    shown = disassembled(path)
    count = 0
    for kernel in held.kernels.values():
        found, unread = decode(held.instructions(kernel, path.name))
        start, size = kernel.code
        assert not unread
        assert [as_llvm(instruction, start) for instruction in found] == [
            line for line in shown[kernel.name] if line[0] < start + size
        ]
        count += len(found)
    return count


@pytest.mark.skipif(not OBJDUMP, reason="llvm-objdump-22 is not installed")
def test_llvm_reads_the_same() -> None:
    assert agrees_with_llvm(OBJECTS / "product.hsaco") > 100


@pytest.mark.skipif(not ASSEMBLER, reason="llvm-mc-22 is not installed")
def test_llvm_knows_every_name_and_no_other() -> None:
    """Each name alone: LLVM complains about missing operands, or does not know it for this card."""
    names = sorted(MNEMONICS - {"export"} | {"v_mfma_f32_4x4x4f16", "s_setvskip"})
    single = [name for name in names if not name.startswith("v_dual_")]
    done = subprocess.run(
        [str(ASSEMBLER), "-triple=amdgcn", *(a[1:] for a in ATTRIBUTES), "-o", "/dev/null"],
        input="\n".join(single), capture_output=True, text=True, check=False,
    )  # fmt: skip
    refused = re.findall(r"<stdin>:(\d+):\d+: error: (?:instruction not supported|invalid instruction)", done.stderr)
    assert {single[int(line) - 1] for line in refused} == {"v_mfma_f32_4x4x4f16", "s_setvskip"}
