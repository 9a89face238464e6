"""Scatter of a tensor, then of a number (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x.scatter(1, index, source).scatter(0, index[:1, :1], 2.0)


def get_inputs() -> list[torch.Tensor]:
    index = torch.stack([torch.randperm(6)[:3] for _ in range(4)])
    return [torch.randn(4, 6), index % 4, torch.randn(4, 3)]


def get_init_inputs() -> list[int]:
    return []
