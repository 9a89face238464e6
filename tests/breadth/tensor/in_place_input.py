"""An input written in place through a view, and returned (views)."""

from __future__ import annotations

import torch
from torch import nn

IN_PLACE = ("x",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x[:, ::2].copy_(y).relu_()
        return x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.randn(4, 3)]


def get_init_inputs() -> list[int]:
    return []
