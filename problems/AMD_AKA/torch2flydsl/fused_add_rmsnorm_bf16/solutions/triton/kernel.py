"""Residual addition and RMS normalisation, bfloat16, fp32 inside: both rows are loaded once, both results stored once.

A work-group takes a row and keeps its sum, rounded to bfloat16, in registers: eight columns a lane and load of 128
bits. The statistics are those of the rounded sum.
"""

import torch
import triton
import triton.language as tl

LONGEST = 16384  # elements of a row: 32 a lane of 16 waves
LANES = 32


@triton.jit
def add_rms_norm(x, weight, residual, y, total, eps, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """One row of n <= BLOCK elements. EVEN: n is BLOCK."""
    start = tl.program_id(0).to(tl.int64) * n
    column = tl.arange(0, BLOCK)
    inside = None if EVEN else column < n
    left = tl.load(x + start + column, mask=inside, other=None if EVEN else 0.0).to(tl.float32)
    right = tl.load(residual + start + column, mask=inside, other=None if EVEN else 0.0).to(tl.float32)
    gain = tl.load(weight + column, mask=inside).to(tl.float32)
    rounded = (left + right).to(tl.bfloat16)
    tl.store(total + start + column, rounded, mask=inside)
    value = rounded.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(value * value, axis=0) / n + eps)
    tl.store(y + start + column, (value * inverse * gain).to(tl.bfloat16), mask=inside)


def run(input, weight, residual, eps):
    rows, n = input.shape
    if n > LONGEST:
        raise ValueError(f"rows of {n} elements: at most {LONGEST}")
    y, total = torch.empty_like(input), torch.empty_like(input)
    block = triton.next_power_of_2(n)
    # Few rows leave compute units idle: then all the waves that a load of 128 bits a lane leaves work for.
    each = 8 if rows < 64 else 16
    warps = max(1, min(16, block // (LANES * each)))
    add_rms_norm[(rows,)](input, weight, residual, y, total, eps, n, block, n == block, num_warps=warps)
    return y, total
