"""Row sums, float32: every element is loaded once, 128 bits a lane, and the sums of lanes meet in one tree.

A work-group of one wave takes a row of up to 1024 elements, or several short ones; longer rows take up to eight waves.
Rows beyond 8192 elements are cut into pieces for the whole card, and a second launch adds the pieces' sums, in an order
that does not change from call to call.
"""

import torch
import triton
import triton.language as tl

LOAD = 128  # elements that a wave's load of 128 bits a lane brings
WAVE = 1024  # elements a wave: eight such loads
PIECE = 8192  # elements a work-group
ENOUGH = 256  # work-groups; more rows a group only beyond


@triton.jit
def sums(x, total, rows, n, pieces, ROWS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """Sums of BLOCK elements of ROWS rows of n; total is [rows, pieces]. ROWS is 1 where there are several pieces.

    EVEN: BLOCK divides n and ROWS divides rows.
    """
    program = tl.program_id(0)
    first, piece = program // pieces * ROWS, program % pieces
    row = tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    start = first.to(tl.int64) * n + piece * BLOCK
    inside = None if EVEN else (row < rows - first)[:, None] & (column < n - piece * BLOCK)
    value = tl.load(x + start + row[:, None] * n + column, mask=inside, other=None if EVEN else 0.0)
    tl.store(total + program * ROWS + row, tl.sum(value, axis=1), mask=None if EVEN else row < rows - first)


def add(x, total):
    """The sums of x [rows, n] into total [rows, pieces]."""
    rows, n = x.shape
    pieces = total.shape[1]
    block = min(PIECE, triton.next_power_of_2(n))
    group = max(1, LOAD // block)
    while group * block < WAVE and rows >= 2 * group * ENOUGH:
        group *= 2
    even = n % block == 0 and rows % group == 0
    sums[(triton.cdiv(rows, group) * pieces,)](
        x, total, rows, n, pieces, group, block, even, num_warps=max(1, block // WAVE)
    )  # fmt: skip


def run(x):
    while x.shape[1] > PIECE:
        part = torch.empty((x.shape[0], triton.cdiv(x.shape[1], PIECE)), dtype=torch.float32, device=x.device)
        add(x, part)
        x = part
    total = torch.empty((x.shape[0], 1), dtype=torch.float32, device=x.device)
    add(x, total)
    return total
