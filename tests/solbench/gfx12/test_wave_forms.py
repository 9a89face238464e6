"""Forms of instructions across a wave: lanes moved, masks, partial EXEC, carries, pairs of operations, scalar code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from assembled import TOOLS, Forms, differences

from solbench.gfx12.ops import OPS
from solbench.gfx12.wmma import WMMA

F16, F32, U16, U32, I32, U64, I64 = np.float16, np.float32, np.uint16, np.uint32, np.int32, np.uint64, np.int64
LANES = np.arange(32)
ROW, PLACE = LANES & 16, LANES & 15


def mask(bits: int) -> Any:
    """A mask of lanes (1, 32)."""
    return ((bits >> LANES) & 1).astype(bool)[None]


def moved(x: Any, place: Any) -> Any:
    """``x`` of another place of each lane's row of 16, and where that place is inside the row."""
    inside = (place >= 0) & (place < 16)
    return x[..., ROW + np.clip(place, 0, 15)], inside


def shifted(x: Any, by: int, fill: Any) -> Any:
    """A row shifted towards higher places; ``fill`` where nothing comes in."""
    values, inside = moved(x, PLACE - by)
    return np.where(inside, values, fill)


def ones(x: Any) -> Any:
    """The number of bits set."""
    return np.array([int(value).bit_count() for value in np.ravel(x)], U32).reshape(np.shape(x))


def everywhere(value: int) -> Any:
    """A word in every lane."""
    return np.full((1, 32), value & 0xFFFFFFFF, U32)


def _add64(r: Any) -> list[Any]:
    total = r.v(10).astype(object) + r.v(11) + ((r.v(12).astype(object) + r.v(13)) << 32)
    return [(total & 0xFFFFFFFFFFFFFFFF).astype(U64), (total >> 64).astype(bool)]


def _sub64(r: Any) -> list[Any]:
    rest = r.v(10).astype(object) - r.v(11) + ((r.v(12).astype(object) - r.v(13)) << 32)
    return [(rest % (1 << 64)).astype(U64), rest < 0]


