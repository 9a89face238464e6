"""Vector instructions of two operands (VOP2), and those of VOPD halves that are nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from solbench.gfx12.dots import dot2_f32_bf16, dot2_f32_f16
from solbench.gfx12.floats import fma_f16, fma_f32, ldexp, max_num, min_num
from solbench.gfx12.integers import (
    F32,
    I32,
    I64,
    U32,
    Array,
    i24,
    mul_hi_i32,
    mul_hi_u32,
    saturate,
    u24,
    wide,
)
from solbench.gfx12.op import Op, op, table
from solbench.gfx12.sop2 import pack_rtz


def limited(function: Callable[..., Array], dtype: type) -> Callable[..., Array]:
    """The saturating form of integer arithmetic: ``function`` of the operands as int64, limited to ``dtype``."""
    return lambda *operands: saturate(function(*(wide(x) for x in operands)), dtype)


def reverse_operands(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """``function`` with its two operands exchanged (the ``rev`` instructions)."""
    return lambda a, b: function(b, a)


def mul_dx9(a: Array, b: Array) -> Array:
    """``a * b`` where zero times anything is +0."""
    return np.where((a == 0) | (b == 0), F32(0), a * b)


def select(a: Array, b: Array, mask: Array) -> Array:
    """``b`` where ``mask``, else ``a``."""
    return np.where(mask, b, a)


def _carry(total: Array) -> tuple[Array, Array]:
    return total.astype(U32), (total >> I64(32)) != 0


def add_carry(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """Sum of two uint32 and a carry, and the carry out."""
    return _carry(wide(a) + wide(b) + np.asarray(carry).astype(I64))


def sub_borrow(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    """``a - b - borrow`` of uint32, and the borrow out."""
    return _carry(wide(a) - wide(b) - np.asarray(borrow).astype(I64))


def saturated_carry(function: Callable[..., tuple[Array, Array]], limit: int) -> Callable[..., tuple[Array, Array]]:
    """Carry arithmetic whose result is ``limit`` where it carries."""

    def apply(*operands: Array) -> tuple[Array, Array]:
        result, carry = function(*operands)
        return np.where(carry, U32(limit), result), carry

    return apply


def _rev_borrow(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    return sub_borrow(b, a, borrow)


def shift_left(n: Array, x: Array) -> Array:
    """``x`` shifted left by the low bits of ``n``, both of one unsigned dtype."""
    dtype = np.asarray(x).dtype.type
    return x << (np.asarray(n).astype(dtype) & dtype(8 * np.dtype(dtype).itemsize - 1))


def shift_right(n: Array, x: Array) -> Array:
    """``x`` shifted right by the low bits of ``n``, with its sign if it is of a signed dtype."""
    dtype = np.asarray(x).dtype.type
    return x >> (np.asarray(n).astype(dtype) & dtype(8 * np.dtype(dtype).itemsize - 1))


def _floats() -> Iterator[Op]:
    for f in ("f16", "f32", "f64"):
        yield op(f"v_add_{f}", f"{f} = {f} {f}", np.add)
        yield op(f"v_mul_{f}", f"{f} = {f} {f}", np.multiply)
        yield op(f"v_min_num_{f}", f"{f} = {f} {f}", min_num)
        yield op(f"v_max_num_{f}", f"{f} = {f} {f}", max_num)
        if f != "f64":
            yield op(f"v_sub_{f}", f"{f} = {f} {f}", np.subtract)
            yield op(f"v_subrev_{f}", f"{f} = {f} {f}", reverse_operands(np.subtract))
    for f, fma in (("f16", fma_f16), ("f32", fma_f32)):
        yield op(f"v_fmac_{f}", f"{f} = {f} {f} old", fma)
        # Printed order: the constant of fmamk is the second factor, that of fmaak the addend.
        yield op(f"v_fmamk_{f}", f"{f} = {f} {f} {f}", fma)
        yield op(f"v_fmaak_{f}", f"{f} = {f} {f} {f}", fma)


def _mul_i24(a: Array, b: Array) -> Array:
    return i24(a) * i24(b)


def _mul_u24(a: Array, b: Array) -> Array:
    return u24(a) * u24(b)


VOP2 = table([
    op("v_cndmask_b32", "b32 = b32 b32 mask", select),
    *_floats(),
    op("v_mul_dx9_zero_f32", "f32 = f32 f32", mul_dx9),
    op("v_mul_i32_i24", "i32 = i32 i32", _mul_i24, lambda a, b: saturate(wide(i24(a)) * wide(i24(b)), I32)),
    op("v_mul_hi_i32_i24", "i32 = i32 i32", lambda a, b: mul_hi_i32(i24(a), i24(b))),
    op("v_mul_u32_u24", "u32 = u32 u32", _mul_u24, lambda a, b: saturate(wide(u24(a)) * wide(u24(b)), U32)),
    op("v_mul_hi_u32_u24", "u32 = u32 u32", lambda a, b: mul_hi_u32(u24(a), u24(b))),
    op("v_min_i32", "i32 = i32 i32", np.minimum),
    op("v_max_i32", "i32 = i32 i32", np.maximum),
    op("v_min_u32", "u32 = u32 u32", np.minimum),
    op("v_max_u32", "u32 = u32 u32", np.maximum),
    op("v_lshlrev_b32", "b32 = u32 b32", shift_left),
    op("v_lshrrev_b32", "b32 = u32 b32", shift_right),
    op("v_ashrrev_i32", "i32 = u32 i32", shift_right),
    op("v_lshlrev_b64", "b64 = u32 b64", shift_left),
    op("v_and_b32", "b32 = b32 b32", np.bitwise_and),
    op("v_or_b32", "b32 = b32 b32", np.bitwise_or),
    op("v_xor_b32", "b32 = b32 b32", np.bitwise_xor),
    op("v_xnor_b32", "b32 = b32 b32", lambda a, b: ~(a ^ b)),
    op("v_add_co_ci_u32", "u32 mask = u32 u32 mask", add_carry, saturated_carry(add_carry, 0xFFFFFFFF)),
    op("v_sub_co_ci_u32", "u32 mask = u32 u32 mask", sub_borrow, saturated_carry(sub_borrow, 0)),
    op("v_subrev_co_ci_u32", "u32 mask = u32 u32 mask", _rev_borrow, saturated_carry(_rev_borrow, 0)),
    op("v_add_nc_u32", "u32 = u32 u32", np.add, limited(np.add, U32)),
    op("v_sub_nc_u32", "u32 = u32 u32", np.subtract, limited(np.subtract, U32)),
    op("v_subrev_nc_u32", "u32 = u32 u32", reverse_operands(np.subtract),
       limited(reverse_operands(np.subtract), U32)),
    op("v_cvt_pk_rtz_f16_f32", "2xf16 = f32 f32", pack_rtz),
    op("v_ldexp_f16", "f16 = f16 i16", ldexp),
    op("v_pk_fmac_f16", "2xf16 = 2xf16 2xf16 old", fma_f16),
    op("v_dot2acc_f32_f16", "f32 = 2xf16 2xf16 old", dot2_f32_f16),
    op("v_dot2acc_f32_bf16", "f32 = 2xbf16 2xbf16 old", dot2_f32_bf16),
])  # fmt: skip
