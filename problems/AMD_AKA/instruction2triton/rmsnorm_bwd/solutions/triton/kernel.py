"""Gradients of RMS normalisation, float16, fp32 inside: input and upstream gradient are loaded once.

A work-group takes some rows one after the other, the next on its way while one is reduced in registers. Both row sums,
of x^2 and of x times the gradient of the normalised row, are taken together. The gain's gradient adds up in registers
over the rows; a second kernel adds what the work-groups leave, in an order that does not change from call to call. One
work-group writes it itself.
"""

import torch
import triton
import triton.language as tl

LONGEST = 8192  # elements of a row for 16 waves; twice that where rows are aligned, and twice again where each has one
MANY = 512  # rows from which four work-groups a compute unit share them, instead of two
COLUMNS = 64  # columns a work-group of the second kernel


@triton.jit
def rows_gradients(
    x, g, dy, dx, dg, rows, n, width, ROWS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr,
    ALIGNED: tl.constexpr,
):  # fmt: skip
    """Up to ROWS rows of n <= BLOCK elements; dg is [programs, width], width >= n.

    EVEN: n is BLOCK. ALIGNED: 8 divides n.
    """
    first = tl.program_id(0) * ROWS
    column = tl.arange(0, BLOCK)
    inside = None if EVEN else column < n
    zero = None if EVEN else 0.0
    # The gain takes the layout of the rows: a lane's columns lie side by side only where rows are aligned.
    fixed = column if ALIGNED else tl.max_contiguous(column, 1)
    gain = tl.load(g + fixed, mask=inside, other=zero).to(tl.float32)
    gain_gradient = tl.zeros((BLOCK,), tl.float32)
    end = min(first + ROWS, rows)
    start = first.to(tl.int64) * n
    next_x = tl.load(x + start + column, mask=inside, other=zero)
    next_dy = tl.load(dy + start + column, mask=inside, other=zero)
    for step in range(0, end - first):
        value, given = next_x.to(tl.float32), next_dy.to(tl.float32)
        # The next row is asked for before this one is reduced.
        if ROWS > 1:
            more = column < tl.where(first + step + 1 < end, n, 0)
            next_x = tl.load(x + start + n + column, mask=more, other=0.0)
            next_dy = tl.load(dy + start + n + column, mask=more, other=0.0)
        upstream = given * gain
        squares, products = tl.split(tl.sum(tl.join(value * value, upstream * value), axis=0))
        inverse = tl.rsqrt(squares / n)
        projection = inverse * inverse * products / n
        tl.store(dx + start + column, (inverse * (upstream - value * projection)).to(tl.float16), mask=inside)
        gain_gradient += given * (value * inverse)
        start += n
    tl.store(dg + tl.program_id(0) * width + fixed, gain_gradient.to(dg.dtype.element_ty), mask=inside)


@triton.jit
def add_gradients(part, dg, parts, n, width, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sums over the rows of part [parts, width], PARTS >= parts, of COLUMNS columns."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.arange(0, PARTS)
    value = tl.load(part + row[:, None] * width + column[None, :], mask=(row < parts)[:, None], other=0.0)
    tl.store(dg + column, tl.sum(value, axis=0).to(tl.float16), mask=column < n)


def run(x, g, grad_output):
    rows, n = x.shape
    group = triton.cdiv(rows, 128 if rows >= MANY else 64)
    longest = LONGEST * (1 if n % 8 else 2 if group > 1 else 4)
    if n > longest:
        raise ValueError(f"{rows} rows of {n} elements: at most {longest}")
    dx, dg = torch.empty_like(x), torch.empty_like(g)
    parts = triton.cdiv(rows, group)
    width = triton.cdiv(n, COLUMNS) * COLUMNS
    part = dg if parts == 1 else torch.empty((parts, width), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(n)
    rows_gradients[(parts,)](
        x, g, grad_output, dx, part, rows, n, width, group, block, n == block, n % 8 == 0,
        num_warps=max(1, min(16, block // 256)),
    )  # fmt: skip
    if parts > 1:
        add_gradients[(width // COLUMNS,)](
            part, dg, parts, n, width, triton.next_power_of_2(parts), COLUMNS, num_warps=4
        )  # fmt: skip
    return dx, dg
