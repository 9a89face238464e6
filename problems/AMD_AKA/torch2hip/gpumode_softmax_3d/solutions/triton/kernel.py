"""Softmax along the last axis of a cube, float32: a row is loaded once, stays in registers, and is stored once.

A work-group is one wave, so that no reduction meets a barrier; short rows share it, several a load of 128 bits.
"""

import torch
import triton
import triton.language as tl

LONGEST = 2048  # elements of a row: 64 a lane of one wave
WAVE = 1024  # elements a wave, where rows are short: eight loads of 128 bits
ENOUGH = 256  # work-groups; more rows a group only beyond
LOG2_E = tl.constexpr(1.4426950408889634)  # exp2 is one instruction


@triton.jit
def softmax(x, y, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """ROWS rows of n <= BLOCK elements. EVEN: n is BLOCK and ROWS divides rows."""
    first = tl.program_id(0) * ROWS
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    start = first.to(tl.int64) * n
    offset = row * n + column
    inside = None if EVEN else (row < rows - first) & (column < n)
    value = tl.load(x + start + offset, mask=inside, other=None if EVEN else float("-inf"))
    power = tl.exp2((value - tl.max(value, axis=1, keep_dims=True)) * LOG2_E)
    inverse = 1.0 / tl.sum(power, axis=1, keep_dims=True)
    tl.store(y + start + offset, power * inverse, mask=inside)


def run(v, axis):
    n = v.shape[-1]
    if axis not in (-1, v.dim() - 1):
        raise ValueError(f"axis {axis}: only the last axis")
    if n > LONGEST:
        raise ValueError(f"rows of {n} elements: at most {LONGEST}")
    y = torch.empty_like(v)
    rows, block = v.numel() // n, triton.next_power_of_2(n)
    group = max(1, 128 // block)
    while group * block < WAVE and rows >= 2 * group * ENOUGH:
        group *= 2
    even = n == block and rows % group == 0
    softmax[(triton.cdiv(rows, group),)](v, y, rows, n, group, block, even, num_warps=1)
    return y
