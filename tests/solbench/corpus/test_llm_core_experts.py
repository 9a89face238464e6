"""LLM_CORE's experts, routers and sparse attention at smoke sizes, token by token in NumPy's float64."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from llm_core_smoke import analysed, by_formula, formula_tests, macs, smoke

Array = np.ndarray


def sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def silu(z: Array) -> Array:
    return z * sigmoid(z)


def ffn(gate_up: Array, down: Array, z: Array, limit: float = math.inf) -> Array:
    hidden = gate_up @ z
    gate, up = hidden[: len(hidden) // 2], hidden[len(hidden) // 2 :]
    return down @ (silu(np.minimum(gate, limit)) * np.clip(up, -limit, limit))


def by_group(row: Callable[[Any, int, Array], Array]) -> Callable[..., Any]:
    """``row(inputs, group, x[r])`` for the group of each row."""

    def formula(i: Any, a: Any) -> tuple[Array]:
        offsets = i["group_offsets"]
        groups = [g for g in range(len(offsets) - 1) for _ in range(offsets[g], offsets[g + 1])]
        return (np.stack([row(i, g, x) for g, x in zip(groups, i["x"], strict=True)]),)

    return formula


def situ(i: Any, group: int, x: Array) -> Array:
    hidden = i["w_gate_up"][group] @ x
    gate, up = hidden[: len(hidden) // 2], hidden[len(hidden) // 2 :]
    return 4 * np.tanh(gate / 4) * sigmoid(gate) * 25 * np.tanh(up / 25)


def route_top2(i: Any, a: Any) -> tuple[Array]:
    output = np.zeros(i["x"].shape)
    for m, logits in enumerate(i["router_logits"]):
        first, second = sorted(range(a["E"]), key=lambda e: (-logits[e], e))[:2]
        share = sigmoid(logits[first] - logits[second])
        for e, weight in ((first, share), (second, 1 - share)):
            output[m] += weight * ffn(i["w_gate_up"][e], i["w_down"][e], i["x"][m])
    return (output,)


def shared_expert(i: Any, a: Any) -> tuple[Array]:
    output, limit = np.zeros(i["x"].shape), i.get("limit", 10)
    for m, x in enumerate(i["x"]):
        output[m] = ffn(i["shared_gate_up"], i["shared_down"], x, limit)
        for e, weight in zip(i["topk_ids"][m], i["topk_weights"][m], strict=True):
            if e < a["EL"]:
                output[m] += weight * ffn(i["w_gate_up"][e], i["w_down"][e], x, limit)
    return (output,)


def routed_residual(i: Any, a: Any) -> tuple[Array]:
    output = i["residual"].copy()
    for m, x in enumerate(i["x"]):
        e = int(i["router_logits"][m].argmax())
        share = sigmoid(i["router_logits"][m, e])
        inner, outer = (1, share) if i.get("scale_output") else (share, 1)
        output[m] += ffn(i["shared_gate_up"], i["shared_down"], x)
        output[m] += outer * ffn(i["w_gate_up"][e], i["w_down"][e], inner * x)
    return (output,)


def router(i: Any, a: Any) -> tuple[Array, Array, Array]:
    logits = i["x"] @ i["router_weight"].T
    score = sigmoid(logits)
    ids = np.argsort(-(score + i["score_bias"]), axis=1, kind="stable")[:, : a["K"]]
    chosen = np.take_along_axis(score + i.get("bias_weighs", 0) * i["score_bias"], ids, 1)
    return logits, ids, 2.5 * chosen / chosen.sum(1, keepdims=True)


def mla(i: Any, a: Any) -> tuple[Array]:
    """The absorbed form: queries go to the latent space, where the cache is key and value at once."""
    output = np.empty((a["B"], a["HQ"], a["S"], a["DV"]))
    scale = i.get("yarn", 0.1 * math.log(40) + 1) ** 2 / math.sqrt(a["DN"] + a["DR"])
    for b, h, s in np.ndindex(*output.shape[:3]):
        seen = a["T"] - a["S"] + s + 1
        latent = i["c_kv"][b, :seen]
        scores = latent @ (i["w_uk"][h].T @ i["q_nope"][b, h, s]) + i["k_rope"][b, :seen] @ i["q_rope"][b, h, s]
        weight = np.exp(scale * scores)
        output[b, h, s] = i["w_uv"][h] @ (weight @ latent / weight.sum())
    return (output,)


def indexed(i: Any, a: Any) -> tuple[Array]:
    output = np.empty((a["B"], a["HQ"], a["S"], a["DV"]))
    for b, h, s in np.ndindex(*output.shape[:3]):
        seen = a["T"] - a["S"] + s + 1
        rows = i["kv"][b, np.argsort(-i["index_scores"][b, s, :seen])[: a["K"]]]
        weight = np.exp(rows @ i["q"][b, h, s] / 16)
        output[b, h, s] = weight @ rows[:, : a["DV"]] / weight.sum()
    return (output,)


ROWS: Mapping[str, int] = {"R": 13, "D": 64, "EL": 4, "I": 48}
FORMULAS: dict[str, tuple[Mapping[str, int], Callable[..., Any]]] = {
    "linear_grouped_silu": ({"R": 13, "G": 4, "K": 64, "N": 32}, by_group(lambda i, g, x: silu(i["weight"][g] @ x))),
    "moe_grouped_expert": (ROWS, by_group(lambda i, g, x: ffn(i["w_gate_up"][g], i["w_down"][g], x))),
    "moe_fused_gate_up": (ROWS, by_group(situ)),
    "moe_route_top2": ({"M": 6, "D": 64, "E": 8, "I": 48}, route_top2),
    "moe_shared_expert": ({"M": 24, "D": 64, "E": 16, "EL": 4, "I": 32, "K": 4}, shared_expert),
    "moe_routed_residual": ({"M": 6, "D": 64, "E": 8, "I": 48}, routed_residual),
    "moe_normalized_topk": ({"M": 16, "D": 64, "E": 32, "K": 4}, router),
    "advanced_attention_mla_compressed": (
        {"B": 1, "HQ": 4, "S": 5, "T": 11, "DN": 32, "DR": 16, "DC": 64, "DV": 32},
        mla,
    ),
    "advanced_attention_indexed_sparse": ({"B": 1, "HQ": 4, "S": 11, "T": 23, "DQ": 48, "DV": 32, "K": 8}, indexed),
}


# Multiply-adds of the formula; groups are frozen with the workload, so that each row counts once.
NEEDED = {
    "linear_grouped_silu": 13 * 64 * 32, "moe_grouped_expert": 3 * 13 * 64 * 48, "moe_fused_gate_up": 2 * 13 * 64 * 48,
    "moe_normalized_topk": 16 * 64 * 32,
}  # fmt: skip
# A bound above what every routing needs would be wrong; unknown routing counts nothing.
LARGEST = {
    "moe_route_top2": 2 * 3 * 6 * 64 * 48,
    "moe_shared_expert": 3 * 24 * 64 * 32,
    "moe_routed_residual": 6 * 6 * 64 * 48,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_analysis_is_complete(name: str) -> None:
    result = analysed(smoke(name, **FORMULAS[name][0]))
    assert result["coverage"] == "complete" and result["t_sol_s"] > 0
    if name in NEEDED:
        assert result["macs"] == NEEDED[name]
    if name in LARGEST:
        assert result["macs"] <= LARGEST[name]


@pytest.mark.parametrize("name", ["advanced_attention_mla_compressed", "advanced_attention_indexed_sparse"])
def test_decode_of_one_token(name: str) -> None:
    axes, formula = FORMULAS[name]
    drawn = smoke(name, **{**axes, "B": 2, "S": 1})
    assert drawn.verdict(by_formula(drawn, formula)) is None
    assert analysed(drawn)["coverage"] == "complete"


def test_long_contexts_count_no_more_than_they_need() -> None:
    decode = {"B": 2, "HQ": 16, "S": 1, "T": 8192, "DN": 128, "DR": 64, "DC": 512, "DV": 128}
    absorbed = 2 * 16 * (512 * (128 + 128) + 8192 * (2 * 512 + 64))
    assert macs("advanced_attention_mla_compressed", **decode) == absorbed
    model = {"B": 1, "HQ": 8, "DQ": 576, "DV": 512, "K": 2048}
    for queries, keys in ((1, 32768), (3600, 3600), (2048, 16384)):
        # Of what is selected all but one row may be hidden.
        assert macs("advanced_attention_indexed_sparse", **model, S=queries, T=keys) == 0


def test_sparse_attention_is_attested_at_reduced_sizes() -> None:
    result = analysed(smoke("advanced_attention_indexed_sparse", B=1, HQ=2, S=256, T=512, DQ=48, DV=32, K=24))
    assert result["coverage"] == "complete"


MISTAKES: dict[str, tuple[str, Callable[..., Any]]] = {
    "one expert for all": ("linear_grouped_silu", lambda i, a: i.update(weight=i["weight"][[0] * 4])),
    "offsets one row late": (
        "moe_grouped_expert",
        lambda i, a: i.update(group_offsets=np.minimum(i["group_offsets"] + (i["group_offsets"] > 0), a["R"])),
    ),
    "gate and up swapped": (
        "moe_fused_gate_up",
        lambda i, a: i.update(w_gate_up=np.roll(i["w_gate_up"], a["I"], axis=1)),
    ),
    "one expert only": ("moe_route_top2", lambda i, a: i.update(router_logits=i["router_logits"] * 100)),
    "no clamp": ("moe_shared_expert", lambda i, a: i.update(limit=math.inf)),
    "other devices' experts": ("moe_shared_expert", lambda i, a: i.update(topk_ids=i["topk_ids"] % a["EL"])),
    "score scales the output": ("moe_routed_residual", lambda i, a: i.update(scale_output=True)),
    "bias dropped": ("moe_normalized_topk", lambda i, a: i.update(score_bias=i["score_bias"] * 0)),
    "bias weighs": ("moe_normalized_topk", lambda i, a: i.update(bias_weighs=1)),
    "no factor of YaRN": ("advanced_attention_mla_compressed", lambda i, a: i.update(yarn=1.0)),
    "no rotated part": ("advanced_attention_mla_compressed", lambda i, a: i.update(q_rope=i["q_rope"] * 0)),
    "first tokens selected": (
        "advanced_attention_indexed_sparse",
        lambda i, a: i.update(index_scores=i["index_scores"] * 0),
    ),
}  # fmt: skip


test_the_reference_is_its_formula, test_zeros_fail, test_a_mistake_fails = formula_tests(FORMULAS, MISTAKES)


@pytest.mark.parametrize("name", ["linear_grouped_silu", "moe_grouped_expert", "moe_fused_gate_up"])
def test_offsets_are_frozen_and_leave_the_second_group_empty(name: str) -> None:
    axes = FORMULAS[name][0]
    for rows in range(11, 15):
        drawn = smoke(name, **{**axes, "R": rows})
        offsets = drawn.inputs["group_offsets"].tolist()
        assert offsets[0] == 0 and offsets[-1] == rows and offsets == sorted(offsets) and offsets[1] == offsets[2]
        assert smoke(name, seed=2, **{**axes, "R": rows}).inputs["group_offsets"].tolist() == offsets


def test_drawn_routing_follows_its_rules() -> None:
    inputs = smoke("moe_shared_expert", **FORMULAS["moe_shared_expert"][0]).inputs
    assert all(len(set(row)) == 4 and max(row) < 16 for row in inputs["topk_ids"].tolist())
    assert torch.allclose(inputs["topk_weights"].sum(1), torch.tensor(1.5))
    scores = smoke("advanced_attention_indexed_sparse", **FORMULAS["advanced_attention_indexed_sparse"][0]).inputs
    assert torch.equal(scores["index_scores"].sort(-1).values, torch.arange(23.0).expand(1, 11, -1))
