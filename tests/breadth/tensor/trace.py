"""Trace of a matrix and of a product (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.trace() + torch.trace(a @ b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 5), torch.randn(5, 5)]


def get_init_inputs() -> list[int]:
    return []
