"""Forms of instructions on the emulated card: modifiers, constants, halves, lanes, masks, carries, scalar code.

What an instruction computes is the table's and tested elsewhere; here the expected values apply, in numpy, what the
assembler's text says around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from assembled import TOOLS, Forms, differences

from solbench.gfx12.ops import OPS

F16, F32, F64, U16, I16, U32, I32, U64 = (
    np.float16, np.float32, np.float64, np.uint16, np.int16, np.uint32, np.int32, np.uint64,
)  # fmt: skip
LANES = np.arange(32)


def op(name: str, *operands: Any, **options: Any) -> Any:
    """An entry of the table."""
    return OPS[name].apply(*operands, **options)


def clamp(x: Any) -> Any:
    """Limited to [0, 1]; NaN to 0."""
    return np.where(np.isnan(x), 0, np.clip(x, 0, 1)).astype(x.dtype)


def half(pair: Any, new: Any, which: int) -> Any:
    """A pair with one half replaced."""
    pair = np.array(pair)
    pair[..., which] = np.asarray(new).astype(pair.dtype) if pair.dtype.kind == "f" else new
    return pair


FORMS: Forms = {
    # Modifiers of floats.
    "neg and abs": ("v_add_f32 v20, -v10, |v11|", lambda r: [-r.f(10) + abs(r.f(11))]),
    "neg of abs": ("v_fma_f32 v20, -|v10|, v11, -v12", lambda r: [op("v_fma_f32", -abs(r.f(10)), r.f(11), -r.f(12))]),
    "clamp f32": ("v_add_f32 v20, v10, v11 clamp", lambda r: [clamp(r.f(10) + r.f(11))]),
    "clamp f64": ("v_add_f64 v[20:21], v[10:11], v[12:13] clamp", lambda r: [clamp(r.d(10) + r.d(12))]),
    "clamp integer": ("v_add_nc_u32 v20, v10, v11 clamp", lambda r: [OPS["v_add_nc_u32"].clamped(r.v(10), r.v(11))]),
    "clamp signed": ("v_sub_nc_i32 v20, v10, v11 clamp", lambda r: [OPS["v_sub_nc_i32"].clamped(r.i(10), r.i(11))]),
    "neg f64": ("v_mul_f64 v[20:21], -v[10:11], |v[12:13]|", lambda r: [-r.d(10) * abs(r.d(12))]),
    "neg of a scalar": ("v_mul_f32 v20, -s20, v10", lambda r: [-r.s(20, F32) * r.f(10)]),
    "abs of a scalar twice": (
        "v_fma_f32 v20, |s20|, -s20, v10",
        lambda r: [op("v_fma_f32", abs(r.s(20, F32)), -r.s(20, F32), r.f(10))],
    ),
    "modifiers of a selection": (
        "s_mov_b32 s30, 0xaaaa5555\nv_cndmask_b32 v20, -v10, |v11|, s30",
        lambda r: [np.where(_mask(0xAAAA5555), r.v(11) & 0x7FFFFFFF, r.v(10) ^ 0x80000000)],
    ),
    "modifiers of a comparison": (
        "v_cmp_lt_f32 s30, -v10, |v11|\nv_mov_b32 v20, s30",
        lambda r: [-r.f(10) < abs(r.f(11))],
    ),
    "modifiers of a class": (
        "v_mov_b32 v30, 0x3fc\nv_cmp_class_f32 s30, -|v10|, v30\nv_mov_b32 v20, s30",
        lambda r: [op("v_cmp_class_f32", -abs(r.f(10)), np.full((1, 32), 0x3FC, U32))],
    ),
    "ldexp with modifiers": (
        "v_ldexp_f32 v20, -|v10|, -3",
        lambda r: [op("v_ldexp_f32", -abs(r.f(10)), np.full((1, 1), -3, I32))],
    ),
    # Constants.
    "inline float": (
        "v_add_f32 v20, 0.5, v10\nv_mul_f32 v21, -4.0, v11\nv_mul_f32 v22, 0.15915494, v12",
        lambda r: [r.f(10) + F32(0.5), r.f(11) * F32(-4), r.f(12) * _word(0x3E22F983, F32)],
    ),
    "inline integer in a float operation": (
        "v_add_f32 v20, 1, v10\nv_add_f32 v21, -16, v11",
        lambda r: [r.f(10) + _word(1, F32), r.f(11) + _word(-16, F32)],
    ),
    "inline float in an integer operation": ("v_add_nc_u32 v20, 1.0, v10", lambda r: [r.v(10) + U32(0x3F800000)]),
    "inline f16": (
        "v_add_f16 v20.l, 0.5, v10.l\nv_mul_f16 v20.h, -2.0, v10.h",
        lambda r: [np.stack([r.h(10, 0) + F16(0.5), r.h(10, 1) * F16(-2)], -1)],
    ),
    "inline integer in f16": (
        "v_add_f16 v20.l, 3, v10.l\nv_mov_b16 v20.h, -1",
        lambda r: [np.stack([(r.h(10, 0) + np.array(3, U16).view(F16)).view(U16), np.full((1, 32), 0xFFFF, U16)], -1)],
    ),
    "inline f64": (
        "v_add_f64 v[20:21], 1.0, v[10:11]\nv_mul_f64 v[22:23], v[12:13], -0.5",
        lambda r: [r.d(10) + 1.0, r.d(12) * -0.5],
    ),
    "inline integer in f64": ("v_add_f64 v[20:21], 5, v[10:11]", lambda r: [r.d(10) + np.array(5, U64).view(F64)]),
    "inverse of two pi in f64": (
        "v_mul_f64 v[20:21], 0.15915494309189532, v[10:11]",
        lambda r: [r.d(10) * np.array(0x3FC45F306DC9C882, U64).view(F64)],
    ),
    "literal": (
        "v_add_f32 v20, 0x40490fdb, v10\nv_xor_b32 v21, 0xdeadbeef, v11",
        lambda r: [r.f(10) + _word(0x40490FDB, F32), r.v(11) ^ U32(0xDEADBEEF)],
    ),
    "literal f16": (
        "v_mul_f16 v20.l, 0x4248, v10.l\nv_mul_f16 v20.h, 0x4248, v10.h",
        lambda r: [r.p(10) * np.array(0x4248, U16).view(F16)],
    ),
    "literal f64 is the high word": (
        "v_add_f64 v[20:21], 0x40091eb8, v[10:11]",
        lambda r: [r.d(10) + np.array(0x40091EB8 << 32, U64).view(F64)],
    ),
    "literal of 64-bit integers": (
        "v_lshlrev_b64 v[20:21], 3, v[10:11]\ns_and_b64 s[30:31], s[20:21], 0xf0f0f0f0\n"
        "v_mov_b32 v22, s30\nv_mov_b32 v23, s31",
        lambda r: [r.v(10, U64) << U64(3), r.s(20) & U32(0xF0F0F0F0), r.s(21) & U32(0)],
    ),
    "fmamk and fmaak": (
        "v_fmamk_f32 v20, v10, 0x3fc00000, v11\nv_fmaak_f32 v21, v10, v11, 0xc0200000",
        lambda r: [
            op("v_fma_f32", r.f(10), F32(1.5) + 0 * r.f(10), r.f(11)),
            op("v_fma_f32", r.f(10), r.f(11), np.full((1, 32), -2.5, F32)),
        ],
    ),
    "negative inline in 16 bits": (
        "v_add_nc_u16 v20.l, v10.l, -7\nv_lshlrev_b16 v20.h, 4, v10.h",
        lambda r: [np.stack([r.w(10, 0) - U16(7), r.w(10, 1) << U16(4)], -1)],
    ),
    # Halves of registers.
    "a low half written": ("v_add_f16 v20.l, v10.h, v11.l", lambda r: [half(r.p(20), r.h(10, 1) + r.h(11, 0), 0)]),
    "a high half written": (
        "v_mul_f16 v20.h, -v10.l, |v11.h|",
        lambda r: [half(r.p(20), -r.h(10, 0) * abs(r.h(11, 1)), 1)],
    ),
    "halves of moves": (
        "v_mov_b16 v20.h, v10.l\nv_mov_b16 v21.l, v11.h",
        lambda r: [half(r.v(20, U16), r.w(10, 0), 1), half(r.v(21, U16), r.w(11, 1), 0)],
    ),
    "halves converted": (
        "v_cvt_f32_f16 v20, v10.h\nv_cvt_f16_f32 v21.h, v11",
        lambda r: [r.h(10, 1).astype(F32), half(r.p(21), r.f(11).astype(F16), 1)],
    ),
    "halves multiplied into words": (
        "v_mad_u32_u16 v20, v10.h, v11.l, v12\nv_mad_i32_i16 v21, v10.l, v11.h, v12",
        lambda r: [
            r.w(10, 1).astype(U32) * r.w(11, 0) + r.v(12),
            r.w(10, 0, I16).astype(I32) * r.w(11, 1, I16) + r.i(12),
        ],
    ),
    "halves that say how far": (
        "v_alignbit_b32 v20, v10, v11, v12.h\nv_alignbyte_b32 v21, v10, v11, v12.l\nv_alignbit_b32 v22, v10, v11, s20",
        lambda r: [
            op("v_alignbit_b32", r.v(10), r.v(11), r.w(12, 1)),
            op("v_alignbyte_b32", r.v(10), r.v(11), r.w(12, 0)),
            op("v_alignbit_b32", r.v(10), r.v(11), (r.s(20) & U32(31)).astype(U16)),
        ],
    ),
    "halves packed": ("v_pack_b32_f16 v20, v10.h, v11.l", lambda r: [np.stack([r.w(10, 1), r.w(11, 0)], -1)]),
    "halves selected": (
        "s_mov_b32 vcc_lo, 0xff00f00f\nv_cndmask_b16 v20.h, v10.l, v11.h, vcc_lo",
        lambda r: [half(r.v(20, U16), np.where(_mask(0xFF00F00F), r.w(11, 1), r.w(10, 0)), 1)],
    ),
    "halves compared": (
        "v_cmp_gt_f16 s30, v10.h, v11.l\nv_cmp_le_i16 s31, v10.l, v11.h\nv_mov_b32 v20, s30\nv_mov_b32 v21, s31",
        lambda r: [r.h(10, 1) > r.h(11, 0), r.w(10, 0, I16) <= r.w(11, 1, I16)],
    ),
    "halves fused": (
        "v_fma_f16 v20.h, v10.h, v11.l, -v12.h",
        lambda r: [half(r.p(20), op("v_fma_f16", r.h(10, 1), r.h(11, 0), -r.h(12, 1)), 1)],
    ),
    "halves accumulated": (
        "v_fmac_f16 v20.h, v10.l, v11.h",
        lambda r: [half(r.p(20), op("v_fma_f16", r.h(10, 0), r.h(11, 1), r.h(20, 1)), 1)],
    ),
    "halves exchanged": (
        "v_swap_b16 v20.l, v21.h",
        lambda r: [half(r.v(20, U16), r.w(21, 1), 0), half(r.v(21, U16), r.w(20, 0), 1)],
    ),
    "a scalar as a half": (
        "v_add_f16 v20.l, s20, v10.l",
        lambda r: [half(r.p(20), r.s(20, F16)[..., 0] + r.h(10, 0), 0)],
    ),
    # Pairs.
    "pairs": ("v_pk_add_f16 v20, v10, v11", lambda r: [r.p(10) + r.p(11)]),
    "pairs exchanged": (
        "v_pk_mul_f16 v20, v10, v11 op_sel:[1,0] op_sel_hi:[0,1]",
        lambda r: [r.p(10)[..., ::-1] * r.p(11)],
    ),
    "pairs repeated": (
        "v_pk_fma_f16 v20, v10, v11, v12 op_sel:[0,1,0] op_sel_hi:[0,1,1]",
        lambda r: [op("v_pk_fma_f16", r.p(10)[..., [0, 0]], r.p(11)[..., [1, 1]], r.p(12))],
    ),
    "pairs negated": (
        "v_pk_add_f16 v20, v10, v11 neg_lo:[1,0] neg_hi:[0,1]",
        lambda r: [r.p(10) * F16([-1, 1]) + r.p(11) * F16([1, -1])],
    ),
    "pairs clamped": (
        "v_pk_add_f16 v20, v10, v11 clamp\nv_pk_add_i16 v21, v10, v11 clamp",
        lambda r: [clamp(r.p(10) + r.p(11)), OPS["v_pk_add_i16"].clamped(r.v(10, I16), r.v(11, I16))],
    ),
    "pairs with a constant": (
        "v_pk_add_f16 v20, v10, 1.0 op_sel_hi:[1,0]\nv_pk_mul_f16 v21, v11, 2.0 op_sel_hi:[1,0]",
        lambda r: [r.p(10) + F16(1), r.p(11) * F16(2)],
    ),
    "pairs with a constant in the low half": ("v_pk_add_f16 v20, v10, 1.0", lambda r: [r.p(10) + F16([1, 0])]),
    "pairs of integers with a constant": (
        "v_pk_add_u16 v20, v10, 5 op_sel_hi:[1,0]\nv_pk_lshlrev_b16 v21, 3, v11 op_sel_hi:[0,1]",
        lambda r: [r.v(10, U16) + U16(5), r.v(11, U16) << U16(3)],
    ),
    "pairs with a scalar": (
        "v_pk_mul_lo_u16 v20, s20, v10 op_sel_hi:[0,1]",
        lambda r: [r.s(20, U16)[..., [0, 0]] * r.v(10, U16)],
    ),
    "mixed precision": (
        "v_fma_mix_f32 v20, v10, v11, v12 op_sel:[0,1,0] op_sel_hi:[1,1,0]",
        lambda r: [op("v_fma_f32", r.h(10, 0).astype(F32), r.h(11, 1).astype(F32), r.f(12))],
    ),
    "mixed precision with modifiers": (
        "v_fma_mix_f32 v20, -v10, |v11|, -|v12| op_sel:[1,0,0] op_sel_hi:[1,0,1] clamp",
        lambda r: [clamp(op("v_fma_f32", -r.h(10, 1).astype(F32), abs(r.f(11)), -abs(r.h(12, 0).astype(F32))))],
    ),
    "mixed precision to halves": (
        "v_fma_mixlo_f16 v20, v10, v11, v12\nv_fma_mixhi_f16 v20, v11, v10, v13 op_sel_hi:[0,0,1]",
        lambda r: [
            np.stack(
                [
                    op("v_fma_f32", r.f(10), r.f(11), r.f(12)).astype(F16),
                    op("v_fma_f32", r.f(11), r.f(10), r.h(13, 0).astype(F32)).astype(F16),
                ],
                -1,
            )
        ],
    ),
    "dot of signed bytes": (
        "v_dot4_i32_iu8 v20, v10, v11, v12 neg_lo:[1,0,0]\nv_dot4_i32_iu8 v21, v10, v11, v12 neg_lo:[1,1,0] clamp",
        lambda r: [
            op("v_dot4_i32_iu8", r.v(10), r.v(11), r.i(12), signed=(True, False)),
            OPS["v_dot4_i32_iu8"].clamped(r.v(10), r.v(11), r.i(12), signed=(True, True)),
        ],
    ),
}


def _word(value: int, dtype: Any) -> Any:
    return np.array(value & 0xFFFFFFFF, U32).view(dtype)


def _mask(bits: int) -> Any:
    """A mask of lanes (1, 32)."""
    return ((bits >> LANES) & 1).astype(bool)[None]


@pytest.mark.skipif(None in TOOLS.values(), reason="llvm-mc-22, ld.lld-22 or llvm-objdump-22 is not installed")
def test_forms_of_instructions() -> None:
    assert not differences(FORMS)
