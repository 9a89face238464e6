"""3x3 convolution as an implicit matrix product: output channels times pixels, summed over channels and taps.

A step sums the nine taps of three channels, 27 of the 32 rows that two instructions of the matrix unit take. The
unrolled image is never stored: a program gathers its rows from the image itself, at offsets that are the same in every
step. The product runs with split operands: 64 x = high + low, both fp16, 22 bits of x. high * high, high * low and
low * high are summed in fp32. The scale keeps low clear of fp16's subnormal numbers for |x| down to 2^-9; below that it
loses bits, absolutely never more than 2^-31. |x| must stay below 1023, where 64 x leaves fp16.
"""

import torch
import triton
import triton.language as tl

# The more pixels a program takes, the fewer programs read the weight; 32 compute units want 64 programs and more.
CONFIGS = [
    triton.Config({"BLOCK_P": 64}, num_warps=4, num_stages=2),
    triton.Config({"BLOCK_P": 32}, num_warps=2, num_stages=2),
    triton.Config({"BLOCK_P": 64}, num_warps=2, num_stages=2),
    triton.Config({"BLOCK_P": 128}, num_warps=4, num_stages=2),
]

SCALE = tl.constexpr(64.0)


@triton.jit
def _split(x):
    """Two fp16 terms of SCALE times an fp32 tensor: one instruction each, a multiply-add that rounds to fp16."""
    high = (x * SCALE).to(tl.float16)
    low = tl.fma(x, SCALE, -high.to(tl.float32)).to(tl.float16)
    return high, low


@triton.autotune(configs=CONFIGS, key=["B", "C", "H", "W", "OUT"])
@triton.jit
def _convolve(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    B,
    C: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    OUT: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    W_OUT: tl.constexpr = W - 2
    PIXELS: tl.constexpr = (H - 2) * W_OUT
    image = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    channel = tl.program_id(2) * BLOCK_O + tl.arange(0, BLOCK_O)
    # Pixels beyond the end read the last one's window: what they compute is not stored.
    inside = tl.minimum(pixel, PIXELS - 1)
    corner = (inside // W_OUT) * W + inside % W_OUT
    k = tl.arange(0, 32)
    tap = k % 9
    x_ptrs = x_ptr + image * (C * H * W) + corner[None, :] + (k // 9 * (H * W) + tap // 3 * W + tap % 3)[:, None]
    weight_ptrs = weight_ptr + channel[:, None] * (C * 9) + k[None, :]
    total = tl.zeros((BLOCK_O, BLOCK_P), dtype=tl.float32)
    for start in range(0, C, 3):
        rows = tl.minimum((C - start) * 9, 27)
        x = tl.load(x_ptrs, mask=k[:, None] < rows, other=0.0)
        weight = tl.load(weight_ptrs, mask=(channel[:, None] < OUT) & (k[None, :] < rows), other=0.0)
        x_high, x_low = _split(x)
        weight_high, weight_low = _split(weight)
        total = tl.dot(weight_high, x_high, total)
        total = tl.dot(weight_high, x_low, total)
        total = tl.dot(weight_low, x_high, total)
        x_ptrs += 3 * H * W
        weight_ptrs += 27
    bias = tl.load(bias_ptr + channel, mask=channel < OUT, other=0.0)
    result = total * (1.0 / (SCALE * SCALE)) + bias[:, None]
    out_ptrs = out_ptr + image * (OUT * PIXELS) + channel[:, None] * PIXELS + pixel[None, :]
    tl.store(out_ptrs, result, mask=(channel[:, None] < OUT) & (pixel[None, :] < PIXELS))


def run(x, weight, bias):
    B, C, H, W = x.shape
    OUT = weight.shape[0]
    output = torch.empty((B, OUT, H - 2, W - 2), dtype=torch.float32, device=x.device)
    # The matrix unit takes 16 channels at a time.
    block_o = 16 if OUT <= 16 else 32

    def grid(config):
        return triton.cdiv((H - 2) * (W - 2), config["BLOCK_P"]), B, triton.cdiv(OUT, block_o)

    _convolve[grid](x, weight, bias, output, B, C, H, W, OUT, block_o)
    return output
