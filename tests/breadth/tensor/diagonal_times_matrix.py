"""A diagonal and a triangular matrix as factors (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, d: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.diag(d) @ (torch.tril(a) @ b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5), torch.randn(5, 5), torch.randn(5, 4)]


def get_init_inputs() -> list[int]:
    return []
