"""Sums of runs whose lengths are given (segments)."""

from __future__ import annotations

import torch
from torch import nn

KNOWN = ("lengths",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return torch.segment_reduce(x, "sum", lengths=lengths, axis=0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(9, 4), torch.tensor([2, 4, 3])]


def get_init_inputs() -> list[int]:
    return []
