"""Compressed cache entries: softmax over the tokens of an entry and of the one before, mix, RMS norm; nothing is stored
but the result, and every value is loaded once.

A program takes entries that follow each other, whole. Each lane has eight channels of all the tokens, so that the
softmax and the mix over tokens stay in its registers; only the norm goes across lanes.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-6)
LANES = 256  # channels of a wave: a load of 128 bits a lane
# Entries of a program, and stages of their loads. On NVIDIA's cards what is on its way waits in shared memory, on AMD's
# in registers, of which there are not enough.
NVIDIA, AMD = (4, 3), (1, 1)
LOG2_E = tl.constexpr(1.4426950408889634)  # exp2 is one instruction


@triton.jit
def compress(
    kv, gate, position_bias, norm_weight, y, tokens, entries, channels, chunks, ENTRIES: tl.constexpr,
    STAGES: tl.constexpr, TOKENS: tl.constexpr, CHANNELS: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Up to ENTRIES of a sequence's ``entries``, which it has ``chunks`` times; an entry is TOKENS tokens. EVEN:
    CHANNELS is ``channels``.
    """
    program = tl.program_id(0)
    sequence, first = program // chunks, program % chunks * ENTRIES
    token = tl.arange(0, TOKENS)[:, None]
    channel = tl.arange(0, CHANNELS)
    column = channel[None, :]
    place = token * (2 * channels) + column
    real = None if EVEN else column < channels
    bias_before = tl.load(position_bias + place, mask=real, other=None if EVEN else 0.0)
    bias_own = tl.load(position_bias + channels + place, mask=real, other=None if EVEN else 0.0)
    gain = tl.load(norm_weight + channel, mask=None if EVEN else channel < channels).to(tl.float32)
    for entry in tl.range(first, min(first + ENTRIES, entries), num_stages=STAGES):
        own = (sequence.to(tl.int64) * tokens + entry * TOKENS) * (2 * channels) + channels
        before = own - channels - TOKENS * (2 * channels)
        # The first entry has no tokens before it.
        there = entry > 0 if EVEN else (entry > 0) & (column < channels)
        logit_before = tl.load(gate + before + place, mask=there, other=float("-inf")).to(tl.float32)
        logit_own = tl.load(gate + own + place, mask=real).to(tl.float32)
        value_before = tl.load(kv + before + place, mask=there, other=0.0)
        value_own = tl.load(kv + own + place, mask=real, other=None if EVEN else 0.0)
        logit_before += bias_before
        logit_own += bias_own
        high = tl.maximum(tl.max(logit_before, axis=0), tl.max(logit_own, axis=0))[None, :]
        share_before = tl.exp2((logit_before - high) * LOG2_E)
        share_own = tl.exp2((logit_own - high) * LOG2_E)
        weight = tl.sum(share_before, axis=0) + tl.sum(share_own, axis=0)
        mixed = tl.sum(share_before * value_before.to(tl.float32), axis=0)
        mixed = (mixed + tl.sum(share_own * value_own.to(tl.float32), axis=0)) / weight
        if not EVEN:
            mixed = tl.where(channel < channels, mixed, 0.0)
        inverse = tl.rsqrt(tl.sum(mixed * mixed, axis=0) / channels + EPS)
        out = y + (sequence.to(tl.int64) * entries + entry) * channels + channel
        tl.store(out, (mixed * inverse * gain).to(tl.bfloat16), mask=None if EVEN else channel < channels)


def on_nvidia(tensor):
    """Whether the card is NVIDIA's. Not asked of a CPU, where Triton has no driver to ask."""
    return tensor.is_cuda and triton.runtime.driver.active.get_current_target().backend == "cuda"


def run(kv, gate, position_bias, norm_weight):
    sequences, tokens, _ = kv.shape
    each, channels = position_bias.shape[0], norm_weight.shape[0]
    if each & (each - 1):
        raise ValueError(f"entries of {each} tokens: a power of two")
    entries = tokens // each
    y = torch.empty((sequences, entries, channels), dtype=torch.bfloat16, device=kv.device)
    block = triton.next_power_of_2(channels)
    together, stages = NVIDIA if on_nvidia(kv) else AMD
    chunks = triton.cdiv(entries, together)
    compress[(sequences * chunks,)](
        kv, gate, position_bias, norm_weight, y, tokens, entries, channels, chunks, together, stages, each, block,
        block == channels, num_warps=max(1, min(8, block // LANES)),
    )  # fmt: skip
    return y
