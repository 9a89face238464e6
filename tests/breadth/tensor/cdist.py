"""Euclidean distances between two sets of points (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cdist(a, b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 3), torch.randn(4, 3)]


def get_init_inputs() -> list[int]:
    return []
