"""Attention through a low-rank latent, projections absorbed by association (attention)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.up_k, self.up_v = nn.Linear(8, 8), nn.Linear(3, 8), nn.Linear(3, 8)

    def forward(self, x: torch.Tensor, latent: torch.Tensor) -> torch.Tensor:
        keys = self.up_k(latent)
        values = self.up_v(latent)
        return scaled_dot_product_attention(self.query(x), keys, values)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 4, 8), torch.randn(2, 6, 3)]


def get_init_inputs() -> list[int]:
    return []
