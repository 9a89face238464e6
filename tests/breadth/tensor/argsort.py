"""Positions in order, used to permute another tensor (sort)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y.gather(1, x.argsort(1))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.randn(4, 6)]


def get_init_inputs() -> list[int]:
    return []
