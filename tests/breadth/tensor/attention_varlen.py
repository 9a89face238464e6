"""Attention of packed sequences whose offsets are given (attention)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

KNOWN = ("offsets",)


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        parts = []
        limits = offsets.tolist()
        for start, stop in pairwise(limits):
            rows = slice(start, stop)
            parts.append(scaled_dot_product_attention(q[:, rows], k[:, rows], v[:, rows], is_causal=True))
        return torch.cat(parts, 1)


def get_inputs() -> list[torch.Tensor]:
    return [*(torch.randn(2, 12, 4) for _ in range(3)), torch.tensor([0, 3, 8, 12])]


def get_init_inputs() -> list[int]:
    return []
