"""Every AMD_AKA workload on gfx1200: live bytes and products against counts made by hand for the corpus.

Bytes must agree to the last one. Products are those of the reference as written; what linear algebra, structure or
Winograd save shows in the priced operations, which may only be lower.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from solar.bound import bound
from solar.hardware import load

pytest.importorskip("torch")

PROBLEMS = Path(__file__).parents[3] / "problems" / "AMD_AKA"
GFX1200 = load("gfx1200")

# suite/problem: bytes that must move, multiply-adds as written; one pair a workload, in order.
COUNTS = """
torch2hip/3267_doubled_matmul: 192,64 5120,8192 196608,2097152 527360,131072
torch2hip/l1n1_square_matmul: 49152,262144 196608,2097152 786432,16777216 3145728,134217728
torch2hip/l1n2_standard_matmul: 114688,2097152 458752,16777216 212992,4194304
torch2hip/l1n3_batched_matmul: 98304,1048576 786432,16777216 393216,8388608
torch2hip/l1n4_matrix_vector: 4202496,1048576 4204544,1048576 8407040,2097152
torch2hip/l1n8_matmul_irregular: 5508814,727542893 296278,9620123 2627922,244491264
torch2hip/l1n9_tall_skinny_matmul: 4210688,33554432 2637824,16777216 3147776,8388608
torch2hip/l1n23_softmax: 131072,0 1048576,0 11390104,0 268435456,0
torch2hip/l1n26_gelu: 4194304,0 8388608,0 8388608,0
torch2hip/l1n36_rmsnorm: 131072,0 262144,0 262144,0
torch2hip/l1n40_layernorm: 264192,0 532480,0 525312,0
torch2hip/l1n47_sum_reduction: 131584,0 266240,0 4195328,0
torch2hip/l1n42_maxpool2d: 1310720,0 20971520,0 41943040,0
torch2hip/l1n63_conv2d: 366144,4147200 1526912,35426304 837792,4875264
torch2hip/l1n82_conv_depthwise: 246592,259200 1016960,1107072 565920,609408
torch2hip/gpumode_silu: 8388608,0 524288,0 11390104,0 16777216,0
torch2hip/gpumode_sigmoid: 8388608,0 524288,0 11390104,0 16777216,0
torch2hip/gpumode_tanh: 8388608,0 524288,0 11390104,0 16777216,0
torch2hip/l2n99_matmul_gelu_softmax: 285245440,17179869184 335577088,68719476736 536903680,274877906944
torch2hip/l2n86_matmul_divide_gelu: 285245440,17179869184 335577088,68719476736 536903680,274877906944
torch2hip/l2n40_matmul_scaling_residual: 134234112,34359738368 201342976,68719476736 603996160,274877906944
torch2hip/l2n37_groupnorm_fused: 100728832,17179869184 184614912,34359738368 352387072,68719476736
torch2hip/l2n17_instancenorm_fused: 96829440,9069133824 788955136,74912366592 27066368,2496135168
torch2hip/dot_product_attention: 1224,3840 8392,92160 16584,675840 32968,5283840
torch2hip/gpumode_gelu_4d: 4194304,0 67108864,0 262144,0 37748736,0
instruction2triton/fp8_cast_sentinel: 81920,0 655360,0 327680,0
instruction2triton/rmsnorm_bwd: 6307840,0 317440,0 6526290,0 397312,0
torch2flydsl/silu_and_mul_bf16: 12582912,0 12288,0 50331648,0 12582912,0
torch2hip/gpumode_fused_leaky_relu: 262160,0 33554688,0 18874880,0 12845120,0
torch2hip/gpumode_transpose: 131072,0 2097152,0 2097152,0 4718592,0
torch2hip/gpumode_softmax_3d: 32768,0 2097152,0 16777216,0 6028568,0
torch2hip/gpumode_feedforward: 2444,1000 2564,4000 2724,8000 3044,16000
torch2hip/gpumode_positionwise_ffn: 704,512 8384,8192 131264,131072 32960,32768
torch2hip/gpumode_mlp: 38145552,38117888 38145936,152471552 38147472,609886208 38149520,1219772416
torch2hip/l2n55_matmul_maxpool_sum_scale: 4299292800,34359738368 4303487232,68719476736 4311876096,137438953472
torch2hip/l2n98_matmul_avgpool_gelu_scale_max: 276857856,17179869184 302026752,68719476736 402702336,274877906944
torch2hip/l3n44_mingpt_block: 53517312,30601641984 78683136,61203283968 78683136,64424509440 53517312,32212254720
torch2hip/l1n95_cross_entropy: 33619972,0 134348804,0 537133060,0 537001988,0 536936452,0
torch2hip/l2n52_conv_activation_batchnorm: 48564736,4534566912 96832000,9069133824 193366528,18138267648
    394627584,37456183296 788957696,74912366592
