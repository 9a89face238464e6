"""The kernel of product.hsaco and product.s: c = a b^T, 16 x 16, over N products, one wave.

Compiled by Triton 3.9.0 for gfx1200 as /candidate/product.py: f16 operands and an f32 result, N = 1024, one warp, one
stage, all pointers divisible by 16. A product of 16 x 16 x 16 is one WMMA: N / 16 = 64 of them run.
"""

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    for k in range(0, N, 16):
        x = tl.load(a + i[:, None] * N + (k + i)[None, :])
        y = tl.load(b + i[:, None] * N + (k + i)[None, :])
        acc = tl.dot(x, tl.trans(y), acc)
    tl.store(c + i[:, None] * 16 + i[None, :], acc)
