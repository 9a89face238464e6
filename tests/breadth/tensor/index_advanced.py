"""Positions apart from each other, a slice between them, negative ones among them (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        return x[rows, :, columns] + x[-1:, :, 2].squeeze(0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 3, 6), torch.tensor([-1, 0, 2]), torch.tensor([5, -2, 1])]


def get_init_inputs() -> list[int]:
    return []
