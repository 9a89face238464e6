# honest: a Triton kernel with several configurations, on a grid that does not divide evenly
# reason: not timed: Triton's interpreter
import torch
import triton
import triton.language as tl


@triton.autotune(
    [triton.Config({"BLOCK": size}, num_warps=warps, num_stages=2) for size in (256, 512) for warps in (4, 8)],
    key=["n"],
)
@triton.jit
def _scale_shift(x, y, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, values * scale + 1, mask=i < n)


def run(x, scale):
    y = torch.empty_like(x)
    _scale_shift[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, scale, x.numel())
    return y
