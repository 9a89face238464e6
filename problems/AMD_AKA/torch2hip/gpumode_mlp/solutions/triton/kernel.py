"""Seven linear layers in five kernels: one each for the first four, and the last three in one.

The products run on the matrix unit with split operands: 64 x = high + low, both fp16, 22 bits of x. high * high,
high * low and low * high are summed in fp32, each step by the matrix unit, the steps by ordinary additions: the unit's
own long sums are less exact (on an H200 one element of 512 missed the tolerance). The scale keeps low clear of fp16's
subnormal numbers for |x| down to 2^-9; below that it loses bits, absolutely never more than 2^-31. |x| must stay below
1023, where 64 x leaves fp16.
Activations are split once, by the kernel that computes them, and stored as their two terms: as many bytes as in fp32.
"""

import torch
import triton
import triton.language as tl

SCALE = tl.constexpr(64.0)


def _config(block_m, block_n, block_k, warps):
    return triton.Config({"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}, num_warps=warps, num_stages=2)


# Up to 16 rows reading the weights is all that counts: narrow tiles, deep steps, many loads in flight.
FEW_ROWS = [
    _config(16, 32, 64, 2),
    _config(16, 16, 64, 1),
    _config(16, 16, 128, 4),
]
# With more rows a tile has them all, so that the weights are read once.
MANY_ROWS = [
    _config(128, 32, 32, 4),
    _config(64, 32, 64, 4),
    _config(64, 16, 64, 4),
    _config(128, 32, 32, 8),
]


@triton.jit
def _split(x):
    """Two fp16 terms of SCALE times an fp32 tensor: one instruction each, a multiply-add that rounds to fp16."""
    high = (x * SCALE).to(tl.float16)
    low = tl.fma(x, SCALE, -high.to(tl.float32)).to(tl.float16)
    return high, low


@triton.jit
def _product(x_high, x_low, weight, total):
    """``total`` plus SCALE^2 times the product with an fp32 tile of weights."""
    weight_high, weight_low = _split(weight)
    part = tl.dot(x_high, weight_high)
    part = tl.dot(x_high, weight_low, part)
    return total + tl.dot(x_low, weight_high, part)


@triton.jit
def _activation(total, bias):
    return tl.maximum(total * (1.0 / (SCALE * SCALE)) + bias[None, :], 0.0)


@triton.jit
def _first_layer(x_ptr, weight_ptr, bias_ptr, high_ptr, low_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Four inputs: a few multiply-adds. N is a multiple of BLOCK_N."""
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    column = tl.arange(0, 4)
    weight = tl.load(weight_ptr + n[:, None] * 4 + column[None, :])
    even, odd = tl.split(tl.reshape(weight, (BLOCK_N, 2, 2)))
    weight0, weight2 = tl.split(even)
    weight1, weight3 = tl.split(odd)
    inside = m < M
    x0 = tl.load(x_ptr + m * 4, mask=inside, other=0.0)
    x1 = tl.load(x_ptr + m * 4 + 1, mask=inside, other=0.0)
    x2 = tl.load(x_ptr + m * 4 + 2, mask=inside, other=0.0)
    x3 = tl.load(x_ptr + m * 4 + 3, mask=inside, other=0.0)
    hidden = x0[:, None] * weight0[None, :] + x1[:, None] * weight1[None, :]
    hidden += x2[:, None] * weight2[None, :] + x3[:, None] * weight3[None, :]
    high, low = _split(tl.maximum(hidden + tl.load(bias_ptr + n)[None, :], 0.0))
    place = m.to(tl.int64)[:, None] * N + n[None, :]
    tl.store(high_ptr + place, high, mask=inside[:, None])
    tl.store(low_ptr + place, low, mask=inside[:, None])


@triton.jit
def _layer(
    x_high_ptr,
    x_low_ptr,
    weight_ptr,
    bias_ptr,
    high_ptr,
    low_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """A linear layer and ReLU. N and K are multiples of their blocks; M need not be."""
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    # Rows beyond the end read the last one: what they compute is not stored.
    rows = m if WHOLE else tl.minimum(m, M - 1)
    place = rows.to(tl.int64)[:, None] * K + k[None, :]
    weight_ptrs = weight_ptr + n[None, :] * K + k[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        weight = tl.load(weight_ptrs)
        x_high = tl.load(x_high_ptr + place)
        x_low = tl.load(x_low_ptr + place)
        total = _product(x_high, x_low, weight, total)
        place += BLOCK_K
        weight_ptrs += BLOCK_K
    high, low = _split(_activation(total, tl.load(bias_ptr + n)))
    out = m.to(tl.int64)[:, None] * N + n[None, :]
    if WHOLE:
        tl.store(high_ptr + out, high)
        tl.store(low_ptr + out, low)
    else:
        tl.store(high_ptr + out, high, mask=m[:, None] < M)
        tl.store(low_ptr + out, low, mask=m[:, None] < M)


def _whole(args):
    """Whether the tiles cover the rows without a rest, so that nothing needs a mask."""
    return args["M"] % args["BLOCK_M"] == 0


_layer_of_few = triton.autotune(FEW_ROWS, key=["M", "N", "K"])(triton.heuristics({"WHOLE": _whole})(_layer))
_layer_of_many = triton.autotune(MANY_ROWS, key=["M", "N", "K"])(triton.heuristics({"WHOLE": _whole})(_layer))


@triton.jit
def _weights(weight_ptr, K: tl.constexpr, N: tl.constexpr):
    """A whole weight of shape [N, K], transposed."""
    return tl.load(weight_ptr + tl.arange(0, N)[None, :] * K + tl.arange(0, K)[:, None])


@triton.jit
def _last_layers(
    x_high_ptr,
    x_low_ptr,
    weight5_ptr,
    bias5_ptr,
    weight6_ptr,
    bias6_ptr,
    weight7_ptr,
    bias7_ptr,
    out_ptr,
    M,
    H4: tl.constexpr,
    H5: tl.constexpr,
    H6: tl.constexpr,
    OUT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_OUT: tl.constexpr,
):
    """Three layers for BLOCK_M rows, their activations in registers."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    k = tl.arange(0, BLOCK_K)
    place = tl.minimum(m, M - 1)[:, None] * H4 + k[None, :]
    weight_ptrs = weight5_ptr + tl.arange(0, H5)[None, :] * H4 + k[:, None]
    total = tl.zeros((BLOCK_M, H5), dtype=tl.float32)
    for _ in range(0, H4, BLOCK_K):
        weight = tl.load(weight_ptrs)
        x_high = tl.load(x_high_ptr + place)
        x_low = tl.load(x_low_ptr + place)
        total = _product(x_high, x_low, weight, total)
        place += BLOCK_K
        weight_ptrs += BLOCK_K
    high, low = _split(_activation(total, tl.load(bias5_ptr + tl.arange(0, H5))))
    total = _product(high, low, _weights(weight6_ptr, H5, H6), tl.zeros((BLOCK_M, H6), dtype=tl.float32))
    high, low = _split(_activation(total, tl.load(bias6_ptr + tl.arange(0, H6))))
    # The matrix unit takes 16 columns: those beyond the last output are zero and not stored.
    n = tl.arange(0, BLOCK_OUT)
    weight = tl.load(
        weight7_ptr + n[None, :] * H6 + tl.arange(0, H6)[:, None],
        mask=(n[None, :] < OUT) & (tl.arange(0, H6)[:, None] < H6),
        other=0.0,
    )
    total = _product(high, low, weight, tl.zeros((BLOCK_M, BLOCK_OUT), dtype=tl.float32))
    result = total * (1.0 / (SCALE * SCALE)) + tl.load(bias7_ptr + n, mask=n < OUT, other=0.0)[None, :]
    tl.store(out_ptr + m[:, None] * OUT + n[None, :], result, mask=(m[:, None] < M) & (n[None, :] < OUT))


def _linear(high, low, weight, bias):
    """Both terms of the activations of a middle layer."""
    M, K = high.shape
    N = weight.shape[0]
    out_high = torch.empty((M, N), dtype=torch.float16, device=high.device)
    out_low = torch.empty_like(out_high)
    layer = _layer_of_few if M <= 16 else _layer_of_many

    def grid(config):
        return N // config["BLOCK_N"], triton.cdiv(M, config["BLOCK_M"])

    layer[grid](high, low, weight, bias, out_high, out_low, M, N, K)
    return out_high, out_low


def run(
    xb,
    linear1_weight,
    linear1_bias,
    linear2_weight,
    linear2_bias,
    linear3_weight,
    linear3_bias,
    linear4_weight,
    linear4_bias,
    linear5_weight,
    linear5_bias,
    linear6_weight,
    linear6_bias,
    linear7_weight,
    linear7_bias,
):
    M = xb.shape[0]
    hidden = linear1_weight.shape[0]
    high = torch.empty((M, hidden), dtype=torch.float16, device=xb.device)
    low = torch.empty_like(high)
    block_m = min(triton.next_power_of_2(M), 16)
    _first_layer[(hidden // 128, triton.cdiv(M, block_m))](
        xb, linear1_weight, linear1_bias, high, low, M, hidden, BLOCK_M=block_m, BLOCK_N=128, num_warps=4
    )
    high, low = _linear(high, low, linear2_weight, linear2_bias)
    high, low = _linear(high, low, linear3_weight, linear3_bias)
    high, low = _linear(high, low, linear4_weight, linear4_bias)
    outputs = linear7_weight.shape[0]
    output = torch.empty((M, outputs), dtype=torch.float32, device=xb.device)
    _last_layers[(triton.cdiv(M, 16),)](
        high,
        low,
        linear5_weight,
        linear5_bias,
        linear6_weight,
        linear6_bias,
        linear7_weight,
        linear7_bias,
        output,
        M,
        H4=linear5_weight.shape[1],
        H5=linear6_weight.shape[1],
        H6=linear7_weight.shape[1],
        OUT=outputs,
        BLOCK_M=16,
        BLOCK_K=32,
        BLOCK_OUT=max(triton.next_power_of_2(outputs), 16),
        num_warps=4,
        num_stages=2,
    )
    return output
