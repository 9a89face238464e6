"""A linear system and its gradient inside the reference (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            matrix = (x.detach() + 6.0 * torch.eye(x.shape[-1], device=x.device)).requires_grad_()
            loss = torch.linalg.solve(matrix, b.detach()).square().sum()
            return torch.autograd.grad(loss, matrix)[0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 5, 5), torch.randn(2, 5, 3)]


def get_init_inputs() -> list[int]:
    return []
