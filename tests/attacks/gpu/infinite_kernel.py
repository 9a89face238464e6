# attack H17: a kernel that does not end (by itself: after 30 seconds)
# expect: TIMEOUT
# language: triton
# next
import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer


@triton.jit
def _forever(flag):
    start = globaltimer()
    waiting = tl.load(flag, volatile=True)
    while (waiting == 0) & (globaltimer() - start < 30_000_000_000):
        waiting = tl.load(flag, volatile=True)
    tl.store(flag, 1)


def run(x, scale):
    _forever[(1,)](torch.zeros(1, dtype=torch.int32, device="cuda"))
    return x * scale + 1
