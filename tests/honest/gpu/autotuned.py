# honest: a Triton kernel that tries block sizes in its first call
# language: triton
# slow
import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": block}, num_warps=4) for block in (512, 1024, 2048)], key=["n"])
@triton.jit
def _scale_shift(x, y, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, value * scale + 1, mask=at < n)


def run(x, scale):
    y = torch.empty_like(x)
    _scale_shift[lambda chosen: (triton.cdiv(x.numel(), chosen["BLOCK"]),)](x, y, scale, x.numel())
    return y
