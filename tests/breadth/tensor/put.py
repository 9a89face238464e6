"""Elements replaced by their flat position (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x.put(index, source) - x.put(index, source, accumulate=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.randperm(24)[:5], torch.randn(5)]


def get_init_inputs() -> list[int]:
    return []
