"""Matrix by vector and rank-one update with addends (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, bias: torch.Tensor, matrix: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        column = torch.addmv(bias, matrix, x, beta=0.5, alpha=2.0)
        return torch.addr(matrix, column, y, beta=1.0, alpha=0.25)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4), torch.randn(4, 6), torch.randn(6), torch.randn(6)]


def get_init_inputs() -> list[int]:
    return []
