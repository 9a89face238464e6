"""Whole multi-head attention with projections and weights returned (attention)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        result, weights = self.layer(x, x, x, need_weights=True, average_attn_weights=True)
        return result, weights


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 5, 8)]


def get_init_inputs() -> list[int]:
    return []
