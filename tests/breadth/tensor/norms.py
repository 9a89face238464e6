"""Norms of vectors and matrices that need no decomposition (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        vectors = torch.linalg.vector_norm(x, 3, dim=1) + x.norm(dim=1) + x.norm(p=float("inf"), dim=1)
        return vectors, torch.linalg.matrix_norm(x) + torch.linalg.matrix_norm(x, 1) + torch.linalg.norm(
            x, float("inf")
        )


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6)]


def get_init_inputs() -> list[int]:
    return []
