"""Activations quantised to INT8 by row, multiplied with INT8 weights (quantised)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        top = x.abs().amax(1, keepdim=True).clamp(min=1e-6) / 127.0
        codes = torch.round(x / top).clamp(-128, 127).to(torch.int8)
        return torch._int_mm(codes, weight).float() * top * scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(32, 16), torch.randint(-127, 128, (16, 8), dtype=torch.int8), torch.rand(8)]


def get_init_inputs() -> list[int]:
    return []
