"""Running extremes and where they are (scan)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return *torch.cummax(x, 1), torch.cummin(x, 0).values


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6)]


def get_init_inputs() -> list[int]:
    return []
