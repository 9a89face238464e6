"""Scalar instructions of two operands (SOP2) and with a 16-bit constant (SOPK)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from solbench.gfx12.floats import f32_to_f16_rtz, fma_f16, fma_f32, max_num, maximum, min_num, minimum
from solbench.gfx12.integers import (
    I32,
    I64,
    U32,
    U64,
    Array,
    field,
    mul_hi_i32,
    mul_hi_u32,
    signed_field,
    wide,
)
from solbench.gfx12.op import Op, op, table
from solbench.gfx12.sop1 import with_scc


def _add_i32(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def _sub_i32(a: Array, b: Array) -> tuple[Array, Array]:
    rest = a - b
    return rest, ((a ^ b) & (a ^ rest)) < 0


def _add_carry(a: Array, b: Array, scc: Array) -> tuple[Array, Array]:
    total = a.astype(U64) + b.astype(U64) + np.asarray(scc).astype(U64)
    return total.astype(U32), total > U64(0xFFFFFFFF)


def _sub_borrow(a: Array, b: Array, scc: Array) -> tuple[Array, Array]:
    rest = wide(a) - wide(b) - np.asarray(scc).astype(I64)
    return rest.astype(U32), rest < 0


def _absdiff(a: Array, b: Array) -> Array:
    return np.abs(a - b)


def _shift_add(count: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    def apply(a: Array, b: Array) -> tuple[Array, Array]:
        total = (a.astype(U64) << U64(count)) + b.astype(U64)
        return total.astype(U32), total > U64(0xFFFFFFFF)

    return apply


def _bfm(dtype: type) -> Callable[[Array, Array], Array]:
    top = U32(8 * np.dtype(dtype).itemsize - 1)
    return lambda width, offset: ((dtype(1) << (width & top).astype(dtype)) - dtype(1)) << (offset & top).astype(dtype)


def pack(low: Array, high: Array) -> Array:
    """Two 16-bit patterns (uint32 or uint16) in one uint32."""
    return (low & U32(0xFFFF)) | (high.astype(U32) << U32(16))


def pack_rtz(a: Array, b: Array) -> Array:
    """Two float32 to a pair of float16, towards zero."""
    return np.stack(np.broadcast_arrays(f32_to_f16_rtz(a), f32_to_f16_rtz(b)), axis=-1)


# Operations on bits that set SCC where the result is not zero, by the part of the name before the size.
_LOGIC: dict[str, Callable[[Array, Array], Array]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
    "and_not1": lambda a, b: a & ~b,
    "or_not1": lambda a, b: a | ~b,
}


def _by_size() -> Iterator[Op]:
    for size, unsigned, signed in ((32, U32, I32), (64, U64, I64)):
        b, u, i = f"b{size}", f"u{size}", f"i{size}"
        top = U32(size - 1)

        def left(a: Array, n: Array, top: Any = top, dtype: type = unsigned) -> Array:
            return a << (n & top).astype(dtype)

        def right(a: Array, n: Array, top: Any = top, dtype: type = unsigned) -> Array:
            return a >> (n & top).astype(dtype)

        def arithmetic(a: Array, n: Array, top: Any = top, dtype: type = signed) -> Array:
            return a >> (n & top).astype(dtype)

        def unsigned_bits(a: Array, n: Array, top: Any = top) -> Array:
            return field(a, n & top, (n >> U32(16)) & U32(127))

        def signed_bits(a: Array, n: Array, top: Any = top) -> Array:
            return signed_field(a, n & top, (n >> U32(16)) & U32(127))

        yield op(f"s_lshl_{b}", f"{b} scc = {b} u32", with_scc(left))
        yield op(f"s_lshr_{b}", f"{b} scc = {b} u32", with_scc(right))
        yield op(f"s_ashr_{i}", f"{i} scc = {i} u32", with_scc(arithmetic))
        yield op(f"s_bfe_{u}", f"{u} scc = {u} u32", with_scc(unsigned_bits))
        yield op(f"s_bfe_{i}", f"{i} scc = {i} u32", with_scc(signed_bits))
        yield op(f"s_bfm_{b}", f"{b} = u32 u32", _bfm(unsigned))
        yield op(f"s_cselect_{b}", f"{b} = {b} {b} scc", lambda a, b, scc: np.where(scc, a, b))
        for name, function in _LOGIC.items():
            yield op(f"s_{name}_{b}", f"{b} scc = {b} {b}", with_scc(function))


def _floats() -> Iterator[Op]:
    for f in ("f32", "f16"):
        yield op(f"s_add_{f}", f"{f} = {f} {f}", np.add)
        yield op(f"s_sub_{f}", f"{f} = {f} {f}", np.subtract)
        yield op(f"s_mul_{f}", f"{f} = {f} {f}", np.multiply)
        yield op(f"s_min_num_{f}", f"{f} = {f} {f}", min_num)
        yield op(f"s_max_num_{f}", f"{f} = {f} {f}", max_num)
        yield op(f"s_minimum_{f}", f"{f} = {f} {f}", minimum)
        yield op(f"s_maximum_{f}", f"{f} = {f} {f}", maximum)


SOP2 = table(
    [
        op("s_add_co_u32", "u32 scc = u32 u32", lambda a, b: _add_carry(a, b, U32(0))),
        op("s_sub_co_u32", "u32 scc = u32 u32", lambda a, b: (a - b, b > a)),
        op("s_add_co_i32", "i32 scc = i32 i32", _add_i32),
        op("s_sub_co_i32", "i32 scc = i32 i32", _sub_i32),
        op("s_add_co_ci_u32", "u32 scc = u32 u32 scc", _add_carry),
        op("s_sub_co_ci_u32", "u32 scc = u32 u32 scc", _sub_borrow),
        op("s_absdiff_i32", "i32 scc = i32 i32", with_scc(_absdiff)),
        *_by_size(),
        *(op(f"s_lshl{count}_add_u32", "u32 scc = u32 u32", _shift_add(count)) for count in (1, 2, 3, 4)),
        op("s_min_i32", "i32 scc = i32 i32", lambda a, b: (np.minimum(a, b), a < b)),
        op("s_min_u32", "u32 scc = u32 u32", lambda a, b: (np.minimum(a, b), a < b)),
        op("s_max_i32", "i32 scc = i32 i32", lambda a, b: (np.maximum(a, b), a >= b)),
        op("s_max_u32", "u32 scc = u32 u32", lambda a, b: (np.maximum(a, b), a >= b)),
        op("s_mul_i32", "i32 = i32 i32", np.multiply),
        op("s_mul_hi_u32", "u32 = u32 u32", mul_hi_u32),
        op("s_mul_hi_i32", "i32 = i32 i32", mul_hi_i32),
        op("s_mul_u64", "u64 = u64 u64", np.multiply),
        op("s_add_nc_u64", "u64 = u64 u64", np.add),
        op("s_sub_nc_u64", "u64 = u64 u64", np.subtract),
        op("s_pack_ll_b32_b16", "b32 = b32 b32", pack),
        op("s_pack_lh_b32_b16", "b32 = b32 b32", lambda a, b: pack(a, b >> U32(16))),
        op("s_pack_hh_b32_b16", "b32 = b32 b32", lambda a, b: pack(a >> U32(16), b >> U32(16))),
        op("s_pack_hl_b32_b16", "b32 = b32 b32", lambda a, b: pack(a >> U32(16), b)),
        *_floats(),
        op("s_fmaak_f32", "f32 = f32 f32 f32", fma_f32),
        op("s_fmamk_f32", "f32 = f32 f32 f32", fma_f32),
        op("s_fmac_f32", "f32 = f32 f32 old", fma_f32),
        op("s_fmac_f16", "f16 = f16 f16 old", fma_f16),
        op("s_cvt_pk_rtz_f16_f32", "b32 = f32 f32", lambda a, b: pack_rtz(a, b).view(U32)[..., 0]),
    ]
)

SOPK = table(
    [
        op("s_movk_i32", "i32 = imm16", lambda k: np.asarray(k).astype(I32)),
        op("s_cmovk_i32", "i32 = imm16 scc old", lambda k, scc, old: np.where(scc, np.asarray(k).astype(I32), old)),
        op("s_addk_co_i32", "i32 scc = imm16 old", lambda k, old: _add_i32(old, np.asarray(k).astype(I32))),
        op("s_mulk_i32", "i32 = imm16 old", lambda k, old: old * np.asarray(k).astype(I32)),
    ]
)
