"""Multi-head attention with a causal mask and without weights (attention)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        return self.layer(x, x, x, attn_mask=mask, need_weights=False)[0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 5, 8)]


def get_init_inputs() -> list[int]:
    return []
