"""Bins of numbers between sorted edges (histogram)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 1.5], device=x.device))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 5)]


def get_init_inputs() -> list[int]:
    return []
