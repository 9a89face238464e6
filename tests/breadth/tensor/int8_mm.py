"""INT8 product into INT32, scaled back by row and column (quantised)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> torch.Tensor:
        return torch._int_mm(a, b).float() * scale_a[:, None] * scale_b


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randint(-128, 128, (32, 16), dtype=torch.int8),
        torch.randint(-128, 128, (16, 8), dtype=torch.int8),
        torch.rand(32),
        torch.rand(8),
    ]


def get_init_inputs() -> list[int]:
    return []
