"""Forms of memory instructions on the emulated card: sizes, halves, offsets, two addresses, atomics, exchanges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from assembled import TOOLS, Forms, differences

from solbench.gfx12.atomics import ATOMICS
from solbench.gfx12.run import Options

F32, U8, U16, U32, I8, I16, I32, U64, F16 = (
    np.float32, np.uint8, np.uint16, np.uint32, np.int8, np.int16, np.int32, np.uint64, np.float16,
)  # fmt: skip
LANES = np.arange(32)
# Lanes of a Fourier transform that keeps bit 4: the guide's reversed bits shifted by the number of bits kept.
FFT = [int(f"{lane:05b}"[::-1], 2) >> 1 | (lane & 16) for lane in range(32)]
# Bytes 0, 4, 8 ... 124 from the end: the words of a row in opposite order.
OPPOSITE = "v_sub_nc_u32 v30, 0x7c, v254\n"
DONE = "\ns_wait_dscnt 0x0"


def low(x: Any, dtype: Any) -> Any:
    """The lowest bits of words as ``dtype``, widened to words."""
    x = np.asarray(x).astype(U32).astype(dtype)
    return x.astype(I32 if np.dtype(dtype).kind == "i" else U32).view(U32)


def with_half(old: Any, half: Any, which: int) -> Any:
    """Words with their low (0) or high (1) half replaced by the low bits of others."""
    half = np.asarray(half).astype(U32) & U32(0xFFFF)
    return (old & U32(0xFFFF0000)) | half if which == 0 else (old & U32(0xFFFF)) | half << U32(16)


LDS: Forms = {
    "words with an offset": (
        OPPOSITE + "ds_store_b32 v254, v10 offset:128\nds_load_b32 v20, v30 offset:128" + DONE,
        lambda r: [r.v(10)[..., ::-1]],
    ),
    "two words": (
        "v_lshlrev_b32 v30, 1, v254\nds_store_2addr_b32 v30, v10, v11 offset0:2 offset1:3\n"
        "ds_load_2addr_b32 v[20:21], v30 offset0:3 offset1:2" + DONE,
        lambda r: [r.v(11), r.v(10)],
    ),
    "two words far apart": (
        "ds_store_2addr_stride64_b32 v254, v10, v11 offset0:1 offset1:3\nds_load_b32 v20, v254 offset:256\n"
        "ds_load_2addr_stride64_b32 v[21:22], v254 offset0:3 offset1:1" + DONE,
        lambda r: [r.v(10), r.v(11), r.v(10)],
    ),
    "two long words": (
        "v_lshlrev_b32 v30, 2, v254\nds_store_2addr_b64 v30, v[10:11], v[12:13] offset0:0 offset1:1\n"
        "ds_load_b128 v[20:23], v30" + DONE,
        lambda r: [r.v(10), r.v(11), r.v(12), r.v(13)],
    ),
    "three words": (
        "v_lshlrev_b32 v30, 2, v254\nds_store_b96 v30, v[10:12] offset:16\nds_load_b64 v[20:21], v30 offset:20\n"
        "ds_load_b96 v[21:23], v30 offset:16" + DONE,
        lambda r: [r.v(11), r.v(10), r.v(11), r.v(12)],
    ),
    "bytes": (
        "ds_store_b32 v254, v10\nds_store_b8 v254, v11 offset:1\nds_store_b8_d16_hi v254, v12 offset:2\n"
        "ds_load_b32 v20, v254\n"
        "ds_load_u8 v21, v254 offset:3\nds_load_i8 v22, v254 offset:3" + DONE,
        lambda r: [
            (r.v(10) & 0xFF0000FF) | (r.v(11) & 0xFF) << 8 | (r.v(12) >> 16 & 0xFF) << 16,
            r.v(10) >> 24,
            low(r.v(10) >> 24, I8),
        ],
    ),
    "halves": (
        "ds_store_b32 v254, v10\nds_store_b16 v254, v11\nds_store_b16_d16_hi v254, v12 offset:2\n"
        "ds_load_b32 v20, v254\n"
        "ds_load_u16 v21, v254\nds_load_i16 v22, v254 offset:2" + DONE,
        lambda r: [
            (r.v(11) & 0xFFFF) | (r.v(12) & 0xFFFF0000),
            low(r.v(11), U16),
            low(r.v(12) >> 16, I16),
        ],
    ),
    "halves of registers": (
        "ds_store_b32 v254, v10\nds_load_u16_d16 v20, v254\nds_load_u16_d16_hi v21, v254 offset:2\n"
        "ds_load_u8_d16_hi v22, v254 offset:1\nds_load_i8_d16 v23, v254 offset:3" + DONE,
        lambda r: [
            with_half(r.v(20), r.v(10), 0),
            with_half(r.v(21), r.v(10) >> 16, 1),
            with_half(r.v(22), low(r.v(10) >> 8, U8), 1),
            with_half(r.v(23), low(r.v(10) >> 24, I8), 0),
        ],
    ),
    "sums of all lanes": (
        "v_mov_b32 v30, 0x200\nv_mov_b32 v31, 0\nds_store_b32 v30, v31\nds_add_u32 v30, v10\n"
        "ds_load_b32 v20, v30" + DONE,
        lambda r: [np.full((1, 32), r.v(10).sum(dtype=U64) & U64(0xFFFFFFFF)).astype(U32)],
    ),
    "atomics that return": (
        "ds_store_b32 v254, v10\nds_max_rtn_i32 v20, v254, v11\nds_load_b32 v21, v254\n"
        "ds_storexchg_rtn_b32 v22, v254, v12\nds_sub_rtn_u32 v23, v254, v13" + DONE,
        lambda r: [r.v(10), np.maximum(r.i(10), r.i(11)), np.maximum(r.i(10), r.i(11)), r.v(12)],
    ),
    "compare and store": (
        "v_and_b32 v30, 1, v10\nv_and_b32 v31, 1, v11\nds_store_b32 v254, v30\n"
        "ds_cmpstore_rtn_b32 v20, v254, v12, v31\n"
        "ds_load_b32 v21, v254" + DONE,
        lambda r: [r.v(10) & 1, np.where((r.v(10) & 1) == (r.v(11) & 1), r.v(12), r.v(10) & 1).astype(U32)],
    ),
    "atomics of floats": (
        "ds_store_b32 v254, v10\nds_add_f32 v254, v11\nds_load_b32 v20, v254\nds_store_b32 v254, v12\n"
        "ds_min_num_rtn_f32 v21, v254, v13\nds_load_b32 v22, v254" + DONE,
        lambda r: [r.f(10) + r.f(11), r.f(12), ATOMICS["min_num_f32"](r.f(12), r.f(13))],
    ),
    "atomics of pairs": (
        "ds_store_b32 v254, v10\nds_pk_add_f16 v254, v11\nds_load_b32 v20, v254\nds_store_b32 v254, v12\n"
        "ds_pk_add_rtn_bf16 v21, v254, v13" + DONE,
        lambda r: [r.p(10) + r.p(11), r.v(12)],
    ),
    "long atomics": (
        "v_lshlrev_b32 v30, 1, v254\nds_store_b64 v30, v[10:11]\nds_add_rtn_u64 v[20:21], v30, v[12:13]\n"
        "ds_load_b64 v[22:23], v30" + DONE,
        lambda r: [r.v(10, U64), r.v(10, U64) + r.v(12, U64)],
    ),
    "permutations by address": (
        OPPOSITE + "ds_bpermute_b32 v20, v30, v10\nds_permute_b32 v21, v30, v11\n"
        "ds_bpermute_b32 v22, v30, v12 offset:8" + DONE,
        lambda r: [r.v(10)[..., ::-1], r.v(11)[..., ::-1], r.v(12)[..., (31 - LANES + 2) % 32]],
    ),
    "swizzles": (
        "ds_swizzle_b32 v20, v10 offset:swizzle(QUAD_PERM,1,3,0,2)\nds_swizzle_b32 v21, v11 offset:swizzle(SWAP,8)\n"
        "ds_swizzle_b32 v22, v12 offset:swizzle(REVERSE,16)\n"
        'ds_swizzle_b32 v23, v13 offset:swizzle(BITMASK_PERM,"01pi0")' + DONE,
        lambda r: [
            r.v(10)[..., (LANES & 28) + np.array([1, 3, 0, 2])[LANES & 3]],
            r.v(11)[..., LANES ^ 8],
            r.v(12)[..., LANES ^ 15],
            r.v(13)[..., 8 | (LANES & 4) | ((LANES & 2) ^ 2)],
        ],
    ),
    "swizzles that repeat or turn": (
        "ds_swizzle_b32 v20, v10 offset:swizzle(BROADCAST,8,3)\nds_swizzle_b32 v21, v11 offset:0xc0a0\n"
        "ds_swizzle_b32 v22, v12 offset:0xc460\nds_swizzle_b32 v23, v13 offset:0xe010" + DONE,
        lambda r: [
            r.v(10)[..., (LANES & 24) + 3],
            r.v(11)[..., (LANES + 5) % 32],
            r.v(12)[..., (LANES - 3) % 32],
            r.v(13)[..., FFT],
        ],
    ),
    "lanes that are off": (
        "ds_store_b32 v254, v10\ns_mov_b32 exec_lo, 0xffff\nds_store_b32 v254, v11\nds_load_b32 v20, v254\n"
        "s_mov_b32 exec_lo, -1\nds_load_b32 v21, v254" + DONE,
        lambda r: [np.where(LANES < 16, r.v(11), r.v(20)), np.where(LANES < 16, r.v(11), r.v(10))],
    ),
}
STORED = "\ns_wait_storecnt 0x0\n"
LOADED = "\ns_wait_loadcnt 0x0"
# v[30:31]: the address of each lane's 16 bytes in memory.
ADDRESS = (
    "v_lshlrev_b32 v29, 2, v254\nv_add_co_u32 v30, s30, s8, v29\nv_mov_b32 v28, s9\n"
    "v_add_co_ci_u32_e64 v31, s30, v28, 0, s30\n"
)
GLOBAL: Forms = {
    "long addresses": (
        ADDRESS + "global_store_b128 v[30:31], v[10:13], off" + STORED
        + "global_load_b96 v[20:22], v[30:31], off offset:4" + LOADED,
        lambda r: [r.v(11), r.v(12), r.v(13)],
    ),
    "a scalar base and a negative offset": (
        "v_add_nc_u32 v30, 0x100, v254\nglobal_store_b32 v30, v10, s[8:9] offset:-256" + STORED
        + "global_load_b32 v20, v254, s[8:9]\nglobal_load_u16 v21, v254, s[8:9] offset:2\n"
        "global_load_i8 v22, v254, s[8:9] offset:1" + LOADED,
        lambda r: [r.v(10), r.v(10) >> 16, low(r.v(10) >> 8, I8)],
    ),
    "halves of registers": (
        "global_store_b32 v254, v10, s[8:9]" + STORED + "global_store_d16_hi_b16 v254, v11, s[8:9]" + STORED
        + "global_load_d16_b16 v20, v254, s[8:9]\nglobal_load_d16_hi_b16 v21, v254, s[8:9] offset:2\n"
        "global_load_d16_hi_u8 v22, v254, s[8:9] offset:3\nglobal_load_d16_i8 v23, v254, s[8:9] offset:3" + LOADED,
        lambda r: [
            with_half(r.v(20), r.v(11) >> 16, 0),
            with_half(r.v(21), r.v(10) >> 16, 1),
            with_half(r.v(22), low(r.v(10) >> 24, U8), 1),
            with_half(r.v(23), low(r.v(10) >> 24, I8), 0),
        ],
    ),
    "atomics that return": (
        "global_store_b32 v254, v10, s[8:9]" + STORED
        + "global_atomic_add_u32 v20, v254, v11, s[8:9] th:TH_ATOMIC_RETURN" + LOADED
        + "\nglobal_atomic_min_u32 v21, v254, v12, s[8:9] th:TH_ATOMIC_RETURN" + LOADED
        + "\nglobal_atomic_dec_u32 v254, v13, s[8:9]" + STORED + "global_load_b32 v22, v254, s[8:9]" + LOADED,
        lambda r: [
            r.v(10),
            r.v(10) + r.v(11),
            ATOMICS["dec_u32"](np.minimum(r.v(10) + r.v(11), r.v(12)), r.v(13)),
        ],
    ),
    "compare and swap": (
        "v_and_b32 v30, 1, v10\nv_mov_b32 v32, v12\nv_and_b32 v33, 1, v11\n"
        "global_store_b32 v254, v30, s[8:9]" + STORED
        + "global_atomic_cmpswap_b32 v20, v254, v[32:33], s[8:9] th:TH_ATOMIC_RETURN" + LOADED
        + "\nglobal_load_b32 v21, v254, s[8:9]" + LOADED,
        lambda r: [r.v(10) & 1, np.where((r.v(10) & 1) == (r.v(11) & 1), r.v(12), r.v(10) & 1).astype(U32)],
    ),
    "atomics of floats": (
        "global_store_b32 v254, v10, s[8:9]" + STORED + "global_atomic_add_f32 v254, v11, s[8:9]" + STORED
        + "global_load_b32 v20, v254, s[8:9]" + LOADED
        + "\nglobal_atomic_max_num_f32 v254, v12, s[8:9]" + STORED + "global_load_b32 v21, v254, s[8:9]" + LOADED,
        lambda r: [r.f(10) + r.f(11), ATOMICS["max_num_f32"](r.f(10) + r.f(11), r.f(12))],
    ),
    "atomics of pairs": (
        "global_store_b32 v254, v10, s[8:9]" + STORED + "global_atomic_pk_add_f16 v254, v11, s[8:9]" + STORED
        + "global_load_b32 v20, v254, s[8:9]" + LOADED,
        lambda r: [r.p(10) + r.p(11)],
    ),
    "long atomics": (
        ADDRESS + "global_store_b64 v[30:31], v[10:11], off" + STORED
        + "global_atomic_swap_b64 v[20:21], v[30:31], v[12:13], off th:TH_ATOMIC_RETURN" + LOADED
        + "\n"
        "global_atomic_add_u64 v[30:31], v[14:15], off" + STORED + "global_load_b64 v[22:23], v[30:31], off" + LOADED,
        lambda r: [r.v(10, U64), r.v(12, U64) + r.v(14, U64)],
    ),
    "flat": (
        ADDRESS + "flat_store_b64 v[30:31], v[10:11] offset:8\ns_wait_storecnt_dscnt 0x0\n"
        "flat_load_b32 v20, v[30:31] offset:12\nflat_load_u8 v21, v[30:31] offset:9\ns_wait_loadcnt_dscnt 0x0",
        lambda r: [r.v(11), r.v(10) >> 8 & 0xFF],
    ),
    "flat addresses of LDS": (
        "ds_store_b32 v254, v10\ns_wait_dscnt 0x0\ns_mov_b64 s[30:31], src_shared_base\n"
        "v_mov_b32 v30, v254\nv_mov_b32 v31, s31\n"
        "flat_load_b32 v20, v[30:31]\ns_wait_loadcnt_dscnt 0x0",
        lambda r: [r.v(10)],
    ),
    "scalar loads": (
        "v_mov_b32 v30, 0\nv_mov_b32 v31, s20\nv_mov_b32 v32, s21\nglobal_store_b64 v30, v[31:32], s[8:9]" + STORED
        + "s_mov_b32 s30, 4\ns_load_b32 s31, s[8:9], s30 offset:0x0\ns_load_u8 s32, s[8:9], 0x3\n"
        "s_load_i16 s33, s[8:9], 0x6\n"
        "s_wait_kmcnt 0x0\nv_mov_b32 v20, s31\nv_mov_b32 v21, s32\nv_mov_b32 v22, s33",
        lambda r: [r.s(21), r.s(20) >> 24, low(r.s(21) >> 16, I16)],
    ),
}  # fmt: skip
# A raw buffer of 256 bytes at memory, and one of 8 records of 16 bytes.
RAW = "s_mov_b32 s12, s8\ns_and_b32 s13, s9, 0xffff\ns_movk_i32 s14, 0x100\ns_mov_b32 s15, 0x31027000\n"
RECORDS = (
    "s_mov_b32 s12, s8\ns_and_b32 s13, s9, 0xffff\ns_or_b32 s13, s13, 0x100000\ns_mov_b32 s14, 32\n"
    "s_mov_b32 s15, 0x01027000\nv_lshrrev_b32 v30, 2, v254\n"
)
BUFFERS: Forms = {
    "lane offsets, a constant and a scalar one": (
        RAW + "s_mov_b32 s30, 16\nbuffer_store_b32 v10, v254, s[12:15], s30 offen offset:8" + STORED
        + "global_load_b32 v20, v254, s[8:9] offset:24\n"
        "buffer_load_u16 v21, v254, s[12:15], s30 offen offset:10" + LOADED,
        lambda r: [r.v(10), r.v(10) >> 16],
    ),
    "out of range": (
        RAW + "v_mov_b32 v31, 0\nv_lshlrev_b32 v30, 2, v254\nbuffer_store_b32 v10, v30, s[12:15], null offen" + STORED
        + "buffer_load_b32 v20, v30, s[12:15], null offen" + LOADED,
        lambda r: [np.where(LANES < 16, r.v(10), 0).astype(U32)],
    ),
    "records by index": (
        RECORDS + "buffer_store_b64 v[10:11], v30, s[12:15], null idxen offset:4" + STORED
        + "v_lshlrev_b32 v32, 2, v254\nglobal_load_b64 v[20:21], v32, s[8:9] offset:4" + LOADED,
        lambda r: [r.v(10), r.v(11)],
    ),
    "records by index and offset": (
        RECORDS + "v_mov_b32 v31, 8\nbuffer_store_b32 v10, v[30:31], s[12:15], null idxen offen" + STORED
        + "buffer_load_b32 v20, v30, s[12:15], null idxen offset:8" + LOADED,
        lambda r: [r.v(10)],
    ),
    "atomics": (
        RAW + "global_store_b32 v254, v10, s[8:9]" + STORED
        + "v_mov_b32 v20, v11\nbuffer_atomic_add_u32 v20, v254, s[12:15], null offen th:TH_ATOMIC_RETURN" + LOADED
        + "\n"
        "buffer_atomic_and_b32 v12, v254, s[12:15], null offen" + STORED + "global_load_b32 v21, v254, s[8:9]" + LOADED,
        lambda r: [r.v(10), (r.v(10) + r.v(11)) & r.v(12)],
    ),
    "scalar loads of a buffer": (
        RAW + "v_mov_b32 v30, 0\nv_mov_b32 v31, s20\nglobal_store_b32 v30, v31, s[8:9] offset:64" + STORED
        + "s_buffer_load_b32 s30, s[12:15], 0x40\ns_wait_kmcnt 0x0\nv_mov_b32 v20, s30",
        lambda r: [r.s(20)],
    ),
}  # fmt: skip
ALL = {"LDS": LDS, "global": GLOBAL, "buffers": BUFFERS}


@pytest.mark.skipif(None in TOOLS.values(), reason="llvm-mc-22, ld.lld-22 or llvm-objdump-22 is not installed")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("family", sorted(ALL))
def test_memory_forms(family: str, strict: bool) -> None:
    assert not differences(ALL[family], Options(strict_waits=strict))
