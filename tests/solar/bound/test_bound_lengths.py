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
        # Inside a window or at the first keys.
        (
            lambda i, j: (j <= i) & ((j > i - 64) | (j < 4)),
            sum(min(i + 1, 64) + min(4, max(0, i - 63)) for i in range(256)),
        ),
        # Four blocks of 64 on the diagonal, or ten on and below it; long blocks beside short ones.
        (lambda i, j: i // 64 == j // 64, 4 * 64 * 64),
        (lambda i, j: i // 64 >= j // 64, 10 * 64 * 64),
        (lambda i, j: i // 32 == j // 64, 4 * 32 * 64),
        # Every fourth key before a row; eight keys to each side but at the ends.
        (lambda i, j: ((i - j) % 4 == 0) & (j <= i), sum(i // 4 + 1 for i in range(256))),
        (lambda i, j: (j - i).abs() <= 8, 256 * 17 - 8 * 9),
        (lambda i, j: (j - 2 * i).abs() < 1, 128),
        # One or the other: 63 - i keys above row 64, i - 63 below it. Row i < 4 sees the i-th block and not itself.
        (lambda i, j: (j <= i) ^ (j < 64), sum(range(64)) + sum(range(1, 193))),
        (lambda i, j: (j // 64 == i) ^ (j <= i), sum(range(1, 257)) - 2 + 4 * 64),
    ],
)
@pytest.mark.parametrize("added", [False, True])
def test_pairs_under_a_known_mask_are_counted_exactly(mask: Any, live: int, added: bool) -> None:
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


def test_a_mask_too_large_to_be_listed_may_hide_all() -> None:
    def run(q: Any, k: Any) -> Any:
        block = torch.arange(5_000) // 100
        return torch.exp((q @ k.T).masked_fill(block[:, None] != block, -torch.inf))

    assert bounded(run, *[(5_000, 8)] * 2)["macs"] == 0


@pytest.mark.parametrize(
    ("look_up", "read_of_data"),
    [
        (lambda x: x[:, torch.arange(8)], 36),
        (lambda x: x[:, torch.arange(8) // 2], 2 * (1 + 2 + 3 + 4)),
        (lambda x: x.index_select(1, torch.arange(8)), 36),
        (lambda x: torch.nn.functional.embedding(torch.arange(8), x), 36),
    ],
)
def test_each_row_looks_up_what_it_wants(look_up: Callable[[Any], Any], read_of_data: int) -> None:
    found = bounded(lambda x: look_up(x).tril(), (8, 8))
    assert read(found, "x0") == 4 * read_of_data


def test_pages_beyond_a_length_are_not_looked_up() -> None:
    def run(cache: Any, table: Any, lengths: Any) -> Any:
        position = torch.arange(12)
        tokens = cache[table[:, position // 4], position % 4]
        return tokens.masked_fill((position >= lengths[:, None]).unsqueeze(2), 0.0)

    found = bounded(run, (9, 4, 5), Input((2, 3), "int64"), known(12, 5))
    assert read(found, "x1") == 8 * (3 + 2)
