"""Lower triangle of a product (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.tril(a @ b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 6), torch.randn(6, 5)]


def get_init_inputs() -> list[int]:
    return []
