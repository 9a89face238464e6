"""Known lengths and offsets decide masks too large to be listed: what they hide is neither read nor computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bound_cases import PLAIN, known

from solar.bound import bound
from solar.graph import Input

torch = pytest.importorskip("torch")

HEADS, KEYS, CHANNELS, WINDOW = 4, 40_000, 8, 1_000
LENGTHS = (25_000, 40_000, 1)
ROWS, OFFSETS = 70_000, (0, 20_001, 20_001, 70_000)


def bounded(run: Callable[..., Any], *shapes: Any) -> dict[str, Any]:
    from solar.convert import convert
    from solar.extract.aten import extract

    inputs = {f"x{i}": s if isinstance(s, Input) else Input(s, "float32") for i, s in enumerate(shapes)}
    return bound(convert(extract(run, inputs)), PLAIN)


def read(found: dict[str, Any], name: str) -> int:
    return next(int(tensor["live_bytes"]) for tensor in found["tensors"] if tensor["name"] == name)


def attention(q: Any, kv: Any, hidden: Any) -> Any:
    scores = torch.einsum("bhd,btd->bht", q, kv).masked_fill(hidden.unsqueeze(1), -torch.inf)
    return torch.einsum("bht,btd->bhd", torch.softmax(scores, -1), kv)


def decode(q: Any, kv: Any, lengths: Any) -> Any:
    return attention(q, kv, torch.arange(kv.shape[1]) >= lengths.unsqueeze(1))


def windowed(q: Any, kv: Any, lengths: Any) -> Any:
    position, last = torch.arange(kv.shape[1])[None], lengths[:, None]
    return attention(q, kv, (position >= last) | (last - WINDOW > position))


def reversed_in_time(q: Any, kv: Any, lengths: Any) -> Any:
    return attention(q, kv, (kv.shape[1] - 1 - torch.arange(kv.shape[1])) >= lengths.reshape(-1, 1).int())


Q, KV = (len(LENGTHS), HEADS, CHANNELS), (len(LENGTHS), KEYS, CHANNELS)


@pytest.mark.parametrize(
    ("run", "visible"),
    [
        (decode, sum(LENGTHS)),
        (windowed, sum(min(length, WINDOW) for length in LENGTHS)),
        (reversed_in_time, sum(LENGTHS)),
    ],
)
def test_keys_beyond_a_length_are_not_read(run: Callable[..., Any], visible: int) -> None:
    found = bounded(run, Q, KV, known(*LENGTHS))
    assert read(found, "x1") == 4 * CHANNELS * visible
    assert found["macs"] == 2 * HEADS * CHANNELS * visible
    assert found["draws"] == "frozen"


def test_unknown_lengths_may_hide_all() -> None:
    found = bounded(decode, Q, KV, Input((len(LENGTHS),), "int64"))
    assert (read(found, "x1"), found["macs"], found["draws"]) == (0, 0, "any draw")


def test_one_length_is_a_run() -> None:
    found = bounded(decode, (1, HEADS, CHANNELS), (1, 2 * KEYS, CHANNELS), known(KEYS + 3))
    assert read(found, "x1") == 4 * CHANNELS * (KEYS + 3)


def grouped(x: Any, weights: Any, offsets: Any) -> Any:
    group = (torch.bucketize(torch.arange(x.shape[0]), offsets, right=True) - 1).unsqueeze(1)
    result = (x @ weights[0]).exp()
    for i in range(1, weights.shape[0]):
        result = torch.where(group == i, (x @ weights[i]).exp(), result)
    return result


def test_rows_of_known_groups_are_multiplied_once() -> None:
    found = bounded(grouped, (ROWS, 8), (3, 8, 4), known(*OFFSETS))
    assert found["macs"] == ROWS * 8 * 4
    assert read(found, "x1") == 4 * 2 * 8 * 4  # the second group is empty
    assert bounded(grouped, (ROWS, 8), (3, 8, 4), Input((4,), "int64"))["macs"] == 0


def test_a_single_position_is_a_constant_where_it_is_broadcast() -> None:
    found = bounded(lambda x: torch.where(torch.arange(1)[:, None] < torch.arange(5), x, 0.0), (5, 5))
    assert read(found, "x0") == 4 * 5 * 4
    found = bounded(lambda x: torch.where(torch.arange(1) < torch.arange(5), x, 0.0), (5, 5))
    assert read(found, "x0") == 4 * 5 * 4


@pytest.mark.parametrize(
    ("mask", "live"),
    [
        # The first K keys for all, and what lies before: K + K + ... (K rows of K), then i + 1 each.
        (lambda i, j: (j <= i) | (j < 64), 64 * 64 + sum(range(65, 257))),
        (lambda i, j: (j <= i - 128) | (j < 4), sum(max(4, i - 127) for i in range(256))),
    ],
)
@pytest.mark.parametrize("added", [False, True])
def test_a_ban_under_two_conditions_is_counted_exactly(mask: Any, live: int, added: bool) -> None:
    def run(q: Any, k: Any, v: Any) -> Any:
        keep = mask(torch.arange(256)[:, None], torch.arange(256)[None, :])
        scores = q @ k.transpose(-1, -2)
        if added:
            scores = scores + torch.zeros(256, 256).masked_fill(~keep, -torch.inf)
        else:
            scores = scores.masked_fill(~keep, -torch.inf)
        return torch.softmax(scores, -1) @ v

    found = bounded(run, *[(2, 256, 16)] * 3)
    assert found["macs"] == 2 * 2 * live * 16
