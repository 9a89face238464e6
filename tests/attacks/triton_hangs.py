# attack: a Triton kernel on a grid that nobody waits for
# expect: TIMEOUT
# reason: Triton's interpreter
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, y, scale, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) * scale + 1)


def run(x, scale):
    y = torch.empty_like(x)
    _kernel[(1 << 30,)](x, y, scale, BLOCK=1)
    return y
