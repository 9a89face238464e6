"""Rows replaced and filled (index)."""

from __future__ import annotations

import torch
from torch import nn

KNOWN = ("index",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x.index_copy(1, index, source).index_fill(0, index[:1], -1.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.tensor([3, 0]), torch.randn(4, 2)]


def get_init_inputs() -> list[int]:
    return []
