"""Writers of results: what an instruction's text names, changed for the selected waves.

A writer takes the :class:`~solbench.gfx12.state.State` and an array of the type that the instruction table names; of
vector registers it changes the lanes that EXEC has on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from solbench.gfx12.access import width
from solbench.gfx12.integers import Array
from solbench.gfx12.operands import EXEC, NULL, Operand, Unreadable
from solbench.gfx12.state import HALF, LANES, SLOT, State, bits_of

Writer = Callable[[State, Any], None]


def scalar_writer(operand: Operand, kind: str) -> Writer:
    """The register of a scalar result; EXEC takes effect at once."""
    if operand.kind != "s":
        raise Unreadable(operand.text)
    register, bits = operand.register, width(kind)
    if register == NULL:
        return lambda m, value: None
    words = max(1, bits // 32)
    touches_exec = register <= EXEC < register + words

    def write(m: State, value: Any) -> None:
        here = slice(None) if m.selected is None else m.selected
        if words == 1:
            value = np.asarray(value)
            m.rows[0][register][here] = value if bits == 16 else value.view(np.uint32)
        else:
            joined = np.ascontiguousarray(np.broadcast_to(value, (m.count,))).view(np.uint32).reshape(m.count, 2)
            m.rows[0][register][here] = joined[:, 0]
            m.rows[0][register + 1][here] = joined[:, 1]
        if touches_exec:
            m.exec_changed()

    if bits != 16:
        return write

    def narrow(m: State, value: Any) -> None:
        write(m, np.asarray(value).view(np.uint16))

    return narrow


def scc_writer(m: State, value: Any) -> None:
    """The scalar condition code, bool a wave."""
    m.scc[slice(None) if m.selected is None else m.selected] = value


# ---- vector instructions


def vector_writer(operand: Operand, kind: str, whole: bool = False) -> Writer:
    """The registers of a vector result; ``whole``: whatever EXEC says."""
    if kind in ("mask", "vcc"):
        return mask_writer(operand.register)
    if operand.kind == "s":
        return _first_lane(scalar_writer(operand, kind))
    if operand.kind != "v":
        raise Unreadable(operand.text)
    register, bits = operand.register, width(kind)
    if kind.startswith("2x") and bits == 16:
        return _store(_at("halves", HALF[kind[2:]], register), whole, 3)
    if kind == "2xf32":
        return _words([_store(_at("lanes", 2, register + n), whole) for n in range(2)])
    if bits == 128:
        return _words([_store(_at("lanes", 0, register + n), whole) for n in range(4)])
    if bits == 64:
        low, high = (_store(_at("lanes", 0, register + n), whole) for n in range(2))

        def wide(m: State, value: Any) -> None:
            joined = np.ascontiguousarray(value).view(np.uint32).reshape(*value.shape, 2)
            low(m, joined[..., 0])
            high(m, joined[..., 1])

        return wide
    if bits == 16:
        slot, half = HALF[kind], operand.half or 0
        return _store(lambda m: m.halves[slot][register][..., half], whole)
    return _lane_writer(register, SLOT[kind], whole)


def _at(name: str, slot: int, register: int) -> Callable[[State], Array]:
    return lambda m: getattr(m, name)[slot][register]


def _words(stores: Sequence[Writer]) -> Writer:
    def write(m: State, value: Any) -> None:
        for number, store in enumerate(stores):
            store(m, value[..., number])

    return write


def _lane_writer(register: int, slot: int, whole: bool) -> Writer:
    """The common case, without a call more."""

    def write(m: State, value: Any) -> None:
        held = m.lanes[slot][register]
        if m.selected is None:
            if m.full or whole:
                held[...] = value
            else:
                np.copyto(held, value, where=m.mask)
        elif m.full or whole:
            held[m.selected] = value
        else:
            part = held[m.selected]
            np.copyto(part, value, where=m.mask)
            held[m.selected] = part

    return write


def _store(at: Callable[[State], Array], whole: bool, axes: int = 2) -> Writer:
    def write(m: State, value: Any) -> None:
        held = at(m)
        if m.full or whole:
            held[slice(None) if m.selected is None else m.selected] = value
            return
        mask = m.mask if axes == 2 else m.mask[..., None]
        if m.selected is None:
            np.copyto(held, value, where=mask)
            return
        part = held[m.selected]
        np.copyto(part, value, where=mask)
        held[m.selected] = part

    return write


def block_writer(operand: Operand, words: int) -> Writer:
    """``words`` registers from uint32 (waves, 32, words), whole waves."""
    if operand.kind != "v" or operand.count != words:
        raise Unreadable(operand.text)
    first = operand.register

    def write(m: State, value: Any) -> None:
        if m.selected is None:
            m.vectors[first : first + words] = value.transpose(2, 0, 1)
        else:
            m.vectors[first : first + words, m.selected] = value.transpose(2, 0, 1)

    return write


def mask_writer(register: int) -> Writer:
    """Bits of bool (waves, 32) into a scalar register, 0 for lanes that are off."""

    def write(m: State, value: Any) -> None:
        if register == NULL:
            return
        if not m.full:
            value = value & m.mask
        elif value.shape != (m.count, LANES):
            value = np.broadcast_to(value, (m.count, LANES))
        m.rows[0][register][slice(None) if m.selected is None else m.selected] = bits_of(value)
        if register == EXEC:
            m.exec_changed()

    return write


def _first_lane(write: Writer) -> Writer:
    return lambda m, value: write(m, np.asarray(value)[..., 0] if np.ndim(value) else value)
