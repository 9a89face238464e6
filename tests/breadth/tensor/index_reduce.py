"""Rows multiplied in, and the largest kept, where an index says (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x.index_reduce(0, index, source, "prod") + x.index_reduce(0, index, source, "amax")


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 3), torch.randint(4, (6,)), torch.randn(6, 3)]


def get_init_inputs() -> list[int]:
    return []
