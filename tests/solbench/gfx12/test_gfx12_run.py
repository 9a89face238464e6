"""Whole runs of small kernels: state at the start, memory, barriers, control flow, limits, findings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from solbench.gfx12.findings import KEPT
from solbench.gfx12.run import Options
from tests.solbench.gfx12.assembled import TOOLS
from tests.solbench.gfx12.small_kernels import ran

pytestmark = pytest.mark.skipif(None in TOOLS.values(), reason="llvm-mc-22, ld.lld-22 or llvm-objdump-22 is missing")
STORE = "global_store_b32 v1, v3, s[6:7]\n"
ORDERS = [Options(), Options(order="permuted", seed=1), Options(order="permuted", seed=2)]
EVERYTHING = Options(poison="nan", strict_waits=True, races=True, uninitialised=True)
# y[i] = LDS of the thread on the other end of the group of 64.
TURNED = """global_load_b32 v3, v1, s[4:5]
s_wait_loadcnt 0x0
ds_store_b32 v2, v3
{barrier}
v_sub_nc_u32_e32 v4, 0xfc, v2
ds_load_b32 v3, v4
s_wait_dscnt 0x0
"""
BARRIER = "s_wait_dscnt 0x0\ns_barrier_signal -1\ns_barrier_wait -1\n"


def values(n: int) -> Any:
    return np.random.default_rng(n).standard_normal(n).astype(np.float32)


def kinds(outcome: Any) -> set[str]:
    return {finding.kind for finding in outcome.findings}


def test_places_of_threads_and_groups() -> None:
    y = np.zeros(6 * 64, np.uint32)
    outcome = ran("v_mov_b32_e32 v3, ttmp9\nv_lshl_or_b32 v3, v3, 16, v0\n" + STORE, {"x": y, "y": y}, 6, 64)
    assert outcome.clean
    assert (y == (np.arange(6)[:, None] << 16 | np.arange(64)).reshape(-1)).all()


def test_hidden_arguments() -> None:
    y = np.zeros(64, np.uint32)
    body = "s_load_b64 s[10:11], s[0:1], 0x10\ns_wait_kmcnt 0x0\ns_and_b32 s11, s11, 0xffff\n"
    ran(body + "s_mul_i32 s10, s10, s11\nv_mov_b32_e32 v3, s10\n" + STORE, {"x": y, "y": y}, 2, 32)
    assert (y == 2 * 32).all()


def test_threads_of_the_last_wave_that_are_not_there_are_off() -> None:
    y = np.zeros(64, np.uint32)
    outcome = ran("v_mov_b32_e32 v3, exec_lo\n" + STORE, {"x": y, "y": y}, 1, 40)
    assert (y[:32] == 0xFFFFFFFF).all() and (y[32:40] == 0xFF).all() and not y[40:].any() and outcome.clean


@pytest.mark.parametrize("options", [*ORDERS, EVERYTHING])
def test_a_barrier_makes_lds_of_other_waves_visible(options: Options) -> None:
    x, y = values(320), np.zeros(320, np.float32)
    outcome = ran(TURNED.format(barrier=BARRIER) + STORE, {"x": x, "y": y}, 5, 64, options, lds=256)
    assert outcome.clean and (y == x.reshape(5, 64)[:, ::-1].reshape(-1)).all()


def test_without_a_barrier_an_order_of_waves_shows_it_and_races_name_it() -> None:
    x = values(320)
    results = []
    for options in (*ORDERS, Options(races=True)):
        y = np.zeros(320, np.float32)
        outcome = ran(TURNED.format(barrier="s_wait_dscnt 0x0") + STORE, {"x": x, "y": y}, 5, 64, options, lds=256)
        results.append((y == x.reshape(5, 64)[:, ::-1].reshape(-1)).all())
    assert results[0] and not all(results[1:3])
    assert kinds(outcome) == {"race"}
    found = outcome.findings[0]
    assert (
        found.memory == "LDS" and found.size == 256 and "ds_store_b32" in found.other and found.wave != found.other_wave
    )


def test_a_loop_with_another_count_in_each_wave() -> None:
    y = np.zeros(8 * 32, np.uint32)
    body = "s_mov_b32 s10, s8\nv_mov_b32_e32 v3, 0\nagain:\nv_add_nc_u32_e32 v3, 2, v3\ns_sub_co_u32 s10, s10, 1\n"
    body += "s_cmp_lg_u32 s10, -1\ns_cbranch_scc1 again\n"
    for options in ORDERS:
        y[:] = 0
        outcome = ran(body + STORE, {"x": y, "y": y}, 8, 32, options)
        assert (y.reshape(8, 32) == 2 * (np.arange(8) + 1)[:, None]).all()
    # 8 instructions of PLACES, 2 before the loop, 4 in it, and the store and the end.
    assert outcome.instructions == 8 * (8 + 2 + 2) + 4 * sum(range(1, 9))


def test_divergent_lanes_and_masked_stores() -> None:
    y = np.full(32, 7, np.uint32)
    body = "v_cmp_gt_u32_e32 vcc_lo, 5, v0\ns_and_saveexec_b32 s10, vcc_lo\nv_mov_b32_e32 v3, 1\n" + STORE
    assert ran(body, {"x": y, "y": y}).clean
    assert (y[:5] == 1).all() and (y[5:] == 7).all()


def test_bounds_are_those_of_the_storage() -> None:
    x, y = values(32), np.zeros(32, np.float32)
    load = "global_load_b32 v3, v1, s[4:5] offset:{}\ns_wait_loadcnt 0x0\n"
    outcome = ran(load.format(4) + STORE, {"x": x, "y": y})
    (found,) = outcome.findings
    assert (found.kind, found.memory, found.offset, found.size, found.lane, found.times) == (
        "out-of-bounds load", "x", 128, 128, 31, 1,
    )  # fmt: skip
    assert (y[:31] == x[1:]).all() and y[31] == 0
    (found,) = ran(load.format(-4) + STORE, {"x": x, "y": y}).findings
    assert (found.kind, found.memory, found.offset, found.lane) == ("out-of-bounds load", "x", -4, 0)
    assert "reads 4 bytes at byte -4 of x, which has 128: global_load_b32 at " in str(found)


def test_findings_of_one_instruction_are_counted() -> None:
    y = np.zeros(32, np.uint32)
    outcome = ran("v_mov_b32_e32 v3, 1\n" + STORE, {"x": y, "y": y}, 40, 32)
    stores = [finding for finding in outcome.findings if finding.kind == "out-of-bounds store"]
    assert len(stores) == KEPT and stores[0].times == 39 * 32


def test_lds_has_exact_bounds() -> None:
    y = np.zeros(32, np.uint32)
    outcome = ran("ds_store_b32 v2, v2 offset:4\n", {"x": y, "y": y}, 2, 32, lds=128)
    assert {(f.kind, f.memory, f.offset, f.lane) for f in outcome.findings} == {("out-of-bounds store", "LDS", 128, 31)}


def test_memory_that_is_read_only() -> None:
    y = np.zeros(32, np.uint32)
    outcome = ran("v_mov_b32_e32 v3, 1\n" + STORE, {"x": np.zeros(4, np.uint32), "y": y}, read_only=True)
    assert kinds(outcome) == {"read-only store"} and not y.any()


def test_no_memory_at_all() -> None:
    outcome = ran("s_mov_b64 s[4:5], 0\nglobal_load_b32 v3, v1, s[4:5]\n", {"x": np.zeros(4, np.uint32)})
    assert kinds(outcome) == {"no memory"}


def test_an_access_that_lies_across_words_is_what_the_bytes_say() -> None:
    x, y = np.arange(256, dtype=np.uint8), np.zeros(32, np.uint32)
    assert ran("global_load_b32 v3, v1, s[4:5] offset:1\ns_wait_loadcnt 0x0\n" + STORE, {"x": x, "y": y}).clean
    assert (y.view(np.uint8) == x[1:129]).all()


def test_atomics_of_lanes_and_waves_add_up_and_return_each_value_once() -> None:
    x, y = np.zeros(1, np.uint32), np.zeros(6 * 64, np.uint32)
    body = "v_mov_b32_e32 v4, 0\nv_mov_b32_e32 v5, 1\n"
    body += "global_atomic_add_u32 v3, v4, v5, s[4:5] th:TH_ATOMIC_RETURN\ns_wait_loadcnt 0x0\n"
    assert ran(body + STORE, {"x": x, "y": y}, 6, 64, EVERYTHING).clean
    assert x[0] == 384 and (np.sort(y) == np.arange(384)).all()


def test_a_result_that_is_not_waited_for() -> None:
    x, y = values(32), np.zeros(32, np.float32)
    body = "global_load_b32 v3, v1, s[4:5]\n{}v_add_f32_e32 v3, 1.0, v3\n" + STORE
    for wait, clean in (("", False), ("s_wait_loadcnt 0x1\n", False), ("s_wait_loadcnt 0x0\n", True)):
        outcome = ran(body.format(wait), {"x": x, "y": y}, options=Options(strict_waits=True))
        assert outcome.clean == clean
    (found, *_) = ran(body.format(""), {"x": x, "y": y}, options=Options(strict_waits=True)).findings
    assert (found.kind, found.memory, found.place.mnemonic) == ("missing wait", "v3", "v_add_f32_e32")


def test_loads_return_in_order() -> None:
    x, y = values(64), np.zeros(32, np.float32)
    body = "global_load_b32 v3, v1, s[4:5]\nglobal_load_b32 v4, v1, s[4:5] offset:128\ns_wait_loadcnt 0x1\n{}" + STORE
    assert ran(body.format(""), {"x": x, "y": y}, options=Options(strict_waits=True)).clean
    assert (y == x[:32]).all()
    outcome = ran(body.format("v_mov_b32_e32 v3, v4\n"), {"x": x, "y": y}, options=Options(strict_waits=True))
    assert [finding.memory for finding in outcome.findings] == ["v4"]


def test_what_nothing_wrote_matters_only_where_it_is_used() -> None:
    y = np.zeros(32, np.uint32)
    marked = Options(uninitialised=True)
    assert ran("v_mov_b32_e32 v9, v8\nv_add_nc_u32_e32 v9, 1, v9\n", {"x": y, "y": y}, options=marked).clean
    outcome = ran("v_add_nc_u32_e32 v3, 1, v8\n" + STORE, {"x": y, "y": y}, options=marked)
    assert {(f.kind, f.place.mnemonic) for f in outcome.findings} == {("uninitialised register", "v_add_nc_u32_e32")}
    outcome = ran("ds_load_b32 v3, v2\ns_wait_dscnt 0x0\n" + STORE, {"x": y, "y": y}, options=marked, lds=128)
    assert {(f.kind, f.place.mnemonic) for f in outcome.findings} == {("uninitialised memory", "ds_load_b32")}
    # A selection takes the mark of what it selects.
    chosen = "v_cmp_gt_u32_e32 vcc_lo, 32, v0\nv_cndmask_b32_e32 v3, v8, v0, vcc_lo\n"
    assert ran(chosen + STORE, {"x": y, "y": y}, options=marked).clean
    outcome = ran(chosen.replace("32, v0\n", "31, v0\n", 1) + STORE, {"x": y, "y": y}, options=marked)
    assert [(f.lane, f.times) for f in outcome.findings] == [(31, 1)]


def test_a_tensor_that_the_host_did_not_write() -> None:
    x, y = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    load = "global_load_b32 v3, v1, s[4:5]\ns_wait_loadcnt 0x0\n"
    outcome = ran(load + STORE, {"x": x, "y": y}, options=Options(uninitialised=True), initialised=False)
    assert {(f.kind, f.memory, f.place.mnemonic) for f in outcome.findings} == {
        ("uninitialised memory", "x", "global_load_b32")
    }
    written = "global_store_b32 v1, v0, s[4:5]\n"
    assert ran(written + load + STORE, {"x": x, "y": y}, options=Options(uninitialised=True), initialised=False).clean


def test_a_wave_that_waits_for_one_that_never_arrives() -> None:
    y = np.zeros(64, np.uint32)
    body = "v_readfirstlane_b32 s10, v0\ns_cmp_lg_u32 s10, 0\ns_cbranch_scc1 over\n"
    body += "s_barrier_signal -1\nover:\ns_barrier_wait -1\n"
    outcome = ran(body, {"x": y, "y": y}, 1, 64)
    assert kinds(outcome) == {"deadlock"} and {f.wave for f in outcome.findings} == {0, 1}


def test_waves_that_ended_are_not_waited_for() -> None:
    y = np.zeros(64, np.uint32)
    body = "v_readfirstlane_b32 s10, v0\ns_cmp_lg_u32 s10, 0\ns_cbranch_scc1 over\n"
    body += "s_barrier_signal -1\ns_barrier_wait -1\nv_mov_b32_e32 v3, 1\n" + STORE + "over:\n"
    for options in ORDERS:
        assert ran(body, {"x": y, "y": y}, 1, 64, options).clean and (y[:32] == 1).all()


@pytest.mark.parametrize("options", ORDERS)
def test_a_wave_that_spins_lets_the_other_set_the_flag(options: Options) -> None:
    x, y = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    body = "v_mov_b32_e32 v4, 0\nv_mov_b32_e32 v5, 1\nv_readfirstlane_b32 s10, v0\ns_cmp_lg_u32 s10, 0\n"
    body += "s_cbranch_scc0 sets\nspins:\nglobal_load_b32 v3, v4, s[4:5] scope:SCOPE_DEV\ns_wait_loadcnt 0x0\n"
    body += "v_readfirstlane_b32 s11, v3\ns_cmp_eq_u32 s11, 0\ns_cbranch_scc1 spins\ns_endpgm\n"
    body += "sets:\nglobal_store_b32 v4, v5, s[4:5] scope:SCOPE_DEV\n"
    outcome = ran(body, {"x": x, "y": y}, 1, 64, options)
    assert outcome.clean and x[0] == 1 and outcome.instructions < 5_000


def test_limits_end_a_run() -> None:
    y = np.zeros(32, np.uint32)
    for options, limit in ((Options(max_instructions=5_000), "instructions"), (Options(deadline_s=0.2), "time")):
        outcome = ran("again:\ns_branch again\n", {"x": y, "y": y}, options=options)
        assert outcome.ended == limit and not outcome.clean


def test_an_instruction_that_is_not_emulated_is_named_where_it_is_reached() -> None:
    y = np.zeros(32, np.uint32)
    outcome = ran("s_branch over\ns_trap 2\nover:\n", {"x": y, "y": y})
    assert outcome.clean
    outcome = ran("s_trap 2\n", {"x": y, "y": y})
    assert outcome.unsupported is not None and outcome.unsupported[0] == "s_trap" and not outcome.clean


def test_a_matrix_instruction_needs_all_lanes() -> None:
    body = "s_mov_b32 exec_lo, 0xffff\nv_wmma_f32_16x16x16_f16 v[16:23], v[8:11], v[12:15], v[16:23]\n"
    outcome = ran(body, {"x": np.zeros(4, np.uint32)})
    assert kinds(outcome) == {"partial EXEC"} and outcome.findings[0].offset == 0xFFFF


def test_scratch_belongs_to_a_lane() -> None:
    y = np.zeros(128, np.uint32)
    body = "scratch_store_b32 off, v1, off offset:8\nscratch_store_b8 off, v0, off offset:9\n"
    body += "scratch_load_b32 v3, off, off offset:8\ns_wait_loadcnt 0x0\n"
    assert ran(body + STORE, {"x": y, "y": y}, 2, 64, EVERYTHING, scratch=16).clean
    place, thread = 4 * np.arange(128), np.tile(np.arange(64), 2)
    assert (y == (place & ~0xFF00 | thread << 8)).all()
    outcome = ran("scratch_load_b32 v3, off, off offset:16\n", {"x": y, "y": y}, 1, 32, scratch=16)
    assert kinds(outcome) == {"out-of-bounds load"} and outcome.findings[0].memory == "scratch"


def test_groups_are_ordered_by_an_atomic_and_a_fence_only() -> None:
    """Group 0 stores and releases; the others look at the counter until it is up, and read."""
    body = "v_mov_b32_e32 v4, 0\nv_mov_b32_e32 v5, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 others\n"
    body += "global_store_b32 v4, v5, s[4:5] offset:64\ns_wait_storecnt 0x0\n"
    body += "global_atomic_add_u32 v4, v5, s[4:5] scope:SCOPE_DEV\ns_endpgm\nothers:\n"
    body += "global_load_b32 v3, v4, s[4:5] scope:SCOPE_DEV\ns_wait_loadcnt 0x0\nv_readfirstlane_b32 s11, v3\n"
    body += "s_cmp_eq_u32 s11, 0\ns_cbranch_scc1 others\n{}"
    body += "global_load_b32 v3, v4, s[4:5] offset:64\ns_wait_loadcnt 0x0\n" + STORE
    for fence, expected in (("global_inv scope:SCOPE_DEV\n", set()), ("", {"race"})):
        x, y = np.zeros(32, np.uint32), np.zeros(96, np.uint32)
        outcome = ran(body.format(fence), {"x": x, "y": y}, 3, 32, Options(races=True, max_instructions=100_000))
        assert kinds(outcome) == expected and (y[32:] == 1).all()


@pytest.mark.parametrize(("value", "expected"), [("v0", {"race"}), ("1", set())])
def test_two_waves_may_write_the_same_value(value: str, expected: set[str]) -> None:
    y = np.zeros(64, np.uint32)
    body = f"v_mov_b32_e32 v3, {value}\nglobal_store_b32 v2, v3, s[6:7]\n"
    body = body.replace("v2", "v4") if value == "1" else "v_mov_b32_e32 v2, 0\n" + body
    body = "v_and_b32_e32 v4, 0x7c, v2\n" + body
    assert kinds(ran(body, {"x": y, "y": y}, 1, 64, Options(races=True))) == expected


def test_the_same_seed_gives_the_same_order() -> None:
    x = values(320)
    found = []
    for seed in (3, 3, 4, 5, 6):
        y = np.zeros(320, np.float32)
        ran(TURNED.format(barrier="") + STORE, {"x": x, "y": y}, 5, 64, Options(order="permuted", seed=seed), lds=256)
        found.append(y.tobytes())
    assert found[0] == found[1] and len(set(found)) > 1


def test_counts_are_those_of_the_launch() -> None:
    x, y = np.zeros(128 * 4, np.uint32), np.zeros(128, np.uint32)
    body = (
        "v_lshlrev_b32_e32 v4, 2, v1\nglobal_load_b128 v[8:11], v4, s[4:5]\ns_wait_loadcnt 0x0\nv_mov_b32_e32 v3, v8\n"
    )
    body += "v_wmma_f32_16x16x16_f16 v[16:23], v[8:11], v[8:11], 0\nds_store_b64 v2, v[8:9]\n"
    outcome = ran(body + STORE, {"x": x, "y": y}, 2, 64, lds=512)
    counts = outcome.counts
    assert dict(counts.wmma_operations) == {"f16": 4 * 2 * 16**3}
    assert dict(counts.loaded) == {"global": 128 * 16, "scalar": 4 * 16} and counts.stored["global"] == 128 * 4
    assert counts.stored["LDS"] == 128 * 8
    assert counts.engines["wmma"] == 4 and counts.engines["global_load"] == 4 and counts.engines["end"] == 4
    assert sum(counts.engines.values()) == outcome.instructions == sum(counts.by_instruction)
