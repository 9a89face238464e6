"""Causal attention whose scores are capped by a tanh, written out (attention)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = 5.0 * torch.tanh(q @ k.mT / (5.0 * q.shape[-1] ** 0.5))
        later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
        return scores.masked_fill(later, float("-inf")).softmax(-1) @ v


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3, 8, 4), torch.randn(2, 3, 8, 4), torch.randn(2, 3, 8, 4)]


def get_init_inputs() -> list[int]:
    return []
