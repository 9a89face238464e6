"""Row softmax, float32: a row is loaded once, stays in registers, and is stored once.

Rows of up to 1024 elements belong to one wave, which needs no barrier; longer ones to up to 16 waves. Rows that do not
fit the registers are cut into pieces: a first kernel takes each piece's maximum and sum of exponentials, a second one
combines them and writes. It reads the pieces again, out of the caches where all rows together fit there.
"""

import torch
import triton
import triton.language as tl

LONGEST = 32768  # elements of a row in registers: 64 a lane of 16 waves
WAVE = 1024  # elements a wave: 32 a lane, eight loads of 128 bits
PIECE = 2048  # elements a work-group of a row that is cut
ENOUGH = 256  # work-groups; more rows a group only beyond
LOG2_E = tl.constexpr(1.4426950408889634)  # exp2 is one instruction


@triton.jit
def whole_rows(x, y, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """ROWS rows of n <= BLOCK elements. EVEN: n is BLOCK and ROWS divides rows."""
    first = tl.program_id(0) * ROWS
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    start = first.to(tl.int64) * n
    offset = row * n + column
    inside = None if EVEN else (row < rows - first) & (column < n)
    value = tl.load(x + start + offset, mask=inside, other=None if EVEN else float("-inf"))
    power = tl.exp2((value - tl.max(value, axis=1, keep_dims=True)) * LOG2_E)
    inverse = 1.0 / tl.sum(power, axis=1, keep_dims=True)
    tl.store(y + start + offset, power * inverse, mask=inside)


@triton.jit
def piece_sums(x, high, total, n, pieces, PIECE: tl.constexpr, EVEN: tl.constexpr):
    """Maximum of one piece, and sum of exp(x - maximum). EVEN: PIECE divides n."""
    program = tl.program_id(0)
    piece = program % pieces
    start = (program // pieces).to(tl.int64) * n + piece * PIECE
    column = tl.arange(0, PIECE)
    inside = None if EVEN else column < n - piece * PIECE
    value = tl.load(x + start + column, mask=inside, other=None if EVEN else float("-inf"))
    largest = tl.max(value, axis=0)
    tl.store(high + program, largest)
    tl.store(total + program, tl.sum(tl.exp2((value - largest) * LOG2_E), axis=0))


@triton.jit
def finish_pieces(x, y, high, total, n, pieces, PIECE: tl.constexpr, PIECES: tl.constexpr, EVEN: tl.constexpr):
    """Softmax of one piece from the sums of all pieces of its row; PIECES >= pieces."""
    program = tl.program_id(0)
    row, piece = program // pieces, program % pieces
    start = row.to(tl.int64) * n + piece * PIECE
    column = tl.arange(0, PIECE)
    inside = None if EVEN else column < n - piece * PIECE
    # Asked for first: it takes longer than the sums, which are in a cache.
    value = tl.load(x + start + column, mask=inside, other=None if EVEN else float("-inf"))
    other = tl.arange(0, PIECES)
    highs = tl.load(high + row * pieces + other, mask=other < pieces, other=float("-inf"))
    totals = tl.load(total + row * pieces + other, mask=other < pieces, other=0.0)
    largest = tl.max(highs, axis=0)
    inverse = 1.0 / tl.sum(totals * tl.exp2((highs - largest) * LOG2_E), axis=0)
    tl.store(y + start + column, tl.exp2((value - largest) * LOG2_E) * inverse, mask=inside)


def run(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    if n > LONGEST:
        pieces = triton.cdiv(n, PIECE)
        high, total = torch.empty((2, rows, pieces), dtype=torch.float32, device=x.device)
        grid, even = (rows * pieces,), n % PIECE == 0
        piece_sums[grid](x, high, total, n, pieces, PIECE, even)
        finish_pieces[grid](x, y, high, total, n, pieces, PIECE, triton.next_power_of_2(pieces), even)
        return y
    block = triton.next_power_of_2(n)
    group = max(1, 128 // block)
    while group * block < WAVE and rows >= 2 * group * ENOUGH:
        group *= 2
    even = n == block and rows % group == 0
    whole_rows[(triton.cdiv(rows, group),)](
        x, y, rows, n, group, block, even, num_warps=max(1, min(16, block // WAVE))
    )  # fmt: skip
    return y
