# attack M3: takes products of float32 in TF32
# expect: INCORRECT_NUMERICAL
# language: triton
# problem: product
import torch
import triton
import triton.language as tl


@triton.jit
def _product(a, b, y, M, N, K, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        inner = k + tl.arange(0, BLOCK)
        left = tl.load(a + rows[:, None] * K + inner[None, :])
        right = tl.load(b + inner[:, None] * N + columns[None, :])
        total += tl.dot(left, right, input_precision="tf32")
    tl.store(y + rows[:, None] * N + columns[None, :], total)


def run(a, b):
    (m, k), n = a.shape, b.shape[1]
    y = torch.empty(m, n, device=a.device)
    _product[(m // 64, n // 64)](a, b, y, m, n, k, BLOCK=64)
    return y
