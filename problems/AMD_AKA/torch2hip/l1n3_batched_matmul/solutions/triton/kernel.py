"""Batched bf16 matrix product on the matrix unit: one tile of one batch a program, summed in fp32."""

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


# With a K of 64 or 128 a deep step leaves one trip or two; small tiles give every compute unit a work-group.
CONFIGS = [
    _config(64, 64, 64, 4, 2),
    _config(32, 64, 64, 4, 2),
    _config(32, 32, 64, 2, 2),
    _config(32, 32, 128, 4, 2),
    _config(128, 64, 32, 4, 2),
]


@triton.autotune(configs=CONFIGS, key=["batches", "M", "N", "K"])
@triton.heuristics({"WHOLE": _whole})
@triton.jit
def _batched_matmul(
    a_ptr,
    b_ptr,
    out_ptr,
    batches,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WHOLE: tl.constexpr,
):
    batch = tl.program_id(0).to(tl.int64)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + batch * M * K + m.to(tl.int64)[:, None] * K + k[None, :]
    b_ptrs = b_ptr + batch * K * N + k.to(tl.int64)[:, None] * N + n[None, :]
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
    out_ptrs = out_ptr + batch * M * N + m.to(tl.int64)[:, None] * N + n[None, :]
    result = total.to(tl.bfloat16)
    if WHOLE:
        tl.store(out_ptrs, result)
    else:
        tl.store(out_ptrs, result, mask=(m[:, None] < M) & (n[None, :] < N))


def run(A, B):
    batches, M, K = A.shape
    N = B.shape[2]
    output = torch.empty((batches, M, N), dtype=torch.bfloat16, device=A.device)

    def grid(config):
        return batches, triton.cdiv(M, config["BLOCK_M"]), triton.cdiv(N, config["BLOCK_N"])

    _batched_matmul[grid](A, B, output, batches, M, N, K)
    return output
