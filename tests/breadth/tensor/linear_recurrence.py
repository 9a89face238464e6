"""First-order recurrence by a running sum of logarithms (scan)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, decay: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        total = nn.functional.logsigmoid(decay).cumsum(1)
        gap = total[:, :, None] - total[:, None, :]
        weight = gap.tril().exp().tril()
        return torch.einsum("bts,bsd->btd", weight, x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 5), torch.randn(2, 5, 3)]


def get_init_inputs() -> list[int]:
    return []
