"""LLM_CORE's caches and quantised formats at smoke sizes: bit by bit against loops and nearest-value searches."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from llm_core_smoke import analysed, formula_tests, smoke

Array = np.ndarray


def paged_write(i: Any, a: Any) -> tuple[Array, Array]:
    keys, values = i["key_cache"].copy(), i["value_cache"].copy()
    for n, slot in enumerate(i["slot_mapping"]):
        if slot >= 0:
            keys[slot // a["BS"], slot % a["BS"]] = i["key"][n]
            values[slot // a["BS"], slot % a["BS"]] = i["value"][n]
    return keys, values


def places(i: Any, a: Any) -> list[tuple[int, int, int, int]]:
    """(sequence, token, page, row) of every token that is no padding."""
    return [
        (b, t, i["block_table"][b, t // a["BS"]], t % a["BS"]) for b in range(a["B"]) for t in range(i["seq_lens"][b])
    ]


def gather(i: Any, a: Any) -> tuple[Array, Array]:
    shape = (a["B"], a["T"], a["HK"], a["D"])
    keys, values = np.zeros(shape), np.zeros(shape)
    for b, t, page, row in places(i, a):
        keys[b, t], values[b, t] = i["key_cache"][page, row], i["value_cache"][page, row]
    return keys, values


def scatter(i: Any, a: Any) -> tuple[Array, Array]:
    keys, values = i["key_cache"].copy(), i["value_cache"].copy()
    for b, t, page, row in places(i, a):
        keys[page, row], values[page, row] = i["key"][b, t], i["value"][b, t]
    return keys, values


def compress(i: Any, a: Any) -> tuple[Array]:
    output, m, wide = np.empty((a["B"], a["NW"], a["D"])), a["m"], a["D"]
    for b, w, d in np.ndindex(*output.shape):
        logits, values = [], []
        for r in range(m):
            token = w * m + r
            logits.append(i["gate"][b, token, wide + d] + i["position_bias"][r, wide + d])
            values.append(i["kv"][b, token, wide + d])
            if w > 0:
                logits.append(i["gate"][b, token - m, d] + i["position_bias"][r, d])
                values.append(i["kv"][b, token - m, d])
        weight = np.exp(logits)
        output[b, w, d] = weight @ np.array(values) / weight.sum()
    return (output / np.sqrt((output**2).mean(-1, keepdims=True) + 1e-6) * i["norm_weight"],)


E4M3 = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).double().numpy()
E4M3 = np.unique(E4M3[np.isfinite(E4M3)])
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def nearest(values: Array, grid: Array) -> Array:
    """Positions in the sorted ``grid`` of the nearest numbers; a tie goes to the even position."""
    distance = np.abs(values[..., None] - grid)
    first = distance.argmin(-1)
    tied = np.take_along_axis(distance, np.minimum(first + 1, len(grid) - 1)[..., None], -1)[..., 0]
    return first + ((tied == distance.min(-1)) & (first % 2 == 1) & (first + 1 < len(grid)))


def e4m3(values: Array) -> Array:
    """Nearest e4m3 values; the magnitudes are on even positions where their last bit is 0."""
    magnitudes = E4M3[E4M3 >= 0]
    return np.copysign(magnitudes[nearest(np.abs(values), magnitudes)], values)


def fp8(i: Any, a: Any) -> tuple[Array]:
    # The scale and the quotient are single precision, as declared.
    x = i["x"].astype(np.float32)
    scale = np.maximum(np.abs(x).max(1, keepdims=True) / np.float32(448), np.float32(1e-12))
    codes = e4m3((x / scale).astype(np.float64))
    return (codes @ i["weight"].T * scale * i["weight_scale"],)


def int8(i: Any, a: Any) -> tuple[Array]:
    return (i["x"] @ (i["weight"] * i["weight_scale"][:, None]).T,)


def blocks_of(x: Array, largest_exponent: int) -> tuple[Array, Array]:
    """Scaled blocks and scale bytes, by exact decomposition of the largest magnitudes."""
    blocks = x.reshape(len(x), -1, 32)
    peak = np.abs(blocks).max(2)
    shared = np.where(peak > 0, np.frexp(peak)[1] - 1 - largest_exponent, -127)
    return np.ldexp(blocks, -shared[..., None]), shared + 127


def mxfp8(i: Any, a: Any) -> tuple[Array, Array]:
    scaled, scales = blocks_of(i["x"], 8)
    return e4m3(np.clip(scaled, -448, 448)).reshape(i["x"].shape), scales


def mxfp4(i: Any, a: Any) -> tuple[Array, Array]:
    scaled, scales = blocks_of(i["x"], 2)
    codes = (nearest(np.abs(scaled), E2M1) + 8 * np.signbit(scaled)).reshape(i["x"].shape)
    return codes[:, ::2] + 16 * codes[:, 1::2], scales


PAGED: Mapping[str, int] = {"B": 3, "T": 45, "BS": 8, "HK": 2, "D": 8}
LINEAR: Mapping[str, int] = {"M": 6, "K": 64, "N": 96}
FORMULAS: dict[str, tuple[Mapping[str, int], Callable[..., Any]]] = {
    "kv_cache_paged_write": ({"N": 35, "P": 10, "BS": 8, "HK": 2, "D": 8}, paged_write),
    "kv_cache_cache_gather": (PAGED, gather),
    "kv_cache_cache_scatter": (PAGED, scatter),
    "kv_cache_cache_compress": ({"B": 2, "T": 15, "D": 16, "m": 4}, compress),
    "quantization_fp8_per_token": (LINEAR, fp8),
    "quantization_mxfp8_block": ({"M": 9, "N": 96}, mxfp8),
    "quantization_mxfp4_block": ({"M": 9, "N": 96}, mxfp4),
    "quantization_int8_weight_only": (LINEAR, int8),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_analysis_is_complete(name: str) -> None:
    axes = FORMULAS[name][0]
    result = analysed(smoke(name, **axes))
    assert result["coverage"] == "complete" and result["t_sol_s"] > 0
    assert result["macs"] == (6 * 64 * 96 if axes is LINEAR else 0)


def changed(i: Any, name: str, rows: Any, value: Any) -> None:
    i[name] = i[name].copy()
    i[name][rows] = value


def pages_of_tokens(i: Any, a: Any) -> None:
    i["seq_lens"] = i["seq_lens"] * 0 + a["T"]


MISTAKES: dict[str, tuple[str, Callable[..., Any]]] = {
    "padding wraps to the last slot": (
        "kv_cache_paged_write",
        lambda i, a: changed(i, "slot_mapping", slice(15, None, 16), a["P"] * a["BS"] - 1),
    ),
    "padding is gathered": ("kv_cache_cache_gather", pages_of_tokens),
    "padding is scattered": ("kv_cache_cache_scatter", pages_of_tokens),
    "halves swapped": ("kv_cache_cache_compress", lambda i, a: i.update(kv=np.roll(i["kv"], a["D"], axis=2))),
    "no position bias": ("kv_cache_cache_compress", lambda i, a: i.update(position_bias=i["position_bias"] * 0)),
    "weight scale dropped": ("quantization_fp8_per_token", lambda i, a: i.update(weight_scale=1)),
    "wrong scale": ("quantization_int8_weight_only", lambda i, a: i.update(weight_scale=i["weight_scale"] * 1.5)),
}  # fmt: skip


test_the_reference_is_its_formula, test_zeros_fail, test_a_mistake_fails = formula_tests(FORMULAS, MISTAKES)


@pytest.mark.parametrize("name", ["kv_cache_cache_gather", "quantization_mxfp8_block"])
def test_codes_and_copies_are_compared_by_their_bits(name: str) -> None:
    drawn = smoke(name, **FORMULAS[name][0])
    output = "key" if "key" in drawn.expected else "codes"
    actual = {key: value.clone() for key, value in drawn.expected.items()}
    bits = actual[output].view(torch.int16 if actual[output].element_size() == 2 else torch.uint8)
    zero = (bits == 0).nonzero()[0]
    bits[tuple(zero)] = -(2**15) if bits.dtype == torch.int16 else 0x80  # minus zero
    reason = drawn.verdict(actual)
    assert reason is not None and "1 of" in reason


def test_formats_at_their_ties_and_ends() -> None:
    from llm_core_smoke import TEMPLATES

    from solbench.corpus.reference import load_reference

    x = torch.zeros(1, 32)
    # A largest magnitude of 7 gives the exponent 2 - 2 = 0, so the values are on the grid's own scale.
    x[0, :10] = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 7.0, -0.0, -1.0])
    codes, scales = load_reference(TEMPLATES["quantization_mxfp4_block"].definition)(x.bfloat16())
    nibbles = torch.stack((codes & 15, codes >> 4), dim=2).flatten()
    assert nibbles[:10].tolist() == [0, 2, 2, 4, 4, 6, 6, 7, 8, 10] and scales.tolist() == [[127]]
    x[0, 7] = 480.0
    codes, scales = load_reference(TEMPLATES["quantization_mxfp8_block"].definition)(x.bfloat16())
    assert codes[0, 7].float() == 448 and scales.tolist() == [[127]]
    assert not codes.float().isnan().any()


def test_drawn_tables_follow_their_rules() -> None:
    slots = smoke("kv_cache_paged_write", **FORMULAS["kv_cache_paged_write"][0]).inputs["slot_mapping"]
    assert (slots[15::16] == -1).all() and (slots == -1).sum() == 2
    used = slots[slots >= 0]
    assert len(used.unique()) == len(used) and used.max() < 80
    shared = smoke("kv_cache_cache_gather", **PAGED).inputs["block_table"]
    assert shared.shape == (3, 6) and (shared[:, 0] == shared[0, 0]).all() and len(shared.unique()) == 16
    alone = smoke("kv_cache_cache_scatter", **PAGED).inputs["block_table"]
    assert len(alone.unique()) == 18 and alone.min() >= 0 and alone.max() < 23
