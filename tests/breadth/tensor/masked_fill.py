"""Fill and choice under masks (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.where(mask, x, y).masked_fill(~mask[:1], 3.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.randn(6), torch.rand(4, 6) > 0.5]


def get_init_inputs() -> list[int]:
    return []
