"""Loops whose length is in the data, calls, spills, exchange between waves, random numbers, inline assembly."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.solbench.gfx12.kernels.case import Case, integers, normal


@triton.jit
def _collatz(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, other=1)
    steps = tl.zeros((BLOCK,), tl.int32)
    while tl.max((v != 1).to(tl.int32), 0) == 1:
        v = tl.where(v == 1, 1, tl.where(v % 2 == 0, v // 2, 3 * v + 1))
        steps += tl.where(v == 1, 0, 1)
    tl.store(out + at, steps, at < n)


def collatz(x):
    out = torch.empty_like(x)
    _collatz[(triton.cdiv(len(x), 64),)](x, out, len(x), 64)
    return out


def collatz_reference(x):
    result = []
    for v in x.tolist():
        steps = 0
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += v != 1
        result.append(steps)
    return torch.tensor(result, dtype=torch.int32)


@triton.jit(noinline=True)
def _horner(v, a, b):
    return (v * a + b) * v + 1.0


@triton.jit
def _calls(x, out, times):
    """Scalars only: Triton calls no function that takes a tensor."""
    at = tl.program_id(0)
    v = tl.load(x + at)
    for i in range(times):
        v = _horner(v, 0.25, 0.5)
        v = _horner(v, -0.125, i.to(tl.float32))
    tl.store(out + at, v)


def calls(x):
    out = torch.empty_like(x)
    _calls[(len(x),)](x, out, 3)
    return out


def calls_reference(x):
    v = x.double()
    for i in range(3):
        v = (v * 0.25 + 0.5) * v + 1
        v = (v * -0.125 + i) * v + 1
    return v


@triton.jit
def _spilled(x, out, N: tl.constexpr):
    """One wave holds more than its registers."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + tl.program_id(0) * N * N + at)
    w = tl.dot(v, v).to(tl.float16)
    u = tl.dot(w, v)
    y = tl.dot(v, w)
    tl.store(out + tl.program_id(0) * N * N + at, u + w + tl.trans(v) + y)


def spilled(x):
    out = torch.empty(x.shape)
    _spilled[(len(x),)](x, out, x.shape[1], num_warps=1)
    return out


def spilled_reference(x):
    v = x.double()
    w = (v @ v).half().double()
    return w @ v + w + v.mT + v @ w


