"""An index of one operand only is summed first (matmul)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.einsum("ij,jkp->i", a, b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 4), torch.randn(4, 5, 6)]


def get_init_inputs() -> list[int]:
    return []
