"""Bounds against clever kernels: no bound exceeds the work or the bytes of an implementation written down here.

Each case is a reference and what a cheaper way of computing the same needs, counted by hand: operations (a multiply-add
is two, any elementwise function one, a comparison or selection one) and bytes read and written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bound_cases import PLAIN, Case, K, M, N, known, priced
from bound_programs import machine

from solar.bound import bound
from solar.graph import Input
from solar.hardware import Machine

torch = pytest.importorskip("torch")
F = torch.nn.functional

CASES = {
    # Association.
    "three factors from the small end": Case(
        lambda a, b, v: a @ b @ v, ((N, K), (K, M), (M, 1)), 2 * (K * M + N * K), 4 * (N * K + K * M + M + N)
    ),
    "a trace of a product is a dot product": Case(
        lambda a, b: torch.trace(a @ b), ((N, K), (K, N)), 2 * N * K, 4 * (2 * N * K + 1)
    ),
    "the mean of a product's rows": Case(
        lambda a, b: (a @ b).mean(0), ((N, K), (K, M)), N * K + 2 * K * M, 4 * (N * K + K * M + M)
    ),
    "one row of a chain": Case(
        lambda a, b, c: (a @ b @ c)[3], ((N, K), (K, M), (M, N)), 2 * (K * M + M * N), 4 * (K + K * M + M * N + N)
    ),
    "a rank-one update times a vector": Case(
        lambda u, w, x: (u[:, None] * w[None, :]) @ x, ((N,), (K,), (K,)), 2 * K + N, 4 * (2 * N + 2 * K)
    ),
    "linear attention keeps a state": Case(
        lambda q, k, v: (q @ k.t()) @ v, ((N, 8), (N, 8), (N, 8)), 4 * N * 64, 4 * 4 * N * 8
    ),
    "one factor taken out of a sum of products": Case(
        lambda x, a, b: x @ a + x @ b, ((N, K), (K, M), (K, M)), K * M + 2 * N * K * M, 4 * (N * K + 2 * K * M + N * M)
    ),
    "two gates share their input": Case(
        lambda x, a, b: (x @ a, x @ b), ((N, K), (K, M), (K, M)), 4 * N * K * M, 4 * (N * K + 2 * K * M + 2 * N * M)
    ),
    "a bias starts the accumulator": Case(
        lambda x, w, b: F.linear(x, w, b), ((N, K), (M, K), (M,)), 2 * N * K * M, 4 * (N * K + M * K + M + N * M)
    ),
    "a residual starts the accumulator": Case(
        lambda x, w, r: r + x @ w, ((N, K), (K, M), (N, M)), 2 * N * K * M, 4 * (N * K + K * M + 2 * N * M)
    ),
    "scales fold into the weights": Case(
        lambda x, w, s: (x @ w) * s * 3.0, ((N, K), (K, M), (M,)), 2 * N * K * M + 2 * K * M,
        4 * (N * K + K * M + M + N * M),
    ),
    "a sum of columns folds into the weights": Case(
        lambda x, w: (x @ w).view(N, M // 4, 4).sum(-1), ((N, K), (K, M)), K * M + 2 * N * K * M // 4,
        4 * (N * K + K * M + N * M // 4),
    ),
    "pointwise after pointwise convolution": Case(
        lambda x, a, b: F.conv2d(F.conv2d(x, a), b), ((1, 8, 16, 16), (64, 8, 1, 1), (4, 64, 1, 1)),
        2 * (4 * 64 * 8 + 256 * 4 * 8), 4 * (8 * 256 + 64 * 8 + 4 * 64 + 4 * 256),
    ),
    "a mean over all positions of a pointwise convolution": Case(
        lambda x, w: F.conv2d(x, w).mean((2, 3)), ((1, 8, 16, 16), (64, 8, 1, 1)), 8 * 256 + 2 * 64 * 8,
        4 * (8 * 256 + 64 * 8 + 64),
    ),
    "the square of a norm through a Gram matrix": Case(
        lambda x, w: (x @ w).square().sum(), ((N, 4), (4, 512)), 2 * (N * 16 + 512 * 16 + 16), 4 * (N * 4 + 4 * 512 + 1)
    ),
    # One triangle of a symmetric result.
    "a Gram matrix": Case(lambda a: a @ a.t(), ((N, K),), N * (N + 1) * K, 4 * (N * K + N * N)),
    "a covariance": Case(lambda x: x.t() @ x, ((N, K),), K * (K + 1) * N, 4 * (N * K + K * K)),
    "a batch of Gram matrices": Case(
        lambda a: a @ a.transpose(1, 2), ((3, N, K),), 3 * N * (N + 1) * K, 3 * 4 * (N * K + N * N)
    ),
    "a Gram matrix by letters": Case(
        lambda a: torch.einsum("bik,bjk->bij", a, a), ((3, N, K),), 3 * N * (N + 1) * K, 3 * 4 * (N * K + N * N)
    ),
    "a Gram matrix of heads": Case(
        lambda x: x.view(N, 4, 8).transpose(0, 1) @ x.view(N, 4, 8).permute(1, 2, 0), ((N, 32),),
        4 * N * (N + 1) * 8, 4 * (N * 32 + 4 * N * N),
    ),
    "a Gram matrix of a scaled cast": Case(
        lambda a: (a * 2).half() @ a.t().half(), ((N, K),), N * (N + 1) * K, 4 * N * K + 2 * N * N
    ),
    "a Gram matrix of a function": Case(
        lambda a: a.relu() @ a.t().relu(), ((N, K),), N * (N + 1) * K + 2 * N * K, 4 * (N * K + N * N)
    ),
    "a Gram matrix of a product": Case(
        lambda x, w: (x @ w) @ (x @ w).t(), ((N, K), (K, 16)), 2 * N * K * 16 + N * (N + 1) * 16,
        4 * (N * K + K * 16 + N * N),
    ),
    "ten rows of a Gram matrix": Case(
        lambda a: (a @ a.t())[:10], ((N, K),), 2 * K * (10 * N - 45), 4 * (N * K + 10 * N)
    ),
    "products of rows and the rows before": Case(
        lambda a: a[1:] @ a[:-1].t(), ((N, K),), 2 * K * ((N - 1) ** 2 - (N - 2) * (N - 3) // 2),
        4 * (N * K + (N - 1) ** 2),
    ),
    # The same thing twice.
    "one product for two readers": Case(
        lambda x, w: (torch.relu(x @ w), torch.sigmoid(x @ w)), ((N, K), (K, M)), 2 * N * K * M + 2 * N * M,
        4 * (N * K + K * M + 2 * N * M),
    ),
    "one exponential for two readers": Case(
        lambda x: (x.exp() + 1, x.exp() * 2), ((N, M),), 3 * N * M, 4 * 3 * N * M
    ),
    "a batch of equal matrices": Case(
        lambda x, w: x.expand(16, N, K) @ w.expand(16, K, M), ((1, N, K), (1, K, M)), 2 * N * K * M,
        4 * (N * K + K * M + 16 * N * M),
    ),
    "a function of a repeated row": Case(
        lambda x: x.expand(N, M).tanh(), ((1, M),), M, 4 * (M + N * M)
    ),
    "a repeated tensor": Case(
        lambda x: x.repeat(8, 1).exp(), ((4, M),), 4 * M, 4 * (4 * M + 32 * M)
    ),
    # Zeros and masks.
    "a diagonal matrix": Case(lambda a, b: torch.diag(a) @ b, ((N,), (N, M)), 2 * N * M, 4 * (N + 2 * N * M)),
    "a diagonal matrix itself": Case(lambda a: torch.diag(a), ((N,),), 0, 4 * (N + N * N)),
    "two diagonal matrices": Case(
        lambda a, b: torch.diag(a) @ torch.diag(b), ((N,), (N,)), 2 * N, 4 * (2 * N + N * N)
    ),
    "two triangles": Case(
        lambda a, b: a.tril() @ b.tril(), ((N, N), (N, N)),
        2 * sum(i - j + 1 for i in range(N) for j in range(i + 1)), 4 * (N * (N + 1) + N * N),
    ),
    "the triangle of a product": Case(
        lambda a, b: (a @ b).triu(1), ((N, K), (K, N)), 2 * K * N * (N - 1) // 2, 4 * ((N - 1) * K * 2 + N * N)
    ),
    "a block of zeros around": Case(
        lambda a, b: F.pad(a, (0, 32)) @ b, ((N, K), (K + 32, M)), 2 * N * K * M, 4 * (N * K + K * M + N * M)
    ),
    "a product of repeated rows": Case(
        lambda x, w: x.repeat(16, 1) @ w, ((N, K), (K, M)), 2 * N * K * M, 4 * (N * K + K * M + 16 * N * M)
    ),
    "a product of one row picked four times": Case(
        lambda x, w, i: x[i] @ w, ((N, K), (K, M), known(5, 5, 5, 5)), 2 * K * M, 4 * (K + K * M + 4 * M) + 32
    ),
    "zeros beside": Case(
        lambda x, w: torch.cat((torch.zeros(N, 8), x), 1) @ w, ((N, K), (K + 8, M)), 2 * N * K * M,
        4 * (N * K + K * M + N * M),
    ),
    "blocks along a diagonal": Case(
        lambda a, b, c, x: x @ torch.block_diag(a, b, c), ((16, 8), (24, 32), (16, 8), (K, 56)),
        2 * K * (16 * 8 + 24 * 32 + 16 * 8), 4 * (16 * 8 + 24 * 32 + 16 * 8 + K * 56 + K * 48),
    ),
    "an identity": Case(lambda a: torch.eye(N) @ a, ((N, M),), 0, 4 * 2 * N * M),
    "one-hot rows": Case(
        lambda t, i: F.one_hot(i, N).float() @ t, ((N, M), known(3, 9, 3)), 0, 3 * 8 + 4 * (2 * M + 3 * M)
    ),
    "causal attention": Case(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), ((1, N, 16), (1, N, 16), (1, N, 16)),
        # scale folds into q; per live pair 2 products, exponential, sum, maximum and a subtraction; a division a result
        N * 16 + N * (N + 1) // 2 * (4 * 16 + 4) + N * 16, 4 * 4 * N * 16,
    ),
    # Only what is shown.
    "a corner": Case(
        lambda a, b: (a @ b)[:4, :4], ((N, K), (K, M)), 2 * 16 * K, 4 * (8 * K + 16)
    ),
    "every other column": Case(
        lambda a, b: torch.relu(a @ b)[:, ::2], ((N, K), (K, M)), 2 * N * K * M // 2 + N * M // 2,
        4 * (N * K + K * M // 2 + N * M // 2),
    ),
    "rows picked after a product": Case(
        lambda a, b, i: (a @ b)[i], ((N, K), (K, M), known(5, 5, 9)), 2 * 2 * K * M, 24 + 4 * (2 * K + K * M + 3 * M)
    ),
    "rows picked after a norm": Case(
        lambda x, i: F.layer_norm(x, (M,))[i], ((N, M), known(1, 2)), 2 * (5 * M + 4), 16 + 4 * 2 * (M + M)
    ),
    "the last position of a language model": Case(
        lambda x, w: F.linear(x, w)[:, -1].argmax(-1), ((2, N, K), (M, K)), 2 * 2 * K * M + 2 * M,
        4 * (2 * K + M * K) + 2 * 8,
    ),
    "half of a concatenation": Case(
        lambda x, y: torch.cat((x.exp(), y.exp()), 0)[:N], ((N, M), (N, M)), N * M, 4 * 2 * N * M
    ),
    "a product nobody reads": Case(lambda x, w: (x @ w, x + 1)[1], ((N, K), (K, M)), N * K, 4 * 2 * N * K),
    "a shift that softmax takes out": Case(
        lambda x, b: torch.softmax(x + b, 1), ((N, M), (N, 1)), 5 * N * M, 4 * 2 * N * M
    ),
    # Constants and casts.
    "positions are constants": Case(
        lambda x: x * torch.cos(torch.arange(M) * 0.1), ((N, M),), N * M, 4 * 2 * N * M
    ),
    "constant factors fold": Case(lambda x: x * 2.0 * 3.0 / 7.0, ((N, M),), N * M, 4 * 2 * N * M),
    "casts ride along": Case(
        lambda x: x.to(torch.float16).float().relu(), ((N, M),), N * M, 4 * 2 * N * M
    ),
    "movement only": Case(
        lambda x: torch.flip(x.t().contiguous(), (0,)).reshape(-1), ((N, M),), 0, 4 * 2 * N * M
    ),
    "absolute values and signs": Case(lambda x: (-x).abs(), ((N, M),), 0, 4 * 2 * N * M),
    "a square root of a square": Case(lambda x: x.square().sum(1), ((N, M),), 2 * N * M, 4 * (N * M + N)),
    "a variance in one pass": Case(
        lambda x: x.var(1), ((N, M),), N * (3 * M + 6), 4 * (N * M + N)
    ),
    "an rms norm": Case(
        lambda x, w: x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-6) * w, ((N, M), (M,)),
        N * (4 * M + 3), 4 * (2 * N * M + M),
    ),
    "max pooling with a shared window": Case(
        lambda x: F.max_pool1d(x, 3, 1), ((1, 1, N),), 2 * (N - 2), 4 * (2 * N - 2)
    ),
    "sums of windows from running sums": Case(
        lambda x: F.avg_pool1d(x, 33, 1), ((1, 1, 256),), 256 + 3 * 224, 4 * (256 + 224)
    ),
    "a maximum pooled in two steps": Case(
        lambda x: F.max_pool2d(x, 5, 1), ((1, 1, 36, 36),), 36 * 32 * 4 + 32 * 32 * 4, 4 * (36 * 36 + 32 * 32)
    ),
    "a cumulative sum": Case(lambda x: x.cumsum(1), ((N, M),), N * M, 4 * 2 * N * M),
    "a separable window over two axes": Case(
        lambda x: F.avg_pool2d(x, 5, 1), ((1, 1, 36, 36),), 36 * 32 * 4 + 32 * 32 * 5, 4 * (36 * 36 + 32 * 32)
    ),
    "a sum of a broadcast sum": Case(
        lambda x, y: (x[:, None] + y[None, :]).sum(), ((N,), (M,)), N + M + 3, 4 * (N + M + 1)
    ),
    "a mask of ones and zeros": Case(
        lambda x: x * torch.tril(torch.ones(N, N)), ((N, N),), 0, 4 * (N * (N + 1) // 2 + N * N)
    ),
    "the same rows twice": Case(
        lambda x: torch.cat((x, x)).exp().sum(), ((N, M),), 2 * N * M, 4 * (N * M + 1)
    ),
    "the largest of a monotone function": Case(lambda x: x.exp().amax(1), ((N, M),), N * M + N, 4 * (N * M + N)),
    "where a monotone function is largest": Case(lambda x: x.sigmoid().argmax(1), ((N, M),), N * M, 4 * N * M + 8 * N),
    "the likeliest class": Case(
        lambda x: torch.softmax(x, 1).argmax(1), ((N, M),), N * (M - 1), 4 * N * M + 8 * N
    ),
    "the class of the largest log-likelihood": Case(
        lambda x: torch.log_softmax(x, 1).argmax(1), ((N, M),), N * (M - 1), 4 * N * M + 8 * N
    ),
    "clipped twice": Case(lambda x: x.relu().relu(), ((N, M),), N * M, 8 * N * M),
    "pooled after clipping": Case(lambda x: F.max_pool1d(x.relu(), 2), ((1, 1, N),), N, 4 * (N + N // 2)),
    "row sums of an outer product": Case(
        lambda x, y: (x[:, None] * y[None, :]).sum(1), ((N,), (M,)), N + M, 4 * (N + M + N)
    ),
    "an outer product between two factors": Case(
        lambda x, y, w, v: v @ ((x[:, None] * y[None, :]) @ w), ((N,), (K,), (K, M), (N,)), 2 * N + 2 * K * M + M,
        4 * (N + K + K * M + N + M),
    ),
    "scales of both operands": Case(
        lambda x, w, s: (x * s) @ (w * s[:, None]), ((N, K), (K, M), (K,)), 2 * N * K * M + K + M * K,
        4 * (N * K + K * M + K + N * M),
    ),
    "keys of a group of heads": Case(
        lambda q, k: q @ k.repeat_interleave(4, 0).transpose(1, 2), ((8, N, 16), (2, N, 16)), 2 * 8 * N * N * 16,
        4 * (8 * N * 16 + 2 * N * 16 + 8 * N * N),
    ),
    "distances": Case(
        lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1), ((N, K), (M, K)),
        2 * N * K * M + 2 * N * K + 2 * M * K + 3 * N * M, 4 * (N * K + M * K + N * M),
    ),
    "a group norm": Case(lambda x: F.group_norm(x, 2), ((2, 4, 8, 8),), 512 * 5 + 4 * 8, 8 * 512),
    "a rotation of pairs": Case(
        lambda x, c: torch.cat(
            (x[:, :8] * c.cos() - x[:, 8:] * c.sin(), x[:, 8:] * c.cos() + x[:, :8] * c.sin()), -1
        ),
        ((N, 16), (N, 8)), N * 8 * (2 + 6), 4 * (2 * N * 16 + N * 8),
    ),
    "a sum of an outer product": Case(
        lambda x, y: (x[:, None] * y[None, :]).sum(), ((N,), (M,)), N + M + 2, 4 * (N + M + 1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_no_bound_exceeds_a_kernel_that_exists(name: str) -> None:
    case = CASES[name]
    operations, moved = priced(case)
    assert moved <= case.bytes
    assert operations <= case.operations


def _into(write: Callable[..., Any]) -> Callable[..., Any]:
    def run(cache: Any, rows: Any, places: Any) -> Any:
        write(cache, rows, places)
        return cache

    return run


SOME = known(3, 99_000, 9, 10)
FOUR = 4 * 128 * 4
# Writes of rows in place: four rows written, as many read of the source, four int64 places, and what else is named.
WRITES = {
    "index_copy": (_into(lambda c, v, i: c.index_copy_(0, i, v)), (100_000, 128), SOME, 2 * FOUR + 32),
    "index_put": (_into(lambda c, v, i: c.index_put_((i,), v)), (100_000, 128), SOME, 2 * FOUR + 32),
    "scatter": (
        _into(lambda c, v, i: c.scatter_(0, i[:, None].expand(4, 128), v)), (100_000, 128), SOME, 2 * FOUR + 32,
    ),
    "index_add, old rows too": (_into(lambda c, v, i: c.index_add_(0, i, v)), (100_000, 128), SOME, 3 * FOUR + 32),
    "scatter_add, old rows too": (
        _into(lambda c, v, i: c.scatter_add_(0, i[:, None].expand(4, 128), v)), (100_000, 128), SOME, 3 * FOUR + 32,
    ),
    "one column of the source": (
        _into(lambda c, v, i: c.scatter_(0, i[:, None], v)), (100_000, 128), SOME, 2 * 4 * 4 + 32,
    ),
    "written twice, the second counts": (
        lambda c, v, i: c.index_copy_(0, i, v.exp()).index_copy_(0, i, v), (100_000, 128), SOME, 2 * FOUR + 32,
    ),
    "along an inner dimension": (
        _into(lambda c, v, i: c.index_copy_(1, i, v.view(4, 4, 32).transpose(0, 1))), (4, 100_000, 32), SOME,
        2 * FOUR + 32,
    ),
    "through a view": (_into(lambda c, v, i: c[1].index_copy_(0, i, v)), (2, 100_000, 128), SOME, 2 * FOUR + 32),
    "through two views": (
        _into(lambda c, v, i: c[1, 5:900].t().index_copy_(1, i, v.t())), (2, 1000, 128), known(3, 500, 9, 10),
        2 * FOUR + 32,
    ),
    "through a reshape": (
        _into(lambda c, v, i: c.view(10, 100, 128)[3].index_copy_(0, i, v)), (1000, 128), known(3, 50, 9, 10),
        2 * FOUR + 32,
    ),
    # Unknown places may all be the same row: one is written, and one row of the source survives.
    "unknown places": (
        _into(lambda c, v, i: c.index_copy_(0, i, v)), (100_000, 128), Input((4,), "int64"), 2 * FOUR // 4 + 32,
    ),
    "unknown places along an inner dimension": (
        _into(lambda c, v, i: c.index_copy_(1, i, v.view(4, 4, 32).transpose(0, 1))), (4, 100_000, 32),
        Input((4,), "int64"), 2 * FOUR // 4 + 32,
    ),
    "a strided slice, elementwise": (_into(lambda c, v, i: c[1, ::2].add_(1)), (2, 1000, 128), SOME, 2 * 500 * 128 * 4),
    "all of a transpose, elementwise": (_into(lambda c, v, i: c.t().mul_(2)), (1000, 128), SOME, 2 * 1000 * 128 * 4),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_a_write_in_place_moves_its_source_and_what_it_changes(name: str) -> None:
    from solar.convert import convert
    from solar.extract.aten import extract

    run, cache, places, expected = WRITES[name]
    inputs = {"cache": Input(cache, "float32"), "rows": Input((4, 128), "float32"), "places": places}
    found = bound(convert(extract(run, inputs, in_place=["cache"])), PLAIN)
    assert found["memory"]["live_bytes"] == expected


FULL = {
    "two tensors": (lambda a, b: a @ b.t(), 2 * N * N * K),
    "a function of one side": (lambda a, b: a.relu() @ a.t(), 2 * N * N * K),
    "a square is not symmetric": (lambda a, b: a.view(N // 2, 64)[:, :32] @ a[:32], 2 * (N // 2) * 32 * K),
    "a triangle is no less": (lambda a, b: (a @ a.t()).tril(), N * (N + 1) * K),
}


@pytest.mark.parametrize("name", FULL)
def test_what_is_not_symmetric_costs_all_its_products(name: str) -> None:
    from solar.convert import convert
    from solar.extract.aten import extract

    run, expected = FULL[name]
    found = bound(convert(extract(run, {"a": Input((N, K), "float32"), "b": Input((N, K), "float32")})), PLAIN)
    assert [entry["ops"] for entry in found["compute"] if entry["mode"] == "float32"] == [expected]


@pytest.mark.parametrize(
    ("codes", "mode"),
    [
        (lambda a: a.sign(), "int4"),
        (lambda a: torch.where(a > 0, 1.0, -1.0), "int4"),
        (lambda a: (a > 0).float() * 2 - 1, "int4"),
        (lambda a: a.round().clamp(-8, 7), "int4"),
        (lambda a: a.clamp(-8, 7).round(), "int4"),
        (lambda a: (a * 16).clamp(-127, 127).round(), "int8"),
        # Not whole numbers, or too many of them.
        (lambda a: torch.where(a > 0, 0.5, -0.3), "float16"),
        (lambda a: a.round().clamp(-7.3, 7.3), "float16"),
        (lambda a: a.clamp(-8, 7), "float16"),
        (lambda a: a.round().clamp(-300, 300), "float16"),
    ],
)
def test_values_that_are_small_codes_are_multiplied_as_such(codes: Callable[..., Any], mode: str) -> None:
    from solar.convert import convert
    from solar.extract.aten import extract

    matrix = {"int4": 4e14, "int8": 2e14, "float16": 1e14}
    inputs = {"a": Input((N, K), "float32"), "b": Input((K, M), "float32")}
    found = bound(convert(extract(lambda a, b: codes(a) @ codes(b), inputs)), Machine.from_dict(machine(matrix)))
    assert mode in {entry["mode"] for entry in found["compute"]}
