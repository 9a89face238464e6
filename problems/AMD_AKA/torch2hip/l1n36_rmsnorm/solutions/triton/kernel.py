"""RMS normalisation of bfloat16 rows, fp32 inside: a row is loaded once, stays in registers, and is stored once.

Eight elements a lane and load of 128 bits. Rows of up to 1024 elements belong to one wave, which needs no barrier, and
share it where they are shorter than one load of the wave; longer ones belong to up to 16 waves.
"""

import torch
import triton
import triton.language as tl

LONGEST = 16384  # elements of a row: 32 a lane of 16 waves
LOAD = 256  # elements that a wave's load of 128 bits a lane brings
WAVE = 1024  # elements a wave
ENOUGH = 256  # work-groups; more rows a group only beyond


@triton.jit
def rms_norm(x, y, eps, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """ROWS rows of n <= BLOCK elements. EVEN: n is BLOCK and ROWS divides rows."""
    first = tl.program_id(0) * ROWS
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    start = first.to(tl.int64) * n
    offset = row * n + column
    inside = None if EVEN else (row < rows - first) & (column < n)
    value = tl.load(x + start + offset, mask=inside, other=None if EVEN else 0.0).to(tl.float32)
    mean_square = tl.sum(value * value, axis=1, keep_dims=True) / n
    tl.store(y + start + offset, (value * tl.rsqrt(mean_square + eps)).to(tl.bfloat16), mask=inside)


def run(x, eps):
    rows, n = x.shape
    if n > LONGEST:
        raise ValueError(f"rows of {n} elements: at most {LONGEST}")
    y = torch.empty_like(x)
    block = triton.next_power_of_2(n)
    group = max(1, LOAD // block)
    while group * block < WAVE and rows >= 2 * group * ENOUGH:
        group *= 2
    even = n == block and rows % group == 0
    rms_norm[(triton.cdiv(rows, group),)](
        x, y, eps, rows, n, group, block, even, num_warps=max(1, min(16, block // WAVE))
    )  # fmt: skip
    return y
