"""Overlapping windows along a dimension (views)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unfold(1, 3, 2).amax(-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 9)]


def get_init_inputs() -> list[int]:
    return []
