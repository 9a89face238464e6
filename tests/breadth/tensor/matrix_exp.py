"""Exponential of a matrix (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn

UNCOUNTED = ("matrix_exp",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.matrix_exp(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 4)]


def get_init_inputs() -> list[int]:
    return []
