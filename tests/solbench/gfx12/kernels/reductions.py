"""Along rows, columns and all: sums, extrema, softmax, cross entropy, Welford, several work-groups on one result."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.solbench.gfx12.kernels.case import Case, Inputs, integers, normal

F32 = "sums of float32 in another order"


@triton.jit
def _softmax(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * n + at, e / tl.sum(e, 0), at < n)


def softmax(x):
    out = torch.empty_like(x)
    _softmax[(len(x),)](x, out, x.shape[1], triton.next_power_of_2(x.shape[1]))
    return out


@triton.jit
def _softmax_online(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    high = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        v = tl.load(x + row * n + k + at, k + at < n, other=-float("inf"))
        now = tl.maximum(high, v)
        total = total * tl.exp(tl.where(high == now, 0.0, high - now)) + tl.where(k + at < n, tl.exp(v - now), 0.0)
        high = now
    top = tl.max(high, 0)
    whole = tl.sum(total * tl.exp(high - top), 0)
    for k in range(0, n, BLOCK):
        v = tl.load(x + row * n + k + at, k + at < n, other=0.0)
        tl.store(out + row * n + k + at, tl.exp(v - top) / whole, k + at < n)


def softmax_online(x):
    out = torch.empty_like(x)
    _softmax_online[(len(x),)](x, out, x.shape[1], 128)
    return out


@triton.jit
def _rows(x, total, high, low, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, C)
    inside = (r < rows)[:, None] & (c < columns)[None, :]
    at = r[:, None] * columns + c[None, :]
    v = tl.load(x + at, inside, other=0.0).to(tl.float32)
    tl.store(total + r, tl.sum(v, 1), r < rows)
    tl.store(high + r, tl.max(tl.where(inside, v, -float("inf")), 1), r < rows)
    tl.store(low + r, tl.min(tl.where(inside, v, float("inf")), 1), r < rows)


def rows(x):
    out = [torch.empty(len(x)) for _ in range(3)]
    _rows[(triton.cdiv(len(x), 8),)](x, *out, *x.shape, 8, triton.next_power_of_2(x.shape[1]))
    return tuple(out)


@triton.jit
def _columns(x, out, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.program_id(1) * C + tl.arange(0, C)
    inside = (r < rows)[:, None] & (c < columns)[None, :]
    v = tl.load(x + r[:, None] * columns + c[None, :], inside, other=0.0)
    tl.atomic_add(out + c, tl.sum(v, 0), c < columns)


def columns(x):
    out = torch.zeros(x.shape[1])
    _columns[(triton.cdiv(x.shape[0], 32), triton.cdiv(x.shape[1], 32))](x, out, *x.shape, 32, 32)
    return out


@triton.jit
def _arg(x, high, low, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=-float("inf"))
    tl.store(high + row, tl.argmax(v, 0))
    tl.store(low + row, tl.argmin(tl.where(at < n, v, float("inf")), 0))


def arg(x):
    high, low = (torch.empty(len(x), dtype=torch.int32) for _ in range(2))
    _arg[(len(x),)](x, high, low, x.shape[1], triton.next_power_of_2(x.shape[1]))
    return high, low


@triton.jit
def _merge(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    share = tl.where(n == 0, 0.0, n_b / tl.maximum(n, 1.0))
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def _welford(x, mean, variance, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=0.0)
    count = tl.where(at < n, 1.0, 0.0)
    m, m2, whole = tl.reduce((v, tl.zeros_like(v), count), 0, _merge)
    tl.store(mean + row, m)
    tl.store(variance + row, m2 / whole)


def welford(x):
    mean, variance = torch.empty(len(x)), torch.empty(len(x))
    _welford[(len(x),)](x, mean, variance, x.shape[1], triton.next_power_of_2(x.shape[1]))
    return mean, variance


@triton.jit
def _integers(x, total, mixed, high, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=0)
    tl.store(total + row, tl.sum(v.to(tl.int64), 0))
    tl.store(mixed + row, tl.xor_sum(v, 0))
    tl.store(high + row, tl.max(v, 0))


def integer_rows(x):
    total = torch.empty(len(x), dtype=torch.int64)
    mixed, high = (torch.empty(len(x), dtype=torch.int32) for _ in range(2))
    _integers[(len(x),)](x, total, mixed, high, x.shape[1], triton.next_power_of_2(x.shape[1]))
    return total, mixed, high


def integer_reference(x):
    mixed = []
    for row in x.tolist():
        value = 0
        for item in row:
            value ^= item
        mixed.append(value)
    return x.long().sum(1), torch.tensor(mixed, dtype=torch.int32), x.amax(1)


@triton.jit
def _last_block(x, partial, count, out, n, blocks, BLOCK: tl.constexpr, P: tl.constexpr):
    """The work-group that comes last adds what all have left."""
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    tl.store(partial + block, tl.sum(tl.load(x + at, at < n, other=0.0), 0))
    tl.debug_barrier()
    if tl.atomic_add(count, 1) == blocks - 1:
        p = tl.arange(0, P)
        tl.store(out, tl.sum(tl.load(partial + p, p < blocks, other=0.0, cache_modifier=".cv"), 0))


def last_block(x):
    blocks = triton.cdiv(len(x), 128)
    out, count = torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    _last_block[(blocks,)](x, torch.empty(blocks), count, out, len(x), blocks, 128, 16)
    return out


@triton.jit
def _cross_entropy(logits, labels, loss, gradient, n, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    x = logits + row * n
    high, total = -float("inf"), 0.0
    for k in range(0, n, BLOCK):
        at = k + tl.arange(0, BLOCK)
        v = tl.load(x + at, at < n, other=-float("inf")).to(tl.float32)
        now = tl.maximum(high, tl.max(v, 0))
        total = total * tl.exp(high - now) + tl.sum(tl.exp(v - now), 0)
        high = now
    lse = high + tl.log(total)
    if label == -100:
        tl.store(loss + row, 0.0)
    else:
        tl.store(loss + row, lse - tl.load(x + label).to(tl.float32))
    for k in range(0, n, BLOCK):
        at = k + tl.arange(0, BLOCK)
        v = tl.load(x + at, at < n, other=0.0).to(tl.float32)
        g = (tl.exp(v - lse) - tl.where(at == label, 1.0, 0.0)) * scale
        tl.store(gradient + row * n + at, tl.where(label == -100, 0.0, g), at < n)


def cross_entropy(logits, labels):
    loss, gradient = torch.empty(len(logits)), torch.empty_like(logits)
    _cross_entropy[(len(logits),)](logits, labels, loss, gradient, logits.shape[1], 1 / len(logits), 256)
    return loss, gradient


def cross_entropy_reference(logits, labels):
    x = logits.double()
    loss = torch.nn.functional.cross_entropy(x, labels, reduction="none")
    one_hot = torch.nn.functional.one_hot(labels.clamp(min=0), x.shape[1])
    gradient = (x.softmax(1) - one_hot) / len(x)
    return loss, gradient.where((labels != -100)[:, None], 0.0)


def labelled(g: torch.Generator) -> Inputs:
    labels = integers(g, 0, 700, 6, dtype=torch.int64)
    labels[2] = -100
    return {"logits": normal(g, 6, 700), "labels": labels}


@triton.jit
def _logsumexp_middle(x, out, A, B, C, BB: tl.constexpr, BC: tl.constexpr):
    a, c = tl.program_id(0), tl.program_id(1) * BC + tl.arange(0, BC)
    b = tl.arange(0, BB)
    inside = (b < B)[:, None] & (c < C)[None, :]
    v = tl.load(x + a * B * C + b[:, None] * C + c[None, :], inside, other=-float("inf"))
    high = tl.max(v, 0)
    high = tl.where(high == -float("inf"), 0.0, high)
    tl.store(out + a * C + c, high + tl.log(tl.sum(tl.exp(v - high[None, :]), 0)), c < C)


def logsumexp_middle(x):
    A, B, C = x.shape
    out = torch.empty(A, C)
    _logsumexp_middle[(A, triton.cdiv(C, 32))](x, out, A, B, C, triton.next_power_of_2(B), 32)
    return out


@triton.jit
def _matrix_vector(w, x, out, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    total = tl.zeros((R, C), tl.float32)
    for k in range(0, columns, C):
        c = k + tl.arange(0, C)
        inside = (r < rows)[:, None] & (c < columns)[None, :]
        total += tl.load(w + r[:, None] * columns + c[None, :], inside, other=0.0).to(tl.float32) * tl.load(
            x + c, c < columns, other=0.0
        ).to(tl.float32)
    tl.store(out + r, tl.sum(total, 1), r < rows)


def matrix_vector(w, x):
    out = torch.empty(len(w))
    _matrix_vector[(triton.cdiv(len(w), 16),)](w, x, out, *w.shape, 16, 64)
    return out


def rows_of(rows: int, columns: int, dtype: torch.dtype = torch.float32):
    return lambda g: {"x": normal(g, rows, columns, dtype=dtype)}


CASES = (
    Case("softmax_f32", rows_of(9, 300), softmax, lambda x: x.double().softmax(1), 2e-6, 1e-9, F32),
    Case("softmax_bf16", rows_of(9, 1000, torch.bfloat16), softmax, lambda x: x.double().softmax(1), 2**-8, 1e-9,
         "one rounding to bfloat16"),
    Case("softmax_f16", rows_of(5, 64, torch.float16), softmax, lambda x: x.double().softmax(1), 2**-10, 2**-24,
         "one rounding to float16"),
    Case("softmax_online", rows_of(5, 700), softmax_online, lambda x: x.double().softmax(1), 2e-6, 1e-9, F32),
    Case("rows", rows_of(21, 90), rows, lambda x: (x.double().sum(1), x.amax(1), x.amin(1)), 1e-6, 1e-5, F32),
    Case("rows_f16", rows_of(21, 90, torch.float16), rows,
         lambda x: (x.double().sum(1), x.amax(1), x.amin(1)), 1e-6, 1e-5, F32),
    Case("columns_atomic", rows_of(70, 80), columns, lambda x: x.double().sum(0), 1e-6, 1e-5, F32),
    Case("argmax_argmin", rows_of(9, 333), arg, lambda x: (x.argmax(1).int(), x.argmin(1).int())),
    Case("argmax_ties", lambda g: {"x": integers(g, 0, 4, 9, 200).float()}, arg,
         lambda x: (torch.tensor(x.numpy().argmax(1)).int(), torch.tensor(x.numpy().argmin(1)).int())),
    Case("welford", lambda g: {"x": normal(g, 7, 300) + 100}, welford,
         lambda x: (x.double().mean(1), x.double().var(1, unbiased=False)), 1e-5, 0, F32),
    Case("integer_rows", lambda g: {"x": integers(g, -(2**31), 2**31, 7, 150)}, integer_rows, integer_reference),
    Case("last_block", lambda g: {"x": normal(g, 1200)}, last_block, lambda x: x.double().sum()[None], 1e-5, 1e-4,
         F32),
    Case("cross_entropy", labelled, cross_entropy, cross_entropy_reference, 2e-6, 1e-6, F32),
    Case("logsumexp_middle", lambda g: {"x": normal(g, 3, 25, 50)}, logsumexp_middle,
         lambda x: x.double().logsumexp(1), 2e-6, 1e-6, F32),
    Case("matrix_vector_bf16", lambda g: {"w": normal(g, 50, 150, dtype=torch.bfloat16),
                                          "x": normal(g, 150, dtype=torch.bfloat16)}, matrix_vector,
         lambda w, x: w.double() @ x.double(), 1e-6, 1e-5, F32),
)  # fmt: skip
