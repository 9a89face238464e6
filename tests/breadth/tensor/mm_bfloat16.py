"""Matrix product of 16-bit floats, then a step in float32 (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a @ b).float().tanh()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 16).bfloat16(), torch.randn(16, 4).bfloat16()]


def get_init_inputs() -> list[int]:
    return []
