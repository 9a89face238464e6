"""Mean cross entropy of float32 logits: every logit is loaded once, and nothing but partial sums of losses is written.

A row stays in the registers of its program for its maximum and its sum of exponentials; the target's logit is loaded
again, from the cache. Few logits: a program takes a row, and a second kernel adds the losses. Many: a program takes
several rows, and the one that counts itself last adds what all have left, so that nothing waits for a second launch.
Sums have the same order in every call.
"""

import torch
import triton
import triton.language as tl

LONGEST = 32768  # classes: 64 a lane of 16 waves
WAVE = 512  # logits a wave: 16 a lane, four loads of 128 bits
MANY = 1 << 26  # logits, 256 MiB
ROWS = 16  # of a program, of many
LOSSES = 8192  # losses that a program adds at a time
LOG2_E = tl.constexpr(1.4426950408889634)  # exp2 and log2 are one instruction each
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def row_loss(x, targets, row, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """log sum exp(row) - row[target] of one row of n <= BLOCK logits. EVEN: n is BLOCK."""
    start = row.to(tl.int64) * n
    column = tl.arange(0, BLOCK)
    inside = None if EVEN else column < n
    target = tl.load(targets + row)
    value = tl.load(x + start + column, mask=inside, other=None if EVEN else float("-inf"))
    chosen = tl.load(x + start + target)
    high = tl.max(value, axis=0)
    total = tl.sum(tl.exp2((value - high) * LOG2_E), axis=0)
    return tl.log2(total) * LN_2 + (high - chosen)


@triton.jit
def losses_of_rows(x, targets, losses, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0)
    tl.store(losses + row, row_loss(x, targets, row, n, BLOCK, EVEN))


@triton.jit
def mean(losses, loss, count, rows, LOSSES: tl.constexpr):
    """Sum of ``count`` losses over ``rows``, by one program. Not from its compute unit's own cache, which does not see
    what others write.
    """
    total = tl.zeros((LOSSES,), tl.float32)
    for start in range(0, count, LOSSES):
        column = start + tl.arange(0, LOSSES)
        total += tl.load(losses + column, mask=column < count, other=0.0, cache_modifier=".cg")
    tl.store(loss, tl.sum(total, axis=0) / rows)


@triton.jit
def mean_loss(
    x, targets, losses, finished, loss, rows, n, programs, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    LOSSES: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """ROWS rows a program, and in the end the mean of all. finished: one int32, zero."""
    program = tl.program_id(0)
    total = 0.0
    for index in range(ROWS):
        row = program * ROWS + index
        if row < rows:
            total += row_loss(x, targets, row, n, BLOCK, EVEN)
    tl.store(losses + program, total)
    # Releases this program's sum, and for the last one acquires those of all.
    if tl.atomic_add(finished, 1, sem="acq_rel", scope="gpu") == programs - 1:
        mean(losses, loss, programs, rows, LOSSES)


def run(predictions, targets):
    rows, n = predictions.shape
    if n > LONGEST:
        raise ValueError(f"{n} classes: at most {LONGEST}")
    loss = torch.empty((), dtype=torch.float32, device=predictions.device)
    block = triton.next_power_of_2(n)
    warps = max(1, min(16, block // WAVE))
    together = ROWS if rows * n > MANY else 1
    programs = triton.cdiv(rows, together)
    losses = torch.empty((programs,), dtype=torch.float32, device=predictions.device)
    at_once = min(LOSSES, triton.next_power_of_2(programs))
    if together == 1:
        losses_of_rows[(rows,)](predictions, targets, losses, n, block, n == block, num_warps=warps)
        mean[(1,)](losses, loss, rows, rows, at_once, num_warps=16)
    else:
        finished = torch.zeros((1,), dtype=torch.int32, device=predictions.device)
        mean_loss[(programs,)](
            predictions, targets, losses, finished, loss, rows, n, programs, together, block, at_once, n == block,
            num_warps=warps,
        )  # fmt: skip
    return loss
