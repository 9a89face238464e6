"""Distances in the 1-norm between two batches of points (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cdist(a, b, p=1.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 5, 3), torch.randn(2, 4, 3)]


def get_init_inputs() -> list[int]:
    return []
