"""Rotary positions, halves rotated (attention)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        frequency = 10000.0 ** (-torch.arange(half, device=x.device).float() / half)
        angle = torch.arange(x.shape[-2], device=x.device).float()[:, None] * frequency
        first, second = x.chunk(2, -1)
        turned = [first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()]
        return torch.cat(turned, -1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3, 6, 8)]


def get_init_inputs() -> list[int]:
    return []
