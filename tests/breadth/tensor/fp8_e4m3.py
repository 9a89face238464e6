"""Product of operands rounded to FP8 e4m3 (quantised)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        left, right = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        return left.float() @ right.float()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 16), torch.randn(16, 8)]


def get_init_inputs() -> list[int]:
    return []
