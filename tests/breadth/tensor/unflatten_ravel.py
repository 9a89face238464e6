"""Dimensions split and joined, strides skipped (views)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(1, (2, 3))[:, :, ::2].ravel() - x.mT.reshape(-1)[:16]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6)]


def get_init_inputs() -> list[int]:
    return []
