"""Softmax, selection bias and the K best experts of a token, all in the registers of one wave.

A wave takes one row of 256 experts or several shorter ones. The K experts are K times the row's largest score and the
lowest number that has it; both are reductions within the wave, so nothing waits for another one.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _route(
    gating_ptr,
    bias_ptr,
    weights_ptr,
    ids_ptr,
    tokens,
    route_scale,
    E: tl.constexpr,
    K: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WHOLE: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    expert = tl.arange(0, BLOCK_E)
    gating_ptrs = gating_ptr + token[:, None] * E + expert[None, :]
    if WHOLE:
        logits = tl.load(gating_ptrs).to(tl.float32)
        bias = tl.load(bias_ptr + expert)
    else:
        inside = (token[:, None] < tokens) & (expert[None, :] < E)
        logits = tl.load(gating_ptrs, mask=inside, other=float("-inf")).to(tl.float32)
        bias = tl.load(bias_ptr + expert, mask=expert < E, other=float("-inf"))
    largest = tl.max(logits, axis=1)
    exponential = tl.exp(logits - largest[:, None])
    factor = 1.0 / tl.sum(exponential, axis=1)
    score = exponential * factor[:, None] + bias[None, :]
    place = tl.arange(0, BLOCK_K)
    ids = tl.zeros((BLOCK_T, BLOCK_K), dtype=tl.int32)
    for turn in tl.static_range(K):
        best = tl.max(score, axis=1)
        chosen = tl.min(tl.where(score == best[:, None], expert[None, :], BLOCK_E), axis=1)
        ids = tl.where(place[None, :] == turn, chosen[:, None], ids)
        score = tl.where(expert[None, :] == chosen[:, None], float("-inf"), score)
    # The chosen logits are read again, from the nearest cache: a score has lost bits to its bias.
    stored = (place[None, :] < K) & (token[:, None] < tokens)
    chosen_logits = tl.load(gating_ptr + token[:, None] * E + ids, mask=stored & (ids < E), other=float("-inf"))
    weights = tl.exp(chosen_logits.to(tl.float32) - largest[:, None]) * (factor * route_scale)[:, None]
    tl.store(weights_ptr + token[:, None] * K + place[None, :], weights, mask=stored)
    tl.store(ids_ptr + token[:, None] * K + place[None, :], ids, mask=stored)


def run(gating, bias, topk, route_scale):
    tokens, experts = gating.shape
    weights = torch.empty((tokens, topk), dtype=torch.float32, device=gating.device)
    ids = torch.empty((tokens, topk), dtype=torch.int32, device=gating.device)
    block_e = triton.next_power_of_2(experts)
    # Waves have nothing to share: each is a work-group of its own.
    block_t = max(256 // block_e, 1)
    _route[(triton.cdiv(tokens, block_t),)](
        gating,
        bias,
        weights,
        ids,
        tokens,
        route_scale,
        E=experts,
        K=topk,
        BLOCK_T=block_t,
        BLOCK_E=block_e,
        BLOCK_K=triton.next_power_of_2(topk),
        WHOLE=experts == block_e and tokens % block_t == 0,
        num_warps=1,
    )
    return weights, ids
