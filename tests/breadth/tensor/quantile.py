"""Quantiles between two ranks (sort)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.quantile(x, torch.tensor([0.25, 0.6], device=x.device), dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 7)]


def get_init_inputs() -> list[int]:
    return []
