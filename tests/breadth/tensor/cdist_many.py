"""Euclidean distances of more points than a direct sum is used for (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cdist(a, b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 30, 4), torch.randn(28, 4)]


def get_init_inputs() -> list[int]:
    return []
