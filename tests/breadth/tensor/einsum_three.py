"""Einstein sum of three operands (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bi,ijk,bk->bj", a, b, c)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 4), torch.randn(4, 5, 6), torch.randn(3, 6)]


def get_init_inputs() -> list[int]:
    return []
