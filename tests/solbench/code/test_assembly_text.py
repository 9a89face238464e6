"""Assembly text: what is read of it, the loops in it, and how often they run. Programs are written by hand."""

from __future__ import annotations

import pytest

from solbench.code import assembly, mix
from solbench.code.loops import Flow, flow
from solbench.code.trips import trip_counts
from solbench.errors import InputError


def function(body: str, name: str = "kernel") -> assembly.Function:
    return assembly.function(f"\t.type\t{name},@function\n{name}:\n{body}\n.Lfunc_end0:\n", name, "x")


def flowed(body: str) -> tuple[assembly.Function, Flow, tuple[int | None, ...]]:
    read = function(body)
    found = flow(read, "x")
    return read, found, trip_counts(read, found)


def trips(body: str) -> tuple[int | None, ...]:
    return flowed(body)[2]


def test_instructions_operands_and_sources() -> None:
    text = """
	.type	other,@function
other:                                  ; @other
	s_endpgm
.Lfunc_end0:
	.type	kernel,@function
kernel:                                 ; @kernel
	.file	1 "/candidate" "softmax.py"
	.file	2 "/candidate/lib.py"
	.loc	1 7 3 prologue_end              ; softmax.py:7:3
	s_load_b64 s[4:5], s[0:1], 0x0      // a comment
	v_dual_mov_b32 v6, 0 :: v_dual_and_b32 v21, 3, v0
.LBB1_1:
	.loc	2 9 0 is_stmt 0
	v_pk_fma_f16 v0, v1, v2, v3 op_sel_hi:[1,0,1]
	.loc	2 0 0
	.p2align	6
	s_delay_alu instid0(VALU_DEP_4) | instskip(NEXT)
	s_cbranch_scc1 .LBB1_1
	s_endpgm
.Lfunc_end1:
	s_nop 0
"""
    read = assembly.function(text, "kernel", "x")
    assert [i.mnemonic for i in read.instructions] == [
        "s_load_b64", "v_dual_mov_b32", "v_pk_fma_f16", "s_delay_alu", "s_cbranch_scc1", "s_endpgm",
    ]  # fmt: skip
    assert read.instructions[0].operands == ("s[4:5]", "s[0:1]", "0x0")
    assert [o.mnemonic for o in read.instructions[1].operations] == ["v_dual_mov_b32", "v_dual_and_b32"]
    assert read.instructions[2].operands == ("v0", "v1", "v2", "v3 op_sel_hi:[1,0,1]")
    assert [i.source for i in read.instructions] == [("softmax.py", 7)] * 2 + [("lib.py", 9)] + [None] * 3
    assert text.split("\n")[read.instructions[0].line - 1].strip().startswith("s_load_b64")
    assert (read.labels[".LBB1_1"], read.aligned, read.unread) == (2, {3}, ())


@pytest.mark.parametrize(
    "line", [".long 0xbf800000", ".byte 1", "S_NOP 0", "s_nop 0 :: s_nop 0 :: s_nop 0", "?", ".macro m"]
)
def test_a_line_that_is_not_understood_is_kept(line: str) -> None:
    read = function(f"\ts_nop 0\n\t{line}\n\ts_endpgm")
    assert (len(read.instructions), read.unread) == (2, (4,))


COUNTED = """
	{start}
.LBB0_1:
	s_add_co_i32 s4, s4, {step}
	v_add_f32_e32 v0, v0, v0
	{compare}
	s_cbranch_scc1 .LBB0_1
	s_endpgm
"""


