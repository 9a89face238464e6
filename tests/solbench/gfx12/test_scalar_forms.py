"""Scalar code on the emulated card: constants, SCC, pairs of registers, branches, floats, registers indexed by M0."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import exact_floats as ef
import numpy as np
import pytest
from assembled import TOOLS, Forms, Registers, differences, execute

F16, F32, U32, U64 = np.float16, np.float32, np.uint32, np.uint64


def out(*numbers: int) -> str:
    """Moves of scalar registers to v20 and the registers after it."""
    return "\n" + "\n".join(f"v_mov_b32 v{20 + at}, s{number}" for at, number in enumerate(numbers))


def word(value: Any) -> Any:
    """An integer in every lane, cut to 32 bits."""
    return np.full((1, 32), int(value) & 0xFFFFFFFF, U32)


def long(value: Any) -> Any:
    """An integer in every lane, cut to 64 bits."""
    return np.full((1, 32), int(value) & 0xFFFFFFFFFFFFFFFF, U64)


def s(r: Registers, number: int) -> int:
    """A scalar register as an unsigned integer."""
    return int(r.s(number)[0, 0])


def i(r: Registers, number: int) -> int:
    """A scalar register as a signed integer."""
    value = s(r, number)
    return value - (1 << 32) if value >> 31 else value


def d(r: Registers, number: int) -> int:
    """Two scalar registers as an unsigned integer."""
    return s(r, number) | s(r, number + 1) << 32


SCC = "\ns_cselect_b32 s39, 1, 0"
INTEGERS: Forms = {
    "64-bit sum by carries": (
        "s_add_co_u32 s30, s20, s22\ns_add_co_ci_u32 s31, s21, s23" + SCC + out(30, 31, 39),
        lambda r: [long(d(r, 20) + d(r, 22)), word((d(r, 20) + d(r, 22)) >> 64)],
    ),
    "64-bit difference by borrows": (
        "s_sub_co_u32 s30, s20, s22\ns_sub_co_ci_u32 s31, s21, s23" + SCC + out(30, 31, 39),
        lambda r: [long(d(r, 20) - d(r, 22)), word(d(r, 20) < d(r, 22))],
    ),
    "signed overflow": (
        "s_add_co_i32 s30, s20, 0x7fffffff" + SCC + out(30, 39),
        lambda r: [word(i(r, 20) + 0x7FFFFFFF), word(i(r, 20) > 0)],
    ),
    "products": (
        "s_mul_i32 s30, s20, -3\ns_mul_hi_u32 s31, s20, s21\ns_mul_u64 s[32:33], s[20:21], s[22:23]"
        + out(30, 31, 32, 33),
        lambda r: [word(s(r, 20) * -3), word(s(r, 20) * s(r, 21) >> 32), long(d(r, 20) * d(r, 22))],
    ),
    "fields": (
        "s_bfe_u32 s30, s20, 0x80005\ns_bfe_i32 s31, s20, 0x8000c\ns_bfe_u64 s[32:33], s[20:21], 0x18001c"
        + out(30, 31, 32, 33),
        lambda r: [
            word(s(r, 20) >> 5 & 0xFF),
            word(((s(r, 20) >> 12 & 0xFF) ^ 0x80) - 0x80),
            long(d(r, 20) >> 28 & 0xFFFFFF),
        ],
    ),
    "long shifts": (
        "s_lshl_b64 s[30:31], s[20:21], 37\ns_ashr_i64 s[32:33], s[22:23], s24" + out(30, 31, 32, 33),
        lambda r: [long(d(r, 20) << 37), long((d(r, 22) ^ 1 << 63) - (1 << 63) >> (s(r, 24) & 63))],
    ),
    "counts": (
        "s_bcnt1_i32_b64 s30, s[20:21]\ns_ctz_i32_b32 s31, s22\ns_clz_i32_u32 s32, s23\ns_brev_b32 s33, s24"
        + out(30, 31, 32, 33),
        lambda r: [
            word(d(r, 20).bit_count()),
            word((s(r, 22) & -s(r, 22)).bit_length() - 1),
            word(32 - s(r, 23).bit_length()),
            word(int(f"{s(r, 24):032b}"[::-1], 2)),
        ],
    ),
    "constants of 16 bits": (
        "s_movk_i32 s30, 0x8001\ns_mov_b32 s31, s20\ns_addk_co_i32 s31, 0xfff0\ns_mov_b32 s32, s21\n"
        "s_mulk_i32 s32, 0x7f" + out(30, 31, 32),
        lambda r: [word(-0x7FFF), word(s(r, 20) - 16), word(s(r, 21) * 0x7F)],
    ),
    "a move that SCC decides": (
        "s_mov_b32 s30, s20\ns_mov_b32 s31, s20\ns_cmp_eq_u32 s21, s21\ns_cmov_b32 s30, s22\ns_cmp_lg_u32 s21, s21\n"
        "s_cmov_b32 s31, s22\ns_cselect_b64 s[32:33], s[20:21], s[22:23]" + out(30, 31, 32, 33),
        lambda r: [word(s(r, 22)), word(s(r, 20)), long(d(r, 22))],
    ),
    "bits set and packed": (
        "s_mov_b32 s30, s20\ns_bitset1_b32 s30, 5\ns_bitset0_b32 s30, s21\ns_pack_lh_b32_b16 s31, s22, s23\n"
        "s_and_not1_b32 s32, s24, s25\ns_sext_i32_i8 s33, s26" + out(30, 31, 32, 33),
        lambda r: [
            word((s(r, 20) | 32) & ~(1 << (s(r, 21) & 31))),
            word(s(r, 22) & 0xFFFF | s(r, 23) & 0xFFFF0000),
            word(s(r, 24) & ~s(r, 25)),
            word(((s(r, 26) & 0xFF) ^ 0x80) - 0x80),
        ],
    ),
    "SCC of operations": (
        "s_and_b32 s30, s20, 0" + SCC + "\ns_mov_b32 s31, s39\ns_max_u32 s30, s21, s22" + SCC + "\ns_mov_b32 s32, s39\n"
        "s_bitcmp1_b32 s23, 9" + SCC + out(31, 32, 39),
        lambda r: [word(0), word(s(r, 21) >= s(r, 22)), word(s(r, 23) >> 9 & 1)],
    ),
    "vcc and exec as registers": (
        "s_mov_b32 vcc_lo, s20\ns_xor_b32 s30, vcc_lo, exec_lo\ns_mov_b32 m0, s21\ns_add_co_u32 s31, m0, 1\n"
        "s_mov_b32 s32, null" + out(30, 31, 32),
        lambda r: [word(~s(r, 20)), word(s(r, 21) + 1), word(0)],
    ),
    "a branch on each condition": (
        "s_mov_b32 s30, 0\ns_cmp_eq_u32 s20, s20\ns_cbranch_scc0 .La\ns_or_b32 s30, s30, 1\n.La:\n"
        "s_cmp_lg_u32 s20, s20\n"
        "s_cbranch_scc1 .Lb\ns_or_b32 s30, s30, 2\n.Lb:\ns_mov_b32 vcc_lo, 0\ns_cbranch_vccnz .Lc\n"
        "s_or_b32 s30, s30, 4\n"
        ".Lc:\ns_cbranch_execz .Ld\ns_or_b32 s30, s30, 8\n.Ld:\ns_branch .Le\ns_or_b32 s30, s30, 16\n.Le:" + out(30),
        lambda r: [word(15)],
    ),
    "a loop": (
        "s_mov_b32 s30, 0\ns_mov_b32 s31, 10\n.Lloop:\ns_add_co_u32 s30, s30, s31\ns_sub_co_u32 s31, s31, 1\n"
        "s_cmp_lg_u32 s31, 0\ns_cbranch_scc1 .Lloop" + out(30, 31),
        lambda r: [word(55), word(0)],
    ),
    "a call": (
        "s_getpc_b64 s[30:31]\n.Lhere:\ns_add_co_u32 s30, s30, .Lcalled-.Lhere\ns_add_co_ci_u32 s31, s31, 0\n"
        "s_swappc_b64 s[32:33], s[30:31]\ns_branch .Lover\n.Lcalled:\ns_mov_b32 s34, s20\ns_setpc_b64 s[32:33]\n.Lover:"
        + out(34),
        lambda r: [word(s(r, 20))],
    ),
    "scalar registers by M0": (
        "s_mov_b32 m0, 3\ns_movrels_b32 s30, s20\ns_movrels_b64 s[32:33], s[22:23]\ns_mov_b32 m0, 2\n"
        "s_mov_b32 s36, 0\ns_movreld_b32 s34, s21" + out(30, 36),
        lambda r: [word(s(r, 23)), word(s(r, 21))],
    ),
    "vector registers by M0": (
        "s_mov_b32 m0, 2\nv_movrels_b32 v20, v10\nv_movreld_b32 v19, v11\n"
        "v_movrelsd_b32 v20, v13\ns_mov_b32 m0, 0x10003\nv_movrelsd_2_b32 v22, v12",
        lambda r: [r.v(12), r.v(11), r.v(15), r.v(15)],
    ),
    "vector registers exchanged by M0": (
        "s_mov_b32 m0, 0x20001\nv_swaprel_b32 v20, v20",
        lambda r: [r.v(20), r.v(22), r.v(21)],
    ),
}


def _f(r: Registers, number: int) -> float:
    return float(r.s(number, F32)[0, 0])


def single(number: ef.Float) -> Any:
    """A float32 in every lane."""
    return np.full((1, 32), ef.encode(number), U32).view(F32)


ORDINARY = "s_mov_b32 s24, 0x3fc90fdb\ns_mov_b32 s25, 0xc0490fdb\ns_mov_b32 s26, 0x42280000\n"
A, B, C = (ef.decode("f32", bits).value for bits in (0x3FC90FDB, 0xC0490FDB, 0x42280000))
FLOATS: Forms = {
    "sums and products": (
        ORDINARY + "s_add_f32 s30, s24, s25\ns_mul_f32 s31, s24, 0.5\ns_sub_f32 s32, 0x40000000, s25\n"
        "s_max_num_f32 s33, s24, s25"
        + out(30, 31, 32, 33),
        lambda r: [single(ef.add("f32", A, B)), single(ef.multiply("f32", A, 0.5)), single(ef.add("f32", 2.0, -B)),
                   single(ef.Float("f32", A))],
    ),
    "fused": (
        ORDINARY + "s_mov_b32 s30, s26\ns_fmac_f32 s30, s24, s25\ns_fmamk_f32 s31, s24, 0x40a00000, s25\n"
        "s_fmaak_f32 s32, s24, s25, 0x3e000000" + out(30, 31, 32),
        lambda r: [single(ef.fma("f32", *terms)) for terms in ((A, B, C), (A, 5.0, B), (A, B, 0.125))],
    ),
    "conversions": (
        ORDINARY + "s_cvt_i32_f32 s30, s25\ns_cvt_f32_u32 s31, s20\ns_cvt_pk_rtz_f16_f32 s32, s24, s25\n"
        "s_rndne_f32 s33, s24"
        + out(30, 31, 32, 33),
        lambda r: [
            word(-3), single(ef.rounded("f32", Fraction(s(r, 20)))),
            word(ef.encode(ef.rounded("f16", Fraction(A), toward_zero=True))
                 | ef.encode(ef.rounded("f16", Fraction(B), toward_zero=True)) << 16),
            single(ef.Float("f32", 2.0)),
        ],
    ),
    "float16 in scalar registers": (
        ORDINARY + "s_cvt_f16_f32 s30, s24\ns_add_f16 s31, s30, 1.0\ns_mov_b32 s34, 0x4248abcd\n"
        "s_cvt_hi_f32_f16 s32, s34\n"
        "s_cvt_f32_f16 s33, s30" + out(30, 31, 32, 33),
        lambda r: [
            word(ef.encode(ef.rounded("f16", Fraction(A)))),
            word(ef.encode(ef.add("f16", ef.rounded("f16", Fraction(A)).value, 1.0))),
            single(ef.convert("f32", ef.decode("f16", 0x4248))),
            single(ef.convert("f32", ef.rounded("f16", Fraction(A)))),
        ],
    ),
    "comparisons": (
        ORDINARY + "s_cmp_lt_f32 s24, s25" + SCC + "\ns_mov_b32 s30, s39\ns_cmp_nge_f32 s25, 0x7fc00000" + SCC
        + "\ns_mov_b32 s31, s39\ns_cmp_gt_f32 s24, 1.0" + SCC + out(30, 31, 39),
        lambda r: [word(0), word(1), word(1)],
    ),
    "transcendentals of scalars": (
        "v_s_rcp_f32 s30, 4.0\ns_mov_b32 s34, 0x41800000\nv_s_sqrt_f32 s31, s34\nv_s_exp_f32 s32, -3.0\n"
        "s_movk_i32 s35, 0x4400\nv_s_rsq_f16 s33, s35" + out(30, 31, 32, 33),
        lambda r: [single(ef.Float("f32", x)) for x in (0.25, 4.0, 0.125)] + [word(0x3800)],
    ),
    "modifiers of transcendentals of scalars": (
        "s_mov_b32 s34, 0xc1800000\nv_s_sqrt_f32 s31, -s34\nv_s_rcp_f32 s32, -|s34|" + out(31, 32),
        lambda r: [single(ef.Float("f32", 4.0)), single(ef.Float("f32", -0.0625))],
    ),
}  # fmt: skip


@pytest.mark.skipif(None in TOOLS.values(), reason="llvm-mc-22, ld.lld-22 or llvm-objdump-22 is not installed")
@pytest.mark.parametrize("forms", [INTEGERS, FLOATS], ids=["integers", "floats"])
def test_scalar_forms(forms: Forms) -> None:
    assert not differences(forms)


@pytest.mark.skipif(None in TOOLS.values(), reason="llvm-mc-22, ld.lld-22 or llvm-objdump-22 is not installed")
def test_waves_of_different_m0_index_different_registers() -> None:
    # Trap register 8 holds the number of the wave in bits 29:25.
    snippet = (
        "s_bfe_u32 s30, ttmp8, 0x50019\ns_mov_b32 m0, s30\nv_mov_b32 v30, 100\nv_mov_b32 v31, 101\nv_mov_b32 v32, 102\n"
        "v_mov_b32 v33, 103\nv_movrels_b32 v34, v30\nglobal_store_b32 v254, v34, s[8:9]\ns_endpgm"
    )
    memory = np.zeros(1024, U32)
    rows = np.zeros((1, 17, 32), U32)
    _, outcome = execute([snippet], rows, memory=memory, threads=128)
    assert outcome.clean, outcome
    assert memory[:128].tolist() == np.repeat([100, 101, 102, 103], 32).tolist()


@pytest.mark.skipif(None in TOOLS.values(), reason="llvm-mc-22, ld.lld-22 or llvm-objdump-22 is not installed")
def test_an_index_past_the_registers_ends_the_run() -> None:
    _, outcome = execute(["s_movk_i32 m0, 0x1000\nv_movrels_b32 v20, v10"], np.zeros((1, 13, 32), U32))
    assert outcome.unsupported is not None
    assert outcome.unsupported[0] == "v_movrels_b32_e32" and "4096" in outcome.unsupported[2]
