"""The instructions of gfx12 machine code: where each starts, its bytes, its encoding and its name.

Encodings and their sizes: "RDNA4 Instruction Set Architecture Reference Guide" of AMD, chapter 16. Operands are read
only as far as they decide the size: a literal or a DPP word may follow. A word that no encoding claims ends the
reading, since nothing says where the next instruction starts; of an opcode without a name the size is known.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from solbench.code.opcodes import OPCODES

# Source operand fields: a literal follows, or a DPP16, DPP8 or DPP8-with-fetch-inactive word.
_LITERAL, _DPP = 255, (250, 233, 234)
# SOPK, SOP2, VOP2 and VOPD instructions that always carry a literal: s_setreg_imm32_b32, fmaak and fmamk.
_SETREG_IMM32, _SOP2_K, _VOP2_K, _VOPD_K = 19, (69, 70), (44, 45, 55, 56), (1, 2)
# Encodings of 64 and 96 bits without a literal: their first bits, the encoding, opcode shift and bits, size in words.
_FIXED = (
    (0xFF, 0xCD, "VINTERP", 16, 5, 2),
    (0xFF, 0xCE, "LDSDIR", 20, 2, 1),
    (0xFF, 0xEC, "VFLAT", 14, 8, 3),
    (0xFF, 0xED, "VSCRATCH", 14, 8, 3),
    (0xFF, 0xEE, "VGLOBAL", 14, 8, 3),
    (0xFC, 0xC4, "VBUFFER", 14, 8, 3),
    (0xFC, 0xD0, "VIMAGE", 14, 8, 3),
    (0xFC, 0xE4, "VSAMPLE", 14, 8, 3),
    (0xFC, 0xD8, "DS", 18, 8, 2),
    (0xFC, 0xF4, "SMEM", 13, 6, 2),
    (0xFC, 0xF8, "EXPORT", 0, 0, 2),
)


@dataclass(frozen=True)
class Instruction:
    """One instruction. ``offset`` and ``size`` in bytes; ``name`` is None for an opcode that gfx12 does not have.

    Names are without LLVM's suffixes for encodings (``_e32``, ``_e64``, ``_dpp``); ``dpp`` says whether a DPP word
    follows. ``paired``: the second half of a VOPD. ``branch``: bytes from the next instruction to the target.
    """

    offset: int
    size: int
    encoding: str
    name: str | None
    paired: str | None = None
    dpp: bool = False
    branch: int | None = None


@dataclass(frozen=True)
class Unread:
    """A word that was not understood: its offset in bytes, its value, and why."""

    offset: int
    word: int
    reason: str


def decode(code: bytes) -> tuple[tuple[Instruction, ...], tuple[Unread, ...]]:
    """All instructions of ``code`` in order, and what stayed unread."""
    words = struct.unpack_from(f"<{len(code) // 4}I", code)
    found: list[Instruction] = []
    unread: list[Unread] = []
    place = 0
    while place < len(words):
        instruction = _instruction(words, place)
        if instruction is None:
            unread.append(Unread(place * 4, words[place], "no gfx12 encoding starts with it"))
            return tuple(found), tuple(unread)
        if place * 4 + instruction.size > len(words) * 4:
            unread.append(Unread(place * 4, words[place], f"{instruction.encoding} that ends early"))
            return tuple(found), tuple(unread)
        if instruction.name is None:
            unread.append(Unread(place * 4, words[place], f"{instruction.encoding} has no such opcode"))
        found.append(instruction)
        place += instruction.size // 4
    if len(code) % 4:
        unread.append(Unread(len(words) * 4, int.from_bytes(code[len(words) * 4 :], "little"), "less than one word"))
    return tuple(found), tuple(unread)


def _instruction(words: tuple[int, ...], place: int) -> Instruction | None:
    """The instruction at a word; None where no encoding claims that word."""
    word = words[place]
    following = words[place + 1] if place + 1 < len(words) else 0
    first = word >> 24
    if word >> 30 == 0b10:
        return _scalar(word, place * 4)
    if not word >> 31:
        return _short_vector(word, place * 4)
    if word >> 26 == 0b110101:
        return _long_vector("VOP3", word >> 16 & 0x3FF, following, place * 4)
    if first == 0xCC:
        return _long_vector("VOP3P", word >> 16 & 0x7F, following, place * 4)
    if word >> 26 == 0b110010:
        return _dual(word, following, place * 4)
    for mask, value, encoding, shift, bits, size in _FIXED:
        if first & mask == value:
            opcode = word >> shift & ((1 << bits) - 1)
            return Instruction(place * 4, size * 4, encoding, OPCODES[encoding].get(opcode))
    return None


def _scalar(word: int, offset: int) -> Instruction:
    """SOP1, SOPC and SOPP lie within SOPK's bits, and SOPK within SOP2's."""
    if word >> 23 == 0b101111111:
        opcode = word >> 16 & 0x7F
        name = OPCODES["SOPP"].get(opcode)
        jump = word & 0xFFFF
        branch = (jump - (jump >> 15 << 16)) * 4 if name and name.startswith(("s_branch", "s_cbranch")) else None
        return Instruction(offset, 4, "SOPP", name, branch=branch)
    if word >> 23 in (0b101111101, 0b101111110):
        compares = word >> 23 == 0b101111110
        encoding, opcode = ("SOPC", word >> 16 & 0x7F) if compares else ("SOP1", word >> 8 & 0xFF)
        literal = word & 0xFF == _LITERAL or (compares and word >> 8 & 0xFF == _LITERAL)
    elif word >> 28 == 0b1011:
        encoding, opcode = "SOPK", word >> 23 & 0x1F
        literal = opcode == _SETREG_IMM32
    else:
        encoding, opcode = "SOP2", word >> 23 & 0x7F
        literal = _LITERAL in (word & 0xFF, word >> 8 & 0xFF) or opcode in _SOP2_K
    return Instruction(offset, 8 if literal else 4, encoding, OPCODES[encoding].get(opcode))


def _short_vector(word: int, offset: int) -> Instruction:
    """VOP1 and VOPC are what VOP2's opcodes 63 and 62 stand for."""
    opcode, source = word >> 25, word & 0x1FF
    encoding = {63: "VOP1", 62: "VOPC"}.get(opcode, "VOP2")
    if encoding == "VOP1":
        opcode = word >> 9 & 0xFF
    elif encoding == "VOPC":
        opcode = word >> 17 & 0xFF
    longer = source == _LITERAL or source in _DPP or (encoding == "VOP2" and opcode in _VOP2_K)
    return Instruction(
        offset, 8 if longer else 4, encoding, OPCODES[encoding].get(opcode), dpp=source in _DPP
    )  # fmt: skip


def _long_vector(encoding: str, opcode: int, following: int, offset: int) -> Instruction:
    """VOP3 and VOP3P: three sources of nine bits in the second word."""
    sources = (following & 0x1FF, following >> 9 & 0x1FF, following >> 18 & 0x1FF)
    dpp = sources[0] in _DPP
    return Instruction(
        offset, 12 if dpp or _LITERAL in sources else 8, encoding, OPCODES[encoding].get(opcode), dpp=dpp
    )


def _dual(word: int, following: int, offset: int) -> Instruction:
    """VOPD: two VALU instructions in one, X in the first word and Y in the second; they share one literal."""
    opcodes = (word >> 22 & 0xF, word >> 17 & 0x1F)
    literal = _LITERAL in (word & 0x1FF, following & 0x1FF) or any(opcode in _VOPD_K for opcode in opcodes)
    first, second = OPCODES["VOPD_X"].get(opcodes[0]), OPCODES["VOPD_Y"].get(opcodes[1])
    return Instruction(offset, 12 if literal else 8, "VOPD", first if second else None, paired=second)
