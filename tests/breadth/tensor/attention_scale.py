"""Causal attention of 16-bit floats with a scale of its own (attention)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.25)


def get_inputs() -> list[torch.Tensor]:
    return [*(torch.randn(1, 2, 8, 16).bfloat16() for _ in range(3))]


def get_init_inputs() -> list[int]:
    return []
