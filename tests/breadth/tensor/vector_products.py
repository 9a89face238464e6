"""Inner products of vectors (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return torch.dot(x, y) * torch.mv(matrix, x) + torch.inner(y, x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(6), torch.randn(6), torch.randn(4, 6)]


def get_init_inputs() -> list[int]:
    return []
