"""Distance of two tensors in the 3-norm (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.dist(a, b, p=3.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 3), torch.randn(4, 3)]


def get_init_inputs() -> list[int]:
    return []