@triton.jit
def _early(x, out, lengths, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    length = tl.load(lengths + row)
    if length == 0:
        return
    total = 0.0
    k = 0
    while k < length:
        total += tl.sum(tl.load(x + row * n + k + at, k + at < length, other=0.0), 0)
        k += BLOCK
    if row % 2 == 0:
        total = -total
    tl.store(out + row, total)


def early(x, lengths):
    out = torch.zeros(len(x))
    _early[(len(x),)](x, out, lengths, x.shape[1], 32)
    return out


def early_reference(x, lengths):
    rows = [x[i, :length].double().sum() * (-1 if i % 2 == 0 else 1) for i, length in enumerate(lengths.tolist())]
    return torch.stack(rows)


@triton.jit
def _exchange(x, between, out, n, BLOCK: tl.constexpr):
    """Waves of a work-group pass values through global memory, with a barrier between."""
    base, at = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    for _ in range(3):
        tl.store(between + base + at, tl.load(x + base + at) + 1)
        tl.debug_barrier()
        v = tl.load(between + base + BLOCK - 1 - at)
        tl.debug_barrier()
        tl.store(x + base + at, v)
        tl.debug_barrier()
    tl.store(out + base + at, tl.load(x + base + at))


def exchange(x):
    x, between, out = x.clone(), torch.empty_like(x), torch.empty_like(x)
    _exchange[(len(x),)](x, between, out, x.shape[1], x.shape[1])
    return out


@triton.jit
def _random(out, seed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.randint(seed, at).to(tl.int64) & 0xFFFFFFFF, at < n)


def random(seed, n):
    out = torch.empty(n, dtype=torch.int64)
    _random[(triton.cdiv(n, 128),)](out, seed, n, 128)
    return out


def philox(seed, n):
    """Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011): Philox 4x32 of 10 rounds, first word."""
    result = []
    for index in range(n):
        c, key = [index, 0, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
        for _ in range(10):
            a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = [b >> 32 ^ c[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ key[1], a & 0xFFFFFFFF]
            key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
        result.append(c[0])
    return torch.tensor(result)


@triton.jit
def _dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, tl.load(x + at, at < n, other=0.0) / (1 - p), 0.0), at < n)


def dropout(x, p, seed):
    out = torch.empty_like(x)
    _dropout[(triton.cdiv(len(x), 128),)](x, out, len(x), p, seed, 128)
    return out


def dropout_reference(x, p, seed):
    """Triton takes |signed word| as the uniform number, of negative ones the complement."""
    word = philox(seed, len(x)).to(torch.int32).long()
    uniform = torch.where(word < 0, -word - 1, word).double() * 4.6566127342e-10
    return torch.where(uniform > p, x.double() / (1 - p), 0.0)


@triton.jit
def _assembly(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, other=0)
    w = tl.inline_asm_elementwise("v_mad_u32_u24 $0, $1, 3, $1", "=v,v", [v], tl.int32, True, 1)
    tl.store(out + at, w, at < n)


def assembly(x):
    out = torch.empty_like(x)
    _assembly[(triton.cdiv(len(x), 128),)](x, out, len(x), 128)
    return out


@triton.jit
def _numbers(out, BLOCK: tl.constexpr):
    """Which work-group of how many, in three dimensions."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    at = tl.arange(0, BLOCK)
    number = (z * ny + y) * nx + x
    tl.store(out + number * BLOCK + at, x + 100 * y + 10_000 * z + 1_000_000 * (nx + ny + nz) + at * 0)


def numbers(nx, ny, nz):
    out = torch.empty(nz, ny, nx, 32, dtype=torch.int32)
    _numbers[(nx, ny, nz)](out, 32, num_warps=1)
    return out[..., 0]


def numbers_reference(nx, ny, nz):
    z, y, x = torch.meshgrid(torch.arange(nz), torch.arange(ny), torch.arange(nx), indexing="ij")
    return (x + 100 * y + 10_000 * z + 1_000_000 * (nx + ny + nz)).int()


@triton.jit
def _scalars(out, a, b, c, d, e, f):
    """Arguments of every type, one a register or two."""
    tl.store(out, a.to(tl.float64))
    tl.store(out + 1, b.to(tl.float64))
    tl.store(out + 2, c.to(tl.float64))
    tl.store(out + 3, d.to(tl.float64))
    tl.store(out + 4, e.to(tl.float64))
    tl.store(out + 5, f.to(tl.float64))


def scalars(values):
    out = torch.empty(6, dtype=torch.float64)
    _scalars[(1,)](out, *values, num_warps=1)
    return out


def matrices_of_one_scale(g: torch.Generator):
    return {"x": (normal(g, 2, 64, 64) / 8).half()}


CASES = (
    Case("collatz", lambda g: {"x": integers(g, 1, 200, 150)}, collatz, collatz_reference),
    Case("calls", lambda g: {"x": normal(g, 30)}, calls, calls_reference, 1e-5, 1e-5, "a few roundings of float32"),
    Case("spilled", matrices_of_one_scale, spilled, spilled_reference, 2e-3, 2e-2,
         "an intermediate value may round the other way"),
    Case("early_end", lambda g: {"x": normal(g, 6, 100), "lengths": torch.tensor([5, 0, 100, 32, 33, 0]).int()}, early,
         early_reference, 1e-5, 1e-5, "sums of float32 in another order"),
    Case("exchange", lambda g: {"x": integers(g, 0, 99, 3, 256)}, exchange, lambda x: (x + 3).flip(1)),
    Case("philox", lambda g: {"seed": 123_456_789_012, "n": 300}, random, philox),
    Case("dropout", lambda g: {"x": normal(g, 400), "p": 0.3, "seed": 77}, dropout, dropout_reference, 1e-6, 1e-9,
         "one division in float32"),
    Case("inline_assembly", lambda g: {"x": integers(g, 0, 2**20, 200)}, assembly,
         lambda x: (x & 0xFFFFFF) * 3 + x),
    Case("program_numbers", lambda g: {"nx": 3, "ny": 4, "nz": 2}, numbers, numbers_reference),
    Case("scalar_arguments", lambda g: {"values": (2**40 + 3, -7, 2.5, True, 2**63, 12)}, scalars,
         lambda values: torch.tensor([float(value) for value in values], dtype=torch.float64)),
)  # fmt: skip
