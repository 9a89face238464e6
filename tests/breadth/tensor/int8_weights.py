"""INT8 weights with a scale by channel, by the library's own call (quantised)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch._weight_int8pack_mm(x, weight, scale)


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randn(4, 32).bfloat16(),
        torch.randint(-128, 128, (16, 32), dtype=torch.int8),
        torch.rand(16).bfloat16(),
    ]


def get_init_inputs() -> list[int]:
    return []
