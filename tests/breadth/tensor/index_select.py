"""Columns by position, known (index)."""

from __future__ import annotations

import torch
from torch import nn

KNOWN = ("index",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return x.index_select(1, index)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.tensor([5, 0, 5])]


def get_init_inputs() -> list[int]:
    return []
