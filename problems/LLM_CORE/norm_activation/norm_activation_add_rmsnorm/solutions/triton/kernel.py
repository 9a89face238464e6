"""Residual addition and RMS normalisation, bfloat16, fp32 inside: inputs are loaded once, results stored once.

The statistics are those of the fp32 sum, which a program keeps in registers. Short rows share a program, so that each
lane has a load of 128 bits.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-5)
LONGEST = 16384  # elements of a row in registers
WAVE = 1024  # elements a wave: 32 a lane, four loads of 128 bits of each input


@triton.jit
def add_rms_norm(x, residual, weight, y, total, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """ROWS rows of n <= BLOCK elements. EVEN: n is BLOCK and ROWS divides rows."""
    first = tl.program_id(0) * ROWS
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    start = first.to(tl.int64) * n
    offset = row * n + column
    inside = None if EVEN else (row < rows - first) & (column < n)
    left = tl.load(x + start + offset, mask=inside, other=None if EVEN else 0.0).to(tl.float32)
    right = tl.load(residual + start + offset, mask=inside, other=None if EVEN else 0.0).to(tl.float32)
    gain = tl.load(weight + column, mask=None if EVEN else column < n).to(tl.float32)
    value = left + right
    tl.store(total + start + offset, value.to(tl.bfloat16), mask=inside)
    inverse = tl.rsqrt(tl.sum(value * value, axis=1, keep_dims=True) / n + EPS)
    tl.store(y + start + offset, (value * inverse * gain).to(tl.bfloat16), mask=inside)


def run(x, residual, weight):
    rows, n = x.shape
    if n > LONGEST:
        raise ValueError(f"rows of {n} elements: at most {LONGEST}")
    y, total = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(n)
    group = max(1, WAVE // block)
    even = n == block and rows % group == 0
    add_rms_norm[(triton.cdiv(rows, group),)](
        x, residual, weight, y, total, rows, n, group, block, even, num_warps=max(1, min(16, group * block // WAVE))
    )  # fmt: skip
    return y, total
