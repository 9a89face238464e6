"""Grouped bfloat16 matrix product on the matrix unit, summed in fp32 and rounded once: a group's weights for its part
of each token's row.

With few tokens the weights are nearly all the traffic: one tile holds all tokens, narrow in columns, so that each
weight is loaded once and every compute unit has several tiles in flight. With many the matrix unit is the limit.
"""

import torch
import triton
import triton.language as tl

# Rows, columns and depth of a tile, waves, stages of the loads.
FEW = (64, 64, 128, 4, 3)
SOME = (128, 64, 64, 8, 4)  # three tiles on their way: more than AMD's 64 KiB of LDS
SOME_AMD = (128, 64, 64, 4, 3)
MANY = (128, 128, 64, 8, 3)


@triton.jit
def product(
    x, weight, y, rows, row_tiles, GROUPS: tl.constexpr, DEPTH_ALL: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """ROWS x COLUMNS of one group of y [rows, GROUPS, WIDTH]; x is [rows, GROUPS, DEPTH_ALL], weight [GROUPS, WIDTH,
    DEPTH_ALL].
    """
    program = tl.program_id(0)
    column_tiles: tl.constexpr = (WIDTH + COLUMNS - 1) // COLUMNS
    group = (program // (column_tiles * row_tiles)).to(tl.int64)
    row_tile = program // column_tiles % row_tiles
    row = tl.arange(0, ROWS)[:, None]
    column = program % column_tiles * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    depth = tl.arange(0, DEPTH)
    first = (row_tile * ROWS).to(tl.int64)
    here = row < rows - row_tile * ROWS
    left = x + (first * GROUPS + group) * DEPTH_ALL + row * (GROUPS * DEPTH_ALL) + depth[None, :]
    right = weight + group * (WIDTH * DEPTH_ALL) + column * DEPTH_ALL + depth[:, None]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, DEPTH_ALL, DEPTH):
        if DEPTH_ALL % DEPTH == 0 and WIDTH % COLUMNS == 0:
            a = tl.load(left + start, mask=here, other=0.0)
            b = tl.load(right + start)
        else:
            a = tl.load(left + start, mask=here & (depth < DEPTH_ALL - start)[None, :], other=0.0)
            b = tl.load(right + start, mask=(column < WIDTH) & (depth < DEPTH_ALL - start)[:, None], other=0.0)
        total = tl.dot(a, b, total)
    out = y + (first * GROUPS + group) * WIDTH + row * (GROUPS * WIDTH) + column
    tl.store(out, total.to(tl.bfloat16), mask=here & (column < WIDTH))


def on_nvidia(tensor):
    """Whether the card is NVIDIA's. Not asked of a CPU, where Triton has no driver to ask."""
    return tensor.is_cuda and triton.runtime.driver.active.get_current_target().backend == "cuda"


def run(x, weight):
    rows, groups, depth = x.shape
    width = weight.shape[1]
    y = torch.empty((rows, groups, width), dtype=torch.bfloat16, device=x.device)
    if rows <= FEW[0]:
        shape = FEW
    elif rows <= SOME[0]:
        shape = SOME if on_nvidia(x) else SOME_AMD
    else:
        shape = MANY
    tile = tuple(max(16, min(most, triton.next_power_of_2(size))) for most, size in zip(shape, (rows, width, depth)))
    tiles = triton.cdiv(rows, tile[0])
    product[(groups * tiles * triton.cdiv(width, tile[1]),)](
        x, weight, y, rows, tiles, groups, depth, width, *tile, num_warps=shape[3], num_stages=shape[4]
    )
    return y
