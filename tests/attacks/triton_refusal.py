# attack: a Triton kernel with a wrong result behind an operation that the interpreter refuses; no verdict is no pass
# expect: UNSUPPORTED
# reason: interpreter
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0.0)
    value = tl.inline_asm_elementwise("add.f32 $0, $1, $1;", "=r,r", [value], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + i, value, mask=i < n)


def run(x, scale):
    y = torch.empty_like(x)
    _kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y
