"""Attention to another sequence, longer than its own (attention)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q, k, v)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3, 4, 4), torch.randn(2, 3, 9, 4), torch.randn(2, 3, 9, 5)]


def get_init_inputs() -> list[int]:
    return []
