"""The core profile of LLM_CORE at smoke sizes: references against formulas computed apart in NumPy's float64, mistakes
that must not pass, and the multiply-adds of the bound against the work that a formula needs."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from llm_core_smoke import Smoke, analysed, by_formula, formula_tests, macs, smoke

Array = np.ndarray


def gelu(z: Array) -> Array:
    return 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


def silu(z: Array) -> Array:
    return z / (1 + np.exp(-z))


def rms(x: Array, eps: float) -> Array:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def dense(i: Any) -> Array:
    return np.stack([[(row * column).sum() for column in i["weight"]] for row in i["x"]])


def batched_bias(i: Any, a: Any) -> tuple[Array]:
    return (np.stack([i["x"][b] @ i["weight"][b].T + i["bias"][b] for b in range(a["B"])]),)


def grouped(i: Any, a: Any) -> tuple[Array]:
    return (np.stack([i["x"][:, g] @ i["weight"][g].T for g in range(a["G"])], axis=1),)


def swiglu(i: Any, a: Any) -> tuple[Array]:
    return (silu(i["x"][:, : a["N"]]) * i["x"][:, a["N"] :],)


def interleaved(i: Any, a: Any) -> tuple[Array]:
    output, start = i["x"].copy(), a["D"] - a["R"]
    pairs = (i["x"][..., start::2] + 1j * i["x"][..., start + 1 :: 2]) * (i["cos"] + 1j * i["sin"])[:, :, None]
    output[..., start::2], output[..., start + 1 :: 2] = pairs.real, pairs.imag
    return (output,)


def yarn(i: Any, a: Any) -> tuple[Array, Array]:
    half, position = a["D"] // 2, i["position_ids"].astype(float)
    low, high = {32: (3, 7), 128: (13, 25)}[a["D"]]
    frequency = np.empty(half)
    for j in range(half):
        mix = min(max((j - low) / (high - low), 0), 1)
        frequency[j] = (1 - mix) * 1e9 ** (-2 * j / a["D"]) + mix * 1e9 ** (-2 * j / a["D"]) / 16
    turn = np.exp(1j * position[:, :, None] * frequency)[:, :, None]

    def rotated(x: Array) -> Array:
        pairs = (x[..., :half] + 1j * x[..., half:]) * turn
        return np.concatenate((pairs.real, pairs.imag), axis=-1)

    scale = 1 + 0.1 * np.log(1 + np.floor(position / 16384))
    return rotated(i["q"]) * scale[:, :, None, None], rotated(i["k"])


def attention(scale: Callable[[Any], float], visible: Callable[..., bool], sink: bool = False) -> Callable[..., Any]:
    """Row by row over the visible keys of each query, ``visible(inputs, axes, place, position, key)``."""

    def formula(i: Any, a: Any) -> tuple[Array]:
        output = np.empty(i["q"].shape)
        for b, h, s in np.ndindex(*output.shape[:3]):
            shared, position = h * a["HK"] // a["HQ"], a["T"] - a["S"] + s
            keys = [j for j in range(a["T"]) if visible(i, a, (b, shared, s), position, j)]
            weight = np.exp(scale(a) * (i["k"][b, shared, keys] @ i["q"][b, h, s]))
            total = weight.sum() + (np.exp(i["sinks"][h]) if sink else 0)
            output[b, h, s] = weight @ i["v"][b, shared, keys] / total
        return (output,)

    return formula


def causal(i: Any, a: Any, place: Any, position: int, key: int) -> bool:
    return key <= position


def decode(i: Any, a: Any) -> tuple[Array]:
    output = np.empty(i["q"].shape)
    for b, h in np.ndindex(*output.shape[:2]):
        keys = i["kv"][b, : i["seq_lens"][b]]
        weight = np.exp(keys @ i["q"][b, h] / math.sqrt(a["D"]))
        output[b, h] = weight @ keys / weight.sum()
    return (output,)


def local_global(i: Any, a: Any) -> tuple[Array]:
    output = np.empty(i["q"].shape)
    for b, h, s in np.ndindex(*output.shape[:3]):
        position = a["T"] - a["S"] + s
        local = i["kv"][b, max(0, position - a["W"] + 1) : position + 1]
        rows = np.concatenate((local, i["kv_compressed"][b, : (position + 1) // a["R"]]))
        weight = np.exp(rows @ i["q"][b, h, s] / math.sqrt(a["D"]))
        output[b, h, s] = weight @ rows / (weight.sum() + np.exp(i["sinks"][h]))
    return (output,)


def root_of(a: Any) -> float:
    return 1 / math.sqrt(a["D"])


MKN: Mapping[str, int] = {"M": 6, "K": 64, "N": 96}
MN: Mapping[str, int] = {"M": 9, "N": 96}
GQA: Mapping[str, int] = {"B": 1, "HQ": 4, "HK": 1, "S": 11, "T": 23, "D": 32}
FORMULAS: dict[str, tuple[Mapping[str, int], Callable[..., Any]]] = {
    "linear_matmul_bias": (MKN, lambda i, a: (dense(i) + i["bias"],)),
    "linear_matmul_relu": (MKN, lambda i, a: (np.maximum(dense(i) + i["bias"], 0),)),
    "linear_matmul_gelu": (MKN, lambda i, a: (gelu(dense(i) + i["bias"]),)),
    "linear_matmul_silu": (MKN, lambda i, a: (silu(dense(i)),)),
    "linear_batched_matmul": ({"B": 4, "M": 6, "K": 32, "N": 48}, lambda i, a: (np.matmul(i["x"], i["weight"]),)),
    "linear_batched_bias": ({"B": 2, **MKN}, batched_bias),
    "linear_grouped_matmul": ({"M": 6, "G": 2, "K": 64, "N": 32}, grouped),
    "norm_activation_rmsnorm": (MN, lambda i, a: (rms(i["x"], 1e-6) * (1 + i["weight"]),)),
    "norm_activation_add_rmsnorm": (
        MN,
        lambda i, a: (rms(i["x"] + i["residual"], 1e-5) * i["weight"], i["x"] + i["residual"]),
    ),
    "norm_activation_swiglu": (MN, swiglu),
    "norm_activation_bias_gelu": (MN, lambda i, a: (gelu(i["x"] + i["bias"]),)),
    "position_rope_interleaved": ({"B": 2, "S": 5, "H": 4, "D": 64, "R": 16}, interleaved),
    "position_rope_yarn": ({"B": 2, "S": 5, "HQ": 4, "HK": 1, "D": 32}, yarn),
    "attention_gqa_causal": (GQA, attention(root_of, causal)),
    "attention_mqa_decode": ({"B": 3, "HQ": 4, "T": 23, "D": 32}, decode),
    "attention_sliding_window": (
        {**GQA, "W": 16},
        attention(lambda a: 1.0, lambda i, a, place, position, key: position - a["W"] < key <= position),
    ),
    "attention_local_global": ({"B": 1, "HQ": 4, "S": 11, "T": 23, "D": 32, "W": 16, "R": 8}, local_global),
    "attention_masked_softmax": (
        {**GQA, "HK": 2, "BK": 4, "TB": 3},
        attention(
            root_of,
            lambda i, a, place, position, key: key <= position and bool(i["block_mask"][(*place, key // a["BK"])]),
        ),
    ),
    "attention_attention_sink": (GQA, attention(root_of, causal, sink=True)),
}


# Multiply-adds that the formula needs: only pairs of a query and a key that it sees count.
ATTENTION = 2 * 4 * 32
CAUSAL_PAIRS = sum(range(13, 24))
NEEDED = {
    "linear_matmul_bias": 6 * 64 * 96, "linear_matmul_relu": 6 * 64 * 96, "linear_matmul_gelu": 6 * 64 * 96,
    "linear_matmul_silu": 6 * 64 * 96, "linear_batched_matmul": 4 * 6 * 32 * 48,
    "linear_batched_bias": 2 * 6 * 64 * 96, "linear_grouped_matmul": 6 * 2 * 64 * 32,
    "attention_gqa_causal": ATTENTION * CAUSAL_PAIRS,
    "attention_sliding_window": ATTENTION * sum(min(16, keys) for keys in range(13, 24)),
    "attention_local_global": ATTENTION * sum(min(16, keys) + keys // 8 for keys in range(13, 24)),
    "attention_attention_sink": ATTENTION * CAUSAL_PAIRS,
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_the_analysis_is_complete(name: str) -> None:
    drawn = smoke(name, **FORMULAS[name][0])
    result = analysed(drawn)
    assert result["coverage"] == "complete" and result["t_sol_s"] > 0
    if name == "attention_mqa_decode":  # lengths are frozen with the workload
        assert result["macs"] == ATTENTION * int(drawn.inputs["seq_lens"].sum())
    if name in NEEDED:
        assert result["macs"] == NEEDED[name]


def test_long_contexts_count_visible_pairs_only() -> None:
    size = {"B": 1, "HQ": 64, "HK": 4, "S": 1344, "T": 1344, "D": 256}
    pair = 2 * 64 * 256
    assert macs("attention_gqa_causal", **size) == pair * 1344 * 1345 // 2
    assert macs("attention_attention_sink", **size) == pair * 1344 * 1345 // 2
    assert macs("attention_sliding_window", **size, W=1024) == pair * sum(min(1024, i + 1) for i in range(1344))
    local = {"B": 1, "HQ": 16, "S": 2640, "T": 2640, "D": 512, "W": 128, "R": 128}
    visible = sum(min(128, i + 1) + (i + 1) // 128 for i in range(2640))
    assert macs("attention_local_global", **local) == 2 * 16 * 512 * visible


def test_block_masks_of_every_size() -> None:
    axes, formula = FORMULAS["attention_masked_softmax"]
    for change in ({"TB": 8}, {"TB": 6}, {"S": 1}, {"T": 24, "S": 24}, {"TB": 1}):
        drawn = smoke("attention_masked_softmax", **{**axes, **change})
        assert drawn.verdict(by_formula(drawn, formula)) is None, change
    size = {"B": 1, "HQ": 64, "HK": 4, "D": 128, "BK": 128, "TB": 16}
    for queries, keys in ((1, 8160), (1344, 1349), (3000, 3000), (2049, 14000)):
        # A block may hide all but one key, whose probability is 1.
        assert macs("attention_masked_softmax", **size, S=queries, T=keys) == 0
    reduced = smoke("attention_masked_softmax", B=1, HQ=2, HK=1, S=300, T=600, D=32, BK=8, TB=4)
    assert analysed(reduced)["coverage"] == "complete"


MISTAKES: dict[str, tuple[str, Callable[..., Any]]] = {
    "bias dropped": ("linear_matmul_bias", lambda i, a: i.update(bias=0)),
    "one bias for all": ("linear_batched_bias", lambda i, a: i.update(bias=i["bias"][[0, 0]])),
    "groups swapped": ("linear_grouped_matmul", lambda i, a: i.update(weight=i["weight"][::-1])),
    "gain without the one": ("norm_activation_rmsnorm", lambda i, a: i.update(weight=i["weight"] - 1)),
    "no residual": ("norm_activation_add_rmsnorm", lambda i, a: i.update(residual=0)),
    "halves swapped": ("norm_activation_swiglu", lambda i, a: i.update(x=np.roll(i["x"], a["N"], axis=1))),
    "input copied": ("position_rope_interleaved", lambda i, a: i.update(cos=i["cos"] * 0 + 1, sin=i["sin"] * 0)),
    "padding seen": ("attention_mqa_decode", lambda i, a: i.update(seq_lens=i["seq_lens"] * 0 + a["T"])),
    "one key more": ("attention_sliding_window", lambda i, a: a.update(W=a["W"] + 1)),
    "one key fewer": ("attention_sliding_window", lambda i, a: a.update(W=a["W"] - 1)),
    "sink dropped": ("attention_local_global", lambda i, a: i.update(sinks=i["sinks"] - 100)),
    "no sink": ("attention_attention_sink", lambda i, a: i.update(sinks=i["sinks"] - 100)),
    "mask of one head": (
        "attention_masked_softmax", lambda i, a: i.update(block_mask=i["block_mask"][:, [0, 0]]),
    ),
}  # fmt: skip


test_the_reference_is_its_formula, test_zeros_fail, test_a_mistake_fails = formula_tests(FORMULAS, MISTAKES)


def test_drawn_lengths_masks_and_rows_follow_their_rules() -> None:
    lengths = smoke("attention_mqa_decode", B=64, HQ=1, T=23, D=32).inputs["seq_lens"]
    assert lengths[0] == 23 and lengths.min() >= 12 and lengths.max() <= 23 and len(lengths.unique()) > 1
    mask = smoke("attention_masked_softmax", **FORMULAS["attention_masked_softmax"][0]).inputs["block_mask"]
    position = torch.arange(11) + 12
    assert torch.equal(mask.sum(-1), (position // 4 + 1).clamp(max=3).expand(1, 2, -1))
    assert mask.gather(-1, (position // 4).view(1, 1, -1, 1).expand(1, 2, -1, 1)).all()
    rows: Smoke = smoke("norm_activation_rmsnorm", M=8, N=96)
    size = rows.inputs["x"].float().square().mean(1).sqrt()
    assert (size[3::4] < 2e-3).all() and (size[[0, 1, 2, 4, 5, 6]] > 0.5).all()
