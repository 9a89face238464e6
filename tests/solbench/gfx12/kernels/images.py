"""Convolution and pooling."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.solbench.gfx12.kernels.case import Case, normal

SUM = "sums of float32 in another order"


@triton.jit
def _conv(
    x, w, out, C, H, W, F, OH, OW, PAD, STRIDE, KH: tl.constexpr, KW: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Implicit product: rows are places of the output, K is (channel, dy, dx)."""
    image = tl.program_id(2)
    place = tl.program_id(0) * BM + tl.arange(0, BM)
    o = tl.program_id(1) * BN + tl.arange(0, BN)
    oy, ox = place // OW, place % OW
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, C * KH * KW, BK):
        at = k + tl.arange(0, BK)
        c, r = at // (KH * KW), at % (KH * KW)
        y = oy[:, None] * STRIDE - PAD + (r // KW)[None, :]
        z = ox[:, None] * STRIDE - PAD + (r % KW)[None, :]
        inside = (at < C * KH * KW)[None, :] & (place < OH * OW)[:, None] & (y >= 0) & (y < H) & (z >= 0) & (z < W)
        left = tl.load(x + ((image * C + c[None, :]) * H + y) * W + z, inside, 0.0)
        right = tl.load(w + o[None, :] * C * KH * KW + at[:, None], (o < F)[None, :] & (at < C * KH * KW)[:, None], 0.0)
        total = tl.dot(left, right, total)
    to = out + (image * F + o[None, :]) * OH * OW + place[:, None]
    tl.store(to, total, (place < OH * OW)[:, None] & (o < F)[None, :])


def conv(stride=1):
    def run(x, w):
        (n, c, h, wide), (o, _, kh, kw) = x.shape, w.shape
        pad = kh // 2
        oh, ow = (h + 2 * pad - kh) // stride + 1, (wide + 2 * pad - kw) // stride + 1
        out = torch.empty(n, o, oh, ow)
        _conv[(triton.cdiv(oh * ow, 32), triton.cdiv(o, 16), n)](
            x, w, out, c, h, wide, o, oh, ow, pad, stride, kh, kw, 32, 16, 32
        )
        return out

    return run


def conv_reference(stride=1):
    return lambda x, w: torch.nn.functional.conv2d(x.double(), w.double(), stride=stride, padding=w.shape[2] // 2)


@triton.jit
def _depthwise(x, w, b, out, C, H, W, K: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    y, z = at // W, at % W
    total = tl.full((BLOCK,), 0.0, tl.float32) + tl.load(b + plane % C)
    for dy in tl.static_range(K):
        for dx in tl.static_range(K):
            sy, sx = y + dy - K // 2, z + dx - K // 2
            inside = (sy >= 0) & (sy < H) & (sx >= 0) & (sx < W) & (at < H * W)
            total += tl.load(x + plane * H * W + sy * W + sx, inside, 0.0) * tl.load(
                w + (plane % C) * K * K + dy * K + dx
            )
    tl.store(out + plane * H * W + at, total, at < H * W)


def depthwise(x, w, b):
    n, c, h, wide = x.shape
    out = torch.empty_like(x)
    _depthwise[(n * c, triton.cdiv(h * wide, 128))](x, w, b, out, c, h, wide, 3, 128)
    return out


@triton.jit
def _pool(x, out, H, W, OH, OW, K: tl.constexpr, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    y, z = at // OW * K, at % OW * K
    total = tl.full((BLOCK,), 0.0 if MEAN else -float("inf"), tl.float32)
    for dy in range(K):
        for dx in range(K):
            v = tl.load(x + (plane * H + y + dy) * W + z + dx, at < OH * OW, 0.0)
            total = total + v if MEAN else tl.maximum(total, v)
    tl.store(out + plane * OH * OW + at, total / (K * K) if MEAN else total, at < OH * OW)


def pool(mean):
    def run(x):
        n, c, h, w = x.shape
        out = torch.empty(n, c, h // 3, w // 3)
        _pool[(n * c, triton.cdiv(out.shape[2] * out.shape[3], 64))](x, out, h, w, *out.shape[2:], 3, mean, 64)
        return out

    return run


F16 = torch.float16

CASES = (
    Case("conv_f16", lambda g: {"x": normal(g, 2, 5, 9, 8, dtype=F16), "w": normal(g, 20, 5, 3, 3, dtype=F16)}, conv(),
         conv_reference(), 1e-5, 1e-5, SUM),
    Case("conv_bf16_stride", lambda g: {"x": normal(g, 2, 4, 11, 10, dtype=torch.bfloat16),
                                        "w": normal(g, 16, 4, 5, 5, dtype=torch.bfloat16)}, conv(2),
         conv_reference(2), 1e-5, 1e-5, SUM),
    Case("depthwise", lambda g: {"x": normal(g, 2, 3, 13, 11), "w": normal(g, 3, 1, 3, 3), "b": normal(g, 3)},
         depthwise, lambda x, w, b: torch.nn.functional.conv2d(x.double(), w.double(), b.double(), padding=1, groups=3),
         1e-5, 1e-5, SUM),
    Case("max_pool", lambda g: {"x": normal(g, 2, 3, 20, 23)}, pool(False),
         lambda x: torch.nn.functional.max_pool2d(x, 3)),
    Case("mean_pool", lambda g: {"x": normal(g, 2, 3, 20, 23)}, pool(True),
         lambda x: torch.nn.functional.avg_pool2d(x.double(), 3), 1e-6, 1e-6, SUM),
)  # fmt: skip
