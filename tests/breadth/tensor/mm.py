"""Matrix product (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.mm(a, b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.randn(6, 5)]


def get_init_inputs() -> list[int]:
    return []
