"""All pairs of two lists, and of one with itself (copies)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cartesian_prod(x, y).prod(1).sum() + torch.combinations(x, 2)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4), torch.randn(3)]


def get_init_inputs() -> list[int]:
    return []
