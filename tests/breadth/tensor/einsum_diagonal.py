"""Einstein sums that read a diagonal (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bii->bi", a) * torch.einsum("bii->b", a)[:, None]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 5, 5)]


def get_init_inputs() -> list[int]:
    return []
