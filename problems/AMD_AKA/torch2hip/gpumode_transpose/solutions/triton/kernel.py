"""Two axes of a 4-D tensor swapped into a contiguous copy, float32: rows of the last axis move as they are.

A work-group copies rows that follow each other in the result; where a row came from is worked out once a row. Swapping
the last axis is right as well, but then loads are no longer of neighbours.
"""

import torch
import triton
import triton.language as tl

TILE = 1024  # elements a work-group of two waves: four loads of 128 bits a lane


@triton.jit
def copy(
    x, y, rows, b, c, d: tl.constexpr, stride_a, stride_b, stride_c, stride_d, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    EVEN: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """ROWS rows of the result [a, b, c, d], d <= BLOCK; x has the strides, the first three in UNIT.

    EVEN: BLOCK is d and ROWS divides rows.
    """
    first = tl.program_id(0) * ROWS
    row = first + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = None if EVEN else (row < rows) & (column < d)
    upper = row // c
    source = (upper // b).to(tl.int64) * stride_a + (upper % b).to(tl.int64) * stride_b
    source += (row % c).to(tl.int64) * stride_c
    value = tl.load(x + source * UNIT + column * stride_d, mask=inside)
    tl.store(y + row.to(tl.int64) * d + column, value, mask=inside)


def run(input, dim1, dim2):
    view = input.transpose(dim1, dim2)
    y = torch.empty(view.shape, dtype=input.dtype, device=input.device)
    rows, (_, b, c, d) = view.numel() // view.shape[3], view.shape
    block = triton.next_power_of_2(d)
    group = max(1, TILE // block)
    even = block == d and rows % group == 0
    *steps, step = view.stride()
    # The factor tells the compiler that rows begin at multiples of 128 bits.
    unit = 4 if all(stride % 4 == 0 for stride in steps) else 1
    steps = [stride // unit for stride in steps]
    copy[(triton.cdiv(rows, group),)](input, y, rows, b, c, d, *steps, step, group, block, even, unit, num_warps=2)
    return y
