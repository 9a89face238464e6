"""Linear layer, swish, bias and group normalisation in one kernel: nothing but the result is written.

A work-group's tile of the product holds whole groups of features, so that it normalises them in registers. The product
is float32's on the matrix unit: with 64 v = high + low, both float16, high * high + high * low + low * high are summed
in float32, and what is left out is below its rounding. Operands must stay below 1023, where 64 v leaves float16.
"""

import torch
import triton
import triton.language as tl

ROWS = 128
COLUMNS = 128
DEPTH = 16
BAND = 8  # tiles of rows that follow each other, so that they share their columns' weights in the cache
SCALE = tl.constexpr(64.0)
LOG2_E = tl.constexpr(1.4426950408889634)  # exp2 is one instruction


@triton.jit
def split(value):
    """High and low float16 of SCALE * value."""
    scaled = value * SCALE
    high = scaled.to(tl.float16)
    return high, (scaled - high.to(tl.float32)).to(tl.float16)


@triton.jit
def linear_swish_norm(
    x, weight, bias, extra, gain, shift, y, rows, row_tiles, DEPTH_ALL: tl.constexpr, WIDTH: tl.constexpr,
    GROUP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
    EVEN: tl.constexpr,
):  # fmt: skip
    """ROWS x COLUMNS of y [rows, WIDTH]; x is [rows, DEPTH_ALL]. GROUP divides COLUMNS. EVEN: ROWS divides rows."""
    program = tl.program_id(0)
    column_tiles: tl.constexpr = WIDTH // COLUMNS
    band = program // (BAND * column_tiles)
    height = min(row_tiles - band * BAND, BAND)
    row_tile = band * BAND + program % (BAND * column_tiles) % height
    column_tile = program % (BAND * column_tiles) // height
    row = row_tile * ROWS + tl.arange(0, ROWS)
    column = column_tile * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    inside = None if EVEN else (row < rows)[:, None]

    left = x + (row_tile * ROWS).to(tl.int64) * DEPTH_ALL
    left_place = tl.arange(0, ROWS)[:, None] * DEPTH_ALL + depth[None, :]
    right = weight + (column_tile * COLUMNS) * DEPTH_ALL
    right_place = tl.arange(0, COLUMNS)[None, :] * DEPTH_ALL + depth[:, None]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, DEPTH_ALL, DEPTH):
        left_high, left_low = split(tl.load(left + start + left_place, mask=inside, other=None if EVEN else 0.0))
        right_high, right_low = split(tl.load(right + start + right_place))
        total = tl.dot(left_high, right_high, total)
        total = tl.dot(left_high, right_low, total)
        total = tl.dot(left_low, right_high, total)

    value = total * (1.0 / (SCALE * SCALE)) + tl.load(bias + column)[None, :]
    value = value / (1.0 + tl.exp2(value * -LOG2_E)) + tl.load(extra + column)[None, :]
    groups = tl.reshape(value, (ROWS, COLUMNS // GROUP, GROUP))
    centred = groups - tl.sum(groups, axis=2, keep_dims=True) * (1.0 / GROUP)
    variance = tl.sum(centred * centred, axis=2, keep_dims=True) * (1.0 / GROUP)
    value = tl.reshape(centred * tl.rsqrt(variance + 1e-5), (ROWS, COLUMNS))
    value = value * tl.load(gain + column)[None, :] + tl.load(shift + column)[None, :]
    place = tl.arange(0, ROWS)[:, None] * WIDTH + column[None, :]
    tl.store(y + (row_tile * ROWS).to(tl.int64) * WIDTH + place, value, mask=inside)


def run(x, weight, bias, extra_bias, gn_weight, gn_bias, num_groups):
    (rows, depth), width = x.shape, weight.shape[0]
    group = width // num_groups
    if depth % DEPTH or width % COLUMNS or COLUMNS % group:
        raise ValueError(f"{depth} inputs, {width} features in {num_groups} groups: no whole tiles")
    y = torch.empty((rows, width), dtype=torch.float32, device=x.device)
    tiles = triton.cdiv(rows, ROWS)
    linear_swish_norm[(tiles * (width // COLUMNS),)](
        x, weight, bias, extra_bias, gn_weight, gn_bias, y, rows, tiles, depth, width, group, ROWS, COLUMNS, DEPTH,
        BAND, rows % ROWS == 0, num_warps=8, num_stages=2,
    )  # fmt: skip
    return y
