"""SiLU of a row's first half times its second half, bfloat16, fp32 inside: eight columns a lane, loads of 128 bits."""

import torch
import triton
import triton.language as tl

BLOCK = 1024  # results a work-group of four waves
LOG2_E = tl.constexpr(1.4426950408889634)  # exp2 is one instruction


@triton.jit
def silu_and_mul(x, y, half, blocks, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """BLOCK results of a row of ``half``, which has ``blocks`` of them. EVEN: BLOCK divides half."""
    program = tl.program_id(0)
    row, block = program // blocks, program % blocks
    column = block * BLOCK + tl.arange(0, BLOCK)
    inside = None if EVEN else column < half
    start = row.to(tl.int64) * half
    gate = tl.load(x + 2 * start + column, mask=inside).to(tl.float32)
    linear = tl.load(x + 2 * start + half + column, mask=inside).to(tl.float32)
    sigmoid = 1.0 / (1.0 + tl.exp2(gate * -LOG2_E))
    tl.store(y + start + column, (gate * sigmoid * linear).to(tl.bfloat16), mask=inside)


def run(input):
    rows, half = input.shape[0], input.shape[1] // 2
    y = torch.empty((rows, half), dtype=torch.bfloat16, device=input.device)
    blocks = triton.cdiv(half, BLOCK)
    silu_and_mul[(rows * blocks,)](input, y, half, blocks, BLOCK, half % BLOCK == 0, num_warps=4)
    return y
