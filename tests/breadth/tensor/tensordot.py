"""Contraction over two dimensions (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.tensordot(a, b, dims=([1, 0], [0, 2]))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 4, 5), torch.randn(4, 6, 3)]


def get_init_inputs() -> list[int]:
    return []
