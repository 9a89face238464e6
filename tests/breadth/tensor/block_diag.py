"""Matrices along a diagonal, by a vector (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.block_diag(a, b) @ v


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3), torch.randn(4, 2), torch.randn(5)]


def get_init_inputs() -> list[int]:
    return []
