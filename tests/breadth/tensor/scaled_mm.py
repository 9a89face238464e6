"""FP8 product with scales by the library's own call (quantised)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> torch.Tensor:
        return torch._scaled_mm(a, b.t(), scale_a, scale_b, out_dtype=torch.bfloat16)


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randn(16, 32).to(torch.float8_e4m3fn),
        torch.randn(16, 32).to(torch.float8_e4m3fn),
        torch.tensor(0.5),
        torch.tensor(2.0),
    ]


def get_init_inputs() -> list[int]:
    return []
