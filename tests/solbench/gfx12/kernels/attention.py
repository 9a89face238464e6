"""Attention: whole, causal, windowed, in pieces, over pages; its backward; linear attention."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.solbench.gfx12.kernels.case import Case, Inputs, integers, normal

HALF = "probabilities and the result are rounded to float16"
BF = "probabilities and the result are rounded to bfloat16"


@triton.jit
def _flash(
    q, k, v, out, lse, T, S, scale, HEADS: tl.constexpr, SHARED: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """SHARED query heads use one head of keys; WINDOW 0 sees everything before."""
    head = tl.program_id(1)
    kv = head // SHARED
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(q + (head * T + rows[:, None]) * D + d[None, :], (rows < T)[:, None], 0.0)
    high = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    end = tl.minimum(S, (tl.program_id(0) + 1) * BM) if CAUSAL else S
    start = tl.maximum(0, (tl.program_id(0) * BM - WINDOW) // BN * BN) if WINDOW else 0
    for first in range(start, end, BN):
        columns = first + tl.arange(0, BN)
        y = tl.load(k + (kv * S + columns[None, :]) * D + d[:, None], (columns < S)[None, :], 0.0)
        s = tl.dot(x, y) * (scale * 1.4426950408889634)
        seen = (columns < S)[None, :]
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None])
        if WINDOW:
            seen = seen & (columns[None, :] > rows[:, None] - WINDOW)
        s = tl.where(seen, s, -1e30)
        now = tl.maximum(high, tl.max(s, 1))
        p = tl.where(seen, tl.exp2(s - now[:, None]), 0.0)
        factor = tl.exp2(high - now)
        total = total * factor + tl.sum(p, 1)
        z = tl.load(v + (kv * S + columns[:, None]) * D + d[None, :], (columns < S)[:, None], 0.0)
        result = tl.dot(p.to(z.dtype), z, result * factor[:, None])
        high = now
    tl.store(lse + head * T + rows, high * 0.6931471805599453 + tl.log(total), rows < T)
    tl.store(out + (head * T + rows[:, None]) * D + d[None, :], result / total[:, None], (rows < T)[:, None])


def flash(causal=False, window=0, tiles=(32, 32), warps=4):
    def run(q, k, v):
        (heads, t, d), s = q.shape, k.shape[1]
        out, lse = torch.empty_like(q), torch.empty(heads, t)
        _flash[(triton.cdiv(t, tiles[0]), heads)](
            q, k, v, out, lse, t, s, d**-0.5, heads, heads // len(k), d, *tiles, causal, window, num_warps=warps
        )
        return out, lse

    return run


def exact(causal=False, window=0):
    def reference(q, k, v):
        shared = len(q) // len(k)
        x, y, z = q.double(), k.double().repeat_interleave(shared, 0), v.double().repeat_interleave(shared, 0)
        s = x @ y.mT * q.shape[2] ** -0.5
        row, column = torch.arange(s.shape[1])[:, None], torch.arange(s.shape[2])[None]
        seen = torch.ones(s.shape[1:], dtype=torch.bool)
        seen &= (column <= row) if causal else True
        seen &= (column > row - window) if window else True
        s = s.masked_fill(~seen, -torch.inf)
        return s.softmax(2) @ z, s.logsumexp(2)

    return reference


def heads(q: int, kv: int, t: int, s: int, d: int, dtype: torch.dtype):
    return lambda g: {"q": normal(g, q, t, d, dtype=dtype), "k": normal(g, kv, s, d, dtype=dtype),
                      "v": normal(g, kv, s, d, dtype=dtype)}  # fmt: skip


@triton.jit
def _decode_part(q, k, v, part, lse, S, scale, D: tl.constexpr, BN: tl.constexpr, SPLIT: tl.constexpr):
    """One query against one of SPLIT pieces of the keys."""
    head, piece = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    x = tl.load(q + head * D + d).to(tl.float32)
    length = tl.cdiv(S, SPLIT)
    high, total, result = -float("inf"), 0.0, tl.zeros((D,), tl.float32)
    for first in range(piece * length, tl.minimum(S, (piece + 1) * length), BN):
        n = first + tl.arange(0, BN)
        inside = n < tl.minimum(S, (piece + 1) * length)
        y = tl.load(k + (head * S + n[:, None]) * D + d[None, :], inside[:, None], 0.0).to(tl.float32)
        s = tl.where(inside, tl.sum(y * x[None, :], 1) * scale, -float("inf"))
        now = tl.maximum(high, tl.max(s, 0))
        p = tl.exp(s - now)
        factor = tl.exp(high - now)
        z = tl.load(v + (head * S + n[:, None]) * D + d[None, :], inside[:, None], 0.0).to(tl.float32)
        result = result * factor + tl.sum(p[:, None] * z, 0)
        total = total * factor + tl.sum(p, 0)
        high = now
    tl.store(part + (head * SPLIT + piece) * D + d, result / total)
    tl.store(lse + head * SPLIT + piece, high + tl.log(total))


@triton.jit
def _decode_join(part, lse, out, D: tl.constexpr, SPLIT: tl.constexpr):
    head, d, piece = tl.program_id(0), tl.arange(0, D), tl.arange(0, SPLIT)
    w = tl.load(lse + head * SPLIT + piece)
    w = tl.exp(w - tl.max(w, 0))
    p = tl.load(part + (head * SPLIT + piece[:, None]) * D + d[None, :])
    tl.store(out + head * D + d, tl.sum(p * (w / tl.sum(w, 0))[:, None], 0))


def decode(q, k, v):
    (h, s, d) = k.shape
    out, part, lse = torch.empty_like(q), torch.empty(h, 4, d), torch.empty(h, 4)
    _decode_part[(h, 4)](q, k, v, part, lse, s, d**-0.5, d, 16, 4)
    _decode_join[(h,)](part, lse, out, d, 4)
    return out


@triton.jit
def _paged(q, cache_k, cache_v, pages, lengths, out, scale, MOST: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr):
    """One query a sequence; its keys lie in pages that a table names."""
    sequence, d, n = tl.program_id(0), tl.arange(0, D), tl.arange(0, PAGE)
    length = tl.load(lengths + sequence)
    x = tl.load(q + sequence * D + d)
    high, total, result = -float("inf"), 0.0, tl.zeros((D,), tl.float32)
    for i in range(tl.cdiv(length, PAGE)):
        page = tl.load(pages + sequence * MOST + i).to(tl.int64)
        inside = i * PAGE + n < length
        at = (page * PAGE + n[:, None]) * D + d[None, :]
        s = tl.sum(tl.load(cache_k + at, inside[:, None], 0.0) * x[None, :], 1) * scale
        s = tl.where(inside, s, -float("inf"))
        now = tl.maximum(high, tl.max(s, 0))
        p, factor = tl.exp(s - now), tl.exp(high - now)
        result = result * factor + tl.sum(p[:, None] * tl.load(cache_v + at, inside[:, None], 0.0), 0)
        total = total * factor + tl.sum(p, 0)
        high = now
    tl.store(out + sequence * D + d, result / total)


def paged(q, cache_k, cache_v, pages, lengths):
    out = torch.empty_like(q)
    d = q.shape[1]
    _paged[(len(q),)](q, cache_k, cache_v, pages, lengths, out, d**-0.5, pages.shape[1], d, cache_k.shape[1])
    return out


def paged_reference(q, cache_k, cache_v, pages, lengths):
    rows = []
    for x, table, length in zip(q.double(), pages.long(), lengths.tolist(), strict=True):
        k, v = (cache[table].flatten(0, 1)[:length].double() for cache in (cache_k, cache_v))
        rows.append((k @ x * len(x) ** -0.5).softmax(0) @ v)
    return torch.stack(rows)


def paged_inputs(g: torch.Generator) -> Inputs:
    return {"q": normal(g, 5, 32), "cache_k": normal(g, 20, 16, 32), "cache_v": normal(g, 20, 16, 32),
            "pages": torch.randperm(20, generator=g)[:20].reshape(5, 4).int(),
            "lengths": integers(g, 1, 65, 5)}  # fmt: skip


@triton.jit
def _backward(q, k, v, do, lse, delta, dq, dk, dv, T, scale, D: tl.constexpr, B: tl.constexpr):
    """Causal attention's gradients for a block of keys; those of queries are added up by atomics."""
    head, d = tl.program_id(1), tl.arange(0, D)
    columns = tl.program_id(0) * B + tl.arange(0, B)
    at = (head * T + columns[:, None]) * D + d[None, :]
    y, z = tl.load(k + at, (columns < T)[:, None], 0.0), tl.load(v + at, (columns < T)[:, None], 0.0)
    gk, gv = tl.zeros((B, D), tl.float32), tl.zeros((B, D), tl.float32)
    for first in range(tl.program_id(0) * B, T, B):
        rows = first + tl.arange(0, B)
        inside = (rows < T)[:, None]
        x = tl.load(q + (head * T + rows[:, None]) * D + d[None, :], inside, 0.0)
        g = tl.load(do + (head * T + rows[:, None]) * D + d[None, :], inside, 0.0)
        e, c = tl.load(lse + head * T + rows, rows < T, 0.0), tl.load(delta + head * T + rows, rows < T, 0.0)
        seen = inside & (columns[None, :] <= rows[:, None])
        p = tl.where(seen, tl.exp(tl.dot(x, tl.trans(y)) * scale - e[:, None]), 0.0)
        gv += tl.dot(tl.trans(p.to(g.dtype)), g)
        s = (p * (tl.dot(g, tl.trans(z)) - c[:, None]) * scale).to(x.dtype)
        gk += tl.dot(tl.trans(s), x)
        tl.atomic_add(dq + (head * T + rows[:, None]) * D + d[None, :], tl.dot(s, y), inside, sem="relaxed")
    tl.store(dk + at, gk, (columns < T)[:, None])
    tl.store(dv + at, gv, (columns < T)[:, None])


