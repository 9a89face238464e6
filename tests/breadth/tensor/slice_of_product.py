"""Part of a product is wanted (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a @ b)[:1]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 6), torch.randn(6, 4)]


def get_init_inputs() -> list[int]:
    return []
