"""Vector instructions of up to three operands that only VOP3 (with VOP3SD) encodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from solbench.gfx12 import bytewise, division
from solbench.gfx12.dots import dot2_bf16, dot2_f16
from solbench.gfx12.floats import (
    fma_f16,
    fma_f32,
    fma_f64,
    ldexp,
    max_num,
    maximum,
    med3_num,
    min_num,
    minimum,
    to_integer,
    to_norm,
)
from solbench.gfx12.integers import (
    F32,
    I16,
    I32,
    I64,
    U16,
    U32,
    U64,
    Array,
    field,
    i24,
    mask_of,
    mul_hi_i32,
    mul_hi_u32,
    popcount,
    saturate,
    signed_field,
    u24,
    wide,
)
from solbench.gfx12.op import Op, op, table
from solbench.gfx12.trig import trig_preop
from solbench.gfx12.vop2 import (
    add_carry,
    limited,
    saturated_carry,
    select,
    shift_left,
    shift_right,
    sub_borrow,
)

Two = Callable[[Array, Array], Array]
Three = Callable[[Array, Array, Array], Array]


def _then(first: Two, second: Two) -> Three:
    """``second(first(a, b), c)``."""
    return lambda a, b, c: second(first(a, b), c)


def _med3(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _three() -> Iterator[Op]:
    for t in ("i32", "u32", "i16", "u16"):
        yield op(f"v_min3_{t}", f"{t} = {t} {t} {t}", _then(np.minimum, np.minimum))
        yield op(f"v_max3_{t}", f"{t} = {t} {t} {t}", _then(np.maximum, np.maximum))
        yield op(f"v_med3_{t}", f"{t} = {t} {t} {t}", _med3)
        if t.endswith("32"):
            yield op(f"v_maxmin_{t}", f"{t} = {t} {t} {t}", _then(np.maximum, np.minimum))
            yield op(f"v_minmax_{t}", f"{t} = {t} {t} {t}", _then(np.minimum, np.maximum))
        else:
            yield op(f"v_max_{t}", f"{t} = {t} {t}", np.maximum)
            yield op(f"v_min_{t}", f"{t} = {t} {t}", np.minimum)
    for f in ("f32", "f16"):
        yield op(f"v_min3_num_{f}", f"{f} = {f} {f} {f}", _then(min_num, min_num))
        yield op(f"v_max3_num_{f}", f"{f} = {f} {f} {f}", _then(max_num, max_num))
        yield op(f"v_minimum3_{f}", f"{f} = {f} {f} {f}", _then(minimum, minimum))
        yield op(f"v_maximum3_{f}", f"{f} = {f} {f} {f}", _then(maximum, maximum))
        yield op(f"v_med3_num_{f}", f"{f} = {f} {f} {f}", med3_num)
        yield op(f"v_minmax_num_{f}", f"{f} = {f} {f} {f}", _then(min_num, max_num))
        yield op(f"v_maxmin_num_{f}", f"{f} = {f} {f} {f}", _then(max_num, min_num))
        yield op(f"v_minimummaximum_{f}", f"{f} = {f} {f} {f}", _then(minimum, maximum))
        yield op(f"v_maximumminimum_{f}", f"{f} = {f} {f} {f}", _then(maximum, minimum))
    for f in ("f64", "f32", "f16"):
        yield op(f"v_minimum_{f}", f"{f} = {f} {f}", minimum)
        yield op(f"v_maximum_{f}", f"{f} = {f} {f}", maximum)


def _mad(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _fma_dx9(a: Array, b: Array, c: Array) -> Array:
    return np.where((a == 0) | (b == 0), c, fma_f32(a, b, c))


def _mullit(a: Array, b: Array, c: Array) -> Array:
    largest = np.finfo(F32).max
    return np.where((b == -largest) | np.isneginf(b) | np.isnan(b) | (c <= 0) | np.isnan(c), -largest, a * b)


def _cube(of_z: Three, of_y: Three, of_x: Three) -> Three:
    """One value by the axis of largest magnitude; z wins a tie, then y."""

    def apply(x: Array, y: Array, z: Array) -> Array:
        is_z = (np.abs(z) >= np.abs(x)) & (np.abs(z) >= np.abs(y))
        is_y = np.abs(y) >= np.abs(x)
        return np.where(is_z, of_z(x, y, z), np.where(is_y, of_y(x, y, z), of_x(x, y, z))).astype(F32)

    return apply


def _cubes() -> Iterator[Op]:
    faces = _cube(
        lambda x, y, z: np.where(z < 0, 5.0, 4.0),
        lambda x, y, z: np.where(y < 0, 3.0, 2.0),
        lambda x, y, z: np.where(x < 0, 1.0, 0.0),
    )
    s = _cube(lambda x, y, z: np.where(z < 0, -x, x), lambda x, y, z: x, lambda x, y, z: np.where(x < 0, z, -z))
    t = _cube(lambda x, y, z: -y, lambda x, y, z: np.where(y < 0, -z, z), lambda x, y, z: -y)
    major = _cube(lambda x, y, z: z * F32(2), lambda x, y, z: y * F32(2), lambda x, y, z: x * F32(2))
    for name, function in (("id", faces), ("sc", s), ("tc", t), ("ma", major)):
        yield op(f"v_cube{name}_f32", "f32 = f32 f32 f32", function)


def _align(step: int, count: int) -> Three:
    def apply(high: Array, low: Array, n: Array) -> Array:
        both = (np.asarray(high).astype(U64) << U64(32)) | low
        return (both >> (np.asarray(n).astype(U64) & U64(count - 1)) * U64(step)).astype(U32)

    return apply


def _mad_u64(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    total = np.asarray(a).astype(U64) * np.asarray(b).astype(U64) + c
    return total, total < c


def _mad_i64(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    product = wide(a) * wide(b)
    total = product + c
    # Bit 64 of the 65-bit sum is its sign, which the 64 bits show unless they overflowed.
    return total, (total < 0) ^ (((product ^ total) & (c ^ total)) < 0)


def _mad_u64_limited(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    total, carry = _mad_u64(a, b, c)
    return np.where(carry, ~U64(0), total), carry


def _mad_i64_limited(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    total, sign = _mad_i64(a, b, c)
    limit = np.where(sign, np.iinfo(I64).min, np.iinfo(I64).max)
    return np.where(sign != (total < 0), limit, total), sign


def _pair(function: Callable[[Array], Array]) -> Two:
    """A conversion of two operands to a pair of 16-bit values."""
    return lambda a, b: np.stack(np.broadcast_arrays(function(a), function(b)), axis=-1)


def _add_borrowless(a: Array, b: Array) -> tuple[Array, Array]:
    return add_carry(a, b, I64(0))


def _sub_borrowless(a: Array, b: Array) -> tuple[Array, Array]:
    return sub_borrow(a, b, I64(0))


def _subrev_borrowless(a: Array, b: Array) -> tuple[Array, Array]:
    return sub_borrow(b, a, I64(0))


def _narrow() -> Iterator[Op]:
    for kind in ("fp8", "bf8"):
        yield op(f"v_cvt_pk_{kind}_f32", "b16 = f32 f32", bytewise.narrow_pair(kind), options=("saturate",))
        yield op(
            f"v_cvt_sr_{kind}_f32", "b32 = f32 u32 old", bytewise.narrow_noisy(kind), options=("byte_sel", "saturate")
        )


VOP3 = table([
    *_three(),
    op("v_fma_dx9_zero_f32", "f32 = f32 f32 f32", _fma_dx9),
    op("v_mad_i32_i24", "i32 = i32 i32 i32", lambda a, b, c: i24(a) * i24(b) + c,
       lambda a, b, c: saturate(wide(i24(a)) * wide(i24(b)) + wide(c), I32)),
    op("v_mad_u32_u24", "u32 = u32 u32 u32", lambda a, b, c: u24(a) * u24(b) + c,
       lambda a, b, c: saturate(wide(u24(a)) * wide(u24(b)) + wide(c), U32)),
    *_cubes(),
    op("v_bfe_u32", "u32 = u32 u32 u32", lambda x, n, w: field(x, n & U32(31), w & U32(31))),
    op("v_bfe_i32", "i32 = i32 u32 u32", lambda x, n, w: signed_field(x, n & U32(31), w & U32(31))),
    op("v_bfi_b32", "b32 = b32 b32 b32", lambda m, a, b: (m & a) | (~m & b)),
    op("v_bfm_b32", "b32 = u32 u32", lambda w, n: mask_of(w & U32(31), U32) << (n & U32(31))),
    op("v_fma_f32", "f32 = f32 f32 f32", fma_f32),
    op("v_fma_f64", "f64 = f64 f64 f64", fma_f64),
    op("v_fma_f16", "f16 = f16 f16 f16", fma_f16),
    op("v_lerp_u8", "u32 = u32 u32 u32", bytewise.lerp),
    op("v_alignbit_b32", "b32 = b32 b32 u16", _align(1, 32)),
    op("v_alignbyte_b32", "b32 = b32 b32 u16", _align(8, 4)),
    op("v_mullit_f32", "f32 = f32 f32 f32", _mullit),
    op("v_sad_u8", "u32 = u32 u32 u32", bytewise.sad_u8, bytewise.limited_sad(bytewise.sad_u8_wide)),
    op("v_sad_hi_u8", "u32 = u32 u32 u32", bytewise.sad_hi_u8, bytewise.limited_sad(bytewise.sad_hi_u8_wide)),
    op("v_sad_u16", "u32 = u32 u32 u32", bytewise.sad_u16, bytewise.limited_sad(bytewise.sad_u16_wide)),
    op("v_sad_u32", "u32 = u32 u32 u32", bytewise.sad_u32, bytewise.limited_sad(bytewise.sad_u32_wide)),
    op("v_msad_u8", "u32 = u32 u32 u32", bytewise.msad_u8, bytewise.limited_sad(bytewise.msad_u8_wide)),
    op("v_qsad_pk_u16_u8", "b64 = b64 b32 b64", bytewise.qsad_pk(bytewise.sad_u8_wide, False),
       bytewise.qsad_pk(bytewise.sad_u8_wide, True)),
    op("v_mqsad_pk_u16_u8", "b64 = b64 b32 b64", bytewise.qsad_pk(bytewise.msad_u8_wide, False),
       bytewise.qsad_pk(bytewise.msad_u8_wide, True)),
    op("v_mqsad_u32_u8", "b128 = b64 b32 b128", bytewise.mqsad_u32(False), bytewise.mqsad_u32(True)),
    op("v_cvt_pk_u8_f32", "b32 = f32 u32 b32", bytewise.cvt_pk_u8),
    op("v_perm_b32", "b32 = b32 b32 b32", bytewise.perm),
    op("v_div_scale_f32", "f32 mask = f32 f32 f32", division.scale_f32),
    op("v_div_scale_f64", "f64 mask = f64 f64 f64", division.scale_f64),
    op("v_div_fmas_f32", "f32 = f32 f32 f32 vcc", division.fmas_f32),
    op("v_div_fmas_f64", "f64 = f64 f64 f64 vcc", division.fmas_f64),
    op("v_div_fixup_f16", "f16 = f16 f16 f16", division.fixup),
    op("v_div_fixup_f32", "f32 = f32 f32 f32", division.fixup),
    op("v_div_fixup_f64", "f64 = f64 f64 f64", division.fixup),
    op("v_xor3_b32", "b32 = b32 b32 b32", lambda a, b, c: a ^ b ^ c),
    op("v_or3_b32", "b32 = b32 b32 b32", lambda a, b, c: a | b | c),
    op("v_and_or_b32", "b32 = b32 b32 b32", lambda a, b, c: (a & b) | c),
    op("v_lshl_or_b32", "b32 = b32 u32 b32", lambda a, n, c: (a << (n & U32(31))) | c),
    op("v_xad_u32", "u32 = u32 u32 u32", lambda a, b, c: (a ^ b) + c),
    op("v_lshl_add_u32", "u32 = u32 u32 u32", lambda a, n, c: (a << (n & U32(31))) + c),
    op("v_add_lshl_u32", "u32 = u32 u32 u32", lambda a, b, n: (a + b) << (n & U32(31))),
    op("v_add3_u32", "u32 = u32 u32 u32", lambda a, b, c: a + b + c),
    op("v_mad_u16", "u16 = u16 u16 u16", _mad, limited(_mad, U16)),
    op("v_mad_i16", "i16 = i16 i16 i16", _mad, limited(_mad, I16)),
    op("v_mad_u32_u16", "u32 = u16 u16 u32", lambda a, b, c: a.astype(U32) * b.astype(U32) + c, limited(_mad, U32)),
    op("v_mad_i32_i16", "i32 = i16 i16 i32", lambda a, b, c: a.astype(I32) * b.astype(I32) + c, limited(_mad, I32)),
    op("v_mad_co_u64_u32", "u64 mask = u32 u32 u64", _mad_u64, _mad_u64_limited),
    op("v_mad_co_i64_i32", "i64 mask = i32 i32 i64", _mad_i64, _mad_i64_limited),
    op("v_cndmask_b16", "b16 = b16 b16 mask", select),
    op("v_dot2_f16_f16", "f16 = 2xf16 2xf16 f16", dot2_f16),
    op("v_dot2_bf16_bf16", "bf16 = 2xbf16 2xbf16 bf16", dot2_bf16),
    op("v_add_co_u32", "u32 mask = u32 u32", _add_borrowless, saturated_carry(_add_borrowless, 0xFFFFFFFF)),
    op("v_sub_co_u32", "u32 mask = u32 u32", _sub_borrowless, saturated_carry(_sub_borrowless, 0)),
    op("v_subrev_co_u32", "u32 mask = u32 u32", _subrev_borrowless, saturated_carry(_subrev_borrowless, 0)),
    op("v_add_nc_u16", "u16 = u16 u16", np.add, limited(np.add, U16)),
    op("v_sub_nc_u16", "u16 = u16 u16", np.subtract, limited(np.subtract, U16)),
    op("v_add_nc_i16", "i16 = i16 i16", np.add, limited(np.add, I16)),
    op("v_sub_nc_i16", "i16 = i16 i16", np.subtract, limited(np.subtract, I16)),
    op("v_add_nc_i32", "i32 = i32 i32", np.add, limited(np.add, I32)),
    op("v_sub_nc_i32", "i32 = i32 i32", np.subtract, limited(np.subtract, I32)),
    op("v_mul_lo_u16", "u16 = u16 u16", np.multiply),
    op("v_mul_lo_u32", "u32 = u32 u32", np.multiply),
    op("v_mul_hi_u32", "u32 = u32 u32", mul_hi_u32),
    op("v_mul_hi_i32", "i32 = i32 i32", mul_hi_i32),
    op("v_cvt_pk_i16_f32", "2xi16 = f32 f32", _pair(lambda x: to_integer(x, I16))),
    op("v_cvt_pk_u16_f32", "2xu16 = f32 f32", _pair(lambda x: to_integer(x, U16))),
    op("v_cvt_pk_norm_i16_f16", "2xi16 = f16 f16", _pair(lambda x: to_norm(x, I16))),
    op("v_cvt_pk_norm_u16_f16", "2xu16 = f16 f16", _pair(lambda x: to_norm(x, U16))),
    op("v_cvt_pk_norm_i16_f32", "2xi16 = f32 f32", _pair(lambda x: to_norm(x, I16))),
    op("v_cvt_pk_norm_u16_f32", "2xu16 = f32 f32", _pair(lambda x: to_norm(x, U16))),
    op("v_cvt_pk_u16_u32", "2xu16 = u32 u32", _pair(lambda x: saturate(x, U16))),
    op("v_cvt_pk_i16_i32", "2xi16 = i32 i32", _pair(lambda x: saturate(x, I16))),
    *_narrow(),
    op("v_pack_b32_f16", "2xf16 = f16 f16", _pair(lambda x: x)),
    op("v_ldexp_f32", "f32 = f32 i32", ldexp),
    op("v_ldexp_f64", "f64 = f64 i32", ldexp),
    op("v_trig_preop_f64", "f64 = f64 u32", trig_preop),
    op("v_bcnt_u32_b32", "u32 = b32 u32", lambda x, n: popcount(x).astype(U32) + n),
    op("v_lshlrev_b16", "b16 = u16 b16", shift_left),
    op("v_lshrrev_b16", "b16 = u16 b16", shift_right),
    op("v_ashrrev_i16", "i16 = u16 i16", shift_right),
    op("v_lshrrev_b64", "b64 = u32 b64", shift_right),
    op("v_ashrrev_i64", "i64 = u32 i64", shift_right),
    op("v_and_b16", "b16 = b16 b16", np.bitwise_and),
    op("v_or_b16", "b16 = b16 b16", np.bitwise_or),
    op("v_xor_b16", "b16 = b16 b16", np.bitwise_xor),
])  # fmt: skip
