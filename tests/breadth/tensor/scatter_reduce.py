"""Scatters that keep the largest, the product and the mean (index)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(
        self, x: torch.Tensor, index: torch.Tensor, source: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        top = x.scatter_reduce(0, index, source, reduce="amax")
        product = x.scatter_reduce(0, index, source, reduce="prod")
        return top, product, x.scatter_reduce(0, index, source, reduce="mean")


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.randint(4, (5, 6)), torch.randn(5, 6)]


def get_init_inputs() -> list[int]:
    return []
