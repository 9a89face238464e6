"""Mean cross entropy of float32 logits: every logit is loaded once, and nothing but a loss a row is written.

A row stays in the registers of its work-group for its maximum and its sum of exponentials; rows of up to 1024 classes
belong to one wave, which needs no barrier, longer ones to up to 16. The target's logit is loaded again, from the cache.
A second kernel adds the losses, in an order that does not change from call to call.
"""

import torch
import triton
import triton.language as tl

LONGEST = 32768  # classes: 64 a lane of 16 waves
WAVE = 1024  # logits a wave: 32 a lane, eight loads of 128 bits
LOSSES = 4096  # losses that are added at a time
LOG2_E = tl.constexpr(1.4426950408889634)  # exp2 and log2 are one instruction each
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def row_losses(x, targets, losses, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """log sum exp(row) - row[target] of one row of n <= BLOCK logits. EVEN: n is BLOCK."""
    row = tl.program_id(0)
    start = row.to(tl.int64) * n
    column = tl.arange(0, BLOCK)
    inside = None if EVEN else column < n
    target = tl.load(targets + row)
    value = tl.load(x + start + column, mask=inside, other=None if EVEN else float("-inf"))
    chosen = tl.load(x + start + target)
    high = tl.max(value, axis=0)
    total = tl.sum(tl.exp2((value - high) * LOG2_E), axis=0)
    tl.store(losses + row, tl.log2(total) * LN_2 + (high - chosen))


@triton.jit
def mean(losses, loss, rows, LOSSES: tl.constexpr):
    """Mean of all losses, by one work-group."""
    total = tl.zeros((LOSSES,), tl.float32)
    for start in range(0, rows, LOSSES):
        column = start + tl.arange(0, LOSSES)
        total += tl.load(losses + column, mask=column < rows, other=0.0)
    tl.store(loss, tl.sum(total, axis=0) / rows)


def run(predictions, targets):
    rows, n = predictions.shape
    if n > LONGEST:
        raise ValueError(f"{n} classes: at most {LONGEST}")
    losses = torch.empty((rows,), dtype=torch.float32, device=predictions.device)
    loss = torch.empty((), dtype=torch.float32, device=predictions.device)
    block = triton.next_power_of_2(n)
    row_losses[(rows,)](
        predictions, targets, losses, n, block, n == block, num_warps=max(1, min(16, block // WAVE))
    )  # fmt: skip
    mean[(1,)](losses, loss, rows, LOSSES, num_warps=8)
    return loss
