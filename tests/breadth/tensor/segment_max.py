"""Largest of each segment, by a scatter (segments)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, segment: torch.Tensor) -> torch.Tensor:
        index = segment[:, None].expand_as(x)
        return torch.full((3, x.shape[1]), float("-inf"), device=x.device).scatter_reduce(0, index, x, "amax")


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(9, 4), torch.tensor([0, 0, 1, 1, 1, 1, 2, 2, 2])]


def get_init_inputs() -> list[int]:
    return []
