"""The instruction table names what the instruction set has, and every entry of it is reached by a test."""

from __future__ import annotations

import test_clamped_semantics
import test_division_semantics
import test_lane_semantics
import test_narrow_semantics
import test_rounding_semantics
from guide_errors import DIFFERENT
from test_pseudocode import TESTED

from solbench.code.opcodes import OPCODES
from solbench.gfx12.ops import OPS
from solbench.gfx12.wmma import WMMA

# What the executor does itself: control, barriers, messages, mode, register indexing by M0.
EXECUTOR = {
    "s_alloc_vgpr", "s_barrier_init", "s_barrier_join", "s_barrier_signal", "s_barrier_signal_isfirst", "s_call_b64",
    "s_get_barrier_state", "s_getpc_b64", "s_getreg_b32", "s_movreld_b32", "s_movreld_b64", "s_movrels_b32",
    "s_movrels_b64", "s_movrelsd_2_b32", "s_rfe_b64", "s_sendmsg_rtn_b32", "s_sendmsg_rtn_b64", "s_setpc_b64",
    "s_setreg_b32", "s_setreg_imm32_b32", "s_sleep_var", "s_swappc_b64", "s_version", "v_movreld_b32", "v_movrels_b32",
    "v_movrelsd_2_b32", "v_movrelsd_b32", "v_nop", "v_pipeflush", "v_swaprel_b32",
}  # fmt: skip


def test_each_entry_is_tested_once_by_the_guide_or_by_a_closed_form() -> None:
    others = [module.CHECKED for module in (test_rounding_semantics, test_division_semantics, test_lane_semantics,
                                            test_narrow_semantics)]  # fmt: skip
    checked = [name for group in others for name in group]
    assert len(checked) == len(set(checked))
    assert set(checked) == set(DIFFERENT)
    assert set(TESTED) | set(checked) == set(OPS)
    assert not set(TESTED) & set(checked)


def test_each_saturating_form_is_tested() -> None:
    assert {name for name, entry in OPS.items() if entry.clamped} == test_clamped_semantics.CHECKED


def test_the_table_has_every_scalar_and_vector_instruction() -> None:
    encodings = ("SOP1", "SOP2", "SOPC", "SOPK", "VOP1", "VOP2", "VOP3", "VOP3P", "VOPC", "VOPD_X", "VOPD_Y")
    named = {name.replace("v_dual_", "v_") for encoding in encodings for name in OPCODES[encoding].values()}
    sparse = {name for name in named if name.startswith("v_swmmac")}
    assert named - sparse - EXECUTOR == set(OPS) | set(WMMA)


def test_signatures_are_of_known_types() -> None:
    values = {f"{kind}{size}" for kind in "uib" for size in (16, 32, 64)} | {
        "f16",
        "f32",
        "f64",
        "bf16",
        "b128",
        "imm16",
    }
    packed = {"2xf16", "2xi16", "2xu16", "2xb16", "2xbf16", "2xf32"}
    for name, entry in OPS.items():
        assert entry.name == name
        assert set(entry.dst) <= values | packed | {"mask", "exec", "scc"}, name
        assert set(entry.src) <= values | packed | {"mask", "vcc", "exec", "scc", "mix"}, name
