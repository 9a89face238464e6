"""Batched bfloat16 linear layers on the matrix unit: summed in fp32, the bias added, rounded once.

With few tokens an expert the weights are nearly all the traffic: one tile holds all tokens, narrow in columns, so that
each weight is loaded once and every compute unit has several tiles in flight. With many the matrix unit is the limit.
"""

import torch
import triton
import triton.language as tl

FEW = 128  # tokens of one tile


@triton.jit
def linear(
    x, weight, bias, y, rows, row_tiles, DEPTH_ALL: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """ROWS x COLUMNS of one batch of y [rows, WIDTH]; x: [rows, DEPTH_ALL], weight: [WIDTH, DEPTH_ALL]."""
    program = tl.program_id(0)
    column_tiles: tl.constexpr = (WIDTH + COLUMNS - 1) // COLUMNS
    batch = (program // (column_tiles * row_tiles)).to(tl.int64)
    row_tile = program // column_tiles % row_tiles
    row = tl.arange(0, ROWS)[:, None]
    column = program % column_tiles * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    depth = tl.arange(0, DEPTH)
    first = batch * rows + row_tile * ROWS
    here = row < rows - row_tile * ROWS
    left = x + first * DEPTH_ALL + row * DEPTH_ALL + depth[None, :]
    right = weight + batch * (WIDTH * DEPTH_ALL) + column * DEPTH_ALL + depth[:, None]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, DEPTH_ALL, DEPTH):
        if DEPTH_ALL % DEPTH == 0 and WIDTH % COLUMNS == 0:
            a = tl.load(left + start, mask=here, other=0.0)
            b = tl.load(right + start)
        else:
            a = tl.load(left + start, mask=here & (depth < DEPTH_ALL - start)[None, :], other=0.0)
            b = tl.load(right + start, mask=(column < WIDTH) & (depth < DEPTH_ALL - start)[:, None], other=0.0)
        total = tl.dot(a, b, total)
    total += tl.load(bias + batch * WIDTH + column, mask=column < WIDTH, other=0.0).to(tl.float32)
    tl.store(y + first * WIDTH + row * WIDTH + column, total.to(tl.bfloat16), mask=here & (column < WIDTH))


def run(x, weight, bias):
    batches, rows, depth = x.shape
    width = weight.shape[1]
    y = torch.empty((batches, rows, width), dtype=torch.bfloat16, device=x.device)
    # Rows, columns and depth of a tile, waves, loads ahead.
    shape = (FEW, 64, 64, 4, 3) if rows <= FEW else (128, 128, 64, 8, 3)
    tile = tuple(max(16, min(most, triton.next_power_of_2(size))) for most, size in zip(shape, (rows, width, depth)))
    tiles = triton.cdiv(rows, tile[0])
    linear[(batches * tiles * triton.cdiv(width, tile[1]),)](
        x, weight, bias, y, rows, tiles, depth, width, *tile, num_warps=shape[3], num_stages=shape[4]
    )
    return y
