# attack M5: launches one block too few
# expect: INCORRECT_NUMERICAL
# language: triton
import torch
import triton
import triton.language as tl

_BLOCK = 1024


@triton.jit
def _scale_shift(x, y, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, value * scale + 1, mask=at < n)


def run(x, scale):
    y = torch.empty_like(x)
    _scale_shift[(triton.cdiv(x.numel(), _BLOCK) - 1,)](x, y, scale, x.numel(), BLOCK=_BLOCK)
    return y
