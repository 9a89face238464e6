# honest: a Triton kernel
# language: triton
import torch
import triton
import triton.language as tl


@triton.jit
def _scale_shift(x, y, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, value * scale + 1, mask=at < n)


def run(x, scale):
    y = torch.empty_like(x)
    _scale_shift[(triton.cdiv(x.numel(), 1024),)](x, y, scale, x.numel(), BLOCK=1024)
    return y
