"""Vector instructions of one operand (VOP1), and the transcendentals on scalars (``v_s_*``).

The instructions that index the register file by M0 (``v_movrel*``, ``v_swaprel_b32``) are the executor's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from solbench.gfx12 import floats
from solbench.gfx12.floats import fract, frexp_exp, frexp_mant, round_even, to_integer, to_norm
from solbench.gfx12.integers import (
    F16,
    F32,
    F64,
    I16,
    I32,
    U8,
    U16,
    U32,
    Array,
    bytes_of,
    cls,
    clz,
    ctz,
    reverse,
    saturate,
    wide,
)
from solbench.gfx12.narrow import select_byte, widen
from solbench.gfx12.op import Op, op, table
from solbench.gfx12.sop1 import same


def by_f64(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of float16 by way of float64: one rounding in all but cases closer than that to a midpoint."""
    return lambda x: function(np.asarray(x).astype(F64)).astype(F16)


def _ubyte(number: int) -> Callable[[Array], Array]:
    return lambda x: bytes_of(x)[number].astype(F32)


def _off_i4(x: Array) -> Array:
    """The low four bits as a signed number of sixteenths."""
    return (((x & U32(15)) ^ U32(8)).astype(I32) - I32(8)).astype(F32) / F32(16)


def _sat_pk_u8(x: Array) -> Array:
    limited = saturate(wide(x), U8).astype(U16)
    return limited[..., 0] | (limited[..., 1] << U16(8))


def _cvt_byte(kind: str) -> Callable[..., Array]:
    return lambda x, byte_sel=0: widen(select_byte(x, byte_sel), kind)


def _cvt_pair(kind: str) -> Callable[[Array], Array]:
    return lambda x: np.stack([widen(x, kind), widen(np.asarray(x) >> U16(8), kind)], axis=-1)


def _floats() -> Iterator[Op]:
    for f in ("f16", "f32", "f64"):
        yield op(f"v_trunc_{f}", f"{f} = {f}", np.trunc)
        yield op(f"v_ceil_{f}", f"{f} = {f}", np.ceil)
        yield op(f"v_rndne_{f}", f"{f} = {f}", round_even)
        yield op(f"v_floor_{f}", f"{f} = {f}", np.floor)
        yield op(f"v_fract_{f}", f"{f} = {f}", fract)
        yield op(f"v_frexp_mant_{f}", f"{f} = {f}", frexp_mant)


def _transcendentals() -> Iterator[Op]:
    for name, single, double in (
        ("exp", floats.exp2_f32, np.exp2),
        ("log", floats.log2_f32, np.log2),
        ("rcp", floats.rcp_f32, np.reciprocal),
        ("rsq", floats.rsq_f32, floats.rsq_f64),
        ("sqrt", floats.sqrt_f32, np.sqrt),
    ):
        for prefix in ("v_", "v_s_"):
            yield op(f"{prefix}{name}_f32", "f32 = f32", single)
            yield op(f"{prefix}{name}_f16", "f16 = f16", by_f64(double))
    for f in ("f16", "f32"):
        yield op(f"v_sin_{f}", f"{f} = {f}", floats.sin_turns)
        yield op(f"v_cos_{f}", f"{f} = {f}", floats.cos_turns)
    yield op("v_rcp_iflag_f32", "f32 = f32", floats.rcp_f32)
    yield op("v_rcp_f64", "f64 = f64", np.reciprocal)
    yield op("v_rsq_f64", "f64 = f64", floats.rsq_f64)
    yield op("v_sqrt_f64", "f64 = f64", np.sqrt)


VOP1 = table([
    op("v_mov_b32", "b32 = b32", same),
    op("v_mov_b16", "b16 = b16", same),
    op("v_swap_b32", "b32 b32 = b32 b32", lambda a, b: (b, a)),
    op("v_swap_b16", "b16 b16 = b16 b16", lambda a, b: (b, a)),
    op("v_not_b32", "b32 = b32", np.invert),
    op("v_not_b16", "b16 = b16", np.invert),
    op("v_bfrev_b32", "b32 = b32", reverse),
    op("v_clz_i32_u32", "i32 = u32", clz),
    op("v_ctz_i32_b32", "i32 = b32", ctz),
    op("v_cls_i32", "i32 = i32", cls),
    *_floats(),
    op("v_frexp_exp_i32_f64", "i32 = f64", frexp_exp),
    op("v_frexp_exp_i32_f32", "i32 = f32", frexp_exp),
    op("v_frexp_exp_i16_f16", "i16 = f16", lambda x: frexp_exp(x, I16)),
    *_transcendentals(),
    op("v_cvt_i32_f64", "i32 = f64", lambda x: to_integer(x, I32)),
    op("v_cvt_u32_f64", "u32 = f64", lambda x: to_integer(x, U32)),
    op("v_cvt_f64_i32", "f64 = i32", lambda x: x.astype(F64)),
    op("v_cvt_f64_u32", "f64 = u32", lambda x: x.astype(F64)),
    op("v_cvt_f32_i32", "f32 = i32", lambda x: x.astype(F32)),
    op("v_cvt_f32_u32", "f32 = u32", lambda x: x.astype(F32)),
    op("v_cvt_u32_f32", "u32 = f32", lambda x: to_integer(x, U32)),
    op("v_cvt_i32_f32", "i32 = f32", lambda x: to_integer(x, I32)),
    op("v_cvt_nearest_i32_f32", "i32 = f32", lambda x: to_integer(np.floor(x.astype(F64) + 0.5), I32)),
    op("v_cvt_floor_i32_f32", "i32 = f32", lambda x: to_integer(np.floor(x), I32)),
    op("v_cvt_off_f32_i4", "f32 = b32", _off_i4),
    op("v_cvt_f16_f32", "f16 = f32", lambda x: x.astype(F16)),
    op("v_cvt_f32_f16", "f32 = f16", lambda x: x.astype(F32)),
    op("v_cvt_f32_f64", "f32 = f64", lambda x: x.astype(F32)),
    op("v_cvt_f64_f32", "f64 = f32", lambda x: x.astype(F64)),
    *(op(f"v_cvt_f32_ubyte{number}", "f32 = b32", _ubyte(number)) for number in range(4)),
    op("v_cvt_f16_u16", "f16 = u16", lambda x: x.astype(F16)),
    op("v_cvt_f16_i16", "f16 = i16", lambda x: x.astype(F16)),
    op("v_cvt_u16_f16", "u16 = f16", lambda x: to_integer(x, U16)),
    op("v_cvt_i16_f16", "i16 = f16", lambda x: to_integer(x, I16)),
    op("v_cvt_norm_i16_f16", "i16 = f16", lambda x: to_norm(x, I16)),
    op("v_cvt_norm_u16_f16", "u16 = f16", lambda x: to_norm(x, U16)),
    op("v_cvt_i32_i16", "i32 = i16", lambda x: x.astype(I32)),
    op("v_cvt_u32_u16", "u32 = u16", lambda x: x.astype(U32)),
    op("v_sat_pk_u8_i16", "b16 = 2xi16", _sat_pk_u8),
    op("v_cvt_f32_fp8", "f32 = b32", _cvt_byte("fp8"), options=("byte_sel",)),
    op("v_cvt_f32_bf8", "f32 = b32", _cvt_byte("bf8"), options=("byte_sel",)),
    op("v_cvt_pk_f32_fp8", "2xf32 = b16", _cvt_pair("fp8")),
    op("v_cvt_pk_f32_bf8", "2xf32 = b16", _cvt_pair("bf8")),
])  # fmt: skip
