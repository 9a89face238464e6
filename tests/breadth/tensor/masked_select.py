"""Elements under a mask whose contents are given (index)."""

from __future__ import annotations

import torch
from torch import nn

KNOWN = ("mask",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x.masked_select(mask)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3), torch.tensor([[True, False, True], [False, False, True]])]


def get_init_inputs() -> list[int]:
    return []
