"""Order and place: scans, sorting, histograms, gathering, scattering, transposes, rotary positions."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.solbench.gfx12.kernels.case import Case, Inputs, integers, normal

F32 = "sums of float32 in another order"


@triton.jit
def _cumsum(x, out, n, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=0)
    tl.store(out + row * n + at, tl.cumsum(v, 0, reverse=REVERSE), at < n)


def cumsum(reverse=False):
    def run(x):
        out = torch.empty_like(x)
        _cumsum[(len(x),)](x, out, x.shape[1], reverse, triton.next_power_of_2(x.shape[1]))
        return out

    return run


@triton.jit
def _then(a, x, b, y):
    return a * b, x * b + y


@triton.jit
def _recurrence(a, x, out, n, BLOCK: tl.constexpr):
    """h[t] = a[t] h[t-1] + x[t]."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    decay = tl.load(a + row * n + at, at < n, other=1.0)
    v = tl.load(x + row * n + at, at < n, other=0.0)
    _, h = tl.associative_scan((decay, v), 0, _then)
    tl.store(out + row * n + at, h, at < n)


def recurrence(a, x):
    out = torch.empty_like(x)
    _recurrence[(len(x),)](a, x, out, x.shape[1], triton.next_power_of_2(x.shape[1]))
    return out


def recurrence_reference(a, x):
    h, rows = torch.zeros(len(x), dtype=torch.float64), []
    for t in range(x.shape[1]):
        h = a[:, t].double() * h + x[:, t].double()
        rows.append(h)
    return torch.stack(rows, 1)


@triton.jit
def _sort(x, out, n, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * BLOCK + at)
    tl.store(out + row * BLOCK + at, tl.sort(v, descending=DESCENDING))


def sort(descending=False):
    def run(x):
        out = torch.empty_like(x)
        _sort[(len(x),)](x, out, x.shape[1], descending, x.shape[1])
        return out

    return run


@triton.jit
def _topk(x, values, places, n, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K largest, one after the other; of equals the first."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=-float("inf"))
    for k in tl.static_range(K):
        high, place = tl.max(v, 0, return_indices=True)
        tl.store(values + row * K + k, high)
        tl.store(places + row * K + k, place)
        v = tl.where(at == place, -float("inf"), v)


def topk(x):
    values, places = torch.empty(len(x), 4), torch.empty(len(x), 4, dtype=torch.int32)
    _topk[(len(x),)](x, values, places, x.shape[1], 4, triton.next_power_of_2(x.shape[1]))
    return values, places


def topk_reference(x):
    values, places = x.topk(4, 1)
    return values, places.int()


@triton.jit
def _topk_built_in(x, out, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + row * K + tl.arange(0, K), tl.topk(v, K))


def topk_built_in(x):
    out = torch.empty(len(x), 8)
    _topk_built_in[(len(x),)](x, out, 8, x.shape[1])
    return out


@triton.jit
def _histogram(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, other=0)
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(v, BINS, mask=at < n))


def histogram(x):
    out = torch.zeros(32, dtype=torch.int32)
    _histogram[(triton.cdiv(len(x), 256),)](x, out, len(x), 32, 256)
    return out


@triton.jit
def _gather(x, places, out, N: tl.constexpr, M: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * N + tl.arange(0, N))
    i = tl.load(places + row * M + tl.arange(0, M))
    tl.store(out + row * M + tl.arange(0, M), tl.gather(v, i, 0))


def gather(x, places):
    out = torch.empty(places.shape)
    _gather[(len(x),)](x, places, out, x.shape[1], places.shape[1])
    return out


@triton.jit
def _embedding(table, tokens, out, count, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    token = tl.load(tokens + r, r < count, other=0)
    inside = (r < count)[:, None] & (at < n)[None, :]
    v = tl.load(table + token[:, None] * n + at[None, :], inside)
    tl.store(out + r[:, None] * n + at[None, :], v, inside)


def embedding(table, tokens):
    n = table.shape[1]
    out = torch.empty(len(tokens), n, dtype=table.dtype)
    _embedding[(triton.cdiv(len(tokens), 8), triton.cdiv(n, 64))](table, tokens, out, len(tokens), n, 8, 64)
    return out


@triton.jit
def _scatter_add(gradient, tokens, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    token = tl.load(tokens + row)
    tl.atomic_add(out + token * n + at, tl.load(gradient + row * n + at, at < n), at < n)


def scatter_add(gradient, tokens):
    out = torch.zeros(12, gradient.shape[1])
    _scatter_add[(len(tokens),)](gradient, tokens, out, gradient.shape[1], 64)
    return out


@triton.jit
def _transpose(x, out, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.program_id(1) * C + tl.arange(0, C)
    v = tl.load(x + r[:, None] * columns + c[None, :], (r < rows)[:, None] & (c < columns)[None, :])
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(v), (c < columns)[:, None] & (r < rows)[None, :])


def transpose(x):
    out = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype)
    _transpose[(triton.cdiv(x.shape[0], 32), triton.cdiv(x.shape[1], 64))](x, out, *x.shape, 32, 64)
    return out


@triton.jit
def _rotary(x, cosine, sine, out, heads, HALF: tl.constexpr):
    """Halves of each head turned against each other, by angles of the position."""
    position, head = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, HALF)
    base = (position * heads + head) * 2 * HALF
    a, b = tl.load(x + base + d).to(tl.float32), tl.load(x + base + HALF + d).to(tl.float32)
    c, s = tl.load(cosine + position * HALF + d), tl.load(sine + position * HALF + d)
    tl.store(out + base + d, a * c - b * s)
    tl.store(out + base + HALF + d, b * c + a * s)


