"""Bounds against kernels that use what factors are made of: repetition, outer products, sums, shared parts, masks.

Counted by hand as in the table of ``test_bound_adversary``; ``least``: what no kernel of the class avoids, so that the
bound has not simply become nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from bound_cases import Case, K, M, N, known, priced

from solar.graph import Input

torch = pytest.importorskip("torch")
F = torch.nn.functional


@dataclass(frozen=True)
class Trick(Case):
    least: float


def trick(run: Callable[..., Any], *shapes: Any, operations: float, moved: int, least: float) -> Trick:
    return Trick(run, shapes, operations, 4 * moved, least)


BITS, CHOICE = Input((N, K), "bool"), Input((N, M), "bool")
GROUPS, ROWS, KEYS, CHANNELS = 4, 4096, 64, 8
LIVE = GROUPS * sum(min(i + 1, KEYS) for i in range(ROWS))


def masked_then_merged(scores: Any, v: Any) -> Any:
    later = torch.arange(KEYS)[None] > torch.arange(ROWS)[:, None]
    probability = torch.softmax(scores.masked_fill(later, -torch.inf), -1)
    return probability.reshape(GROUPS * ROWS, KEYS) @ v


def merged_then_multiplied(scores: Any, v: Any) -> Any:
    mask = torch.ones(ROWS, KEYS).tril().expand(GROUPS, ROWS, KEYS).reshape(GROUPS * ROWS, KEYS)
    return (scores.reshape(GROUPS * ROWS, KEYS) * mask) @ v


CASES = {
    # The same factor again.
    "a fourth power by squaring": trick(
        lambda a: a @ a @ a @ a, (N, N), operations=4 * N**3, moved=2 * N * N, least=4 * N**3
    ),
    "an eighth power": trick(
        lambda a: torch.matrix_power(a, 8), (N, N), operations=6 * N**3, moved=2 * N * N, least=6 * N**3
    ),
    "an eighth power of a vector's matrix": trick(
        lambda a, x: torch.matrix_power(a, 8) @ x, (N, N), (N, 1), operations=16 * N * N, moved=N * N + 2 * N,
        least=2 * N * N,
    ),
    "two factors in turn": trick(
        lambda a, b: a @ b @ a @ b, (N, K), (K, N), operations=2 * (N * N * K + N**3), moved=2 * N * K + N * N,
        least=2 * N * N * K,
    ),
    "the same through transposes and casts": trick(
        lambda a: a @ a.t().half().t().float() @ (a * 2) @ a, (N, N), operations=4 * N**3, moved=2 * N * N,
        least=2 * N**3,
    ),
    "powers one after the other": trick(
        lambda a: (a @ a, a @ a @ a), (N, N), operations=4 * N**3, moved=3 * N * N, least=4 * N**3
    ),
    # What two results have in common.
    "the other association": trick(
        lambda a, b, c: (a @ b @ c, (b @ c).relu()), (N, N), (N, N), (N, N), operations=4 * N**3 + N * N,
        moved=5 * N * N, least=4 * N**3,
    ),
    "a product and its transpose": trick(
        lambda a, b: (a @ b.t(), (b @ a.t()).relu()), (N, K), (M, K), operations=2 * N * M * K + N * M,
        moved=N * K + M * K + 2 * N * M, least=2 * N * M * K,
    ),
    "slices that overlap": trick(
        lambda x, w: (x @ w[:, :40], (x @ w[:, 8:]).relu()), (N, K), (K, M), operations=2 * N * K * M + N * 40,
        moved=N * K + K * M + 2 * N * 40, least=2 * N * K * 40,
    ),
    "part of a sum": trick(
        lambda x, w: (x[:, :16] @ w[:16], (x @ w).relu()), (N, K), (K, M), operations=2 * N * K * M + 2 * N * M,
        moved=N * K + K * M + 2 * N * M, least=2 * N * K * M,
    ),
    "a product and the same reshaped": trick(
        lambda x, w: (x @ w, (x.view(2, N // 2, K) @ w).relu()), (N, K), (K, M), operations=2 * N * K * M + N * M,
        moved=N * K + K * M + 2 * N * M, least=2 * N * K * M,
    ),
    "a sum of two factors and both of them": trick(
        lambda a, u, v: (a @ u, a @ v, a @ (u + v)), (N, K), (K, M), (K, M), operations=4 * N * K * M + N * M,
        moved=N * K + 2 * K * M + 3 * N * M, least=4 * N * K * M,
    ),
    "two slices without a common part": trick(
        lambda x, w: (x @ w[:, :16], x @ w[:, 16:]), (N, K), (K, M), operations=2 * N * K * M,
        moved=N * K + K * M + N * M, least=2 * N * K * M,
    ),
    # Products of smaller things.
    "a Kronecker product": trick(
        lambda a, c, v: torch.kron(a, c) @ v, (8, 8), (8, 8), (64, 1), operations=2 * (512 + 512), moved=128 + 128,
        least=2 * (512 + 512),
    ),
    "a Kronecker product that is shown": trick(
        lambda a, c, v: (torch.kron(a, c), torch.kron(a, c) @ v), (8, 8), (8, 8), (64, 1),
        operations=4096 + 2 * (512 + 512), moved=128 + 4096 + 128, least=4096,
    ),
    "an outer product that is read otherwise, too": trick(
        lambda u, w, x: ((u[:, None] * w).relu(), (u[:, None] * w) @ x), (N,), (K,), (K, M),
        operations=2 * N * K + 2 * K * M + N * M, moved=N + K + K * M + N * K + N * M, least=N * K + 2 * K * M,
    ),
    "an identity and an outer product": trick(
        lambda u, v, x: (torch.eye(N) + u[:, None] * v) @ x, (N,), (N,), (N, M), operations=4 * N * M,
        moved=2 * N + 2 * N * M, least=2 * N * M,
    ),
    "an identity and a product of rank one": trick(
        lambda u, v, x: (torch.eye(N) + u[:, None] @ v[None]) @ x, (N,), (N,), (N, M), operations=4 * N * M,
        moved=2 * N + 2 * N * M, least=2 * N * M,
    ),
    "a reflection": trick(
        lambda v, x: (torch.eye(N) - 2 * torch.outer(v, v) / (v @ v)) @ x, (N,), (N, M),
        operations=4 * N * M + 3 * N + M, moved=N + 2 * N * M, least=2 * N * M,
    ),
    "a matrix and an outer product": trick(
        lambda a, u, v, x: (a + u[:, None] * v) @ x, (N, K), (N,), (K,), (K, M),
        operations=2 * N * K * M + 2 * K * M + 2 * N * M, moved=N * K + N + K + K * M + N * M, least=2 * N * K * M,
    ),
    # Equal rows.
    "rows repeated one by one": trick(
        lambda x, w: x.repeat_interleave(4, 0) @ w, (N, K), (K, M), operations=2 * N * K * M,
        moved=N * K + K * M + 4 * N * M, least=2 * N * K * M,
    ),
    "rows of the nearest": trick(
        lambda x, w: F.interpolate(x, scale_factor=4)[0].t() @ w, (1, K, N), (K, M), operations=2 * N * K * M,
        moved=N * K + K * M + 4 * N * M, least=2 * N * K * M,
    ),
    "rows between two": trick(
        lambda x, w: F.interpolate(x, scale_factor=4, mode="linear")[0].t() @ w, (1, K, N), (K, M),
        operations=2 * N * K * M + 3 * 4 * N * M, moved=N * K + K * M + 4 * N * M, least=N * K * M,
    ),
    "rows put after themselves": trick(
        lambda x, w: torch.cat([x, x]).relu() @ w, (N, K), (K, M), operations=2 * N * K * M + N * K,
        moved=N * K + K * M + 2 * N * M, least=2 * N * K * M,
    ),
    "rows expanded and reshaped": trick(
        lambda x, w: x[:, None].expand(N, 4, K).reshape(4 * N, K) @ w, (N, K), (K, M), operations=2 * N * K * M,
        moved=N * K + K * M + 4 * N * M, least=2 * N * K * M,
    ),
    "columns repeated one by one": trick(
        lambda x, w: x.repeat_interleave(4, 1) @ w, (N, K), (4 * K, M), operations=2 * N * K * M + 3 * K * M,
        moved=N * K + 4 * K * M + N * M, least=2 * N * K * M,
    ),
    "two layers of repeated rows": trick(
        lambda x, w, u: (x.repeat(4, 1) @ w).relu() @ u, (N, K), (K, M), (M, K), operations=4 * N * K * M + N * M,
        moved=N * K + 2 * K * M + 4 * N * K, least=4 * N * K * M,
    ),
    "groups of heads are not equal": trick(
        lambda q, k: q @ k[:, None].expand(2, 4, N, 16).reshape(8, N, 16).transpose(1, 2), (8, N, 16), (2, N, 16),
        operations=2 * 8 * N * N * 16, moved=8 * N * 16 + 2 * N * 16 + 8 * N * N, least=2 * 8 * N * N * 16,
    ),
    # Symmetric up to a scale.
    "a weighted Gram matrix": trick(
        lambda a, w: (a.t() * w) @ a, (N, K), (N,), operations=K * (K + 1) * N + N * K, moved=N * K + N + K * K,
        least=K * (K + 1) * N,
    ),
    # Only the order counts.
    "the likeliest two": trick(
        lambda x: torch.softmax(x, 1).topk(2, 1)[1], (N, M), operations=N * M, moved=N * M + 4 * N, least=N * M
    ),
    "the likeliest class, turned around": trick(
        lambda x: torch.softmax(x, 1).t().argmax(0), (N, M), operations=N * M, moved=N * M + 2 * N, least=0
    ),
    "the largest share": trick(
        lambda x: torch.softmax(x, 1).amax(1), (N, M), operations=4 * N * M, moved=N * M + N, least=3 * N * M
    ),
    # Masks.
    "what an unknown mask leaves, then a product": trick(
        lambda m, x, w: torch.where(m, x, 0.0) @ w, BITS, (N, K), (K, M), operations=N * K,
        moved=N * K // 4 + N * M, least=0,
    ),
    "what a mask of bits leaves": trick(
        lambda m, x, w: (x * m) @ w, BITS, (N, K), (K, M), operations=N * K, moved=N * K // 4 + N * M, least=0
    ),
    "shares of what a mask of bits leaves": trick(
        lambda m, x, y: torch.where(m, x, 0.0) / y, BITS, (N, K), (N, K), operations=N * K, moved=N * K // 4 + N * K,
        least=0,
    ),
    "values behind a mask": trick(
        lambda m, x, v: torch.softmax(x.masked_fill(m, -torch.inf), -1) @ v, BITS, (N, K), (K, M), operations=N * K,
        moved=N * K // 4 + N * M, least=0,
    ),
    "scores drowned by a mask": trick(
        lambda m, q, k, v: torch.softmax(q @ k.t() + torch.where(m, 0.0, -torch.inf), -1) @ v, BITS, (N, M), (K, M),
        (K, M), operations=N * K, moved=N * K // 4 + N * M, least=0,
    ),
    "clipping is no mask": trick(
        lambda x, w: torch.where(x > 0, x, 0.0) @ w, (N, K), (K, M), operations=2 * N * K * M + 2 * N * K,
        moved=N * K + K * M + N * M, least=2 * N * K * M,
    ),
    "causal, groups and queries on one long axis": trick(
        masked_then_merged, (GROUPS, ROWS, KEYS), (KEYS, CHANNELS),
        operations=LIVE * (2 * CHANNELS + 6), moved=GROUPS * ROWS * (KEYS + CHANNELS) + KEYS * CHANNELS,
        least=LIVE * 2 * CHANNELS,
    ),
    "a mask on one long axis": trick(
        merged_then_multiplied, (GROUPS, ROWS, KEYS), (KEYS, CHANNELS), operations=LIVE * (2 * CHANNELS + 1),
        moved=GROUPS * ROWS * (KEYS + CHANNELS) + KEYS * CHANNELS, least=0,
    ),
    "something added to some": trick(
        lambda m, x, v, w: torch.where(m, (x @ v).exp() + x @ w, (x @ v).exp()), CHOICE, (N, K), (K, M), (K, M),
        operations=2 * N * K * M + 2 * N * M, moved=N * M // 4 + N * K + K * M + N * M, least=2 * N * K * M,
    ),
    "something added where a sign is right": trick(
        lambda x, y: torch.where(x > 0, x + y, x), (N, M), (N, M), operations=2 * N * M, moved=3 * N * M, least=N * M
    ),
    "something added to the others": trick(
        lambda m, x, v, w: torch.where(m, (x @ v).exp(), x @ w + (x @ v).exp()), CHOICE, (N, K), (K, M), (K, M),
        operations=2 * N * K * M + 2 * N * M, moved=N * M // 4 + N * K + K * M + N * M, least=2 * N * K * M,
    ),
    "padding picked by known places": trick(
        lambda x, w, i: F.pad(x, (0, 0, 0, N))[i] @ w, (N, K), (K, M), known(*range(2 * N)),
        operations=2 * N * K * M, moved=N * K + K * M + 2 * N * M + 4 * N, least=K * M,
    ),
    # One buffer.
    "the same value twice": trick(
        lambda x: (x + 1, (x + 1).t()), (N, M), operations=N * M, moved=2 * N * M, least=N * M
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_bound_lies_between_the_unavoidable_and_a_kernel_that_exists(name: str) -> None:
    case = CASES[name]
    operations, moved = priced(case)
    assert case.least <= operations <= case.operations
    assert moved <= case.bytes
