"""Chain of products at its cheapest association (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.linalg.multi_dot([a, b, v])


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(6, 5), torch.randn(5, 8), torch.randn(8, 1)]


def get_init_inputs() -> list[int]:
    return []