torch2hip/14007_kd_loss: 655364,0 1310724,0 2621444,0 5242884,0
torch2flydsl/fused_add_rmsnorm_bf16: 40960,0 270336,0 2113536,0 4202496,0 16793600,0 8421376,0
torch2flydsl/per_token_i8_quant: 12292,0 393280,0 1573376,0 6292480,0 25169920,0
torch2flydsl/rope_thd_fwd_bf16: 4234264,0 8428692,0 2117220,0 33685520,0
torch2flydsl/dynamic_mxfp8_quant: 97,0 1552,0 6208,0 24832,0 99328,0 397312,0 26578,0 24832,0
torch2flydsl/moe_topk_softmax: 37888,0 590848,0 74240,0 9472,0
"""
EXPECTED = {
    line.split(": ")[0]: [tuple(int(n) for n in pair.split(",")) for pair in line.split(": ")[1].split()]
    for line in COUNTS.strip().replace("\n    ", " ").splitlines()
}
PRESENT = [key for key in EXPECTED if (PROBLEMS / key / "problem.yaml").is_file()]
CAUSAL = "torch2hip/l3n44_mingpt_block"


@cache
def problem(key: str) -> Any:
    from solbench.corpus.load import load_problem

    return load_problem(PROBLEMS / key, corpus="AMD_AKA")


def analysed(key: str, number: int) -> dict[str, Any]:
    from solar.convert import convert
    from solar.extract.aten import extract
    from solbench.bounds import solar_inputs
    from solbench.corpus.reference import load_reference

    definition, workload = problem(key).definition, problem(key).workloads[number]
    axes = workload.validate_against(definition, key)
    assert workload.uuid.endswith(f"-w{number}")
    program = convert(
        extract(
            load_reference(definition),
            solar_inputs(definition, workload, axes),
            outputs=list(definition.outputs),
            in_place=definition.in_place,
        )
    )
    tensors = dict(program.inputs)
    masks = {tensors[name]: g.type for name, g in workload.inputs.items() if g.type == "lower_triangular"}
    program = replace(program, structures={**program.structures, **masks})
    return bound(program, GFX1200, rejected_formats=workload.rejected_formats)


def compare(key: str, number: int) -> None:
    must_move, products = EXPECTED[key][number]
    found = analysed(key, number)
    assert found["coverage"] == "complete"
    assert found["memory"]["live_bytes"] == must_move
    assert found["dense_macs"] == products
    if key == CAUSAL:
        axes = problem(key).workloads[number].axes
        pairs = axes["S"] * (axes["S"] - 1) // 2
        assert found["macs"] == products - 2 * axes["B"] * 768 * pairs
    else:
        assert found["macs"] == products
    formats = {"float16*3": 3, "float16": 1, "bfloat16": 1, "float32": 1}
    priced = math.fsum(c["ops"] / 2 / formats[c["mode"]] for c in found["compute"] if c["mode"] in formats)
    # Sums of squares count as products too, which the hand count leaves out: one a normalised element and statistic.
    assert priced <= found["macs"] + must_move
    assert 0 < found["t_sol_s"] < 0.1


def test_most_problems_are_there() -> None:
    assert len(PRESENT) >= 25


@pytest.mark.parametrize("key", PRESENT)
def test_the_first_workload(key: str) -> None:
    compare(key, 0)


@pytest.mark.slow
@pytest.mark.parametrize("key", PRESENT)
def test_the_other_workloads(key: str) -> None:
    for number in range(1, len(EXPECTED[key])):
        compare(key, number)
