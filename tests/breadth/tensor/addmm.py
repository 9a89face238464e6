"""Matrix product with a scaled addend that broadcasts (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.addmm(bias, a, b, beta=0.5, alpha=-1.5)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5), torch.randn(4, 6), torch.randn(6, 5)]


def get_init_inputs() -> list[int]:
    return []
