"""Block quantisation to float8 e4m3 with a power of two for 32 values: every value is loaded once, eight a lane.

Blocks do not cross rows, so that the matrix is one row of blocks. The power of two is found and applied on the bits of
float32, which is exact. So is the conversion's rounding: in integers it takes few instructions on any card.
"""

import torch
import triton
import triton.language as tl

BLOCKS = 128  # blocks of 32 values that a program takes
WARPS = 4


@triton.jit
def e4m3(value):
    """Codes of float32, to nearest, ties to even, on the bits; what is above 448 in magnitude becomes 448."""
    bits = value.to(tl.int32, bitcast=True)
    size = tl.minimum(tl.abs(value), 448.0)
    field = size.to(tl.int32, bitcast=True)
    # Three bits of the fraction stay; the exponent's offset falls from 127 to 7.
    normal = (field + 0x7FFFF + ((field >> 20) & 1)) - (120 << 23) >> 20
    # Below 2^-6 codes count steps of 2^-9, and so does the last bit of a sum with 2^14.
    subnormal = (size + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
    code = tl.where(field < 0x3C800000, subnormal, normal)
    return (code | ((bits >> 24) & 0x80)).to(tl.uint8)


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
    scale = tl.maximum((largest.to(tl.int32, bitcast=True) >> 23) - 8, 0)
    factor = ((254 - scale) << 23).to(tl.float32, bitcast=True)
    tl.store(codes + first * 32 + place, e4m3(value * factor[:, None]), mask=inside_2d)
    tl.store(scales + first + block, scale.to(tl.uint8), mask=inside)


def run(x):
    rows, columns = x.shape
    count = rows * columns // 32
    codes = torch.empty((rows, columns), dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty((rows, columns // 32), dtype=torch.uint8, device=x.device)
    quantize[(triton.cdiv(count, BLOCKS),)](
        x, codes.view(torch.uint8), scales, count, BLOCKS, count % BLOCKS == 0, num_warps=WARPS
    )
    return codes, scales
