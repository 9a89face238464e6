"""Faults planted in kernels that Triton compiles are found, and the twin without the fault is clean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solbench.code import assembly, examined, kernels, loops, mix, occupancy, trips
from solbench.code.evidence import Launch, evidence
from solbench.code.examined import Examined
from solbench.code.findings import findings
from tests.solbench.code.test_machine_code import OBJDUMP, agrees_with_llvm

pytest.importorskip("triton")


@pytest.fixture(scope="module", autouse=True)
def _compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        patch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
        yield


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of every code object that was compiled here."""
    return tmp_path_factory.mktemp("objects")


def compiled(
    objects: Path, name: str, types: dict[str, str], constants: dict[str, int], warps: int = 4, aligned: bool = True
) -> dict[str, Any]:
    """Evidence of one of planted_kernels, compiled for gfx1200. ``aligned``: all arguments are divisible by 16."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tests.solbench.code import planted_kernels

    function = getattr(planted_kernels, name)
    names = function.arg_names
    plain = [number for number, argument in enumerate(names) if argument not in constants]
    source = ASTSource(
        fn=function,
        signature={argument: types.get(argument, "constexpr") for argument in names},
        constexprs={(names.index(argument),): value for argument, value in constants.items()},
        attrs={(number,): [["tt.divisibility", 16]] for number in plain} if aligned else {},
    )
    made = triton.compile(source, target=GPUTarget("hip", "gfx1200", 32), options={"num_warps": warps, "num_stages": 1})
    dots = re.findall(r"tt\.dot .*: tensor<\w+x(\w+)> \* tensor<\w+x(\w+)> -> tensor<\w+x(\w+)>", made.asm["ttir"])
    number = len(list(objects.iterdir()))
    (objects / f"{name}-{number}.hsaco").write_bytes(made.asm["hsaco"])
    launch = Launch(warps * 32, made.metadata.shared, tuple(dots))
    return {
        **evidence(made.asm["hsaco"], made.asm["amdgcn"], name, launch),
        "lines": made.asm["amdgcn"].split("\n"),
    }


def matmul(objects: Path, kind: str, m: int, n: int, k: int, warps: int = 4) -> dict[str, Any]:
    types = {"a": f"*{kind}", "b": f"*{kind}", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    return compiled(objects, "matmul", types, {"BM": m, "BN": n, "BK": k}, warps)


def softmax(objects: Path, aligned: bool) -> dict[str, Any]:
    types = {"x": "*bf16", "y": "*bf16", "n": "i32"}
    return compiled(objects, "softmax", types, {"B": 4096}, aligned=aligned)


def serious(found: dict[str, Any]) -> list[str]:
    return [each["rule"] for each in found["findings"] if each["severity"] != "note"]


def shown(found: dict[str, Any], rule: str) -> list[str]:
    """The assembly lines that a finding names."""
    (one,) = [each for each in found["findings"] if each["rule"] == rule]
    return [found["lines"][line - 1] for line in one["evidence"]]


@pytest.mark.parametrize(("kind", "form"), [("fp16", "f16"), ("bf16", "bf16"), ("fp8e4nv", "fp8_fp8")])
def test_a_matmul_that_is_as_it_should_be(objects: Path, kind: str, form: str) -> None:
    found = matmul(objects, kind, 64, 64, 32)
    assert (serious(found), found["failures"], found["code"]["fault"]) == ([], [], None)
    assert list(found["mix"]["wmma"]) == [form]


def test_a_dot_that_no_wmma_computes(objects: Path) -> None:
    found = matmul(objects, "fp16", 32, 32, 1)
    assert serious(found) == ["no-wmma"]
    assert found["mix"]["wmma"] == {}
    lines = shown(found, "no-wmma")
    assert lines and all("fma" in line or "mul" in line for line in lines)


def test_a_dot_of_fp32_is_a_note(objects: Path) -> None:
    found = matmul(objects, "fp32", 32, 32, 16)
    assert "f32-dot" in [each["rule"] for each in found["findings"]]
    assert "no-wmma" not in serious(found)


def test_spills(objects: Path) -> None:
    found = matmul(objects, "fp16", 64, 128, 32, warps=1)
    assert "vgpr-spills" in serious(found)
    assert found["resources"]["vgpr_spills"] > 100 and found["resources"]["scratch_bytes"] > 0
    assert all("scratch_" in line for line in shown(found, "vgpr-spills"))
    assert "vgpr-spills" not in serious(matmul(objects, "fp16", 64, 128, 32, warps=4))


def test_loads_and_stores_that_are_not_vectorised(objects: Path) -> None:
    narrow, wide = softmax(objects, aligned=False), softmax(objects, aligned=True)
    # 4096 values in 128 threads: 32 a thread, one at a time or eight.
    assert serious(narrow) == ["narrow-loads", "narrow-stores"]
    assert "global loads of 16 bits, 32 a thread" in narrow["findings"][0]["text"]
    assert all("_load_u16" in line or "_load_d16" in line for line in shown(narrow, "narrow-loads"))
    assert narrow["mix"]["widths"]["global_load"]["16"]["written"] == 32
    assert serious(wide) == []
    assert wide["mix"]["widths"]["global_load"] == {"128": {"written": 4, "run_at_most": 4}}
    assert narrow["findings"][0]["source"][0].startswith("planted_kernels.py:")


def test_more_lds_than_a_work_group_can_have(objects: Path) -> None:
    types = {"x": "*fp32", "y": "*fp32", "M": "i32", "N": "i32"}
    found, small = (compiled(objects, "transpose", types, {"B": size}, warps=8) for size in (256, 64))
    # A tile goes through LDS whole: 256 x 256 and 64 x 64 of fp32.
    assert (found["resources"]["lds_bytes"], small["resources"]["lds_bytes"]) == (262_144, 16_384)
    assert found["failures"] == ["LDS of 262144 bytes a work-group, over the limit of 65536: the launch will fail"]
    assert all("ds_" in line for line in shown(found, "lds-limit"))
    assert found["occupancy"]["groups"] == 0
    assert (small["failures"], serious(small)) == ([], [])


@pytest.mark.skipif(not OBJDUMP, reason="llvm-objdump-22 is not installed")
def test_llvm_reads_all_of_them_the_same(objects: Path) -> None:
    """Last in this file: compares what the tests before it compiled."""
    files = sorted(objects.glob("*.hsaco"))
    assert sum(map(agrees_with_llvm, files)) > 100 * len(files)


# What no quick Triton kernel shows: programs by hand.


def found_in(body: str, launch: Launch | None = None, **declared: Any) -> dict[str, str]:
    """Rules found in a hand-written program, to their texts."""
    text = f"\t.type\tkernel,@function\nkernel:\n{body}\n\ts_endpgm\n.Lfunc_end0:\n"
    function = assembly.function(text, "kernel", "x")
    flow = loops.flow(function, "x")
    counts = trips.trip_counts(function, flow)
    values = {"vgprs": 32, "scratch_bytes": 0, "vgpr_spills": 0, "sgpr_spills": 0, "max_threads": 1024} | declared
    described = kernels.Descriptor(0, values["scratch_bytes"], 0, 0, 4, 32, True, False)
    kernel = kernels.Kernel(
        "kernel", values["vgprs"], 16, 0, values["scratch_bytes"], 32, values["vgpr_spills"], values["sgpr_spills"],
        values["max_threads"], 0, (), described, (0, 0),
    )  # fmt: skip
    launched = launch or Launch(128, 0, None)
    held = occupancy.occupancy(launched.threads, kernel.vgprs, launched.dynamic_lds_bytes, 32, True)
    counted = mix.mix(function, flow, counts)
    return {f.rule: f.text for f in findings(Examined(kernel, launched, function, flow, counts, counted, held))}


LOOP = "\ts_mov_b32 s4, 0\n.LBB0_1:\n{body}\n\ts_cmp_lt_u32 s4, s5\n\ts_cbranch_scc1 .LBB0_1"
LOAD = "\tglobal_load_b128 v[0:3], v4, s[0:1]\n"
WMMA = "\tv_wmma_f32_16x16x16_f16 v[8:15], v[0:3], v[4:7], v[8:15]\n"


@pytest.mark.parametrize(
    ("body", "idle"),
    [
        (LOAD + "\ts_wait_loadcnt 0x0\n" + WMMA, True),
        (LOAD + LOAD + "\ts_wait_loadcnt 0x1\n\ts_wait_loadcnt 0x0\n" + WMMA, True),
        (LOAD + "\ts_wait_loadcnt_dscnt 0x0\n" + WMMA, True),
        (LOAD + WMMA * 3 + "\ts_wait_loadcnt 0x0\n", False),
        (WMMA + LOAD, False),  # waited for in the next iteration
        ("\ts_wait_loadcnt 0x0\n" + WMMA + LOAD, False),
        (LOAD + LOAD + "\ts_wait_loadcnt 0x1\n" + WMMA * 3 + "\ts_wait_loadcnt 0x0\n", False),
    ],
)
def test_waiting_at_once(body: str, idle: bool) -> None:
    assert ("idle-wait" in found_in(LOOP.format(body=body))) == idle
    assert "idle-wait" not in found_in(body)  # once is no pattern


def test_scratch_without_spills_and_spills_to_lanes() -> None:
    store = "\tscratch_store_b32 off, v0, s33\n"
    assert "array" in found_in(store, scratch_bytes=256)["scratch"]
    assert set(found_in("\tv_writelane_b32 v63, s4, 0", sgpr_spills=6)) == {"sgpr-spills"}
    assert found_in("\ts_nop 0") == {}


def test_few_waves() -> None:
    text = found_in("\ts_nop 0", Launch(128, 50_000, None))["low-occupancy"]
    assert text.startswith("2 of 16 waves a SIMD, limited by LDS")
    assert found_in("\ts_nop 0", Launch(128, 32_000, None)) == {}


@pytest.mark.parametrize(
    ("launch", "declared", "rule"),
    [
        (Launch(1025, 0, None), {}, "work-group-limit"),
        (Launch(512, 0, None), {"max_threads": 256}, "work-group-limit"),
        (Launch(128, 0, None), {"vgprs": 257}, "vgpr-limit"),
        (Launch(1024, 0, None), {"vgprs": 256}, "vgpr-limit"),
    ],
)
def test_launches_that_fail(launch: Launch, declared: dict[str, int], rule: str) -> None:
    assert rule in found_in("\ts_nop 0", launch, **declared)


def test_wmma_of_another_format_than_the_dots() -> None:
    dots = (("f8E4M3FN", "f8E4M3FN", "f32"),)
    assert "runs on WMMA of f16" in found_in(WMMA, Launch(128, 0, dots))["no-wmma"]
    assert found_in(WMMA, Launch(128, 0, (("f16", "f16", "f32"),))) == {}
    assert found_in(WMMA, Launch(128, 0, (("f8E4M3FNUZ", "f8E4M3FNUZ", "f32"),))) == {}  # not of this card
    assert found_in("\ts_nop 0", Launch(128, 0, None)) == {}  # unknown is no fault


def test_what_costs_much() -> None:
    assert "double-precision" in found_in("\tv_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]\n" * 8)
    assert found_in("\tv_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]\n") == {}
    swap = "\tglobal_atomic_cmpswap_b32 v0, v1, v[2:3], s[0:1]\n"
    assert "compare-and-swap" in found_in(LOOP.format(body=swap))
    assert found_in(swap) == {}
    assert set(found_in("\ts_swappc_b64 s[30:31], s[8:9]\n")) == {"calls"}
    flat = "\tflat_load_b32 v0, v[2:3]\n" + WMMA * 3
    assert "flat-access" in found_in(LOOP.format(body=flat))


INDEX = "\tglobal_load_b32 v2, v1, s[0:1]\n"


@pytest.mark.parametrize(
    ("address", "gathers"),
    [
        (INDEX, False),  # addressed by v1, as ever
        (INDEX + "\tv_add_nc_u32_e32 v1, v2, v1\n", True),
        (INDEX + "\tv_dual_mov_b32 v3, v2 :: v_dual_mov_b32 v2, 0\n\tv_lshl_add_u32 v1, v3, 1, v1\n", True),
        (INDEX + "\tv_dual_mov_b32 v3, v2 :: v_dual_mov_b32 v2, 0\n\tv_lshl_add_u32 v1, v2, 1, v1\n", False),
        (INDEX + "\tv_cmp_gt_i32_e32 vcc_lo, 4, v2\n\tv_cndmask_b32_e32 v1, 0x80000000, v1, vcc_lo\n", True),
        (INDEX + "\tv_readfirstlane_b32 s4, v2\n\ts_cmp_lt_i32 s4, 9\n\ts_cselect_b32 s5, 1, 0\n"
         "\tv_mov_b32_e32 v1, s5\n", True),
        (INDEX + "\tv_readfirstlane_b32 s4, v2\n\ts_cmp_lt_i32 s4, 9\n\ts_cmp_lt_i32 s6, 9\n"
         "\ts_cselect_b32 s5, 1, 0\n\tv_mov_b32_e32 v1, s5\n", False),
        # Only the high half of a sum of 64 bits depends on the high half of what is added.
        (INDEX + "\tv_mad_co_u64_u32 v[4:5], null, s3, v6, v[1:2]\n\tv_mov_b32_e32 v1, v4\n", False),
        (INDEX + "\tv_mad_co_u64_u32 v[4:5], null, s3, v6, v[1:2]\n\tv_mov_b32_e32 v1, v5\n", True),
        ("\tds_load_b32 v1, v9\n", True),
        ("\tglobal_atomic_add_u32 v1, v9, v8, s[0:1]\n", False),
        ("\tglobal_atomic_add_u32 v1, v9, v8, s[0:1] th:TH_ATOMIC_RETURN\n", True),
        ("\ts_load_b32 s4, s[0:1], 0x8\n\tv_mov_b32_e32 v1, s4\n", False),  # an argument
    ],
)  # fmt: skip
def test_gathers_are_no_fault_of_the_layout(address: str, gathers: bool) -> None:
    found = found_in(address + "\tglobal_load_u16 v10, v1, s[0:1]\n" * 8)
    assert set(found) == ({"gather"} if gathers else {"narrow-loads"})


def test_a_gather_around_a_loop() -> None:
    """A pointer that each iteration loads for the next."""
    body = "\tglobal_load_u16 v10, v1, s[0:1]\n" * 8 + "\tglobal_load_b32 v1, v10, s[0:1]\n"
    assert set(found_in(LOOP.format(body=body))) == {"gather"}


def test_a_loop_that_loads_hardly_anything() -> None:
    narrow = "\tglobal_load_u16 v10, v1, s[0:1]\n" + WMMA * 3
    assert "a thread loads 16 bits" in found_in(LOOP.format(body=narrow))["narrow-loop"]
    assert found_in(LOOP.format(body=narrow + LOAD + WMMA * 3 + "\ts_wait_loadcnt 0x0\n")) == {}
    assert found_in(LOOP.format(body=INDEX + WMMA * 3)) == {}  # 32 bits: a cache line of 128 bytes a wave
    assert found_in(LOOP.format(body="\tds_load_b32 v1, v9\n" + narrow)) == {}  # a gather
    assert found_in(narrow) == {}  # once


def test_a_few_narrow_accesses_say_nothing() -> None:
    narrow = "\tglobal_load_u16 v0, v1, s[0:1]\n"
    assert found_in(narrow * 7) == {}
    assert "narrow-loads" in found_in(narrow * 8)
    assert found_in(narrow * 8 + LOAD * 8) == {}
    assert "narrow-lds" in found_in("\tds_store_b16 v0, v1\n" * 16)


def test_loaded_addresses_are_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many loops ask: programs of many loops would take hours."""
    asked = []
    follow = examined.gathering_lines
    monkeypatch.setattr(examined, "gathering_lines", lambda *given: (asked.append(1), follow(*given))[1])
    narrow = "\tglobal_load_u16 v10, v1, s[0:1]\n" * 8
    body = "\n".join(LOOP.format(body=narrow).replace("LBB0_1", f"LBB0_{number}") for number in range(3))
    assert set(found_in(body)) == {"narrow-loads"}
    assert len(asked) == 1
