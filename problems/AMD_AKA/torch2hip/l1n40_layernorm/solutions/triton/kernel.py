"""Layer normalisation of float32 rows: a row is loaded once, stays in registers, and is stored once.

The variance is that of the differences from the mean, so that a large mean does not cancel it. Rows of up to 1024
elements belong to one wave, which needs no barrier; longer ones to up to 16 waves. Gain and shift come from a cache
after the first rows; short rows that share a wave share them too.
"""

import torch
import triton
import triton.language as tl

LONGEST = 16384  # elements of a row: 32 a lane of 16 waves
LOAD = 128  # elements that a wave's load of 128 bits a lane brings
WAVE = 1024  # elements a wave
ENOUGH = 256  # work-groups; more rows a group only beyond


@triton.jit
def layer_norm(x, weight, bias, y, eps, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """ROWS rows of n <= BLOCK elements. EVEN: n is BLOCK and ROWS divides rows."""
    first = tl.program_id(0) * ROWS
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    start = first.to(tl.int64) * n
    offset = row * n + column
    inside = None if EVEN else (row < rows - first) & (column < n)
    value = tl.load(x + start + offset, mask=inside, other=None if EVEN else 0.0)
    gain = tl.load(weight + column, mask=None if EVEN else column < n)
    shift = tl.load(bias + column, mask=None if EVEN else column < n)
    centred = value - tl.sum(value, axis=1, keep_dims=True) / n
    if not EVEN:
        centred = tl.where(inside, centred, 0.0)
    inverse = tl.rsqrt(tl.sum(centred * centred, axis=1, keep_dims=True) / n + eps)
    tl.store(y + start + offset, centred * inverse * gain + shift, mask=inside)


def run(x, weight, bias, eps):
    rows, n = x.shape
    if n > LONGEST:
        raise ValueError(f"rows of {n} elements: at most {LONGEST}")
    y = torch.empty_like(x)
    block = triton.next_power_of_2(n)
    group = max(1, LOAD // block)
    while group * block < WAVE and rows >= 2 * group * ENOUGH:
        group *= 2
    even = n == block and rows % group == 0
    layer_norm[(triton.cdiv(rows, group),)](
        x, weight, bias, y, eps, rows, n, group, block, even, num_warps=max(1, min(16, block // WAVE))
    )  # fmt: skip
    return y
