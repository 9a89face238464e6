"""Triton kernels with one fault each; RIGHT is the twin without it. A line that ends with FAULT and a name is where the
emulator is to find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _no_mask_load(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if RIGHT:
        v = tl.load(x + at, at < n)
    else:
        v = tl.load(x + at)  # FAULT no_mask_load
    tl.store(y + at, v * 2, at < n)


@triton.jit
def _no_mask_store(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, other=0.0)
    if RIGHT:
        tl.store(y + at, v * 2, at < n)
    else:
        tl.store(y + at, v * 2)  # FAULT no_mask_store


@triton.jit
def _one_too_many(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n if RIGHT else at <= n
    tl.store(y + at, tl.load(x + at, at < n) * 2, inside)  # FAULT one_too_many


@triton.jit
def _before_start(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """The mean of three neighbours; the first one has none on its left."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (at < n) & (at > 0) if RIGHT else at < n
    left = tl.load(x + at - 1, inside, other=0.0)  # FAULT before_start
    right = tl.load(x + at + 1, at + 1 < n, other=0.0)
    tl.store(y + at, (left + tl.load(x + at, at < n) + right) / 3, at < n)


@triton.jit
def _wrong_pitch(x, y, n, pitch, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of x follow each other; the kernel takes them for padded ones."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * pitch + at, at < n, other=0.0)  # FAULT wrong_pitch
    tl.store(y + row, tl.sum(v, 0))


@triton.jit
def _no_mask_of_k(a, b, c, K, RIGHT: tl.constexpr, B: tl.constexpr):
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        ks = k + tl.arange(0, B)
        if RIGHT:
            x = tl.load(a + rows[:, None] * K + ks[None, :], (ks < K)[None, :], other=0.0)
            y = tl.load(b + ks[:, None] * B + columns[None, :], (ks < K)[:, None], other=0.0)
        else:
            x = tl.load(a + rows[:, None] * K + ks[None, :], (ks < K)[None, :], other=0.0)
            y = tl.load(b + ks[:, None] * B + columns[None, :])  # FAULT no_mask_of_k
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * B + columns[None, :], total)


@triton.jit
def _token_too_large(table, tokens, out, rows, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    token, at = tl.load(tokens + tl.program_id(0)), tl.arange(0, BLOCK)
    inside = (at < n) & (token < rows) if RIGHT else at < n
    v = tl.load(table + token * n + at, inside, other=0.0)  # FAULT token_too_large
    tl.store(out + tl.program_id(0) * n + at, v, at < n)


@triton.jit
def _bin_too_many(x, bins, n, count, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, other=0)
    inside = (at < n) & (v < count) if RIGHT else at < n
    tl.atomic_add(bins + v, 1, inside)  # FAULT bin_too_many


@triton.jit
def _no_atomic(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=0.0)
    if RIGHT:
        tl.atomic_add(y + at, v, at < n)
    else:
        tl.store(y + at, tl.load(y + at, at < n) + v, at < n)  # FAULT no_atomic


@triton.jit
def _split_without_atomic(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """Work-groups share a row and each stores its part as the whole sum."""
    row, part = tl.program_id(0), tl.program_id(1)
    at = part * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + row * n + at, at < n, other=0.0), 0)
    if RIGHT:
        tl.atomic_add(y + row, total)
    else:
        tl.store(y + row, total)  # FAULT split_without_atomic


