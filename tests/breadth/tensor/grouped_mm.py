"""One product for each group of rows by the library's own call (matmul)."""

from __future__ import annotations

import torch
from torch import nn

KNOWN = ("ends",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return torch._grouped_mm(x, weight, offs=ends)


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randn(12, 16).bfloat16(),
        torch.randn(3, 16, 8).bfloat16(),
        torch.tensor([2, 9, 12], dtype=torch.int32),
    ]


def get_init_inputs() -> list[int]:
    return []
