"""Rotary embedding of queries and keys with YaRN's frequencies, bfloat16, fp32 inside: one load, one store an element.

A program takes a token whole: it forms the token's sines and cosines once, for all query and key heads. A lane has
eight channels of a head's first half and their partners in the second.
"""

import math

import torch
import triton
import triton.language as tl

THETA, FACTOR, ORIGINAL_CONTEXT = 1e9, tl.constexpr(16.0), tl.constexpr(16384.0)
FAST, SLOW = 32, 1
QUERY_BETA = tl.constexpr(0.1)
ELEMENTS = 1024  # of a wave
TWO_OVER_PI = tl.constexpr(0.6366197723675814)
# pi/2 in three parts: the first two have 2 and 4 bits, so that their products with less than 2^18 quarter turns are
# exact, with a fused multiply-add or without.
HIGH = tl.constexpr(1.5)
MIDDLE = tl.constexpr(0.0703125)
LOW = tl.constexpr(0.00048382679489661923)


@triton.jit
def sine_cosine(angle):
    """Sine and cosine of 0 to 400,000 radians: polynomials within an eighth of a turn of a quarter turn."""
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
def turn(x, y, start, heads, half, sine, cosine, scale, HEADS: tl.constexpr, HALF: tl.constexpr, EVEN: tl.constexpr):
    """All heads of one token, from ``start`` on; sine and cosine: [HALF]."""
    head = tl.arange(0, HEADS)[:, None]
    column = tl.arange(0, HALF)[None, :]
    place = head * (2 * half) + column
    inside = None if EVEN else (head < heads) & (column < half)
    first = tl.load(x + start + place, mask=inside).to(tl.float32)
    second = tl.load(x + start + half + place, mask=inside).to(tl.float32)
    left = (first * cosine[None, :] - second * sine[None, :]) * scale
    right = (second * cosine[None, :] + first * sine[None, :]) * scale
    tl.store(y + start + place, left.to(tl.bfloat16), mask=inside)
    tl.store(y + start + half + place, right.to(tl.bfloat16), mask=inside)


@triton.jit
def rope(
    q, k, position_ids, inv_freq, q_out, k_out, query_heads, key_heads, half, low, width, QUERY_HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr, HALF: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """One token. ``low``, ``width``: where the ramp between the frequencies begins, and its length, in channels. EVEN:
    the sizes in capitals are the others.
    """
    token = tl.program_id(0).to(tl.int64)
    channel = tl.arange(0, HALF)
    position = tl.load(position_ids + token).to(tl.float32)
    own = tl.load(inv_freq + channel, mask=None if EVEN else channel < half, other=None if EVEN else 0.0)
    ramp = tl.minimum(tl.maximum((channel.to(tl.float32) - low) / width, 0.0), 1.0)
    sine, cosine = sine_cosine(position * (own / FACTOR * ramp + own * (1.0 - ramp)))
    scale = 1.0 + QUERY_BETA * tl.log(1.0 + tl.floor(position / ORIGINAL_CONTEXT))
    turn(q, q_out, token * query_heads * (2 * half), query_heads, half, sine, cosine, scale, QUERY_HEADS, HALF, EVEN)
    turn(k, k_out, token * key_heads * (2 * half), key_heads, half, sine, cosine, 1.0, KEY_HEADS, HALF, EVEN)


def turning_channel(turns, channels):
    """The channel pair whose angle makes so many turns over the original context."""
    return channels * math.log(ORIGINAL_CONTEXT.value / (turns * 2 * math.pi)) / (2 * math.log(THETA))


def run(q, k, position_ids, inv_freq):
    batch, tokens, query_heads, channels = q.shape
    key_heads, half = k.shape[2], channels // 2
    low = max(math.floor(turning_channel(FAST, channels)), 0)
    high = min(math.ceil(turning_channel(SLOW, channels)), channels - 1)
    q_out, k_out = torch.empty_like(q), torch.empty_like(k)
    sizes = tuple(triton.next_power_of_2(size) for size in (query_heads, key_heads, half))
    rope[(batch * tokens,)](
        q, k, position_ids, inv_freq, q_out, k_out, query_heads, key_heads, half, float(low),
        float(high - low) if high > low else 0.001, *sizes, sizes == (query_heads, key_heads, half),
        num_warps=max(1, min(4, sizes[0] * sizes[2] * 2 // ELEMENTS)),
    )  # fmt: skip
    return q_out, k_out
