"""Distances and their gradient inside the reference (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            points = a.detach().requires_grad_()
            loss = torch.cdist(points, b.detach()).square().sum()
            return torch.autograd.grad(loss, points)[0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 3), torch.randn(4, 3)]


def get_init_inputs() -> list[int]:
    return []
