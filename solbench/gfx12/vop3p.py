"""Packed and mixed-precision vector instructions (VOP3P) but WMMA. Pairs are arrays with a last axis of 2.

The executor picks the halves that ``op_sel`` and ``op_sel_hi`` name. ``v_fma_mixlo_f16`` and ``v_fma_mixhi_f16`` write
the low or the high half of the result register and leave the other.
"""

from __future__ import annotations

import numpy as np

from solbench.gfx12.dots import dot2_f32_bf16, dot2_f32_f16, dot4_f32, dot_integer
from solbench.gfx12.floats import fma_f16, fma_f32, max_num, maximum, min_num, minimum
from solbench.gfx12.integers import F16, I16, U16, U32, Array
from solbench.gfx12.op import op, table
from solbench.gfx12.vop2 import limited, shift_left, shift_right


def _mad(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _mix_f16(a: Array, b: Array, c: Array) -> Array:
    return fma_f32(a, b, c).astype(F16)


VOP3P = table(
    [
        op("v_pk_mad_i16", "2xi16 = 2xi16 2xi16 2xi16", _mad, limited(_mad, I16)),
        op("v_pk_mad_u16", "2xu16 = 2xu16 2xu16 2xu16", _mad, limited(_mad, U16)),
        op("v_pk_mul_lo_u16", "2xu16 = 2xu16 2xu16", np.multiply),
        op("v_pk_add_i16", "2xi16 = 2xi16 2xi16", np.add, limited(np.add, I16)),
        op("v_pk_sub_i16", "2xi16 = 2xi16 2xi16", np.subtract, limited(np.subtract, I16)),
        op("v_pk_add_u16", "2xu16 = 2xu16 2xu16", np.add, limited(np.add, U16)),
        op("v_pk_sub_u16", "2xu16 = 2xu16 2xu16", np.subtract, limited(np.subtract, U16)),
        op("v_pk_lshlrev_b16", "2xb16 = 2xu16 2xb16", shift_left),
        op("v_pk_lshrrev_b16", "2xb16 = 2xu16 2xb16", shift_right),
        op("v_pk_ashrrev_i16", "2xi16 = 2xu16 2xi16", shift_right),
        op("v_pk_max_i16", "2xi16 = 2xi16 2xi16", np.maximum),
        op("v_pk_min_i16", "2xi16 = 2xi16 2xi16", np.minimum),
        op("v_pk_max_u16", "2xu16 = 2xu16 2xu16", np.maximum),
        op("v_pk_min_u16", "2xu16 = 2xu16 2xu16", np.minimum),
        op("v_pk_fma_f16", "2xf16 = 2xf16 2xf16 2xf16", fma_f16),
        op("v_pk_add_f16", "2xf16 = 2xf16 2xf16", np.add),
        op("v_pk_mul_f16", "2xf16 = 2xf16 2xf16", np.multiply),
        op("v_pk_min_num_f16", "2xf16 = 2xf16 2xf16", min_num),
        op("v_pk_max_num_f16", "2xf16 = 2xf16 2xf16", max_num),
        op("v_pk_minimum_f16", "2xf16 = 2xf16 2xf16", minimum),
        op("v_pk_maximum_f16", "2xf16 = 2xf16 2xf16", maximum),
        op("v_fma_mix_f32", "f32 = mix mix mix", fma_f32),
        op("v_fma_mixlo_f16", "f16 = mix mix mix", _mix_f16),
        op("v_fma_mixhi_f16", "f16 = mix mix mix", _mix_f16),
        op("v_dot2_f32_f16", "f32 = 2xf16 2xf16 f32", dot2_f32_f16),
        op("v_dot2_f32_bf16", "f32 = 2xbf16 2xbf16 f32", dot2_f32_bf16),
        op("v_dot4_i32_iu8", "i32 = b32 b32 i32", dot_integer(8, False), dot_integer(8, True), options=("signed",)),
        op("v_dot8_i32_iu4", "i32 = b32 b32 i32", dot_integer(4, False), dot_integer(4, True), options=("signed",)),
        op("v_dot4_u32_u8", "u32 = b32 b32 u32", dot_integer(8, False, U32), dot_integer(8, True, U32)),
        op("v_dot8_u32_u4", "u32 = b32 b32 u32", dot_integer(4, False, U32), dot_integer(4, True, U32)),
        op("v_dot4_f32_fp8_bf8", "f32 = b32 b32 f32", dot4_f32("fp8", "bf8")),
        op("v_dot4_f32_bf8_fp8", "f32 = b32 b32 f32", dot4_f32("bf8", "fp8")),
        op("v_dot4_f32_fp8_fp8", "f32 = b32 b32 f32", dot4_f32("fp8", "fp8")),
        op("v_dot4_f32_bf8_bf8", "f32 = b32 b32 f32", dot4_f32("bf8", "bf8")),
    ]
)
