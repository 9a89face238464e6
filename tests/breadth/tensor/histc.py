"""Counts in equal bins between fixed limits (histogram)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.histc(x, bins=6, min=-2.0, max=2.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(40)]


def get_init_inputs() -> list[int]:
    return []
