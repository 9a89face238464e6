"""The lower triangle as a list of elements (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = torch.tril_indices(5, 5, -1, device=x.device).unbind()
        return x[..., rows, columns]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 5, 5)]


def get_init_inputs() -> list[int]:
    return []
