"""Turned round and over (copies)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.roll((1, -2), (0, 1)) + x.flip(0, 1) - x.roll(3) + x.rot90(2)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6)]


def get_init_inputs() -> list[int]:
    return []
