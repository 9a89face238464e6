"""One input read directly and through a view (views)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu() + x.view(16, 8).t()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 16)]


def get_init_inputs() -> list[int]:
    return []
