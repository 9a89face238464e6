"""Triangular systems, lower and upper (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        lower = x.tril(-1) + 3.0 * torch.eye(x.shape[-1], device=x.device)
        y = torch.linalg.solve_triangular(lower, b, upper=False)
        return torch.linalg.solve_triangular(lower.mT, y, upper=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 5), torch.randn(5, 3)]


def get_init_inputs() -> list[int]:
    return []
