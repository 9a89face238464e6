"""Readers of operands: what an instruction's text names, as arrays of its types.

A reader takes the :class:`~solbench.gfx12.state.State` and returns an array of the type that the instruction table
names, (waves, 32) or (waves, 1) in vector instructions and (waves,) in scalar ones; it may be a view of a register.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from solbench.gfx12.integers import Array
from solbench.gfx12.operands import EXEC, NULL, VCC, Modifiers, Operand, Unreadable, constant_bits
from solbench.gfx12.state import HALF, LANES, SLOT, State

Reader = Callable[[State], Any]
_UINT: dict[int, Any] = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_DTYPES: dict[str, Any] = {
    "b16": np.uint16, "u16": np.uint16, "bf16": np.uint16, "i16": np.int16, "f16": np.float16, "imm16": np.int16,
    "b32": np.uint32, "u32": np.uint32, "i32": np.int32, "f32": np.float32, "mix": np.float32,
    "b64": np.uint64, "u64": np.uint64, "i64": np.int64, "f64": np.float64, "exec": np.uint32,
}  # fmt: skip


@lru_cache
def width(kind: str) -> int:
    """Bits of one element of a type."""
    return int("".join(c for c in kind.removeprefix("2x") if c.isdigit()) or 32)


def constant(operand: Operand, kind: str) -> Array:
    """A constant as a scalar array of the type."""
    bits = constant_bits(operand, width(kind), kind.startswith("f"), kind.startswith("i"), kind == "bf16")
    return np.array(bits, _UINT[width(kind)]).view(_DTYPES[kind])


# ---- vector instructions


def vector_reader(operand: Operand, kind: str, place: int, modifiers: Modifiers) -> Reader:
    """Source ``place`` of a vector instruction; signs of floating operands as the text has them."""
    if kind == "mask":
        return mask_reader(operand)
    if kind == "mix":
        return _mix_reader(operand, place, modifiers)
    if kind.startswith("2x"):
        return _pair_reader(operand, kind, place, modifiers)
    plain = _vector_plain(operand, kind)
    if not (operand.negated or operand.absolute):
        return plain
    return _signed(plain, operand.negated, operand.absolute, kind)


def _vector_plain(operand: Operand, kind: str) -> Reader:
    bits = width(kind)
    if operand.kind in ("number", "real"):
        value = constant(operand, kind).reshape(1, 1)
        value.flags.writeable = False
        return lambda m: value
    if operand.kind == "scc":
        return lambda m: (m.scc if m.selected is None else m.scc[m.selected])[:, None].astype(_DTYPES[kind])
    if operand.kind not in "vs":
        raise Unreadable(operand.text)
    register, vector = operand.register, operand.kind == "v"
    if bits == 64:
        return _wide_reader(operand)(kind)
    if kind == "b128":
        return block_reader(operand, 4)
    if bits == 16:
        slot, half = HALF[kind], operand.half or 0

        def halves(m: State) -> Any:
            held = (m.halves if vector else m.column_halves)[slot][register]
            return held[..., half] if m.selected is None else held[m.selected][..., half]

        return halves
    slot = SLOT[kind]
    if vector:

        def lanes(m: State) -> Any:
            held = m.lanes[slot][register]
            return held if m.selected is None else held[m.selected]

        return lanes
    if operand.register == NULL:
        zero = np.zeros((1, 1), _DTYPES[kind])
        return lambda m: zero

    def columns(m: State) -> Any:
        held = m.columns[slot][register]
        return held if m.selected is None else held[m.selected]

    return columns


def _wide_reader(operand: Operand) -> Callable[[str], Reader]:
    register, vector = operand.register, operand.kind == "v"

    def of(kind: str) -> Reader:
        dtype = _DTYPES[kind]

        def wide(m: State) -> Any:
            held = (m.lanes if vector else m.columns)[0]
            low, high = held[register], held[register + 1]
            if m.selected is not None:
                low, high = low[m.selected], high[m.selected]
            joined = np.empty((*low.shape, 2), np.uint32)
            joined[..., 0] = low
            joined[..., 1] = high
            return joined.view(dtype)[..., 0]

        return wide

    return of


def block_reader(operand: Operand, words: int) -> Reader:
    """``words`` vector registers as uint32 (waves, 32, words); a constant in every one of them."""
    if operand.kind in ("number", "real"):
        value = np.full((1, 1, words), constant(operand, "b32"))
        return lambda m: np.broadcast_to(value, (m.count, LANES, words))
    if operand.kind != "v" or operand.count != words:
        raise Unreadable(operand.text)
    first = operand.register

    def block(m: State) -> Any:
        if m.selected is None:
            return m.vectors[first : first + words].transpose(1, 2, 0)
        return m.vectors[first : first + words, m.selected].transpose(1, 2, 0)

    return block


def _pair_reader(operand: Operand, kind: str, place: int, modifiers: Modifiers) -> Reader:
    """Two packed elements; ``op_sel`` and ``op_sel_hi`` choose the half of each, ``neg_lo`` and ``neg_hi`` its sign."""
    element = kind[2:]
    low, high = _one(modifiers, "op_sel", place, 0), _one(modifiers, "op_sel_hi", place, 1)
    if element == "f32":
        read: Reader = _pair_of_words(operand)
    elif operand.kind in ("number", "real"):
        bits = constant_bits(operand, 16 if operand.kind == "real" else 32, False, False, element == "bf16")
        value = np.array([bits & 0xFFFF, bits >> 16], np.uint16).view(_DTYPES[element])[[low, high]].reshape(1, 1, 2)
        read = lambda m: value  # noqa: E731
    elif operand.kind in "vs":
        slot, register, vector = HALF[element], operand.register, operand.kind == "v"
        straight = (low, high) == (0, 1)

        def pair(m: State) -> Any:
            held = (m.halves if vector else m.column_halves)[slot][register]
            if m.selected is not None:
                held = held[m.selected]
            return held if straight else held[..., [low, high]]

        read = pair
    else:
        raise Unreadable(operand.text)
    signs = (_one(modifiers, "neg_lo", place, 0), _one(modifiers, "neg_hi", place, 0))
    if signs == (0, 0) or element not in ("f16", "bf16", "f32"):
        return read
    flip = np.array(signs, _UINT[width(element)]) << (width(element) - 1)
    dtype = _DTYPES[element]
    return lambda m: (np.ascontiguousarray(read(m)).view(flip.dtype) ^ flip).view(dtype)


def _pair_of_words(operand: Operand) -> Reader:
    if operand.kind in ("number", "real"):
        value = np.full((1, 1, 2), constant(operand, "f32"))
        return lambda m: value
    register, vector = operand.register, operand.kind == "v"

    def pair(m: State) -> Any:
        held = (m.lanes if vector else m.columns)[2]
        found = np.stack((held[register], held[register + 1]), -1)
        return found if m.selected is None else found[m.selected]

    return pair


def _mix_reader(operand: Operand, place: int, modifiers: Modifiers) -> Reader:
    """A source of ``v_fma_mix*``: ``op_sel_hi`` says whether it is a half, ``op_sel`` which one."""
    if _one(modifiers, "op_sel_hi", place, 0):
        half = _one(modifiers, "op_sel", place, 0)
        chosen = Operand(
            operand.kind, operand.register, operand.count, half, operand.value, operand.hexadecimal, text=operand.text
        )
        narrow = _vector_plain(chosen, "f16")
        plain: Reader = lambda m: narrow(m).astype(np.float32)  # noqa: E731
    else:
        plain = _vector_plain(operand, "f32")
    negated = operand.negated or bool(_one(modifiers, "neg_lo", place, 0))
    absolute = operand.absolute or bool(_one(modifiers, "neg_hi", place, 0))
    return _signed(plain, negated, absolute, "f32") if negated or absolute else plain


def _one(modifiers: Modifiers, name: str, place: int, default: int) -> int:
    listed = modifiers.bits(name, (default,) * 4)
    return listed[place]


def _signed(read: Reader, negated: bool, absolute: bool, kind: str) -> Reader:
    """Sign bits changed: the absolute value first."""
    dtype = _DTYPES[kind]
    if np.dtype(dtype).kind == "f":
        if negated and absolute:
            return lambda m: np.negative(np.abs(read(m)))
        return (lambda m: np.negative(read(m))) if negated else (lambda m: np.abs(read(m)))
    sign = dtype(1 << (width(kind) - 1)) if np.dtype(dtype).kind == "u" else None
    if sign is None:
        raise Unreadable(f"a sign on an operand of type {kind}")

    def signed(m: State) -> Any:
        value = read(m)
        if absolute:
            value = value & ~sign
        return value ^ sign if negated else value

    return signed


def mask_reader(operand: Operand) -> Reader:
    """A scalar register as one bool a lane."""
    if operand.kind in ("number",):
        bits = constant_bits(operand, 32, False, False)
        value = np.array([[bool(bits >> lane & 1) for lane in range(LANES)]])
        return lambda m: value
    if operand.kind != "s":
        raise Unreadable(operand.text)
    register = operand.register
    return lambda m: m.mask_of(register)


# ---- scalar instructions


def scalar_reader(operand: Operand, kind: str) -> Reader:
    """One value a wave."""
    if kind == "imm16":
        value16 = np.array(int(operand.value) & 0xFFFF, np.uint16).view(np.int16)
        return lambda m: value16
    if operand.kind in ("number", "real"):
        value = constant(operand, kind)
        return lambda m: value
    if operand.kind == "scc":
        return lambda m: (m.scc if m.selected is None else m.scc[m.selected]).astype(_DTYPES[kind])
    if operand.kind != "s":
        raise Unreadable(operand.text)
    register, bits = operand.register, width(kind)
    if register == NULL:
        zero = np.zeros(1, _DTYPES[kind])
        return lambda m: zero
    if bits == 64:
        wide = _wide_reader(operand)(kind)
        return lambda m: wide(m)[:, 0]
    if bits == 16:
        slot = HALF[kind]

        def halves(m: State) -> Any:
            held = m.column_halves[slot][register][:, 0, 0]
            return held if m.selected is None else held[m.selected]

        return halves
    slot = SLOT[kind]

    def rows(m: State) -> Any:
        held = m.rows[slot][register]
        return held if m.selected is None else held[m.selected]

    return rows


def scc_reader(m: State) -> Any:
    """The scalar condition code, bool a wave."""
    return m.scc if m.selected is None else m.scc[m.selected]


VCC_OPERAND = Operand("s", VCC)
EXEC_OPERAND = Operand("s", EXEC)
