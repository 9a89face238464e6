"""A triangular system with a unit diagonal, of an input as it is (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 5, 5), torch.randn(2, 5, 3)]


def get_init_inputs() -> list[int]:
    return []
