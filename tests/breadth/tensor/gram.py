"""Matrix by its own transpose (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return a @ a.mT


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 6, 3)]


def get_init_inputs() -> list[int]:
    return []
