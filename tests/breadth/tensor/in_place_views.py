"""Writes through slices, columns, a diagonal and a transposition (views)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = x.clone()
        result[1:3].mul_(2.0)
        result[:, 0] = result[:, 1]
        result.diagonal().zero_()
        result.t()[2].add_(1.0)
        return result


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 5)]


def get_init_inputs() -> list[int]:
    return []