@pytest.mark.parametrize(
    ("start", "step", "compare", "count"),
    [
        ("s_mov_b32 s4, 0", 16, "s_cmp_lg_u32 s4, 0x100", 16),
        ("s_mov_b32 s4, 0", 16, "s_cmp_lt_u32 s4, 0x101", 17),
        ("s_mov_b32 s4, 0", 1, "s_cmp_lt_i32 s4, 0", 1),
        ("s_movk_i32 s4, 0xffc0", 64, "s_cmp_lt_u32 s4, 0x3c0", 16),  # from -64: the constant has a sign
        ("s_movk_i32 s4, 0x80", -8, "s_cmp_gt_i32 s4, 8", 15),
        ("s_mov_b32 s4, s9", 1, "s_cmp_lt_i32 s4, 8", None),  # starts anywhere
        ("s_mov_b32 s4, 0", 1, "s_cmp_lt_i32 s4, s9", None),  # ends anywhere
        ("s_mov_b32 s4, 0", 2, "s_cmp_lg_u32 s4, 3", None),  # never, as far as it is followed
        ("s_mov_b32 s4, 0", 1, "s_cmp_lt_i32 s4, 8\n\ts_or_b32 s5, s6, s7", None),  # SCC is another's
        ("s_mov_b32 s4, 0", 1, "s_cmp_lt_i32 s4, 8\n\ts_barrier_signal -1\n\ts_wait_dscnt 0x0", 8),
        ("s_mov_b32 s4, 0", 1, "s_load_b64 s[4:5], s[0:1], 0x0\n\ts_cmp_lt_i32 s4, 8", None),
        ("s_mov_b32 s4, 0", 1, "v_readfirstlane_b32 s4, v0\n\ts_cmp_lt_i32 s4, 8", None),
        ("s_mov_b32 s4, 0", 1, "v_cmpx_gt_u32_e64 s4, v0\n\ts_cmp_lt_i32 s4, 8", 8),  # reads s4
        ("s_mov_b32 s4, 0", 1, "v_add_co_u32 v1, s4, v1, v2\n\ts_cmp_lt_i32 s4, 8", None),  # writes its carry there
        ("s_mov_b32 s4, 0", 1, "s_swappc_b64 s[30:31], s[8:9]\n\ts_cmp_lt_i32 s4, 8", None),
    ],
)
def test_a_counted_loop(start: str, step: int, compare: str, count: int | None) -> None:
    assert trips(COUNTED.format(start=start, step=step, compare=compare)) == (count,)


def test_a_halving_loop_with_a_divergent_branch() -> None:
    """A tree over 256 threads in LDS: 128, 64, .. 1 are 8 steps, whatever the threads do in them."""
    body = """
	s_movk_i32 s2, 0x80
	s_branch .LBB0_2
.LBB0_1:
	s_or_b32 exec_lo, exec_lo, s6
	s_lshr_b32 s6, s2, 1
	s_cmp_lt_u32 s2, 2
	s_mov_b32 s2, s6
	s_cbranch_scc1 .LBB0_4
.LBB0_2:
	s_mov_b32 s6, exec_lo
	v_cmpx_gt_u32_e64 s2, v0
	s_cbranch_execz .LBB0_1
	ds_store_b32 v1, v2
	s_branch .LBB0_1
.LBB0_4:
	s_endpgm
"""
    assert trips(body) == (8,)


def test_a_loop_left_through_a_flag() -> None:
    """What LLVM makes of a loop whose exit it could not turn: a mask under EXEC says whether to go on."""
    body = """
	s_mov_b32 s12, 0
	s_branch .LBB0_2
.LBB0_1:
	s_and_b32 s0, s0, exec_lo
	s_cselect_b32 s0, 1, 0
	s_cmp_lg_u32 s0, 1
	s_cbranch_scc0 .LBB0_4
.LBB0_2:
	s_mov_b32 s0, -1
	s_cmp_gt_u32 s12, 0xbf
	s_cbranch_scc1 .LBB0_1
	s_mov_b32 s0, 0
	s_add_co_i32 s12, s12, 64
	s_branch .LBB0_1
.LBB0_4:
	s_endpgm
"""
    assert trips(body) == (4,)  # at 0, 64, 128 and 192


def test_a_counter_of_64_bits() -> None:
    body = """
	s_mov_b64 s[0:1], 0
.LBB0_1:
	s_add_nc_u64 s[0:1], s[0:1], 0x200
	s_cmp_eq_u32 s0, 0x2000
	s_cbranch_scc0 .LBB0_1
	s_endpgm
"""
    assert trips(body) == (16,)


