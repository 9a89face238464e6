"""FP8 product with a scale by row and by column and a bias (quantised)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(
        self, a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        return torch._scaled_mm(a, b.t(), scale_a, scale_b, bias=bias, out_dtype=torch.bfloat16)


def get_inputs() -> list[torch.Tensor]:
    codes = [torch.randn(16, 32).to(torch.float8_e4m3fn) for _ in range(2)]
    return [*codes, torch.rand(16, 1), torch.rand(1, 16), torch.randn(16).bfloat16()]


def get_init_inputs() -> list[int]:
    return []
