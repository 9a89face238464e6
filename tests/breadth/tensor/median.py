"""Lower median along a dimension and overall (sort)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.median(1, keepdim=True).values - x.median()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6)]


def get_init_inputs() -> list[int]:
    return []
