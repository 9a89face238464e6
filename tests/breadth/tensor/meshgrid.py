"""Grids of coordinates (views)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.stack(torch.meshgrid(x, y, indexing="ij"), -1).norm(dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4), torch.randn(3)]


def get_init_inputs() -> list[int]:
    return []
