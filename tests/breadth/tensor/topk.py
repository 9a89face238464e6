"""The smallest three and where they are (sort)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.topk(x, 3, dim=1, largest=False)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 9)]


def get_init_inputs() -> list[int]:
    return []
