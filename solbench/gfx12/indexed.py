"""Moves between registers whose numbers M0 shifts: ``v_movrel*``, ``v_swaprel_b32``, ``s_movrel*``.

"RDNA4 Instruction Set Architecture Reference Guide", VOP1 and SOP1. A number past the registers of the program ends the
run: what the hardware does then is not emulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from solbench.gfx12.access import scalar_reader, vector_reader
from solbench.gfx12.marks import CLEAN
from solbench.gfx12.operands import M0, VCC, Modifiers, Operand, Unreadable, parse
from solbench.gfx12.program import Instruction
from solbench.gfx12.results import scalar_writer, vector_writer
from solbench.gfx12.state import State, Step, Unsupported

# What is added to the source's number and to the destination's: nothing, M0, or its bits 9:0 and 25:16.
_SHIFTS: Final = {
    "v_movrels_b32": ("all", ""),
    "v_movreld_b32": ("", "all"),
    "v_movrelsd_b32": ("all", "all"),
    "v_movrelsd_2_b32": ("low", "high"),
    "v_swaprel_b32": ("low", "high"),
    "s_movrels_b32": ("all", ""),
    "s_movrels_b64": ("all", ""),
    "s_movreld_b32": ("", "all"),
    "s_movreld_b64": ("", "all"),
    "s_movrelsd_2_b32": ("low", "high"),
}


def build(held: Instruction, name: str, texts: Sequence[str]) -> Step | None:
    """The step; None for any other instruction. Waves of different M0 run one after another."""
    if name not in _SHIFTS:
        return None
    destination, source = parse(texts[0]), parse(texts[1])
    if destination.kind != name[0] or (_SHIFTS[name][0] and source.kind != name[0]):
        raise Unreadable(", ".join(texts))

    def step(m: State) -> None:
        shifts = m.rows[0][M0]
        shifts = shifts if m.selected is None else shifts[m.selected]
        first = int(shifts[0])
        if (shifts == first).all():
            _move(m, held, name, destination, source, first)
            return
        before, count, numbers = m.selected, m.count, m.numbers()
        for shift in np.unique(shifts):
            some = numbers[shifts == shift]
            m.select(some, len(some))
            _move(m, held, name, destination, source, int(shift))
        m.select(before, count)

    return step


def _move(m: State, held: Instruction, name: str, destination: Operand, source: Operand, shift: int) -> None:
    parts = {"": 0, "all": shift, "low": shift & 0x3FF, "high": shift >> 16 & 0x3FF}
    source, destination = (
        _at(m, operand, parts[part]) for operand, part in zip((source, destination), _SHIFTS[name], strict=True)
    )
    kind = name[-3:]
    read: list[tuple[str, int]] = [
        (operand.kind, operand.register + word)
        for operand in ((source, destination) if "swap" in name else (source,))
        if operand.kind in ("v", "s")
        for word in range(operand.count)
    ]
    if m.waits is not None:
        m.waits.check(m, held, tuple(read), tuple(f"{register}{number}" for register, number in read))
    pairs = [(source, destination), (destination, source)] if "swap" in name else [(source, destination)]
    values = [_read(m, operand, kind, name[0] == "v") for operand, _ in pairs]
    marks = [[_marks(m, operand, word) for word in range(operand.count)] for operand, _ in pairs]
    for (_, target), value, found in zip(pairs, values, marks, strict=True):
        if target.kind == "v":
            vector_writer(target, kind)(m, value)
        else:
            scalar_writer(target, kind)(m, value)
        if m.defined is not None:
            lanes = None if m.full or target.kind == "s" else m.mask
            for word in range(target.count):
                m.defined.put(m, target.kind, target.register + word, found[word], lanes)
    # A matrix instruction must not take what it held before for this register.
    m.tiles.clear()


def _at(m: State, operand: Operand, shift: int) -> Operand:
    """The operand with its number shifted."""
    if not shift:
        return operand
    moved = replace(operand, register=operand.register + shift)
    if moved.register + moved.count > (len(m.lanes[0]) if moved.kind == "v" else VCC):
        raise Unsupported(f"register {moved.kind}{moved.register} by M0 = {shift}: the program has none of that number")
    return moved


def _read(m: State, operand: Operand, kind: str, lanes: bool) -> Any:
    """The value, a copy: what is written next may be the same register."""
    reader = vector_reader(operand, kind, 0, Modifiers()) if lanes else scalar_reader(operand, kind)
    return np.array(reader(m))


def _marks(m: State, operand: Operand, word: int) -> Any:
    if m.defined is None or operand.kind not in ("v", "s"):
        return CLEAN
    return np.array(m.defined.value(m, operand.kind, operand.register + word))
