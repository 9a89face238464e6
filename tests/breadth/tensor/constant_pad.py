"""Framed with a number, and cut by a negative frame (copies)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.pad(x, (1, 2, -1, 0), value=0.5)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 5)]


def get_init_inputs() -> list[int]:
    return []
