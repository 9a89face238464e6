"""Figures that the analysis has to reproduce, from a reference in PyTorch to its bound.

Every expected number is stated from outside: a byte or product count by hand, a published figure, a measured time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from bound.bound_programs import machine  # noqa: E402

from solar.bound import bound  # noqa: E402
from solar.convert import convert  # noqa: E402
from solar.extract.aten import extract  # noqa: E402
from solar.graph import Input  # noqa: E402
from solar.hardware import Machine, lint, load  # noqa: E402

GFX1200 = load("gfx1200")
ROUNDING = ("float16", "bfloat16")
# One engine, one format: operations are twice the multiply-adds.
PLAIN = Machine.from_dict(machine(valu={"float32": 1e12}, bandwidth=1e18))


def analysed(
    run: Callable[..., Any], *inputs: Input, target: Machine = GFX1200, rejected: Sequence[str] = ()
) -> dict[str, Any]:
    """Bound of a reference through the default path."""
    graph = extract(run, {f"x{i}": given for i, given in enumerate(inputs)})
    return bound(convert(graph), target, rejected_formats=rejected)


def f32(*shape: int) -> Input:
    return Input(shape, "float32")


def bf16(*shape: int) -> Input:
    return Input(shape, "bfloat16")


def products(found: dict[str, Any]) -> float:
    """Operations of the contractions, one product an operation pair."""
    return math.fsum(c["ops"] for c in found["compute"] if c["mode"] != "elementwise") / 2


# --- traffic ---------------------------------------------------------------------------------------------------------

ROWS = Input((4,), "int64", values=(3, 70, 99_999, 5))


@pytest.mark.parametrize(
    ("run", "inputs", "live_bytes"),
    [
        (lambda x: torch.relu(x) + x.view(16, 8).t(), [f32(8, 16)], 1_024),
        (lambda table, idx: table.index_select(0, idx), [f32(100_000, 128), ROWS], 4_128),
        (lambda table, idx: table.to(torch.float16)[idx], [f32(100_000, 128), ROWS], 3_104),
        (lambda x: x.t().contiguous(), [f32(10, 12)], 960),
        (lambda x: torch.relu(x).view(-1), [f32(1024, 1024)], 8_388_608),
        (lambda x: x[:32] + x[32:], [f32(64, 128)], 49_152),
        (lambda x: F.gelu(x), [f32(8192, 8192)], 2 * 8192**2 * 4),
    ],
    ids=["view", "index_select", "cast_then_gather", "transposed_copy", "output_view", "slices", "gelu"],
)
def test_bytes_that_move(run: Callable[..., Any], inputs: list[Input], live_bytes: int) -> None:
    assert analysed(run, *inputs)["memory"]["live_bytes"] == live_bytes


def test_each_input_is_charged_for_itself() -> None:
    unused = analysed(lambda x, y: torch.relu(x), f32(64, 128), f32(1000))
    assert [t["live_bytes"] for t in unused["tensors"]] == [32_768, 0, 32_768]
    assert unused["memory"]["declared_bytes"] == 2 * 32_768 + 4_000
    spread = analysed(lambda x, y: x.expand(64, 128) * y, f32(1, 128), f32(64, 128))
    assert [t["live_bytes"] for t in spread["tensors"]] == [512, 32_768, 32_768]


def test_known_rows_are_frozen_and_unknown_ones_any() -> None:
    run = lambda table, idx: table.index_select(0, idx)  # noqa: E731
    assert analysed(run, f32(100_000, 128), ROWS)["draws"] == "frozen"
    free = analysed(run, f32(100_000, 128), Input((4,), "int64"))
    assert free["draws"] == "any draw"
    # All four may name one row.
    assert free["memory"]["live_bytes"] == 4 * 8 + 128 * 4 + 4 * 128 * 4


# --- formats and rates -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rejected", [(), ROUNDING])
def test_bf16_inputs_cast_up_multiply_at_the_bf16_rate(rejected: Sequence[str]) -> None:
    found = analysed(lambda x, w: x.float() @ w.float().t(), bf16(4096, 16384), bf16(5120, 16384), rejected=rejected)
    assert found["t_sol_s"] == pytest.approx(2 * 4096 * 5120 * 16384 / 103e12)
    assert found["t_sol_s"] == pytest.approx(6.67e-3, rel=1e-3)
    assert (found["binds"], found["compute"][0]["mode"]) == ("matrix", "bfloat16")


@pytest.mark.parametrize(
    ("rejected", "rate", "engine"),
    [
        ((), 103e12, "matrix"),
        (ROUNDING, 34.3e12, "matrix"),
        ((*ROUNDING, "float16x2"), 25.6e12, "valu"),
    ],
    ids=["rounded", "split", "dual_issue"],
)
def test_fp32_multiplies_at_the_quickest_rate_that_the_checks_admit(
    rejected: Sequence[str], rate: float, engine: str
) -> None:
    found = analysed(lambda a, b: a @ b, f32(4096, 4096), f32(4096, 4096), rejected=rejected)
    assert found["binds"] == engine
    assert 2 * 4096**3 / found["t_sol_s"] == pytest.approx(rate, rel=2e-3)


def masked_attention(q: Any, k: Any, v: Any) -> Any:
    scores = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return (scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v.float()).bfloat16()


@pytest.mark.parametrize(
    "run", [masked_attention, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)]
)
def test_causal_attention_lies_below_a_measured_time(run: Callable[..., Any]) -> None:
    # An H200 takes 1.77 ms for this one in bf16.
    found = analysed(run, *(bf16(2, 32, 8192, 128),) * 3, target=load("sm_90"))
    pairs = 8192 * 8193 // 2
    assert found["macs"] == 2 * 2 * 32 * pairs * 128
    assert {c["mode"] for c in found["compute"]} == {"bfloat16", "elementwise"}
    assert found["t_sol_s"] == pytest.approx(2 * found["macs"] / (540_672 * 1.98e9), rel=1e-3)
    assert 0.5 * 1.77e-3 < found["t_sol_s"] < 1.77e-3


def test_a_published_example_on_its_own_machine() -> None:
    # 603,751 multiply-adds a clock at 1.5 GHz: a projection of 107.4 GFLOP takes 0.0593 ms.
    rate = 2 * 603_751 * 1.5e9
    target = Machine.from_dict(machine({"float16": rate}, {"float32": 1e13}, bandwidth=8e12))
    assert lint(target) == []
    found = analysed(lambda x, w: x @ w, Input((1024, 8192), "float16"), Input((8192, 6400), "float16"), target=target)
    assert found["flops"] == pytest.approx(107.4e9, rel=1e-3)
    assert (found["binds"], found["t_sol_s"]) == ("matrix", pytest.approx(0.0593e-3, rel=1e-3))


def test_a_scalar_sets_no_rate() -> None:
    def norm(x: Any, w: Any, eps: float) -> Any:
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(1, keepdim=True) + eps)) @ w.float()

    def timed(eps: float) -> dict[str, Any]:
        return analysed(norm, bf16(64, 64), bf16(64, 64), Input(None, "float32", value=eps), rejected=ROUNDING)

    # Rows are scaled after the product: the operands stay as they are stored.
    assert {c["mode"] for c in timed(1e-5)["compute"]} == {"bfloat16", "elementwise"}
    assert timed(1e-5)["t_sol_s"] == timed(1.0)["t_sol_s"]


def test_less_work_than_a_clock_takes_some_time() -> None:
    found = analysed(lambda x: torch.relu(x), f32(1))
    assert 0 < found["t_sol_s"] < 1 / 3.13e9
    assert 0 < found["compute"][0]["cycles"] < 1


# --- products that are needed ----------------------------------------------------------------------------------------

M, K, N = 512, 256, 384


@pytest.mark.parametrize(
    ("run", "inputs", "macs"),
    [
        (lambda a, b: (a @ b)[:1], [f32(M, K), f32(K, N)], K * N),
        (lambda a, b: torch.tril(a @ b), [f32(M, K), f32(K, M)], M * (M + 1) // 2 * K),
        (lambda a, b: (a @ b).diagonal(), [f32(M, K), f32(K, M)], M * K),
        (lambda a, b: torch.diag(a) @ b, [f32(M), f32(M, N)], M * N),
        (lambda a, b: torch.tril(a) @ b, [f32(M, M), f32(M, N)], M * (M + 1) // 2 * N),
        (lambda x, w: F.linear(x, w), [f32(2, 128, 256), f32(512, 256)], 33_554_432),
        (lambda x, w: F.conv1d(x, w, groups=768), [f32(2, 768, 132), f32(768, 1, 3)], 599_040),
        (lambda x, w: F.conv2d(x, w, padding=1), [f32(1, 3, 32, 32), f32(16, 3, 3, 3)], 442_368),
    ],
    ids=["row", "tril", "diagonal", "diag_operand", "tril_operand", "linear", "grouped", "conv2d"],
)
def test_products_that_are_needed(run: Callable[..., Any], inputs: list[Input], macs: int) -> None:
    found = analysed(run, *inputs)
    assert found["macs"] == macs
    assert 0 < products(found) <= macs


def test_attention_is_counted_once_and_causal_attention_exactly() -> None:
    shape = (f32(1, 12, 64, 64),) * 3
    dense = analysed(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), *shape)
    assert (dense["flops"], 2 * dense["dense_macs"]) == (12_582_912, 12_582_912)
    causal = analysed(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *shape)
    assert (causal["flops"], 2 * causal["dense_macs"]) == (2 * 2 * 12 * 64 * (64 * 65 // 2), 12_582_912)
    assert 2 * products(causal) == causal["flops"]


# --- linear chains and Winograd --------------------------------------------------------------------------------------


def pooled(x: Any, w: Any, inner: Callable[[Any], Any]) -> Any:
    return F.avg_pool1d(inner(x @ w).unsqueeze(1), 16).squeeze(1)


@pytest.mark.parametrize(
    ("run", "inputs", "expected"),
    [
        (lambda a, b, v: (a @ b) @ v, [f32(300, 500), f32(500, 700), f32(700)], 500 * 700 + 300 * 500),
        (
            lambda a, b, v: torch.relu(a @ b) @ v,
            [f32(300, 500), f32(500, 700), f32(700)],
            300 * 500 * 700 + 300 * 700,
        ),
        (lambda a, b: torch.einsum("ij,jk->", a, b), [f32(M, K), f32(K, N)], K),
        (lambda a, b: torch.einsum("mk,kpq->mp", a, b), [f32(64, 32), f32(32, 16, 8)], 64 * 32 * 16),
        (lambda a, b: (a @ b).sum(), [f32(M, K), f32(K, N)], K),
        (lambda a, b: (a @ b).sum(1), [f32(M, K), f32(K, N)], M * K),
        (lambda x, w: pooled(x, w, lambda y: y), [f32(256, 1024), f32(1024, 2048)], 256 * 1024 * 2048 / 16),
        (lambda x, w: pooled(x, w, torch.relu), [f32(256, 1024), f32(1024, 2048)], 256 * 1024 * 2048),
    ],
    ids=["vector", "vector_after_relu", "scalar", "private", "sum", "row_sums", "pooled", "pooled_after_relu"],
)
def test_a_linear_chain_is_priced_at_its_cheapest_association(
    run: Callable[..., Any], inputs: list[Input], expected: float
) -> None:
    assert products(analysed(run, *inputs, target=PLAIN)) == expected


def corpus_bound(key: str, number: int) -> dict[str, Any]:
    from solbench.bounds import bounds_for
    from solbench.corpus.load import load_problem

    problem = load_problem(Path(__file__).parents[2] / "problems" / "AMD_AKA" / key, corpus="AMD_AKA")
    found = bounds_for(problem, problem.workloads[number], GFX1200)
    assert isinstance(found, dict), found
    return found


def test_a_3x3_convolution_of_stride_1_costs_a_quarter() -> None:
    found = corpus_bound("torch2hip/l2n17_instancenorm_fused", 1)
    assert found["macs"] == 64 * 128 * 126 * 126 * 64 * 9
    matrix = next(c for c in found["compute"] if c["engine"] == "matrix")
    assert (matrix["mode"], matrix["ops"]) == ("float16*3", 2 * 3 * found["macs"] / 4)
    assert (found["binds"], found["t_sol_s"]) == ("memory", pytest.approx(2.47e-3, rel=2e-3))
    assert any("Winograd" in text for text in found["looseness"])
    strided = analysed(lambda x, w: F.conv2d(x, w, stride=2), f32(4, 16, 65, 65), f32(32, 16, 3, 3), target=PLAIN)
    assert products(strided) == 4 * 32 * 32 * 32 * 16 * 9


def test_a_pooled_projection_of_the_corpus_folds_into_its_weights() -> None:
    found = corpus_bound("torch2hip/l2n98_matmul_avgpool_gelu_scale_max", 2)
    matrix = next(c for c in found["compute"] if c["engine"] == "matrix")
    assert found["macs"] == 274_877_906_944
    assert matrix["ops"] == pytest.approx(2 * 3 * found["macs"] / 16, rel=1e-6)
