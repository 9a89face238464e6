"""Parts of a tensor, uneven ones too (views)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, b, c = x.split([1, 2, 4], 1)
        d, e, _ = x.chunk(3, 0)
        return a.sum() + b.mean() * c, d - e


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(6, 7)]


def get_init_inputs() -> list[int]:
    return []
