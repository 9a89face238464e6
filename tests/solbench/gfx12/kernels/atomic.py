"""Work-groups that share memory: locks, counters, extrema, returned values."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.solbench.gfx12.kernels.case import Case, integers, normal


@triton.jit
def _locked(x, out, lock, n, BLOCK: tl.constexpr):
    """One work-group at a time adds to ``out``, under a spin lock."""
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + at, at < n, other=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + at, tl.load(out + at, at < n) + v, at < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def locked(x):
    out, lock = torch.zeros(x.shape[1], dtype=x.dtype), torch.zeros(1, dtype=torch.int32)
    _locked[(len(x),)](x, out, lock, x.shape[1], 128)
    return out


@triton.jit
def _extrema(x, high, low, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n)
    tl.atomic_max(high + at % 7, v, at < n)
    tl.atomic_min(low + at % 7, v, at < n)


def extrema(x):
    limit = float("inf") if x.is_floating_point() else torch.iinfo(x.dtype).max
    least = -limit if x.is_floating_point() else torch.iinfo(x.dtype).min
    high, low = torch.full((7,), least, dtype=x.dtype), torch.full((7,), limit, dtype=x.dtype)
    _extrema[(triton.cdiv(len(x), 128),)](x, high, low, len(x), 128)
    return high, low


def extrema_reference(x):
    parts = [x[i::7] for i in range(7)]
    return torch.stack([p.amax() for p in parts]), torch.stack([p.amin() for p in parts])


@triton.jit
def _logic(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n)
    tl.atomic_and(out + at % 5, v, at < n)
    tl.atomic_or(out + 5 + at % 5, v, at < n)
    tl.atomic_xor(out + 10 + at % 5, v, at < n)


def logic(x):
    out = torch.tensor([-1] * 5 + [0] * 10, dtype=x.dtype)
    _logic[(triton.cdiv(len(x), 128),)](x, out, len(x), 128)
    return out


def logic_reference(x):
    out = [-1] * 5 + [0] * 10
    for i, v in enumerate(x.tolist()):
        out[i % 5] &= v
        out[5 + i % 5] |= v
        out[10 + i % 5] ^= v
    return torch.tensor(out, dtype=x.dtype)


@triton.jit
def _compact(x, out, count, n, BLOCK: tl.constexpr):
    """Positive values, at places that an atomic gives out; their order is open."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, other=-1.0)
    keep = v > 0
    inside = tl.cumsum(keep.to(tl.int32), 0) - 1
    base = tl.atomic_add(count, tl.sum(keep.to(tl.int32), 0))
    tl.store(out + base + inside, v, keep)


def compact(x):
    out, count = torch.zeros_like(x), torch.zeros(1, dtype=torch.int32)
    _compact[(triton.cdiv(len(x), 128),)](x, out, count, len(x), 128)
    return out[: int(count)].sort().values


@triton.jit
def _tickets(out, seen, n, BLOCK: tl.constexpr):
    """Each lane draws a number of its own."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = tl.atomic_add(out + at * 0, 1, at < n)
    tl.store(seen + number, 1, at < n)


def tickets(n):
    out, seen = torch.zeros(1, dtype=torch.int32), torch.zeros(n, dtype=torch.int32)
    _tickets[(triton.cdiv(n, 64),)](out, seen, n, 64)
    return out, seen


@triton.jit
def _add(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + at % 16, tl.load(x + at, at < n, other=0.0), at < n)


def added(x):
    out = torch.zeros(16, dtype=x.dtype)
    _add[(triton.cdiv(len(x), 128),)](x, out, len(x), 128)
    return out


def added_reference(x):
    out = torch.zeros(16, dtype=torch.float64)
    return out.index_add(0, torch.arange(len(x)) % 16, x.double())


@triton.jit
def _product_cas(x, out, n):
    """A product by compare and swap: no card multiplies atomically."""
    v = tl.load(x + tl.program_id(0))
    old = tl.load(out, volatile=True)
    done = False
    while not done:
        seen = tl.atomic_cas(out, old, old * v)
        done = seen == old
        old = seen


def product_cas(x):
    out = torch.ones(1, dtype=torch.int32)
    _product_cas[(len(x),)](x, out, len(x), num_warps=1)
    return out


@triton.jit
def _barrier(x, between, out, arrived, groups, BLOCK: tl.constexpr):
    """All work-groups wait for each other: each then reads what its neighbour wrote."""
    group, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(between + group * BLOCK + at, tl.load(x + group * BLOCK + at) * 2)
    tl.debug_barrier()
    tl.atomic_add(arrived, 1, sem="release")
    while tl.atomic_add(arrived, 0, sem="acquire") < groups:
        pass
    tl.debug_barrier()
    tl.store(out + group * BLOCK + at, tl.load(between + (group + 1) % groups * BLOCK + at))


def grid_barrier(x):
    between, out = torch.empty_like(x), torch.empty_like(x)
    _barrier[(len(x),)](x, between, out, torch.zeros(1, dtype=torch.int32), len(x), x.shape[1])
    return out


CASES = (
    Case("spin_lock", lambda g: {"x": integers(g, -99, 99, 6, 100)}, locked, lambda x: x.sum(0).int()),
    Case("extrema_f32", lambda g: {"x": normal(g, 500)}, extrema, extrema_reference),
    Case("extrema_i32", lambda g: {"x": integers(g, -(2**31), 2**31, 500)}, extrema, extrema_reference),
    Case("extrema_i64", lambda g: {"x": integers(g, -(2**62), 2**62, 500, dtype=torch.int64)}, extrema,
         extrema_reference),
    Case("logic_i32", lambda g: {"x": integers(g, -(2**31), 2**31, 300)}, logic, logic_reference),
    Case("logic_i64", lambda g: {"x": integers(g, -(2**62), 2**62, 300, dtype=torch.int64)}, logic, logic_reference),
    Case("compact", lambda g: {"x": normal(g, 500)}, compact, lambda x: x[x > 0].sort().values),
    Case("tickets", lambda g: {"n": 200}, tickets,
         lambda n: (torch.tensor([n], dtype=torch.int32), torch.ones(n, dtype=torch.int32))),
    Case("atomic_add_f16", lambda g: {"x": integers(g, -9, 9, 400).half()}, added, added_reference),
    Case("atomic_add_bf16", lambda g: {"x": integers(g, -4, 4, 300).bfloat16()}, added, added_reference),
    Case("atomic_add_f64", lambda g: {"x": normal(g, 400, dtype=torch.float64)}, added, added_reference, 1e-13, 1e-13,
         "sums of float64 in another order"),
    Case("atomic_add_i64", lambda g: {"x": integers(g, -(2**50), 2**50, 400, dtype=torch.int64)}, added,
         lambda x: torch.zeros(16, dtype=torch.int64).index_add(0, torch.arange(len(x)) % 16, x)),
    Case("product_by_cas", lambda g: {"x": integers(g, 1, 4, 8)}, product_cas, lambda x: x.prod()[None].int()),
    Case("grid_barrier", lambda g: {"x": normal(g, 5, 128)}, grid_barrier, lambda x: (x * 2).roll(-1, 0)),
)  # fmt: skip