def rotary(x, cosine, sine):
    out = torch.empty_like(x)
    _rotary[(x.shape[0], x.shape[1])](x, cosine, sine, out, x.shape[1], x.shape[2] // 2, num_warps=1)
    return out


def rotary_reference(x, cosine, sine):
    a, b = x.double().chunk(2, 2)
    c, s = cosine.double()[:, None], sine.double()[:, None]
    return torch.cat([a * c - b * s, b * c + a * s], 2)


@triton.jit
def _pairs(x, angle, out, N: tl.constexpr):
    """Rotary by neighbours: split, turn, interleave."""
    row, at = tl.program_id(0), tl.arange(0, N)
    a, b = tl.split(tl.reshape(tl.load(x + row * N + at), (N // 2, 2)))
    t = tl.load(angle + tl.arange(0, N // 2)) * row
    c, s = tl.cos(t), tl.sin(t)
    tl.store(out + row * N + at, tl.interleave(a * c - b * s, b * c + a * s))


def pairs(x, angle):
    out = torch.empty_like(x)
    _pairs[(len(x),)](x, angle, out, x.shape[1])
    return out


def pairs_reference(x, angle):
    z = torch.view_as_complex(x.double().unflatten(1, (-1, 2)).contiguous())
    t = torch.arange(len(x)).double()[:, None] * angle.double()
    return torch.view_as_real(z * torch.polar(torch.ones_like(t), t)).flatten(1)


@triton.jit
def _shuffled(x, out, N: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * N + tl.arange(0, N))
    v = tl.flip(v, 0)
    v = tl.reshape(tl.permute(tl.reshape(v, (4, 8, N // 32)), (2, 0, 1)), (N,))
    w = tl.cat(v, v + 1, can_reorder=False)
    tl.store(out + row * 2 * N + tl.arange(0, 2 * N), w)


def shuffled(x):
    out = torch.empty(len(x), 2 * x.shape[1])
    _shuffled[(len(x),)](x, out, x.shape[1])
    return out


def shuffled_reference(x):
    v = x.flip(1).unflatten(1, (4, 8, -1)).permute(0, 3, 1, 2).flatten(1)
    return torch.cat([v, v + 1], 1)


def rotary_inputs(g: torch.Generator) -> Inputs:
    angle = torch.arange(20).float()[:, None] * 10000.0 ** -(torch.arange(32).float() / 32)
    return {"x": normal(g, 20, 3, 64, dtype=torch.bfloat16), "cosine": angle.cos(), "sine": angle.sin()}


CASES = (
    Case("cumsum_f32", lambda g: {"x": normal(g, 5, 300)}, cumsum(), lambda x: x.double().cumsum(1), 1e-5, 1e-5, F32),
    Case("cumsum_i32_reverse", lambda g: {"x": integers(g, -99, 99, 5, 200)}, cumsum(True),
         lambda x: x.flip(1).cumsum(1).flip(1).int()),
    Case("recurrence", lambda g: {"a": torch.rand(4, 200, generator=g), "x": normal(g, 4, 200)}, recurrence,
         recurrence_reference, 1e-5, 1e-5, F32),
    Case("sort_f32", lambda g: {"x": normal(g, 4, 128)}, sort(), lambda x: x.sort(1).values),
    Case("sort_i32_descending", lambda g: {"x": integers(g, -50, 50, 4, 128)}, sort(True),
         lambda x: x.sort(1, descending=True).values),
    Case("topk", lambda g: {"x": normal(g, 6, 100)}, topk, topk_reference),
    Case("topk_built_in", lambda g: {"x": normal(g, 5, 128)}, topk_built_in, lambda x: x.topk(8, 1).values),
    Case("histogram", lambda g: {"x": integers(g, 0, 32, 900)}, histogram,
         lambda x: torch.bincount(x, minlength=32).int()),
    Case("gather_in_registers", lambda g: {"x": normal(g, 4, 64), "places": integers(g, 0, 64, 4, 128)}, gather,
         lambda x, places: x.gather(1, places.long())),
    Case("embedding_bf16", lambda g: {"table": normal(g, 40, 100, dtype=torch.bfloat16),
                                      "tokens": integers(g, 0, 40, 21, dtype=torch.int64)}, embedding,
         lambda table, tokens: table[tokens]),
    Case("scatter_add", lambda g: {"gradient": normal(g, 30, 50), "tokens": integers(g, 0, 12, 30)}, scatter_add,
         lambda gradient, tokens: torch.zeros(12, 50, dtype=torch.float64).index_add(0, tokens, gradient.double()),
         1e-5, 1e-5, F32),
    Case("transpose_f32", lambda g: {"x": normal(g, 50, 90)}, transpose, lambda x: x.t()),
    Case("transpose_i8", lambda g: {"x": integers(g, -128, 128, 50, 90, dtype=torch.int8)}, transpose,
         lambda x: x.t()),
    Case("rotary_bf16", rotary_inputs, rotary, rotary_reference, 2**-8, 2**-9, "one rounding to bfloat16"),
    Case("rotary_pairs", lambda g: {"x": normal(g, 9, 64), "angle": torch.rand(32, generator=g)}, pairs,
         pairs_reference, 1e-5, 1e-5, "angles of up to 8 in float32"),
    Case("shuffled", lambda g: {"x": normal(g, 4, 64)}, shuffled, shuffled_reference),
)  # fmt: skip
