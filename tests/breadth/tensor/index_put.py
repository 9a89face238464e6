"""Writes at pairs of positions, once replaced and once added (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x.index_put((rows, columns), source) + x.index_put((rows,), source[:, None], accumulate=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.randperm(4)[:3], torch.randint(6, (3,)), torch.randn(3)]


def get_init_inputs() -> list[int]:
    return []
