"""Rotary embedding of neighbouring channels in a head's tail, bfloat16, fp32 inside: one load, one store an element.

A program takes some heads of one token, whole: kept and rotated channels stand side by side, eight a lane, and both
channels of a pair are the same lane's.
"""

import torch
import triton
import triton.language as tl

ELEMENTS = 2048  # of a program
WARPS = 4


@triton.jit
def rotate(
    x, cos, sin, y, heads, pairs, rotated, chunks, HEADS: tl.constexpr, PAIRS: tl.constexpr, EVEN: tl.constexpr
):  # fmt: skip
    """HEADS heads of one token, which has ``chunks`` such shares; a head is ``pairs`` <= PAIRS pairs, its last
    ``rotated`` turned. EVEN: PAIRS is pairs and HEADS divides heads.
    """
    program = tl.program_id(0)
    token, first = program // chunks, program % chunks * HEADS
    head = tl.arange(0, HEADS)[:, None]
    channel = tl.arange(0, 2 * PAIRS)[None, :]
    start = (token.to(tl.int64) * heads + first) * (2 * pairs)
    place = head * (2 * pairs) + channel
    inside = None if EVEN else (head < heads - first) & (channel < 2 * pairs)
    value = tl.load(x + start + place, mask=inside)
    left, right = tl.split(tl.reshape(value.to(tl.float32), (HEADS, PAIRS, 2)))

    turn = tl.arange(0, PAIRS) - (pairs - rotated)
    turned = (turn >= 0) & (turn < rotated)
    table = token.to(tl.int64) * rotated
    # A kept pair turns by nothing: its product with 1 minus one with 0 is exact.
    cosine = tl.load(cos + table + turn, mask=turned, other=1.0)[None, :]
    sine = tl.load(sin + table + turn, mask=turned, other=0.0)[None, :]
    result = tl.join(left * cosine - right * sine, right * cosine + left * sine)
    tl.store(y + start + place, tl.reshape(result, (HEADS, 2 * PAIRS)).to(tl.bfloat16), mask=inside)


def run(x, cos, sin):
    batch, tokens, heads, width = x.shape
    if width % 2:
        raise ValueError(f"heads of {width} channels: an even number")
    pairs, rotated = width // 2, cos.shape[-1]
    y = torch.empty_like(x)
    block = triton.next_power_of_2(pairs)
    group = max(1, min(triton.next_power_of_2(heads), ELEMENTS // (2 * block)))
    chunks = triton.cdiv(heads, group)
    rotate[(batch * tokens * chunks,)](
        x, cos, sin, y, heads, pairs, rotated, chunks, group, block, block == pairs and heads % group == 0,
        num_warps=max(1, WARPS * 2 * group * block // ELEMENTS),
    )  # fmt: skip
    return y
