"""Kernels with one fault each, and how they are launched without it: what Triton compiles for gfx1200."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    products = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + products)[None, :])
        y = tl.load(b + columns[None, :] * K + (k + products)[:, None])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def softmax(x, y, n, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + at, v / tl.sum(v, 0), mask=at < n)


@triton.jit
def transpose(x, y, M, N, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    v = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(y + columns[:, None] * M + rows[None, :], tl.trans(v))
