# attack: a Triton kernel that leaves out the last block
# expect: INCORRECT_NUMERICAL
# reason: y
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, y, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * scale + 1, mask=i < n)


def run(x, scale):
    y = torch.empty_like(x)
    _kernel[(x.numel() // 256,)](x, y, scale, x.numel(), BLOCK=256)
    return y
