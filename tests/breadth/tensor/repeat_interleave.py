"""Repeated element by element, and whole (copies)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.repeat_interleave(3, 1) + x.repeat(2, 3)[:4] + x.tile(1, 3)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 5)]


def get_init_inputs() -> list[int]:
    return []
