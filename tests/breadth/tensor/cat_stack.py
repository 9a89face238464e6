"""Joined and stacked (copies)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.stack([a, b], 1).flatten(1), torch.hstack([a, b])], 0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 4), torch.randn(3, 4)]


def get_init_inputs() -> list[int]:
    return []
