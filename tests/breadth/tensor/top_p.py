"""Nucleus filter: what lies beyond the mass is masked out (sort)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        values, order = logits.sort(-1, descending=True)
        mass = values.softmax(-1).cumsum(-1)
        values = values.masked_fill(mass - values.softmax(-1) > 0.7, float("-inf"))
        return torch.full_like(logits, float("-inf")).scatter(-1, order, values).softmax(-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 8)]


def get_init_inputs() -> list[int]:
    return []
