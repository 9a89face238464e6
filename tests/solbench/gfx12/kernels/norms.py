"""Normalisation of rows and groups, forward and backward."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.solbench.gfx12.kernels.case import Case, Inputs, normal

F32 = "sums of float32 in another order"
EPS = 1e-5


@triton.jit
def _layernorm(x, w, b, out, mean, rstd, n, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=0.0).to(tl.float32)
    m = tl.sum(v, 0) / n
    d = tl.where(at < n, v - m, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    y = d * r * tl.load(w + at, at < n) + tl.load(b + at, at < n)
    tl.store(out + row * n + at, y, at < n)


def layernorm(x, w, b):
    rows, n = x.shape
    out, mean, rstd = torch.empty_like(x), torch.empty(rows), torch.empty(rows)
    _layernorm[(rows,)](x, w, b, out, mean, rstd, n, EPS, triton.next_power_of_2(n))
    return out, mean, rstd


def layernorm_reference(x, w, b):
    v = x.double()
    mean, rstd = v.mean(1), (v.var(1, unbiased=False) + EPS).rsqrt()
    return (v - mean[:, None]) * rstd[:, None] * w + b, mean, rstd


@triton.jit
def _layernorm_dx(dx, dy, dw, db, x, w, mean, rstd, locks, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """The gradient of a row, and what rows of a group add under a lock to the weights' gradients."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, inside, other=0.0)
    g = tl.load(dy + row * n + at, inside, other=0.0)
    m, r = tl.load(mean + row), tl.load(rstd + row)
    h = tl.where(inside, (v - m) * r, 0.0)
    wg = tl.load(w + at, inside, other=0.0) * g
    c1, c2 = tl.sum(h * wg, 0) / n, tl.sum(wg, 0) / n
    tl.store(dx + row * n + at, (wg - (h * c1 + c2)) * r, inside)
    group = row % GROUP
    lock, count = locks + group, locks + GROUP + group
    to = group * n + at
    pw, pb = g * h, g
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        pw += tl.load(dw + to, inside)
        pb += tl.load(db + to, inside)
    tl.store(dw + to, pw, inside)
    tl.store(db + to, pb, inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def _fold(partial_w, partial_b, dw, db, groups, n, R: tl.constexpr, C: tl.constexpr):
    c = tl.program_id(0) * C + tl.arange(0, C)
    w, b = tl.zeros((R, C), tl.float32), tl.zeros((R, C), tl.float32)
    for k in range(0, groups, R):
        r = k + tl.arange(0, R)
        inside = (r < groups)[:, None] & (c < n)[None, :]
        w += tl.load(partial_w + r[:, None] * n + c[None, :], inside, other=0.0)
        b += tl.load(partial_b + r[:, None] * n + c[None, :], inside, other=0.0)
    tl.store(dw + c, tl.sum(w, 0), c < n)
    tl.store(db + c, tl.sum(b, 0), c < n)


def layernorm_backward(x, w, dy, groups=2):
    rows, n = x.shape
    v = x.double()
    mean, rstd = v.mean(1).float(), (v.var(1, unbiased=False) + EPS).rsqrt().float()
    dx, dw, db = torch.empty_like(x), torch.empty(n), torch.empty(n)
    pw, pb = torch.zeros(groups, n), torch.zeros(groups, n)
    locks = torch.zeros(2 * groups, dtype=torch.int32)
    _layernorm_dx[(rows,)](dx, dy, pw, pb, x, w, mean, rstd, locks, n, groups, triton.next_power_of_2(n))
    _fold[(triton.cdiv(n, 32),)](pw, pb, dw, db, groups, n, 4, 32)
    return dx, dw, db


def layernorm_backward_reference(x, w, dy):
    v, weight = x.double().requires_grad_(), w.double().requires_grad_()
    bias = torch.zeros_like(weight).requires_grad_()
    torch.nn.functional.layer_norm(v, v.shape[1:], weight, bias, EPS).backward(dy.double())
    return v.grad, weight.grad, bias.grad


@triton.jit
def _rmsnorm(x, w, residual, out, n, eps, ADD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        inside = k + at < n
        v = tl.load(x + row * n + k + at, inside, other=0.0).to(tl.float32)
        if ADD:
            v += tl.load(residual + row * n + k + at, inside, other=0.0).to(tl.float32)
            tl.store(residual + row * n + k + at, v, inside)
        total += v * v
    r = tl.rsqrt(tl.sum(total, 0) / n + eps)
    tl.debug_barrier()
    for k in range(0, n, BLOCK):
        inside = k + at < n
        if ADD:
            v = tl.load(residual + row * n + k + at, inside, other=0.0).to(tl.float32)
        else:
            v = tl.load(x + row * n + k + at, inside, other=0.0).to(tl.float32)
        tl.store(out + row * n + k + at, v * r * tl.load(w + k + at, inside), inside)


def rmsnorm(x, w):
    out = torch.empty_like(x)
    _rmsnorm[(len(x),)](x, w, None, out, x.shape[1], EPS, False, 128)
    return out


def rmsnorm_reference(x, w):
    v = x.double()
    return v * (v.square().mean(1, keepdim=True) + EPS).rsqrt() * w.double()


def add_rmsnorm(x, residual, w):
    out, residual = torch.empty_like(x), residual.clone()
    _rmsnorm[(len(x),)](x, w, residual, out, x.shape[1], EPS, True, 128)
    return out, residual


def add_rmsnorm_reference(x, residual, w):
    """The second loop reads the sum as it was rounded to the residual's type; the first one does not."""
    exact = x.double() + residual.double()
    r = (exact.square().mean(1, keepdim=True) + EPS).rsqrt()
    return exact.to(x.dtype).double() * r * w.double(), exact


@triton.jit
def _rmsnorm_backward(x, w, dy, dx, dw, rows, n, eps, BLOCK: tl.constexpr):
    """Rows in a stride of the grid; a partial gradient of the weights a work-group."""
    at = tl.arange(0, BLOCK)
    inside = at < n
    weight = tl.load(w + at, inside, other=0.0).to(tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        v = tl.load(x + row * n + at, inside, other=0.0).to(tl.float32)
        g = tl.load(dy + row * n + at, inside, other=0.0).to(tl.float32)
        r = tl.rsqrt(tl.sum(v * v, 0) / n + eps)
        m = g * weight
        tl.store(dx + row * n + at, r * (m - v * r * r * tl.sum(m * v, 0) / n), inside)
        total += g * v * r
    tl.store(dw + tl.program_id(0) * n + at, total, inside)


def rmsnorm_backward(x, w, dy):
    rows, n = x.shape
    dx, dw = torch.empty_like(x), torch.empty(3, n)
    _rmsnorm_backward[(3,)](x, w, dy, dx, dw, rows, n, EPS, triton.next_power_of_2(n))
    return dx, dw.sum(0)


def rmsnorm_backward_reference(x, w, dy):
    v, weight = x.double().requires_grad_(), w.double().requires_grad_()
    (v * (v.square().mean(1, keepdim=True) + EPS).rsqrt() * weight).backward(dy.double())
    return v.grad, weight.grad


@triton.jit
def _groupnorm(x, w, b, out, channels, size, groups, eps, BLOCK: tl.constexpr):
    """A group of channels of one image a work-group: its values lie together."""
    image, group = tl.program_id(0), tl.program_id(1)
    a_group = channels // groups
    n = a_group * size
    base = (image * channels + group * a_group) * size
    total, squares = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        at = k + tl.arange(0, BLOCK)
        v = tl.load(x + base + at, at < n, other=0.0)
        total += v
        squares += v * v
    mean = tl.sum(total, 0) / n
    r = tl.rsqrt(tl.sum(squares, 0) / n - mean * mean + eps)
    for k in range(0, n, BLOCK):
        at = k + tl.arange(0, BLOCK)
        channel = group * a_group + at // size
        y = (tl.load(x + base + at, at < n) - mean) * r
        y = y * tl.load(w + channel, at < n) + tl.load(b + channel, at < n)
        tl.store(out + base + at, y, at < n)


def groupnorm(x, w, b):
    out = torch.empty_like(x)
    images, channels, size = x.shape
    _groupnorm[(images, 3)](x, w, b, out, channels, size, 3, EPS, 128)
    return out


@triton.jit
def _l2norm(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=0.0).to(tl.float32)
    tl.store(out + row * n + at, v / tl.maximum(tl.sqrt(tl.sum(v * v, 0)), 1e-12), at < n)


def l2norm(x):
    out = torch.empty_like(x)
    _l2norm[(len(x),)](x, out, x.shape[1], triton.next_power_of_2(x.shape[1]), num_warps=1)
    return out


def affine(rows: int, n: int, dtype: torch.dtype = torch.float32):
    return lambda g: {"x": normal(g, rows, n, dtype=dtype), "w": normal(g, n, dtype=dtype),
                      "b": normal(g, n, dtype=dtype)}  # fmt: skip


def weighted(rows: int, n: int, dtype: torch.dtype = torch.float32, *more: str):
    def inputs(g: torch.Generator) -> Inputs:
        return {"x": normal(g, rows, n, dtype=dtype), "w": normal(g, n, dtype=dtype),
                **{name: normal(g, rows, n, dtype=dtype) for name in more}}  # fmt: skip

    return inputs


CASES = (
    Case("layernorm_f32", affine(7, 300), layernorm, layernorm_reference, 1e-5, 1e-5, F32),
    Case("layernorm_f16", affine(7, 500, torch.float16), layernorm, layernorm_reference, 2**-10, 2**-9,
         "one rounding to float16"),
    Case("layernorm_backward", weighted(12, 200, torch.float32, "dy"), layernorm_backward,
         layernorm_backward_reference, 1e-5, 1e-5, F32),
    Case("rmsnorm_f32", weighted(7, 300), rmsnorm, rmsnorm_reference, 1e-5, 1e-5, F32),
    Case("rmsnorm_f16", weighted(7, 300, torch.float16), rmsnorm, rmsnorm_reference, 2**-10, 1e-6,
         "one rounding to float16"),
    Case("rmsnorm_bf16", weighted(5, 1000, torch.bfloat16), rmsnorm, rmsnorm_reference, 2**-8, 1e-6,
         "one rounding to bfloat16"),
    Case("add_rmsnorm_bf16", weighted(5, 300, torch.bfloat16, "residual"), add_rmsnorm, add_rmsnorm_reference,
         2**-7, 1e-6, "one rounding to bfloat16, of a sum that may round the other way"),
    Case("rmsnorm_backward", weighted(11, 200, torch.float32, "dy"), rmsnorm_backward, rmsnorm_backward_reference,
         1e-5, 1e-5, F32),
    Case("groupnorm", lambda g: {"x": normal(g, 2, 12, 35), "w": normal(g, 12), "b": normal(g, 12)}, groupnorm,
         lambda x, w, b: torch.nn.functional.group_norm(x.double(), 3, w.double(), b.double(), EPS), 1e-5, 1e-5, F32),
    Case("l2norm_one_wave", lambda g: {"x": normal(g, 5, 96)}, l2norm,
         lambda x: torch.nn.functional.normalize(x.double(), dim=1), 1e-6, 1e-6, F32),
)  # fmt: skip
