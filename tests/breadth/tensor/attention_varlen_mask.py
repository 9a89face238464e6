"""Packed sequences kept apart by a mask made of their numbers (attention)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

KNOWN = ("owner",)


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, owner: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q, k, v, attn_mask=owner[:, None] == owner[None, :])


def get_inputs() -> list[torch.Tensor]:
    return [*(torch.randn(2, 8, 4) for _ in range(3)), torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])]


def get_init_inputs() -> list[int]:
    return []
