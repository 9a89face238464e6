"""Counts of integers that are given (histogram)."""

from __future__ import annotations

import torch
from torch import nn

KNOWN = ("x",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return torch.bincount(x, minlength=4) * weights


def get_inputs() -> list[torch.Tensor]:
    return [torch.tensor([0, 2, 2, 1, 0, 2]), torch.randn(4)]


def get_init_inputs() -> list[int]:
    return []
