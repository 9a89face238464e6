"""Linear layer, division and exact GELU in one kernel; the product runs on the matrix unit with split operands.

64 x = high + low, both fp16: 22 bits of x. high is 64 x rounded, low what that left. high * high, high * low and
low * high are summed in fp32, each step of K by the matrix unit, the steps by ordinary additions: with the unit's own
sums over all 8,192 terms, 8 % of the elements missed the tolerance on an H200. low * low is below their rounding. The
scale keeps low clear of fp16's subnormal numbers for |x| down to 2^-9; below that it loses bits, absolutely never more
than 2^-31. |x| must stay below 1023, where 64 x leaves fp16.
"""

import torch
import triton
import triton.language as tl


def _config(block_m, block_n, block_k, warps):
    return triton.Config({"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}, num_warps=warps, num_stages=2)


def _whole(args):
    """Whether the tiles cover the matrices without a rest, so that nothing needs a mask."""
    return all(args[axis] % args[f"BLOCK_{axis}"] == 0 for axis in ("M", "N", "K"))


# A wave that computes 64 x 32 splits the least for its products, and with a step of 16 its registers hold everything.
CONFIGS = [
    _config(128, 128, 16, 8),
    _config(128, 256, 16, 16),
    _config(128, 64, 32, 8),
    _config(64, 64, 32, 4),
]

SCALE = tl.constexpr(64.0)
# Tiles of rows whose programs run side by side, so that they share what they read of the weight and of x.
GROUP = tl.constexpr(8)


@triton.jit
def _split(x):
    """Two fp16 terms of SCALE times an fp32 tensor: one instruction each, a multiply-add that rounds to fp16."""
    high = (x * SCALE).to(tl.float16)
    low = tl.fma(x, SCALE, -high.to(tl.float32)).to(tl.float16)
    return high, low


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"])
@triton.heuristics({"WHOLE": _whole})
@triton.jit
def _linear_divide_gelu(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    divisor,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WHOLE: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    group = program // (GROUP * tiles_n)
    height = tl.minimum(tiles_m - group * GROUP, GROUP)
    place = program % (GROUP * tiles_n)
    m = (group * GROUP + place % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (place // height) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + m.to(tl.int64)[:, None] * K + k[None, :]
    # The weight lies [N, K]: both operands are contiguous along the summed axis.
    weight_ptrs = weight_ptr + n.to(tl.int64)[None, :] * K + k[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        if WHOLE:
            x = tl.load(x_ptrs)
            weight = tl.load(weight_ptrs)
        else:
            x = tl.load(x_ptrs, mask=(m[:, None] < M) & (k[None, :] < K - start), other=0.0)
            weight = tl.load(weight_ptrs, mask=(k[:, None] < K - start) & (n[None, :] < N), other=0.0)
        x_high, x_low = _split(x)
        weight_high, weight_low = _split(weight)
        part = tl.dot(x_high, weight_high)
        part = tl.dot(x_high, weight_low, part)
        total += tl.dot(x_low, weight_high, part)
        x_ptrs += BLOCK_K
        weight_ptrs += BLOCK_K
    bias = tl.load(bias_ptr + n) if WHOLE else tl.load(bias_ptr + n, mask=n < N, other=0.0)
    linear = total * (1.0 / (SCALE * SCALE)) + bias[None, :]
    quotient = linear / divisor
    result = 0.5 * quotient * (1.0 + tl.erf(quotient * 0.7071067811865476))
    out_ptrs = out_ptr + m.to(tl.int64)[:, None] * N + n[None, :]
    if WHOLE:
        tl.store(out_ptrs, result)
    else:
        tl.store(out_ptrs, result, mask=(m[:, None] < M) & (n[None, :] < N))


def run(x, weight, bias, divisor):
    M, K = x.shape
    N = weight.shape[0]
    output = torch.empty((M, N), dtype=torch.float32, device=x.device)

    def grid(config):
        return (triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"]),)

    _linear_divide_gelu[grid](x, weight, bias, output, divisor, M, N, K)
    return output
