"""Scalar instructions of one operand (SOP1): moves, counts, EXEC with save, conversions and rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from solbench.gfx12.floats import round_even, to_integer
from solbench.gfx12.integers import (
    F16,
    F32,
    I8,
    I16,
    I32,
    U16,
    U32,
    U64,
    Array,
    cls,
    clz,
    ctz,
    popcount,
    reverse,
)
from solbench.gfx12.op import Op, op, table


def with_scc(function: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    """``function`` with SCC = "the result is not zero" as second result."""

    def both(*operands: Any) -> tuple[Array, Array]:
        result = function(*operands)
        return result, np.asarray(result) != 0

    return both


def same(x: Array) -> Array:
    """The operand itself."""
    return x


def _bitset(dtype: type, one: bool) -> Callable[[Array, Array], Array]:
    width = dtype(8 * np.dtype(dtype).itemsize - 1)

    def apply(position: Array, old: Array) -> Array:
        bit = dtype(1) << (np.asarray(position).astype(dtype) & width)
        return old | bit if one else old & ~bit

    return apply


def _bitreplicate(x: Array) -> Array:
    wide = np.asarray(x).astype(U64)
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333), (1, 0x5555555555555555),
    ):  # fmt: skip
        wide = (wide | (wide << U64(shift))) & U64(mask)
    return wide | (wide << U64(1))


def _any_of_four(x: Array) -> Array:
    """Bit 4 * i set where one of the bits 4 * i to 4 * i + 3 is."""
    dtype = np.asarray(x).dtype.type
    x = x | (x >> dtype(1))
    x = x | (x >> dtype(2))
    return x & dtype(0x1111111111111111 & int(np.iinfo(dtype).max))


def _quadmask(x: Array) -> Array:
    x = _any_of_four(x)
    dtype = x.dtype.type
    for shift, mask in ((3, 0x0303030303030303), (6, 0x000F000F000F000F), (12, 0x000000FF000000FF), (24, 0xFFFF)):
        x = (x | (x >> dtype(shift))) & dtype(mask & int(np.iinfo(dtype).max))
    return x


def _whole_quad(x: Array) -> Array:
    return _any_of_four(x) * np.asarray(x).dtype.type(15)


# What the saveexec and wrexec instructions make of the operand and EXEC.
_EXEC: dict[str, Callable[[Array, Array], Array]] = {
    "and": lambda s, e: s & e,
    "or": lambda s, e: s | e,
    "xor": lambda s, e: s ^ e,
    "nand": lambda s, e: ~(s & e),
    "nor": lambda s, e: ~(s | e),
    "xnor": lambda s, e: ~(s ^ e),
    "and_not0": lambda s, e: ~s & e,
    "or_not0": lambda s, e: ~s | e,
    "and_not1": lambda s, e: s & ~e,
    "or_not1": lambda s, e: s | ~e,
}


def _saveexec(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], tuple[Array, Array, Array]]:
    def apply(s: Array, execute: Array) -> tuple[Array, Array, Array]:
        new = function(s, execute)
        return execute, new, np.asarray(new) != 0

    return apply


def _wrexec(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], tuple[Array, Array, Array]]:
    def apply(s: Array, execute: Array) -> tuple[Array, Array, Array]:
        new = function(s, execute)
        return new, new, np.asarray(new) != 0

    return apply


def _by_size() -> Iterator[Op]:
    for size, dtype in ((32, U32), (64, U64)):
        b, u = f"b{size}", f"u{size}"
        yield op(f"s_mov_{b}", f"{b} = {b}", same)
        yield op(f"s_cmov_{b}", f"{b} = {b} scc old", lambda s, scc, old: np.where(scc, s, old))
        yield op(f"s_brev_{b}", f"{b} = {b}", reverse)
        yield op(f"s_ctz_i32_{b}", f"i32 = {b}", ctz)
        yield op(f"s_clz_i32_{u}", f"i32 = {u}", clz)
        yield op(f"s_bitset0_{b}", f"{b} = u32 old", _bitset(dtype, False))
        yield op(f"s_bitset1_{b}", f"{b} = u32 old", _bitset(dtype, True))
        yield op(f"s_bcnt0_i32_{b}", f"i32 scc = {b}", with_scc(lambda s: popcount(~s)))
        yield op(f"s_bcnt1_i32_{b}", f"i32 scc = {b}", with_scc(popcount))
        yield op(f"s_quadmask_{b}", f"{b} scc = {b}", with_scc(_quadmask))
        yield op(f"s_wqm_{b}", f"{b} scc = {b}", with_scc(_whole_quad))
        yield op(f"s_not_{b}", f"{b} scc = {b}", with_scc(np.invert))
        for name, function in _EXEC.items():
            yield op(f"s_{name}_saveexec_{b}", f"{b} exec scc = {b} exec", _saveexec(function))
        for name in ("and_not0", "and_not1"):
            yield op(f"s_{name}_wrexec_{b}", f"{b} exec scc = {b} exec", _wrexec(_EXEC[name]))


def _floats() -> Iterator[Op]:
    for f in ("f32", "f16"):
        yield op(f"s_ceil_{f}", f"{f} = {f}", np.ceil)
        yield op(f"s_floor_{f}", f"{f} = {f}", np.floor)
        yield op(f"s_trunc_{f}", f"{f} = {f}", np.trunc)
        yield op(f"s_rndne_{f}", f"{f} = {f}", round_even)


SOP1 = table(
    [
        *_by_size(),
        op("s_cls_i32", "i32 = i32", cls),
        op("s_cls_i32_i64", "i32 = i64", cls),
        op("s_sext_i32_i8", "i32 = i32", lambda s: s.astype(I8).astype(I32)),
        op("s_sext_i32_i16", "i32 = i32", lambda s: s.astype(I16).astype(I32)),
        op("s_bitreplicate_b64_b32", "b64 = b32", _bitreplicate),
        op("s_abs_i32", "i32 scc = i32", with_scc(np.abs)),
        *_floats(),
        op("s_cvt_f32_i32", "f32 = i32", lambda s: s.astype(F32)),
        op("s_cvt_f32_u32", "f32 = u32", lambda s: s.astype(F32)),
        op("s_cvt_i32_f32", "i32 = f32", lambda s: to_integer(s, I32)),
        op("s_cvt_u32_f32", "u32 = f32", lambda s: to_integer(s, U32)),
        op("s_cvt_f16_f32", "f16 = f32", lambda s: s.astype(F16)),
        op("s_cvt_f32_f16", "f32 = f16", lambda s: s.astype(F32)),
        op("s_cvt_hi_f32_f16", "f32 = b32", lambda s: (s >> U32(16)).astype(U16).view(F16).astype(F32)),
    ]
)
