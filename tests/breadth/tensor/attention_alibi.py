"""Attention with a bias linear in the distance (attention)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(q.shape[-2], device=q.device)
        distance = (positions[None, :] - positions[:, None]).to(q.dtype)
        slopes = torch.tensor([0.5, 0.25, 0.125], device=q.device)[:, None, None]
        bias = slopes * distance
        bias = bias.masked_fill(distance > 0, float("-inf"))
        return scaled_dot_product_attention(q, k, v, attn_mask=bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3, 8, 4), torch.randn(2, 3, 8, 4), torch.randn(2, 3, 8, 4)]


def get_init_inputs() -> list[int]:
    return []
