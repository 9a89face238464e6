"""Registers that instructions read and write, and where the value of a load goes."""

from __future__ import annotations

import pytest

from solbench.code.assembly import Operation
from solbench.gfx12.program import Instruction
from solbench.gfx12.reaches import reached
from solbench.gfx12.uses import uses


def instruction(text: str, address: int = 0) -> Instruction:
    """One instruction, two halves of a VOPD between ``::``."""
    operations = []
    for half in text.split(" :: "):
        name, _, rest = half.partition(" ")
        operations.append(Operation(name, tuple(rest.split(", ")) if rest else ()))
    return Instruction(address, 4, tuple(operations), None, None)


def named(registers: tuple[tuple[str, int], ...]) -> set[str]:
    return {f"{kind}{number}" for kind, number in registers}


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("v_add_f32_e32 v1, v2, v3", "v2 v3", "v1"),
        ("v_fmac_f32_e32 v1, s2, v3", "v1 s2 v3", "v1"),
        ("v_cmp_gt_i32_e32 vcc_lo, s6, v1", "s6 v1", "s106"),
        ("v_cndmask_b32_e64 v1, v2, v3, s4", "v2 v3 s4", "v1"),
        ("v_dual_mul_f32 v1, v2, v3 :: v_dual_cndmask_b32 v4, v5, v6", "v2 v3 v5 v6 s106", "v1 v4"),
        ("v_add_co_ci_u32_e64 v1, s5, v2, v3, vcc_lo", "v2 v3 s106", "v1 s5"),
        ("v_mad_co_u64_u32 v[0:1], null, v2, s3, v[4:5]", "v2 s3 v4 v5", "v0 v1"),
        ("v_readlane_b32 s1, v17, 31", "v17", "s1"),
        ("v_writelane_b32 v1, s2, 3", "v1 s2", "v1"),
        ("v_swap_b32 v1, v2", "v1 v2", "v1 v2"),
        ("v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], v[0:7]",
         "v0 v1 v2 v3 v4 v5 v6 v7 v8 v9 v10 v11 v12 v13 v14 v15", "v0 v1 v2 v3 v4 v5 v6 v7"),
        ("s_and_saveexec_b32 s3, vcc_lo", "s106", "s3"),
        ("s_load_b64 s[4:5], s[0:1], 0x8", "s0 s1", "s4 s5"),
        ("buffer_load_b64 v[2:3], v1, s[8:11], null offen", "v1 s8 s9 s10 s11", "v2 v3"),
        ("buffer_store_b32 v2, v1, s[8:11], null offen", "v1 v2 s8 s9 s10 s11", ""),
        ("global_store_b32 v1, v2, s[4:5]", "v1 v2 s4 s5", ""),
        ("global_atomic_add_u32 v3, v1, v2, s[4:5] th:TH_ATOMIC_RETURN", "v1 v2 s4 s5", "v3"),
        ("buffer_atomic_add_f32 v2, v1, s[8:11], null offen", "v1 v2 s8 s9 s10 s11", ""),
        ("ds_store_b32 v1, v2", "v1 v2", ""),
        ("ds_load_b32 v1, v2 offset:4", "v2", "v1"),
        ("ds_add_rtn_u32 v1, v2, v3", "v2 v3", "v1"),
        ("s_getpc_b64 s[4:5]", "", "s4 s5"),
    ],
)  # fmt: skip
def test_uses(text: str, reads: str, writes: str) -> None:
    found = uses(instruction(text))
    assert named(found.reads) == set(reads.split()) and named(found.writes) == set(writes.split())


def test_where_a_load_goes() -> None:
    texts = [
        "global_load_b32 v3, v1, s[4:5]",
        "v_mul_f32_e32 v4, v3, v9",
        "global_store_b32 v1, v4, s[4:5]",
        "v_mov_b32_e32 v3, 0",  # the value is gone from here
        "global_store_b32 v1, v3, s[6:7]",
        "ds_store_b32 v2, v4",
        "v_mov_b32_e32 v4, v9",
        "global_store_b32 v1, v4, s[6:7]",
    ]
    program = [instruction(text, 4 * place) for place, text in enumerate(texts)]
    assert reached(program, 0) == {8, 20}
