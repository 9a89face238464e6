"""Fewer bits with a scale: int8 by row, float8 by block, four bits."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra.hip import libdevice

from tests.solbench.gfx12.kernels.case import Case, normal


@triton.jit
def _int8(x, codes, scales, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 0), 1e-10) / 127.0
    tl.store(scales + row, scale)
    tl.store(codes + row * n + at, libdevice.rint(tl.div_rn(v, scale)).to(tl.int8), at < n)


def int8(x):
    codes, scales = torch.empty(x.shape, dtype=torch.int8), torch.empty(len(x))
    _int8[(len(x),)](x, codes, scales, x.shape[1], triton.next_power_of_2(x.shape[1]))
    return codes, scales


def int8_reference(x):
    scale = x.float().abs().amax(1) / 127
    return (x.float() / scale[:, None]).round().to(torch.int8), scale


@triton.jit
def _fp8(x, codes, scales, n, BLOCK: tl.constexpr):
    block = tl.program_id(0) * (n // BLOCK) + tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 0), 1e-10) / 448.0
    tl.store(scales + block, scale)
    tl.store(codes + at, tl.div_rn(v, scale).to(codes.dtype.element_ty))


def fp8(x):
    codes, scales = torch.empty(x.shape, dtype=torch.float8_e4m3fn), torch.empty(len(x), x.shape[1] // 64)
    _fp8[(len(x), x.shape[1] // 64)](x, codes, scales, x.shape[1], 64)
    return codes, scales


def fp8_reference(x):
    v = x.float().unflatten(1, (-1, 64))
    scale = v.abs().amax(2) / 448
    return (v / scale[:, :, None]).to(torch.float8_e4m3fn).flatten(1), scale


@triton.jit
def _int4(x, packed, scales, n, GROUP: tl.constexpr):
    """Two codes a byte, the first one low."""
    group = tl.program_id(0)
    pair = tl.arange(0, GROUP // 2)
    low = tl.load(x + group * GROUP + 2 * pair)
    high = tl.load(x + group * GROUP + 2 * pair + 1)
    scale = tl.maximum(tl.max(tl.maximum(tl.abs(low), tl.abs(high)), 0), 1e-10) / 7.0
    a = (libdevice.rint(tl.div_rn(low, scale)).to(tl.int32) + 8).to(tl.uint8)
    b = (libdevice.rint(tl.div_rn(high, scale)).to(tl.int32) + 8).to(tl.uint8)
    tl.store(packed + group * (GROUP // 2) + pair, a | (b << 4))
    tl.store(scales + group, scale)


def int4(x):
    packed, scales = torch.empty(len(x) // 2, dtype=torch.uint8), torch.empty(len(x) // 32)
    _int4[(len(x) // 32,)](x, packed, scales, len(x), 32, num_warps=1)
    return packed, scales


def int4_reference(x):
    v = x.view(-1, 32)
    scale = v.abs().amax(1) / 7
    code = ((v / scale[:, None]).round() + 8).to(torch.uint8).view(-1, 2)
    return code[:, 0] | code[:, 1] << 4, scale


@triton.jit
def _back(codes, scales, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(codes + row * n + at, at < n).to(tl.float32) * tl.load(scales + row)
    tl.store(out + row * n + at, v, at < n)


def back(codes, scales):
    out = torch.empty(codes.shape, dtype=torch.bfloat16)
    _back[(len(codes),)](codes, scales, out, codes.shape[1], triton.next_power_of_2(codes.shape[1]))
    return out


CASES = (
    Case("quantise_int8", lambda g: {"x": normal(g, 7, 200, dtype=torch.bfloat16)}, int8, int8_reference),
    Case("quantise_e4m3", lambda g: {"x": normal(g, 5, 192)}, fp8, fp8_reference),
    Case("quantise_int4", lambda g: {"x": normal(g, 320)}, int4, int4_reference),
    Case("back_from_e5m2", lambda g: {"codes": normal(g, 5, 100).to(torch.float8_e5m2), "scales": normal(g, 5)}, back,
         lambda codes, scales: (codes.float() * scales[:, None]).bfloat16()),
)  # fmt: skip
