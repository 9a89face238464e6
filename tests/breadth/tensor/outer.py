"""Outer product (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.outer(x, y)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4), torch.randn(7)]


def get_init_inputs() -> list[int]:
    return []
