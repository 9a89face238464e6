"""Values and positions in order (sort)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.sort(x, dim=0, descending=True, stable=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(7, 4)]


def get_init_inputs() -> list[int]:
    return []