PART = 0x0FF0A53C
DPP: Forms = {
    "row_shr with bound_ctrl": (
        "v_add_f32_dpp v20, v10, v11 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
        lambda r: [shifted(r.f(10), 1, F32(0)) + r.f(11)],
    ),
    "row_shr without": (
        "v_add_nc_u32_dpp v20, v10, v11 row_shr:4 row_mask:0xf bank_mask:0xf",
        lambda r: [np.where(PLACE >= 4, shifted(r.v(10), 4, U32(0)) + r.v(11), r.v(20))],
    ),
    "row_shl": (
        "v_mov_b32_dpp v20, v10 row_shl:3 row_mask:0xf bank_mask:0xf bound_ctrl:1",
        lambda r: [shifted(r.v(10), -3, U32(0))],
    ),
    "row_ror": (
        "v_mov_b32_dpp v20, v10 row_ror:5 row_mask:0xf bank_mask:0xf",
        lambda r: [r.v(10)[..., ROW + (PLACE - 5) % 16]],
    ),
    "row_mirror and row_half_mirror": (
        "v_mov_b32_dpp v20, v10 row_mirror row_mask:0xf bank_mask:0xf\n"
        "v_mov_b32_dpp v21, v11 row_half_mirror row_mask:0xf bank_mask:0xf",
        lambda r: [r.v(10)[..., ROW + 15 - PLACE], r.v(11)[..., (LANES & 24) + 7 - (LANES & 7)]],
    ),
    "quad_perm": (
        "v_mov_b32_dpp v20, v10 quad_perm:[2,0,3,1] row_mask:0xf bank_mask:0xf",
        lambda r: [r.v(10)[..., (LANES & 28) + np.array([2, 0, 3, 1])[LANES & 3]]],
    ),
    "row_share and row_xmask": (
        "v_mov_b32_dpp v20, v10 row_share:7 row_mask:0xf bank_mask:0xf\n"
        "v_xor_b32_dpp v21, v11, v12 row_xmask:6 row_mask:0xf bank_mask:0xf",
        lambda r: [r.v(10)[..., ROW + 7], r.v(11)[..., LANES ^ 6] ^ r.v(12)],
    ),
    "masked rows and banks": (
        "v_mov_b32_dpp v20, v10 row_ror:1 row_mask:0x2 bank_mask:0xf\n"
        "v_mov_b32_dpp v21, v11 row_ror:1 row_mask:0xf bank_mask:0x5",
        lambda r: [
            np.where(ROW == 16, r.v(10)[..., ROW + (PLACE - 1) % 16], r.v(20)),
            np.where((PLACE // 4) % 2 == 0, r.v(11)[..., ROW + (PLACE - 1) % 16], r.v(21)),
        ],
    ),
    "dpp8": (
        "v_mov_b32_dpp v20, v10 dpp8:[7,0,1,2,6,5,4,3]",
        lambda r: [r.v(10)[..., (LANES & 24) + np.array([7, 0, 1, 2, 6, 5, 4, 3])[LANES & 7]]],
    ),
    "dpp with modifiers of three operands": (
        "v_fma_f32_e64_dpp v20, -v10, |v11|, v12 row_ror:2 row_mask:0xf bank_mask:0xf",
        lambda r: [OPS["v_fma_f32"].apply(-r.f(10)[..., ROW + (PLACE - 2) % 16], abs(r.f(11)), r.f(12))],
    ),
    "dpp of an accumulation": (
        "v_fmac_f32_dpp v20, v10, v11 row_xmask:1 row_mask:0xf bank_mask:0xf",
        lambda r: [OPS["v_fma_f32"].apply(r.f(10)[..., LANES ^ 1], r.f(11), r.f(20))],
    ),
    "dpp of a comparison": (
        "v_cmp_gt_i32_dpp vcc_lo, v10, v11 row_xmask:8 row_mask:0xf bank_mask:0xf\nv_mov_b32 v20, vcc_lo",
        lambda r: [r.i(10)[..., LANES ^ 8] > r.i(11)],
    ),
    "dpp and lanes that are off": (
        f"s_mov_b32 exec_lo, {PART:#x}\n"
        "v_mov_b32_dpp v20, v10 row_xmask:1 row_mask:0xf bank_mask:0xf\n"
        "v_mov_b32_dpp v21, v10 row_xmask:1 row_mask:0xf bank_mask:0xf bound_ctrl:1\n"
        "v_mov_b32_dpp v22, v10 row_xmask:1 row_mask:0xf bank_mask:0xf fi:1",
        lambda r: [
            np.where(mask(PART) & mask(PART)[..., LANES ^ 1], r.v(10)[..., LANES ^ 1], r.v(20)),
            np.where(mask(PART), np.where(mask(PART)[..., LANES ^ 1], r.v(10)[..., LANES ^ 1], 0), r.v(21)).astype(U32),
            np.where(mask(PART), r.v(10)[..., LANES ^ 1], r.v(22)),
        ],
    ),
    "dpp of a half": (
        "v_add_f16_dpp v20.h, v10.l, v11.h row_xmask:2 row_mask:0xf bank_mask:0xf",
        lambda r: [np.stack([r.h(20, 0), r.h(10, 0)[..., LANES ^ 2] + r.h(11, 1)], -1)],
    ),
}
MASKS: Forms = {
    "lanes that are off keep their values": (
        f"s_mov_b32 exec_lo, {PART:#x}\nv_mov_b32 v20, v10\nv_add_f64 v[21:22], v[11:12], v[13:14]",
        lambda r: [
            np.where(mask(PART), r.v(10), r.v(20)),
            np.where(mask(PART), r.d(11) + r.d(13), r.d(21)),
        ],
    ),
    "a half under a mask": (
        f"s_mov_b32 exec_lo, {PART:#x}\nv_mov_b16 v20.h, v10.l",
        lambda r: [np.stack([r.w(20, 0), np.where(mask(PART), r.w(10, 0), r.w(20, 1))], -1)],
    ),
    "a comparison clears the bits of lanes that are off": (
        f"s_mov_b32 s30, -1\ns_mov_b32 exec_lo, {PART:#x}\nv_cmp_ne_u32 s30, v10, v11\ns_mov_b32 exec_lo, -1\n"
        "v_mov_b32 v20, s30",
        lambda r: [(r.v(10) != r.v(11)) & mask(PART)],
    ),
    "cmpx narrows exec": (
        f"s_mov_b32 exec_lo, {PART:#x}\nv_cmpx_lt_i32 v10, v11\nv_mov_b32 v20, v12\nv_mov_b32 v21, exec_lo\n"
        "s_mov_b32 s30, exec_lo\ns_mov_b32 exec_lo, -1\nv_mov_b32 v22, s30",
        lambda r: [
            np.where(mask(PART) & (r.i(10) < r.i(11)), r.v(12), r.v(20)),
            np.where(
                mask(PART) & (r.i(10) < r.i(11)),
                U32(np.packbits((mask(PART) & (r.i(10) < r.i(11)))[0], bitorder="little").view(U32)[0]),
                r.v(21),
            ),
            mask(PART) & (r.i(10) < r.i(11)),
        ],
    ),
    "saveexec": (
        "v_cmp_gt_f32 vcc_lo, v10, v11\ns_and_saveexec_b32 s30, vcc_lo\nv_mov_b32 v20, v12\n"
        "s_xor_b32 exec_lo, exec_lo, s30\nv_mov_b32 v20, v13",
        lambda r: [np.where(r.f(10) > r.f(11), r.v(12), r.v(13))],
    ),
    "carries": (
        "v_add_co_u32 v20, vcc_lo, v10, v11\nv_add_co_ci_u32_e32 v21, vcc_lo, v12, v13, vcc_lo\nv_mov_b32 v22, vcc_lo",
        _add64,
    ),
    "borrows in another register": (
        "v_sub_co_u32 v20, s30, v10, v11\nv_sub_co_ci_u32_e64 v21, s31, v12, v13, s30\nv_mov_b32 v22, s31",
        _sub64,
    ),
    "a carry nobody wants": (
        "v_mad_co_u64_u32 v[20:21], null, v10, v11, v[12:13]",
        lambda r: [r.v(10).astype(U64) * r.v(11).astype(U64) + r.v(12, U64)],
    ),
    "selection by vcc": (
        "s_mov_b32 vcc_lo, 0x12345678\nv_cndmask_b32 v20, v10, v11, vcc_lo",
        lambda r: [np.where(mask(0x12345678), r.v(11), r.v(10))],
    ),
    "lanes read and written": (
        "v_readlane_b32 s30, v10, 7\ns_mov_b32 s31, 40\nv_readlane_b32 s32, v10, s31\nv_writelane_b32 v20, s20, 31\n"
        "v_writelane_b32 v20, s30, 3\nv_mov_b32 v21, s32\n"
        f"s_mov_b32 exec_lo, {PART:#x}\nv_readfirstlane_b32 s33, v11\nv_writelane_b32 v22, 17, 0\n"
        f"s_mov_b32 exec_lo, -1\n"
        "v_mov_b32 v23, s33",
        lambda r: [
            np.where(LANES == 31, r.s(20), np.where(LANES == 3, r.v(10)[..., 7], r.v(20))),
            everywhere(int(r.v(10)[0, 8])),
            np.where(LANES == 0, U32(17), r.v(22)),
            everywhere(int(r.v(11)[0, 2])),
        ],
    ),
    "permlane": (
        "s_mov_b32 s30, 0x76543210\ns_mov_b32 s31, 0xfedcba98\nv_permlanex16_b32 v20, v10, s30, s31 op_sel:[1,0]\n"
        "s_mov_b32 s30, 0x01234567\ns_mov_b32 s31, 0x89abcdef\nv_permlane16_b32 v21, v11, s30, s31",
        lambda r: [r.v(10)[..., LANES ^ 16], r.v(11)[..., ROW + (PLACE & 8) + 7 - (PLACE & 7)]],
    ),
    "permlane by lanes": (
        "v_permlane16_var_b32 v20, v10, v11\nv_permlanex16_var_b32 v21, v12, v13",
        lambda r: [
            r.v(10)[0, ROW + (r.v(11)[0] & 15)][None],
            r.v(12)[0, (ROW ^ 16) + (r.v(13)[0] & 15)][None],
        ],
    ),
    "mbcnt": (
        "v_mbcnt_lo_u32_b32 v20, -1, 0\nv_mbcnt_lo_u32_b32 v21, s20, v10\nv_mbcnt_hi_u32_b32 v22, -1, v20",
        lambda r: [
            LANES[None].astype(U32),
            ones(r.s(20) & ((1 << LANES) - 1).astype(U32)) + r.v(10),
            LANES[None].astype(U32),
        ],
    ),
}
TWO: Forms = {
    "both halves read first": (
        "v_dual_mov_b32 v20, v21 :: v_dual_mov_b32 v21, v20",
        lambda r: [r.v(21), r.v(20)],
    ),
    "two kinds at once": (
        "v_dual_fmac_f32 v20, v10, v11 :: v_dual_add_nc_u32 v21, v12, v13",
        lambda r: [OPS["v_fma_f32"].apply(r.f(10), r.f(11), r.f(20)), r.v(12) + r.v(13)],
    ),
    "a constant for both": (
        "v_dual_fmaak_f32 v20, v10, v11, 0x40400000 :: v_dual_fmamk_f32 v21, v12, 0x40400000, v13",
        lambda r: [
            OPS["v_fma_f32"].apply(r.f(10), r.f(11), np.full((1, 1), 3, F32)),
            OPS["v_fma_f32"].apply(r.f(12), np.full((1, 1), 3, F32), r.f(13)),
        ],
    ),
    "a selection beside a shift": (
        "s_mov_b32 vcc_lo, 0xa5a5a5a5\nv_dual_cndmask_b32 v20, v10, v11 :: v_dual_lshlrev_b32 v21, 5, v13",
        lambda r: [np.where(mask(0xA5A5A5A5), r.v(11), r.v(10)), r.v(13) << U32(5)],
    ),
}


def _block(r: Any, numbers: tuple[int, ...]) -> Any:
    return np.stack([r.v(number) for number in numbers], -1)


def _registers(result: Any) -> list[Any]:
    """The registers of a block (1, 32, n)."""
    return [np.ascontiguousarray(result[..., at]) for at in range(result.shape[-1])]


MATRIX: Forms = {
    "f16 results": (
        "v_wmma_f16_16x16x16_f16 v[20:23], v[10:13], v[14:17], v[20:23] neg_lo:[1,0,0] neg_hi:[1,0,1]",
        lambda r: _registers(
            WMMA["v_wmma_f16_16x16x16_f16"](
                _block(r, (10, 11, 12, 13)),
                _block(r, (14, 15, 16, 17)),
                _block(r, (20, 21, 22, 23)),
                neg_lo=(True, False, False),
                neg_hi=(True, False, True),
            )
        ),
    ),
    "integers": (
        "\n".join(f"v_mov_b32 v{30 + at}, v{20 + at % 4}" for at in range(8))
        + "\nv_wmma_i32_16x16x16_iu8 v[30:37], v[10:11], v[12:13], v[30:37] neg_lo:[0,1,0] clamp\n"
        + "\n".join(f"v_mov_b32 v{20 + at}, v{31 + 2 * at}" for at in range(4)),
        lambda r: _registers(
            WMMA["v_wmma_i32_16x16x16_iu8"](
                _block(r, (10, 11)),
                _block(r, (12, 13)),
                _block(r, (20, 21, 22, 23) * 2),
                neg_lo=(False, True, False),
                clamp=True,
            )[..., 1::2]
        ),
    ),
}
ALL = {"dpp": DPP, "masks": MASKS, "two": TWO, "matrix": MATRIX}


@pytest.mark.skipif(None in TOOLS.values(), reason="llvm-mc-22, ld.lld-22 or llvm-objdump-22 is not installed")
@pytest.mark.parametrize("family", sorted(ALL))
def test_forms_across_a_wave(family: str) -> None:
    assert not differences(ALL[family])
