"""SiLU of a row's first half times its second half, bfloat16, fp32 inside: two loads and a store of 128 bits a lane."""

import torch
import triton
import triton.language as tl

BLOCK = 2048  # results of a row that a program takes
WARPS = 4
LOG2_E = tl.constexpr(1.4426950408889634)  # exp2 is one instruction


@triton.jit
def swiglu(x, y, n, blocks, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """BLOCK results of a row of n, which has ``blocks`` of them. EVEN: BLOCK divides n."""
    program = tl.program_id(0)
    row, block = program // blocks, program % blocks
    column = block * BLOCK + tl.arange(0, BLOCK)
    inside = None if EVEN else column < n
    start = row.to(tl.int64) * n
    gate = tl.load(x + 2 * start + column, mask=inside).to(tl.float32)
    up = tl.load(x + 2 * start + n + column, mask=inside).to(tl.float32)
    result = gate / (1.0 + tl.exp2(gate * -LOG2_E)) * up
    tl.store(y + start + column, result.to(tl.bfloat16), mask=inside)


def run(x):
    rows, n = x.shape[0], x.shape[1] // 2
    y = torch.empty((rows, n), dtype=torch.bfloat16, device=x.device)
    block = min(BLOCK, triton.next_power_of_2(n))
    blocks = triton.cdiv(n, block)
    swiglu[(rows * blocks,)](x, y, n, blocks, block, n % block == 0, num_warps=max(1, WARPS * block // BLOCK))
    return y
