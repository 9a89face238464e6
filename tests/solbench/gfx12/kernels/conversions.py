"""Integers, comparisons, and casts between all types."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra.hip import libdevice

from tests.solbench.gfx12.kernels.case import Case, Inputs, integers, normal
from tests.solbench.gfx12.kernels.elementwise import BLOCK, N, grid, two_integers


@triton.jit
def _bits(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a, b = tl.load(x + at, inside), tl.load(y + at, inside, other=1)
    s = b & 31
    v = ((a ^ b) + (a << s)) ^ (a >> s) ^ (a.to(tl.uint32) >> s.to(tl.uint32)).to(tl.int32)
    v += (a & ~b) | (b & 255)
    v ^= tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)).to(tl.int32)
    v += libdevice.popc(a) + libdevice.clz(b)
    tl.store(out + at, v, inside)


def bits(x, y):
    out = torch.empty_like(x)
    _bits[grid(len(x))](x, y, out, len(x), BLOCK)
    return out


def bits_reference(x, y):
    word = lambda v: ((v + 2**31) % 2**32) - 2**31  # noqa: E731
    result = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        s, ua, ub = b & 31, a % 2**32, b % 2**32
        v = word((a ^ b) + word(a << s)) ^ (a >> s) ^ word(ua >> s)
        v = word(v + ((a & ~b) | (b & 255))) ^ word(ua * ub >> 32)
        v += ua.bit_count() + 32 - ub.bit_length()
        result.append(word(v))
    return torch.tensor(result, dtype=torch.int32)


@triton.jit
def _divided(x, y, quotient, rest, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a, b = tl.load(x + at, inside), tl.load(y + at, inside, other=1)
    tl.store(quotient + at, a // b, inside)
    tl.store(rest + at, a % b, inside)


def divided(x, y):
    quotient, rest = torch.empty_like(x), torch.empty_like(x)
    _divided[grid(len(x))](x, y, quotient, rest, len(x), BLOCK)
    return quotient, rest


def divided_reference(x, y):
    """Towards zero, as in C."""
    q = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    quotient = torch.tensor(q, dtype=x.dtype)
    return quotient, x - quotient * y


def divisors(dtype: torch.dtype, bits: int, signed: bool = True):
    def inputs(g: torch.Generator) -> Inputs:
        limit = 2 ** (bits - 1)
        low = -limit if signed else 0
        high = limit if signed or bits > 32 else 2 * limit
        x, y = (torch.randint(low, high, (N,), generator=g) >> torch.randint(0, bits - 1, (N,), generator=g)
                for _ in range(2))  # fmt: skip
        y[y == 0] = 7
        edge = torch.tensor([0, 1, high - 1, low + signed, high - 2])
        x[:5], y[:5] = edge, torch.tensor([1, high - 1, 1, 1, high - 1])
        return {"x": x.to(dtype), "y": y.to(dtype)}

    return inputs


@triton.jit
def _bytes(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a, b = tl.load(x + at, inside), tl.load(y + at, inside)
    total = a.to(tl.int16) + b.to(tl.int16)
    clamped = tl.minimum(tl.maximum(total, -128), 127).to(tl.int8)
    tl.store(out + at, clamped, inside)
    tl.store(out + n + at, a * b + (a >> 1), inside)
    tl.store(out + 2 * n + at, tl.maximum(a, b) ^ (a.to(tl.uint8) >> 3).to(tl.int8), inside)


def byte_math(x, y):
    out = torch.empty((3, len(x)), dtype=torch.int8)
    _bytes[grid(len(x))](x, y, out, len(x), BLOCK)
    return out


def byte_reference(x, y):
    a, b = x.int(), y.int()
    wrapped = lambda v: v.to(torch.int8)  # noqa: E731
    return torch.stack([(a + b).clamp(-128, 127).to(torch.int8), wrapped(a * b + (a >> 1)),
                        wrapped(torch.maximum(a, b) ^ ((a & 255) >> 3))])  # fmt: skip


@triton.jit
def _cast(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside).to(out.dtype.element_ty), inside)


def cast(to: torch.dtype):
    def run(x):
        out = torch.empty(len(x), dtype=to)
        _cast[grid(len(x))](x, out, len(x), BLOCK)
        return out

    return run


def wide(dtype: torch.dtype = torch.float32, low: int = -20, high: int = 20, top: float = 1e30):
    """Values of many exponents, and zeros of both signs."""

    def inputs(g: torch.Generator) -> Inputs:
        x = normal(g, N) * torch.exp2(torch.randint(low, high, (N,), generator=g).float())
        x[:2] = torch.tensor([0.0, -0.0])
        return {"x": x.clamp(-top, top).to(dtype)}

    return inputs


@triton.jit
def _compare(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a, b = tl.load(x + at, inside), tl.load(y + at, inside)
    tl.store(out + at, (a < b) & ~(a == 3) | (b >= 5), inside)


def compare(x, y):
    out = torch.empty(len(x), dtype=torch.bool)
    _compare[grid(len(x))](x, y, out, len(x), BLOCK)
    return out


def _round(to: torch.dtype):
    return lambda x: x.to(to)


CASES = (
    Case("bits", two_integers(-(2**31), 2**31, torch.int32), bits, bits_reference),
    Case("divide_i32", divisors(torch.int32, 32), divided, divided_reference),
    Case("divide_u32", divisors(torch.uint32, 32, False), lambda x, y: tuple(v.long() for v in divided(x, y)),
         lambda x, y: (x.long() // y.long(), x.long() % y.long())),
    Case("divide_i64", divisors(torch.int64, 63), divided, divided_reference),
    Case("divide_i16", divisors(torch.int16, 16), divided, divided_reference),
    Case("byte_math", two_integers(-128, 128, torch.int8), byte_math, byte_reference),
    Case("cast_f32_f16", wide(top=6e4), cast(torch.float16), _round(torch.float16)),
    Case("cast_f32_bf16", wide(), cast(torch.bfloat16), _round(torch.bfloat16)),
    Case("cast_f32_e4m3", wide(low=-12, high=8, top=440.0), cast(torch.float8_e4m3fn), _round(torch.float8_e4m3fn)),
    Case("cast_f32_e5m2", wide(top=5e4), cast(torch.float8_e5m2), _round(torch.float8_e5m2)),
    Case("cast_e4m3_f16", wide(torch.float8_e4m3fn, -12, 8, 440.0), cast(torch.float16), _round(torch.float16)),
    Case("cast_e5m2_bf16", wide(torch.float8_e5m2, top=5e4), cast(torch.bfloat16), _round(torch.bfloat16)),
    Case("cast_f32_i32", wide(high=30, top=2e9), cast(torch.int32), _round(torch.int32)),
    Case("cast_f32_i64", wide(high=60), cast(torch.int64), _round(torch.int64)),
    Case("cast_i64_f32", lambda g: {"x": integers(g, -(2**62), 2**62, N, dtype=torch.int64)}, cast(torch.float32),
         _round(torch.float32)),
    Case("cast_i8_bf16", lambda g: {"x": integers(g, -128, 128, N, dtype=torch.int8)}, cast(torch.bfloat16),
         _round(torch.bfloat16)),
    Case("cast_f64_f32", wide(torch.float64), cast(torch.float32), _round(torch.float32)),
    Case("cast_f16_f64", wide(torch.float16, top=6e4), cast(torch.float64), _round(torch.float64)),
    Case("compare_i32", two_integers(0, 9, torch.int32), compare, lambda x, y: (x < y) & (x != 3) | (y >= 5)),
)  # fmt: skip
