"""Keys written into a cache in place at given positions (attention)."""

from __future__ import annotations

import torch
from torch import nn

KNOWN = ("positions",)
IN_PLACE = ("cache",)


class Model(nn.Module):
    def forward(self, cache: torch.Tensor, k: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        cache[:, positions] = k
        return cache[:, :6].sum(1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 8, 4), torch.randn(2, 3, 4), torch.tensor([2, 5, 7])]


def get_init_inputs() -> list[int]:
    return []
