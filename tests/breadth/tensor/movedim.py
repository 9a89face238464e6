"""Dimensions moved, swapped, widened and narrowed (views)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.movedim(0, -1).swapaxes(0, 1).narrow(0, 1, 2).unsqueeze(0).expand(3, -1, -1, -1).flatten(0, 1) * 1.5


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3, 4)]


def get_init_inputs() -> list[int]:
    return []
