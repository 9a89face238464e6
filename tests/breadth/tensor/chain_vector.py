"""Product of a product with a vector, as written the dear way (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (a @ b) @ v


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(6, 5), torch.randn(5, 8), torch.randn(8)]


def get_init_inputs() -> list[int]:
    return []
