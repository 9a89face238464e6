"""Sums and means of rows by segment (segments)."""

from __future__ import annotations

import torch
from torch import nn

SEGMENTS = 3


class Model(nn.Module):
    def forward(self, x: torch.Tensor, segment: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(SEGMENTS, x.shape[1], device=x.device).index_add(0, segment, x)
        count = torch.zeros(SEGMENTS, device=x.device).index_add(0, segment, torch.ones_like(x[:, 0]))
        return total / count.clamp(min=1)[:, None]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(9, 4), torch.randint(3, (9,))]


def get_init_inputs() -> list[int]:
    return []
