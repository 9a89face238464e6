"""Running sums along two dimensions (scan)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(1) + x.double().cumsum(0).float()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6)]


def get_init_inputs() -> list[int]:
    return []