NESTED = """
	s_mov_b32 s4, 0
.LBB0_1:
	v_mov_b32_e32 v1, 0
	s_mov_b32 s5, 0
.LBB0_2:
	v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], v[0:7]
	s_add_co_i32 s5, s5, 1
	s_cmp_lt_u32 s5, 4
	s_cbranch_scc1 .LBB0_2
	s_add_co_i32 s4, s4, 1
	s_cmp_lt_u32 s4, {outer}
	s_cbranch_scc1 .LBB0_1
	s_endpgm
"""


@pytest.mark.parametrize(("outer", "count", "run"), [("3", 3, 12), ("s9", None, None)])
def test_loops_within_loops(outer: str, count: int | None, run: int | None) -> None:
    read, found, counts = flowed(NESTED.format(outer=outer))
    assert [(loop.depth, loop.parent) for loop in found.loops] == [(1, None), (2, 0)]
    assert counts == (count, 4)
    counted = mix.mix(read, found, counts)
    assert counted.wmma["f16"] == mix.Count(1, run)
    assert counted.engines["end"] == mix.Count(1, 1)
    assert counted.per_iteration[0] == {"valu": 1, "salu": 3, "branch": 1}
    assert counted.per_iteration[1] == {"wmma": 1, "salu": 2, "branch": 1}


def test_a_loop_with_two_entries_is_no_natural_loop() -> None:
    body = """
	s_cbranch_scc1 .LBB0_2
.LBB0_1:
	v_mov_b32_e32 v1, 0
.LBB0_2:
	v_mov_b32_e32 v2, 0
	s_cbranch_vccnz .LBB0_1
	s_endpgm
"""
    read, found, counts = flowed(body)
    assert (found.loops, found.irreducible, counts) == ((), 1, ())
    assert mix.mix(read, found, counts).engines["valu"] == mix.Count(2, None)


def test_code_that_nothing_reaches_does_not_run() -> None:
    read, found, counts = flowed("\ts_branch .LBB0_1\n\tv_mov_b32_e32 v1, 0\n.LBB0_1:\n\ts_endpgm")
    assert mix.mix(read, found, counts).engines["valu"] == mix.Count(1, 0)


def test_widths_formats_and_unknown_names() -> None:
    read, found, counts = flowed(
        "\tglobal_load_b128 v[0:3], v4, s[0:1]\n\tbuffer_load_u16 v5, v4, s[4:7], null offen\n"
        "\tds_load_2addr_b64 v[0:3], v4\n\tglobal_load_d16_hi_b16 v5, v4, s[0:1]\n"
        "\tglobal_atomic_pk_add_f16 v4, v5, s[0:1]\n\tv_wmma_f32_16x16x16_fp8_bf8 v[0:7], v[8:9], v[10:11], v[0:7]\n"
        "\tv_mov_b32_dpp v0, v1 row_shr:1\n\tv_warp_reduce_f32 v0, v1\n\ts_endpgm"
    )
    counted = mix.mix(read, found, counts)
    one = mix.Count(1, 1)
    assert counted.widths == {
        "global_load": {16: mix.Count(2, 2), 128: one}, "lds_load": {128: one}, "global_atomic": {32: one},
    }  # fmt: skip
    assert counted.wmma == {"fp8_bf8": one}
    assert counted.engines["valu_cross_lane"] == one
    assert counted.unknown == ("v_warp_reduce_f32",)
    assert counted.mnemonics["v_warp_reduce_f32"] == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("\ts_branch .LBB0_9\n\ts_endpgm", "line 3 of the assembly branches to no instruction"),
        ("\ts_branch\n\ts_endpgm", "branches to no instruction"),
        ("", "no instruction in the assembly"),
    ],
)
def test_control_flow_that_leads_nowhere(body: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        flowed(body)


def test_limits_against_text_made_to_keep_us_busy() -> None:
    loops = "".join(f".L{n}:\n\ts_cbranch_scc1 .L{n}\n" for n in range(501))
    with pytest.raises(InputError, match="more than 500 loops"):
        flowed(loops + "\ts_endpgm")


def test_control_flow_made_to_keep_us_busy() -> None:
    exits = "".join(f".L{n}:\n\ts_cbranch_scc1 .Lend\n" for n in range(5000))
    with pytest.raises(InputError, match="more than 2000000 steps to follow"):
        flowed(exits + ".Lend:\n\ts_endpgm")
