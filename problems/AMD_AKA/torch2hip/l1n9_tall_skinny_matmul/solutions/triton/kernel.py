"""fp32 product of a tall matrix with a small one: rows in tiles as wide as the result, so that A is read once.

The product runs on the matrix unit with split operands: 64 x = high + low, both fp16, 22 bits of x. high * high,
high * low and low * high are summed in fp32. The scale keeps low clear of fp16's subnormal numbers for |x| down to
2^-9; below that it loses bits, absolutely never more than 2^-31. |x| must stay below 1023, where 64 x leaves fp16.
"""

import torch
import triton
import triton.language as tl

# Few rows a program give every compute unit several; many rows split B less often.
CONFIGS = [
    triton.Config({"BLOCK_M": 64}, num_warps=4, num_stages=2),
    triton.Config({"BLOCK_M": 32}, num_warps=4, num_stages=2),
    triton.Config({"BLOCK_M": 32}, num_warps=2, num_stages=2),
    triton.Config({"BLOCK_M": 128}, num_warps=8, num_stages=2),
]

SCALE = tl.constexpr(64.0)


def _whole(args):
    """Whether the tiles cover the matrices without a rest, so that nothing needs a mask."""
    return all(args[axis] % args[f"BLOCK_{axis}"] == 0 for axis in ("M", "N", "K"))


@triton.jit
def _split(x):
    """Two fp16 terms of SCALE times an fp32 tensor: one instruction each, a multiply-add that rounds to fp16."""
    high = (x * SCALE).to(tl.float16)
    low = tl.fma(x, SCALE, -high.to(tl.float32)).to(tl.float16)
    return high, low


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"])
@triton.heuristics({"WHOLE": _whole})
@triton.jit
def _tall_matmul(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    WHOLE: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m.to(tl.int64)[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + n[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        if WHOLE:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < K - start), other=0.0)
            b = tl.load(b_ptrs, mask=(k[:, None] < K - start) & (n[None, :] < N), other=0.0)
        a_high, a_low = _split(a)
        b_high, b_low = _split(b)
        total = tl.dot(a_high, b_high, total)
        total = tl.dot(a_high, b_low, total)
        total = tl.dot(a_low, b_high, total)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    result = total * (1.0 / (SCALE * SCALE))
    out_ptrs = out_ptr + m.to(tl.int64)[:, None] * N + n[None, :]
    if WHOLE:
        tl.store(out_ptrs, result)
    else:
        tl.store(out_ptrs, result, mask=(m[:, None] < M) & (n[None, :] < N))


def run(A, B):
    M, K = A.shape
    N = B.shape[1]
    output = torch.empty((M, N), dtype=torch.float32, device=A.device)
    block_n = min(max(triton.next_power_of_2(N), 16), 128)
    block_k = min(max(triton.next_power_of_2(K), 16), 32)

    def grid(config):
        return triton.cdiv(M, config["BLOCK_M"]), triton.cdiv(N, block_n)

    _tall_matmul[grid](A, B, output, M, N, K, block_n, block_k)
    return output
