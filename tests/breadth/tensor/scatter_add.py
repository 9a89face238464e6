"""Scatter that adds (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x.scatter_add(1, index, source)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.randint(6, (4, 3)), torch.randn(4, 3)]


def get_init_inputs() -> list[int]:
    return []
