"""Batched matrix product with a scaled addend (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, base: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.baddbmm(base, a, b, beta=0.5, alpha=2.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 4, 5), torch.randn(3, 4, 6), torch.randn(3, 6, 5)]


def get_init_inputs() -> list[int]:
    return []
