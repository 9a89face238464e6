"""Views replaced without writing in place (copies)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(
        self, x: torch.Tensor, rows: torch.Tensor, column: torch.Tensor, diagonal: torch.Tensor
    ) -> torch.Tensor:
        return x.slice_scatter(rows, 0, 1, 3).select_scatter(column, 1, 2).diagonal_scatter(diagonal)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 4), torch.randn(2, 4), torch.randn(4), torch.randn(4)]


def get_init_inputs() -> list[int]:
    return []