def backward(q, k, v, do):
    h, t, d = q.shape
    out, lse = exact(causal=True)(q, k, v)
    delta = (out * do.double()).sum(2).float()
    dq, dk, dv = (torch.zeros(q.shape) for _ in range(3))
    _backward[(triton.cdiv(t, 32), h)](q, k, v, do, lse.float(), delta, dq, dk, dv, t, d**-0.5, d, 32)
    return dq, dk, dv


def backward_reference(q, k, v, do):
    x, y, z = (tensor.double().requires_grad_() for tensor in (q, k, v))
    exact(causal=True)(x, y, z)[0].backward(do.double())
    return x.grad, y.grad, z.grad


@triton.jit
def _linear(q, k, v, out, T, D: tl.constexpr, B: tl.constexpr):
    """Causal linear attention by chunks: a state between them, a triangle inside."""
    head, d = tl.program_id(0), tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    inner = tl.arange(0, B)
    for first in range(0, T, B):
        t = first + inner
        at = (head * T + t[:, None]) * D + d[None, :]
        inside = (t < T)[:, None]
        x, y, z = tl.load(q + at, inside, 0.0), tl.load(k + at, inside, 0.0), tl.load(v + at, inside, 0.0)
        s = tl.where(inner[:, None] >= inner[None, :], tl.dot(x, tl.trans(y)), 0.0)
        o = tl.dot(s.to(z.dtype), z) + tl.dot(x, state.to(x.dtype))
        tl.store(out + at, o, inside)
        state += tl.dot(tl.trans(y), z)


