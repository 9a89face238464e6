"""One step of keys written behind the ones there, then read as far as they go (attention)."""

from __future__ import annotations

import torch
from torch import nn

FILLED = 5
IN_PLACE = ("cache",)


class Model(nn.Module):
    def forward(self, cache: torch.Tensor, k: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        cache[:, FILLED] = k
        return torch.einsum("bd,bsd->bs", q, cache[:, : FILLED + 1]).softmax(-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 8, 4), torch.randn(2, 4), torch.randn(2, 4)]


def get_init_inputs() -> list[int]:
    return []
