"""Attention inside a sliding window and to the first tokens (attention)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

SINKS, WINDOW = 1, 3


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        row = torch.arange(q.shape[-2], device=q.device)[:, None]
        column = torch.arange(k.shape[-2], device=q.device)[None, :]
        seen = (column <= row) & ((column > row - WINDOW) | (column < SINKS))
        return scaled_dot_product_attention(q, k, v, attn_mask=seen)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3, 8, 4), torch.randn(2, 3, 8, 4), torch.randn(2, 3, 8, 4)]


def get_init_inputs() -> list[int]:
    return []
