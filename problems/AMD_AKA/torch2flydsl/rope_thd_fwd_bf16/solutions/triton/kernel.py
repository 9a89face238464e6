"""Rotary embedding of packed sequences, bfloat16, fp32 inside: every element is loaded and stored once.

A work-group takes a token, a lane eight columns of one head's first half and their partners in the second. The sines
and cosines of a token are taken once and serve all heads. Its position is the distance to the largest offset that is
not above it, found among all offsets at once.
"""

import torch
import triton
import triton.language as tl

LOAD = 256  # elements that a wave's load of 128 bits a lane brings
TWO_OVER_PI = tl.constexpr(0.6366197723675814)
# pi/2 in three parts: 8 and 10 bits, so that their products with less than 2^14 quarter turns are exact, and the rest.
HIGH = tl.constexpr(1.5703125)
MIDDLE = tl.constexpr(0.00048351287841796875)
LOW = tl.constexpr(3.139164786504813e-07)


@triton.jit
def sine_cosine(angle):
    """Sine and cosine of up to 25,000 radians, to 1e-7: polynomials within an eighth of a turn of a quarter turn."""
    turns = tl.floor(angle * TWO_OVER_PI + 0.5)
    r = ((angle - turns * HIGH) - turns * MIDDLE) - turns * LOW
    s = r * r
    sine = r + r * s * (-0.16666651 + s * (0.00833198 - s * 0.00019496))
    cosine = 1.0 - s * 0.5 + s * s * (0.0416664469 + s * (-0.00138873668 + s * 2.44383694e-05))
    quarter = turns.to(tl.int32)
    odd = (quarter & 1) != 0
    first, second = tl.where(odd, cosine, sine), tl.where(odd, sine, cosine)
    return tl.where((quarter & 2) != 0, -first, first), tl.where(((quarter + 1) & 2) != 0, -second, second)


@triton.jit
def rotate(
    x, offsets, freqs, y, heads, half, ends, HEADS: tl.constexpr, HALF: tl.constexpr, ENDS: tl.constexpr,
    EVEN: tl.constexpr,
):  # fmt: skip
    """One token: [heads, 2 * half]; ``ends`` offsets. EVEN: HEADS is heads and HALF is half."""
    token = tl.program_id(0)
    head = tl.arange(0, HEADS)[:, None]
    column = tl.arange(0, HALF)
    start = token.to(tl.int64) * heads * (2 * half)
    place = head * (2 * half) + column[None, :]
    inside = None if EVEN else (head < heads) & (column < half)[None, :]
    first = tl.load(x + start + place, mask=inside).to(tl.float32)
    second = tl.load(x + start + half + place, mask=inside).to(tl.float32)

    end = tl.arange(0, ENDS)
    offset = tl.load(offsets + end, mask=end < ends, other=0)
    position = token - tl.max(tl.where(offset <= token, offset, 0), axis=0)
    angle = tl.load(freqs + position.to(tl.int64) * half + column, mask=None if EVEN else column < half)
    sine, cosine = sine_cosine(angle.to(tl.float32))
    sine, cosine = sine[None, :], cosine[None, :]
    tl.store(y + start + place, (first * cosine - second * sine).to(tl.bfloat16), mask=inside)
    tl.store(y + start + half + place, (second * cosine + first * sine).to(tl.bfloat16), mask=inside)


def run(input, cu_seqlens, freqs):
    tokens, heads, width = input.shape
    half, ends = width // 2, cu_seqlens.shape[0]
    y = torch.empty_like(input)
    tile = triton.next_power_of_2(heads), triton.next_power_of_2(half)
    rotate[(tokens,)](
        input, cu_seqlens, freqs, y, heads, half, ends, *tile, triton.next_power_of_2(ends), tile == (heads, half),
        num_warps=max(1, min(2, tile[0] * tile[1] // (2 * LOAD))),
    )  # fmt: skip
    return y
