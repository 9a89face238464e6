"""Sum of batched products (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, base: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.addbmm(base, a, b, beta=2.0, alpha=0.5)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 5), torch.randn(3, 4, 6), torch.randn(3, 6, 5)]


def get_init_inputs() -> list[int]:
    return []
