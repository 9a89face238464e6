"""Batched bfloat16 matrix product on the matrix unit, summed in fp32 and rounded once. Most traffic is the result.

With many rows, NVIDIA's shared memory holds all of a batch's weights: a program loads them once and walks over the row
tiles, whose next ones are on their way while the result of one is stored. Else programs take a tile each, the column
tiles of one row tile in turn, so that its rows come from memory once and the weights stay in the cache.
"""

import torch
import triton
import triton.language as tl

ROWS, COLUMNS, DEPTH, WARPS = 64, 128, 128, 4  # of a tile
WALK_ROWS, WALK_DEPTH, WALK_WIDTH = 64, 128, 512  # of a tile and of the weights that shared memory holds
MANY = 1024  # rows


@triton.jit
def walk(
    x, weight, y, rows, tiles, DEPTH: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, SPLIT: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Every SPLIT-th of ``tiles`` row tiles of one batch: x [rows, DEPTH], weight [DEPTH, WIDTH], y [rows, WIDTH]."""
    batch = (tl.program_id(0) // SPLIT).to(tl.int64)
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, WIDTH)[None, :]
    depth = tl.arange(0, DEPTH)
    right = tl.load(weight + batch * (DEPTH * WIDTH) + depth[:, None] * WIDTH + column)
    left = x + batch * rows * DEPTH + row * DEPTH + depth[None, :]
    out = y + batch * rows * WIDTH + row * WIDTH + column
    for tile in tl.range(tl.program_id(0) % SPLIT, tiles, SPLIT, num_stages=STAGES):
        here = row < rows - tile * ROWS
        total = tl.dot(tl.load(left + tile * (ROWS * DEPTH), mask=here, other=0.0), right)
        tl.store(out + tile * (ROWS * WIDTH), total.to(tl.bfloat16), mask=here)


@triton.jit
def product(
    x, weight, y, rows, row_tiles, DEPTH_ALL: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """ROWS x COLUMNS of one batch of y [rows, WIDTH]; x: [rows, DEPTH_ALL], weight: [DEPTH_ALL, WIDTH]."""
    program = tl.program_id(0)
    column_tiles: tl.constexpr = (WIDTH + COLUMNS - 1) // COLUMNS
    batch = (program // (column_tiles * row_tiles)).to(tl.int64)
    row_tile = program // column_tiles % row_tiles
    row = tl.arange(0, ROWS)[:, None]
    column = program % column_tiles * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    depth = tl.arange(0, DEPTH)
    first = batch * rows + row_tile * ROWS
    here = row < rows - row_tile * ROWS
    across = None if WIDTH % COLUMNS == 0 else column < WIDTH
    left = x + first * DEPTH_ALL + row * DEPTH_ALL + depth[None, :]
    right = weight + batch * (DEPTH_ALL * WIDTH) + depth[:, None] * WIDTH + column
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, DEPTH_ALL, DEPTH):
        if DEPTH_ALL % DEPTH == 0:
            a = tl.load(left + start, mask=here, other=0.0)
            b = tl.load(right + start * WIDTH, mask=across, other=None if WIDTH % COLUMNS == 0 else 0.0)
        else:
            a = tl.load(left + start, mask=here & (depth < DEPTH_ALL - start)[None, :], other=0.0)
            b = tl.load(
                right + start * WIDTH, mask=(column < WIDTH) & (depth < DEPTH_ALL - start)[:, None], other=0.0
            )  # fmt: skip
        total = tl.dot(a, b, total)
    out = y + first * WIDTH + row * WIDTH + column
    tl.store(out, total.to(tl.bfloat16), mask=here if WIDTH % COLUMNS == 0 else here & (column < WIDTH))


def on_nvidia(tensor):
    """Whether the card is NVIDIA's. Not asked of a CPU, where Triton has no driver to ask."""
    return tensor.is_cuda and triton.runtime.driver.active.get_current_target().backend == "cuda"


def run(x, weight):
    batches, rows, depth = x.shape
    width = weight.shape[2]
    y = torch.empty((batches, rows, width), dtype=torch.bfloat16, device=x.device)
    if rows >= MANY and (depth, width) == (WALK_DEPTH, WALK_WIDTH) and on_nvidia(x):
        # Programs of a batch, stages of the loads, waves.
        split, stages, warps = (1, 4, 8) if rows <= 4 * MANY else (2, 3, 16)
        tiles = triton.cdiv(rows, WALK_ROWS)
        walk[(batches * split,)](
            x, weight, y, rows, tiles, depth, width, WALK_ROWS, split, stages, num_warps=warps
        )  # fmt: skip
        return y
    tile = tuple(
        max(16, min(most, triton.next_power_of_2(size)))
        for most, size in ((ROWS, rows), (COLUMNS, width), (DEPTH, depth))
    )
    tiles = triton.cdiv(rows, tile[0])
    warps = max(1, min(WARPS, WARPS * tile[0] * tile[1] // (ROWS * COLUMNS)))
    product[(batches * tiles * triton.cdiv(width, tile[1]),)](
        x, weight, y, rows, tiles, depth, width, *tile, num_warps=warps, num_stages=1
    )
    return y