def linear(q, k, v):
    h, t, d = q.shape
    out = torch.empty(h, t, d)
    _linear[(h,)](q, k, v, out, t, d, 16)
    return out


def linear_reference(q, k, v):
    return (q.double() @ k.double().mT).tril() @ v.double()


F16, BF16 = torch.float16, torch.bfloat16

CASES = (
    Case("flash_f16", heads(3, 3, 70, 90, 32, F16), flash(), exact(), 2e-3, 2e-3, HALF),
    Case("flash_causal_bf16", heads(2, 2, 80, 80, 64, BF16), flash(causal=True), exact(True), 2e-2, 2e-2, BF),
    Case("flash_shared_heads", heads(4, 2, 40, 50, 32, F16), flash(), exact(), 2e-3, 2e-3, HALF),
    Case("flash_window", heads(2, 2, 100, 100, 32, F16), flash(causal=True, window=20), exact(True, 20), 2e-3, 2e-3,
         HALF),
    Case("flash_eight_waves", heads(1, 1, 130, 64, 64, F16), flash(tiles=(64, 32), warps=8), exact(), 2e-3, 2e-3, HALF),
    Case("decode", lambda g: {"q": normal(g, 3, 64, dtype=F16), "k": normal(g, 3, 70, 64, dtype=F16),
                              "v": normal(g, 3, 70, 64, dtype=F16)}, decode,
         lambda q, k, v: exact()(q[:, None], k, v)[0][:, 0], 2**-10, 1e-5, "one rounding to float16"),
    Case("paged", paged_inputs, paged, paged_reference, 1e-5, 1e-5, "sums of float32 in another order"),
    Case("flash_backward", lambda g: {**heads(2, 2, 70, 70, 32, F16)(g), "do": normal(g, 2, 70, 32, dtype=F16)},
         backward, backward_reference, 5e-3, 5e-3, HALF),
    Case("linear_attention", heads(3, 3, 60, 60, 32, BF16), linear, linear_reference, 2e-2, 1.0,
         "scores (of size 6) and the state (of size 8) are rounded to bfloat16, and 60 of them are summed"),
)  # fmt: skip
