"""What one gfx12 instruction computes: the form of an entry of the table in :mod:`solbench.gfx12.ops`.

An entry is a signature and a pure function of numpy arrays. The signature is text in the order the assembler prints
operands, ``"u32 scc = u32 u32"``: results, then operands; implicit ones come last. The word ``old`` ends the operands
of an instruction that also reads what its first result held; it has the type of that result.

Types: ``b16 b32 b64 u16 u32 u64 i16 i32 i64 f16 f32 f64`` (numpy unsigned, signed, floating dtypes of that size, ``b``
unsigned), ``b128`` (uint32 with a last axis of 4), ``bf16`` (uint16 patterns), ``2xf16 2xi16 2xu16 2xb16 2xbf16 2xf32``
(a last axis of 2, element 0 in the low bits), ``mix`` (float32: the whole register, or the half that ``op_sel`` and
``op_sel_hi`` choose, widened), ``imm16`` (int16). Masks: ``mask`` (bool a lane, printed), ``vcc`` (the same, not
printed), ``exec`` (bool a lane; in scalar instructions the register's bits), ``scc`` (bool a wave).

Vector operands are (waves, 32), scalars in vector instructions (waves, 1), operands of scalar instructions (waves,);
any shapes that broadcast will do. Functions never write to an operand and may return one, or a view of one. They run
under ``np.errstate(all="ignore")``. A NaN that arithmetic makes or passes on is quiet; its payload and sign are those
of numpy, not of the hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Op:
    """One instruction.

    name       mnemonic without ``_e32``, ``_e64``, ``_dpp``; a VOPD half ``v_dual_x`` has its entry at ``v_x``
    dst, src   types in printed order, implicit ones last; ``src`` leaves out the old value that ``reads_dst`` adds
    apply      operands -> the result, or a tuple of results where ``dst`` has more than one
    clamped    what an integer instruction with ``clamp`` computes, where the encoding allows it
    reads_dst  ``apply`` takes the old value of the first result as its last operand
    options    keywords ``apply`` takes from the instruction's modifiers: ``byte_sel`` (int), ``signed`` (pair of bool,
               the printed ``neg_lo`` of integer dot products), ``fi`` and ``bc`` (bool, ``op_sel`` 0 and 1 of
               ``v_permlane*``), ``saturate`` (bool, the mode bit FP16_OVFL)
    whole      the result goes to every lane whatever EXEC says (``v_writelane_b32``)
    """

    name: str
    dst: tuple[str, ...]
    src: tuple[str, ...]
    apply: Callable[..., Any]
    clamped: Callable[..., Any] | None = None
    reads_dst: bool = False
    options: tuple[str, ...] = ()
    whole: bool = False


def op(
    name: str,
    signature: str,
    apply: Callable[..., Any],
    clamped: Callable[..., Any] | None = None,
    options: tuple[str, ...] = (),
    whole: bool = False,
) -> Op:
    """The entry of ``name`` with a signature as the module describes it."""
    dst, src = (tuple(side.split()) for side in signature.split("="))
    reads = src[-1:] == ("old",)
    return Op(name, dst, src[:-1] if reads else src, apply, clamped, reads, options, whole)


def table(entries: Iterable[Op]) -> Mapping[str, Op]:
    """Entries by name; ValueError for a name given twice."""
    found: dict[str, Op] = {}
    for entry in entries:
        if entry.name in found:
            raise ValueError(f"{entry.name} has two entries in the instruction table")
        found[entry.name] = entry
    return MappingProxyType(found)
