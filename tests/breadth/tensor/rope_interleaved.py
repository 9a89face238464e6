"""Rotary positions of neighbouring pairs from a table (attention)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(
        self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        even, odd = x[..., 0::2], x[..., 1::2]
        c, s = cosine[positions][:, None], sine[positions][:, None]
        return torch.stack([even * c - odd * s, even * s + odd * c], -1).flatten(-2)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3, 4, 8), torch.randn(16, 4), torch.randn(16, 4), torch.randint(16, (2, 4))]


def get_init_inputs() -> list[int]:
    return []
