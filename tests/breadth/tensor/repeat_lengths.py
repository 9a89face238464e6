"""Rows repeated as often as given (copies)."""

from __future__ import annotations

import torch
from torch import nn

KNOWN = ("lengths",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return x.repeat_interleave(lengths, 0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 4), torch.tensor([2, 0, 3])]


def get_init_inputs() -> list[int]:
    return []
