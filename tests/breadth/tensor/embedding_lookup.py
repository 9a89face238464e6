"""Rows of a table (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.table(index)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(10, (2, 3))]


def get_init_inputs() -> list[int]:
    return []
