"""Distillation loss, float32: logits and targets are loaded once, 128 bits a lane, all channels of a pixel by one lane.

With z = input / temperature and the softmax's log-sum-exp L, a pixel's term is sum t log t - sum t z + L sum t. A
second kernel adds what the work-groups leave, in an order that does not change from call to call.
"""

import torch
import triton
import triton.language as tl

MOST = 32  # channels, which are unrolled
PIXELS = 128  # pixels a work-group of one wave, four a lane
SUMS = 1024  # sums that are added at a time
LOG2_E = tl.constexpr(1.4426950408889634)  # exp2 and log2 are one instruction each
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def pixel_terms(
    x, target, part, temperature, area, blocks, CHANNELS: tl.constexpr, PIXELS: tl.constexpr, EVEN: tl.constexpr
):  # fmt: skip
    """Sum of the terms of PIXELS of an image's ``area`` pixels; ``blocks`` programs an image. EVEN: all are inside."""
    program = tl.program_id(0)
    image, block = program // blocks, program % blocks
    pixel = block * PIXELS + tl.arange(0, PIXELS)
    inside = None if EVEN else pixel < area
    zero = None if EVEN else 0.0
    start = image.to(tl.int64) * CHANNELS * area
    inverse = LOG2_E / temperature
    # Maximum and sum so far, in units of log 2; the sum is brought to each new maximum.
    high = tl.full((PIXELS,), float("-inf"), tl.float32)
    total = tl.zeros((PIXELS,), tl.float32)
    weight = tl.zeros((PIXELS,), tl.float32)
    term = tl.zeros((PIXELS,), tl.float32)
    for channel in tl.static_range(CHANNELS):
        z = tl.load(x + start + channel * area + pixel, mask=inside, other=zero) * inverse
        t = tl.load(target + start + channel * area + pixel, mask=inside, other=zero)
        higher = tl.maximum(high, z)
        total = total * tl.exp2(high - higher) + tl.exp2(z - higher)
        high = higher
        weight += t
        # A target of 0 counts 0.
        term += t * (tl.log2(tl.where(t > 0.0, t, 1.0)) - z)
    term += weight * (high + tl.log2(total))
    tl.store(part + program, tl.sum(term, axis=0))


@triton.jit
def add_parts(part, loss, parts, images, temperature, SUMS: tl.constexpr):
    """All parts, by one work-group: temperature^2 / images of them, from units of log 2."""
    total = tl.zeros((SUMS,), tl.float32)
    for start in range(0, parts, SUMS):
        column = start + tl.arange(0, SUMS)
        total += tl.load(part + column, mask=column < parts, other=0.0)
    tl.store(loss, tl.sum(total, axis=0) * (LN_2 * temperature * temperature) / images)


def run(input, target, temperature):
    images, channels, height, width = input.shape
    if channels > MOST:
        raise ValueError(f"{channels} channels: at most {MOST}")
    area = height * width
    blocks = triton.cdiv(area, PIXELS)
    part = torch.empty((images * blocks,), dtype=torch.float32, device=input.device)
    loss = torch.empty((), dtype=torch.float32, device=input.device)
    pixel_terms[(images * blocks,)](
        input, target, part, temperature, area, blocks, channels, PIXELS, area % PIXELS == 0, num_warps=1
    )  # fmt: skip
    add_parts[(1,)](part, loss, images * blocks, images, temperature, SUMS, num_warps=8)
    return loss
