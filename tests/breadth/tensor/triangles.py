"""Triangles and diagonals taken and built (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return x.tril(1) + x.triu(-1) * 0.5 + torch.diag(v) - torch.diag_embed(v[1:], offset=1) + x.diagonal().diag()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 5), torch.randn(5)]


def get_init_inputs() -> list[int]:
    return []
