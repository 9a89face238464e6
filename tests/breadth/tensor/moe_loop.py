"""Mixture of experts, one product for each group of tokens whose sizes are given (routing)."""

from __future__ import annotations

import torch
from torch import nn

KNOWN = ("sizes",)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 5))

    def forward(self, x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        parts = [part @ w for part, w in zip(x.split(sizes.tolist()), self.weight.unbind(), strict=True)]
        return torch.cat(parts)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(6, 4), torch.tensor([1, 3, 2])]


def get_init_inputs() -> list[int]:
    return []
