"""Elements by their flat position (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return x.take(index)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.randint(24, (2, 3))]


def get_init_inputs() -> list[int]:
    return []