@triton.jit
def _no_barrier(x, between, y, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    base, at = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    tl.store(between + base + at, tl.load(x + base + at) + 1)
    if RIGHT:
        tl.debug_barrier()
    tl.store(y + base + at, tl.load(between + base + BLOCK - 1 - at))  # FAULT no_barrier


@triton.jit
def _in_place(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """y begins one value behind x in the same memory."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)  # FAULT in_place


@triton.jit
def _lock_too_short(x, y, lock, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """The lock is given back before the sum is stored."""
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + at, at < n, other=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    v += tl.load(y + at, at < n)  # FAULT lock_too_short
    if RIGHT:
        tl.store(y + at, v, at < n)
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)
    else:
        tl.atomic_xchg(lock, 0)
        tl.store(y + at, v, at < n)


@triton.jit
def _no_lock_at_all(x, y, count, blocks, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """The last work-group adds up; it counts itself before its part is stored."""
    block, at = tl.program_id(0), tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + block * BLOCK + at), 0)
    if RIGHT:
        tl.store(y + 1 + block, part)
        tl.debug_barrier()
    last = tl.atomic_add(count, 1) == blocks - 1
    if not RIGHT:
        tl.store(y + 1 + block, part)
    if last:
        tl.debug_barrier()
        p = tl.arange(0, 16)
        tl.store(y, tl.sum(tl.load(y + 1 + p, p < blocks, other=0.0, volatile=True), 0))  # FAULT no_lock_at_all


@triton.jit
def _writes_input(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n) * 2
    if not RIGHT:
        tl.store(x + at, v, at < n)  # FAULT writes_input
    tl.store(y + at, v, at < n)


@triton.jit
def _not_zeroed(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """Adds to a result that nobody set to zero."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n)
    v += tl.load(y + at, at < n)  # FAULT not_zeroed
    tl.store(y + at, v, at < n)


@triton.jit
def _wrong_start(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """The largest of negative values, with 0 in the place of those that are not there."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=-float("inf") if RIGHT else 0.0)
    tl.store(y + row, tl.max(v, 0))


@triton.jit
def _wrong_sum(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """A sum of many values in float16."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32 if RIGHT else tl.float16)
    for k in range(0, n, BLOCK):
        total += tl.load(x + row * n + k + at, k + at < n, other=0.0).to(total.dtype)
    tl.store(y + row, tl.sum(total.to(tl.float32), 0))


@triton.jit
def _transposed(x, y, N: tl.constexpr, RIGHT: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at[:, None] * N + at[None, :])
    tl.store(y + at[None, :] * N + at[:, None], v if RIGHT else tl.trans(v))


@triton.jit
def _waits_for_ever(flag, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """The flag is set only by a work-group that the grid does not have."""
    group = tl.program_id(0)
    if group == (0 if RIGHT else tl.num_programs(0)):
        tl.atomic_xchg(flag, 1)
    while tl.atomic_add(flag, 0) == 0:
        pass
    tl.store(y + group, 1.0)


@triton.jit
def _scalar_in_place(x, y, n, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """All waves take the offset that one of them then changes."""
    group, at = tl.program_id(0), tl.arange(0, BLOCK)
    first = tl.load(x + group)
    if RIGHT:
        tl.debug_barrier()
    tl.store(x + group, first + 1)  # FAULT scalar_in_place
    tl.store(y + group * BLOCK + at, first + at)


@dataclass(frozen=True)
class Fault:
    """``kind`` as in ``hip_faults``. ``tensors`` draws them by name; ``run(right, **tensors)`` gives the result, which
    is ``expected(**tensors)`` without the fault."""

    name: str
    kind: str
    tensors: Callable[[torch.Generator], dict[str, Any]]
    run: Callable[..., torch.Tensor]
    expected: Callable[..., torch.Tensor]
    read_only: str = ""


def simple(kernel: Any, n: int = 300, block: int = 128, outputs: int | None = None) -> Callable[..., torch.Tensor]:
    def run(right: bool, x: torch.Tensor) -> torch.Tensor:
        y = torch.full((outputs or n,), -1.0)
        kernel[(triton.cdiv(n, block),)](x, y, n, right, block)
        return y

    return run


def values(*shape: int):
    return lambda g: {"x": torch.randn(shape, generator=g)}


def by_rows(kernel: Any, start: float | None = 0.0, per_row: bool = True) -> Callable[..., torch.Tensor]:
    def run(right: bool, x: torch.Tensor) -> torch.Tensor:
        y = torch.full((len(x) if per_row else x.shape[1],), start)
        kernel[(len(x),)](x, y, x.shape[1], right, 128)
        return y

    return run


def wrong_pitch(right: bool, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(len(x))
    _wrong_pitch[(len(x),)](x, y, x.shape[1], x.shape[1] if right else 128, right, 128)
    return y


def no_mask_of_k(right: bool, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    c = torch.empty(len(a), 32)
    _no_mask_of_k[(len(a) // 32,)](a, b, c, a.shape[1], right, 32)
    return c


def token_too_large(right: bool, table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    out = torch.empty(len(tokens), table.shape[1])
    _token_too_large[(len(tokens),)](table, tokens, out, *table.shape, right, 64)
    return out


def embedded(table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return torch.cat([table, torch.zeros(1, table.shape[1])])[tokens]


def bin_too_many(right: bool, x: torch.Tensor) -> torch.Tensor:
    bins = torch.zeros(10, dtype=torch.int32)
    _bin_too_many[(triton.cdiv(len(x), 128),)](x, bins, len(x), 10, right, 128)
    return bins


def split_without_atomic(right: bool, x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(len(x))
    _split_without_atomic[(len(x), triton.cdiv(x.shape[1], 128))](x, y, x.shape[1], right, 128)
    return y


def no_barrier(right: bool, x: torch.Tensor) -> torch.Tensor:
    between, y = torch.empty_like(x), torch.empty_like(x)
    _no_barrier[(len(x),)](x, between, y, right, x.shape[1])
    return y


def in_place(right: bool, x: torch.Tensor) -> torch.Tensor:
    memory = torch.cat([x, torch.zeros(1)])
    y = torch.zeros_like(x) if right else memory[1:]
    _in_place[(triton.cdiv(len(x), 128),)](memory, y, len(x), right, 128)
    return y


def lock_too_short(right: bool, x: torch.Tensor) -> torch.Tensor:
    y, lock = torch.zeros(x.shape[1], dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    _lock_too_short[(len(x),)](x, y, lock, x.shape[1], right, 128, num_warps=2)
    return y


def scalar_in_place(right: bool, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(len(x), 256)
    _scalar_in_place[(len(x),)](x, y, 256, right, 256)
    return y


def no_lock_at_all(right: bool, x: torch.Tensor) -> torch.Tensor:
    y, count, blocks = torch.zeros(17), torch.zeros(1, dtype=torch.int32), len(x) // 128
    _no_lock_at_all[(blocks,)](x, y, count, blocks, len(x), right, 128)
    return y[:1]


def not_zeroed(right: bool, x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros_like(x) if right else torch.empty_like(x)
    _not_zeroed[(triton.cdiv(len(x), 128),)](x, y, len(x), right, 128)
    return y


def transposed(right: bool, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _transposed[(1,)](x, y, len(x), right)
    return y


def waits_for_ever(right: bool, n: int) -> torch.Tensor:
    flag, y = torch.zeros(1, dtype=torch.int32), torch.zeros(n)
    _waits_for_ever[(n,)](flag, y, n, right, 128)
    return y


FAULTS = (
    Fault("no_mask_load", "out-of-bounds load", values(300), simple(_no_mask_load), lambda x: x * 2),
    Fault("no_mask_store", "out-of-bounds store", values(300), simple(_no_mask_store), lambda x: x * 2),
    Fault("one_too_many", "out-of-bounds store", values(300), simple(_one_too_many), lambda x: x * 2),
    Fault("before_start", "out-of-bounds load", values(300), simple(_before_start),
          lambda x: torch.nn.functional.avg_pool1d(x[None], 3, 1, 1)[0]),
    Fault("wrong_pitch", "out-of-bounds load", values(5, 100), wrong_pitch, lambda x: x.double().sum(1)),
    Fault("no_mask_of_k", "out-of-bounds load", lambda g: {"a": torch.randn(64, 50, generator=g).half(),
                                                           "b": torch.randn(50, 32, generator=g).half()},
          no_mask_of_k, lambda a, b: a.double() @ b.double()),
    Fault("token_too_large", "out-of-bounds load", lambda g: {"table": torch.randn(7, 50, generator=g),
                                                              "tokens": torch.tensor([3, 7, 0, 6])},
          token_too_large, embedded),
    Fault("bin_too_many", "out-of-bounds atomic",
          lambda g: {"x": torch.randint(0, 11, (300,), generator=g, dtype=torch.int32)}, bin_too_many,
          lambda x: torch.bincount(x, minlength=11)[:10].int()),
    Fault("no_atomic", "race", values(6, 100), by_rows(_no_atomic, per_row=False), lambda x: x.double().sum(0)),
    Fault("split_without_atomic", "race", values(3, 500), split_without_atomic, lambda x: x.double().sum(1)),
    Fault("no_barrier", "race", values(3, 256), no_barrier, lambda x: x.flip(1) + 1),
    Fault("in_place", "race", values(300), in_place, lambda x: x * 2),
    Fault("lock_too_short", "race",
          lambda g: {"x": torch.randint(-9, 9, (4, 100), generator=g, dtype=torch.int32)}, lock_too_short,
          lambda x: x.sum(0).int()),
    Fault("no_lock_at_all", "race", values(640), no_lock_at_all, lambda x: x.double().sum()[None]),
    Fault("scalar_in_place", "race", values(3), scalar_in_place, lambda x: x[:, None] + torch.arange(256)),
    Fault("writes_input", "read-only store", values(300), simple(_writes_input), lambda x: x * 2, "x"),
    Fault("not_zeroed", "uninitialised memory", values(300), not_zeroed, lambda x: x),
    Fault("wrong_start", "result", lambda g: {"x": -1 - torch.rand(5, 100, generator=g)}, by_rows(_wrong_start),
          lambda x: x.amax(1)),
    Fault("wrong_sum", "result", lambda g: {"x": 100 + torch.rand(3, 9000, generator=g).half()}, by_rows(_wrong_sum),
          lambda x: x.double().sum(1)),
    Fault("transposed", "result", values(32, 32), transposed, lambda x: x.t()),
    Fault("waits_for_ever", "limit", lambda g: {"n": 3}, waits_for_ever, lambda n: torch.ones(n)),
)  # fmt: skip
