"""Mixture of experts with a fixed capacity: tokens sorted by expert, packed, multiplied, put back (routing)."""

from __future__ import annotations

import torch
from torch import nn

KNOWN = ("chosen",)
EXPERTS = 3


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(EXPERTS, 4, 5))

    def forward(self, x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        order = chosen.argsort(stable=True)
        packed = x[order].reshape(EXPERTS, -1, x.shape[1])
        done = torch.bmm(packed, self.weight).reshape(x.shape[0], -1)
        return torch.zeros_like(done).index_copy(0, order, done)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(6, 4), torch.tensor([1, 0, 2, 0, 1, 2])]


def get_init_inputs() -> list[int]:
    return []
