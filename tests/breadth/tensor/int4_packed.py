"""Packed INT4 weights, unpacked by shifts, with scale and zero point by group (quantised)."""

from __future__ import annotations

import torch
from torch import nn

GROUP = 8


class Model(nn.Module):
    def forward(self, x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
        low, high = packed & 15, packed >> 4
        codes = torch.stack([low, high], -1).flatten(-2)
        groups = codes.reshape(codes.shape[0], -1, GROUP).to(x.dtype)
        weight = ((groups - zero[..., None]) * scale[..., None]).flatten(-2)
        return x @ weight.mT


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randn(4, 16),
        torch.randint(256, (8, 8), dtype=torch.uint8),
        torch.rand(8, 2),
        torch.full((8, 2), 8.0),
    ]


def get_init_inputs() -> list[int]:
    return []
