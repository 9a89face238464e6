"""FP8 e5m2 inputs, widened and multiplied with a scale (quantised)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return (a.to(torch.bfloat16) @ b.to(torch.bfloat16)) * scale


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randn(4, 16).to(torch.float8_e5m2),
        torch.randn(16, 8).to(torch.float8_e5m2),
        torch.rand(8).bfloat16(),
    ]


def get_init_inputs() -> list[int]:
    return []
