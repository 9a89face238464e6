"""Bilinear form with a bias (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Bilinear(4, 5, 6)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.layer(x, y)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 4), torch.randn(3, 5)]


def get_init_inputs() -> list[int]:
    return []
