"""int8 quantisation of bfloat16 rows, a scale a row: a row is loaded once and stays in registers.

A work-group takes a row, 16 columns a lane: two loads and one store of 128 bits each.
"""

import torch
import triton
import triton.language as tl

LONGEST = 32768  # elements of a row: 64 a lane of 16 waves
LANE = 16  # codes a store of 128 bits


@triton.jit
def quantize(x, codes, scales, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """One row of n <= BLOCK elements. EVEN: n is BLOCK."""
    row = tl.program_id(0)
    start = row.to(tl.int64) * n
    column = tl.arange(0, BLOCK)
    inside = None if EVEN else column < n
    value = tl.load(x + start + column, mask=inside, other=None if EVEN else 0.0).to(tl.float32)
    largest = tl.max(tl.abs(value), axis=0)
    scale = tl.where(largest == 0.0, 1.0, tl.div_rn(largest, 127.0))
    # No element is beyond the largest: the quotient is at most 127 but for its rounding, which truncation takes off.
    code = tl.div_rn(value, scale).to(tl.int8)
    tl.store(codes + start + column, code, mask=inside)
    tl.store(scales + row, scale)


def run(input):
    rows, n = input.shape
    if n > LONGEST:
        raise ValueError(f"rows of {n} elements: at most {LONGEST}")
    codes = torch.empty((rows, n), dtype=torch.int8, device=input.device)
    scale = torch.empty((rows, 1), dtype=torch.float32, device=input.device)
    block = triton.next_power_of_2(n)
    warps = max(1, min(16, block // (32 * LANE)))
    quantize[(rows,)](input, codes, scale, n, block, n == block, num_warps=warps)
    return codes, scale
