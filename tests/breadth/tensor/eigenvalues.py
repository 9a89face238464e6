"""Eigenvalues and singular values: iterations without a known count (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn

UNCOUNTED = ("eigh", "svd")


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.linalg.eigvalsh(x + x.mT), torch.linalg.svdvals(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 5)]


def get_init_inputs() -> list[int]:
    return []
