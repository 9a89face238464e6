"""bf16 matrix product on the matrix unit: output[m, n] = sum over k of A[m, k] * B[k, n], summed in fp32."""

import torch
import triton
import triton.language as tl


def _config(block_m, block_n, block_k, warps, stages):
    return triton.Config(
        {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}, num_warps=warps, num_stages=stages
    )


def _whole(args):
    """Whether the tiles cover the matrices without a rest, so that nothing needs a mask."""
    return all(args[axis] % args[f"BLOCK_{axis}"] == 0 for axis in ("M", "N", "K"))


# 32 compute units want 32 work-groups and more: small products are cut into small tiles with a deep K step, so that
# few trips hide the latency of memory. The larger tiles read each operand less often.
CONFIGS = [
    _config(64, 64, 64, 4, 2),
    _config(32, 32, 128, 4, 2),
    _config(16, 32, 128, 2, 2),
    _config(128, 64, 32, 4, 2),
    _config(128, 128, 32, 8, 2),
]


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"])
@triton.heuristics({"WHOLE": _whole})
@triton.jit
def _matmul(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WHOLE: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m.to(tl.int64)[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k.to(tl.int64)[:, None] * N + n[None, :]
    # One step fits 32 bits in any matrix that memory holds; the pointers themselves have 64.
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        if WHOLE:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < K - start), other=0.0)
            b = tl.load(b_ptrs, mask=(k[:, None] < K - start) & (n[None, :] < N), other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    out_ptrs = out_ptr + m.to(tl.int64)[:, None] * N + n[None, :]
    result = total.to(tl.bfloat16)
    if WHOLE:
        tl.store(out_ptrs, result)
    else:
        tl.store(out_ptrs, result, mask=(m[:, None] < M) & (n[None, :] < N))


def run(A, B):
    M, K = A.shape
    N = B.shape[1]
    output = torch.empty((M, N), dtype=torch.bfloat16, device=A.device)

    def grid(config):
        return triton.cdiv(M, config["BLOCK_M"]), triton.cdiv(N, config["BLOCK_N"])

    _matmul[grid](A, B, output, M, N, K)
    return output
