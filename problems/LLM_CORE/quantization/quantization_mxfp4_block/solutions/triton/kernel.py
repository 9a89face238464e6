"""Block quantisation to 4-bit e2m1 with a power of two for 32 values: every value is loaded once, eight a lane.

Blocks do not cross rows, so that the matrix is one row of blocks. The power of two is found and applied on the bits of
float32, which is exact. So is the rounding to codes: on the bits, it takes no comparison with the steps between them.
"""

import torch
import triton
import triton.language as tl

BLOCKS = 128  # blocks of 32 values that a program takes
WARPS = 4


@triton.jit
def e2m1(value):
    """Codes of float32, to nearest, ties to even, on the bits; what is above 6 in magnitude becomes 6."""
    bits = value.to(tl.int32, bitcast=True)
    size = tl.minimum(tl.abs(value), 6.0)
    field = size.to(tl.int32, bitcast=True)
    # One bit of the fraction stays; the exponent's offset falls from 127 to 1.
    normal = (field + 0x1FFFFF + ((field >> 22) & 1)) - (126 << 23) >> 22
    # Below 1 codes count halves, and so does the last bit of a sum with 2^22.
    subnormal = (size + 4194304.0).to(tl.int32, bitcast=True) - 0x4A800000
    code = tl.where(field < 0x3F800000, subnormal, normal)
    return code | ((bits >> 28) & 8)


@triton.jit
def quantize(x, codes, scales, count, BLOCKS: tl.constexpr, EVEN: tl.constexpr):
    """BLOCKS of ``count`` blocks. EVEN: BLOCKS divides count."""
    first = tl.program_id(0).to(tl.int64) * BLOCKS
    block = tl.arange(0, BLOCKS)
    place = block[:, None] * 32 + tl.arange(0, 32)[None, :]
    inside = None if EVEN else block < count - first
    inside_2d = None if EVEN else inside[:, None]
    value = tl.load(x + first * 32 + place, mask=inside_2d, other=None if EVEN else 0.0).to(tl.float32)
    largest = tl.max(tl.abs(value), axis=1)
    scale = tl.maximum((largest.to(tl.int32, bitcast=True) >> 23) - 2, 0)
    factor = ((254 - scale) << 23).to(tl.float32, bitcast=True)
    # The even feature is the low half of the byte.
    low, high = tl.split(tl.reshape(e2m1(value * factor[:, None]), (BLOCKS, 16, 2)))
    pair = block[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(codes + first * 16 + pair, (low | (high << 4)).to(tl.uint8), mask=inside_2d)
    tl.store(scales + first + block, scale.to(tl.uint8), mask=inside)


def run(x):
    rows, columns = x.shape
    count = rows * columns // 32
    codes = torch.empty((rows, columns // 2), dtype=torch.uint8, device=x.device)
    scales = torch.empty((rows, columns // 32), dtype=torch.uint8, device=x.device)
    quantize[(triton.cdiv(count, BLOCKS),)](x, codes, scales, count, BLOCKS, count % BLOCKS == 0, num_warps=WARPS)
    return codes, scales
