# honest: float32 in three bfloat16 terms, each multiplied by a unit matrix in tl.dot: exact, where bfloat16 is bfloat16
# reason: not timed: Triton's interpreter
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, y, scale, n, SIDE: tl.constexpr):
    row = tl.arange(0, SIDE)[:, None]
    column = tl.arange(0, SIDE)[None, :]
    i = tl.program_id(0) * SIDE * SIDE + row * SIDE + column
    rest = tl.load(x + i, mask=i < n, other=0.0)
    one = tl.where(row == column, 1.0, 0.0).to(tl.bfloat16)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for _ in range(3):
        term = rest.to(tl.bfloat16)
        total = tl.dot(term, one, total)
        rest -= term.to(tl.float32)
    tl.store(y + i, total * scale + 1, mask=i < n)


def run(x, scale):
    y = torch.empty_like(x)
    _kernel[(triton.cdiv(x.numel(), 1024),)](x, y, scale, x.numel(), SIDE=32)
    return y
