"""Product of two packed INT4 operands (quantised)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        left = torch.stack([a & 15, a >> 4], -1).flatten(-2).to(torch.int32) - 8
        right = torch.stack([b & 15, b >> 4], -1).flatten(-2).to(torch.int32) - 8
        return left.float() @ right.float().mT


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(256, (4, 8), dtype=torch.uint8), torch.randint(256, (6, 8), dtype=torch.uint8)]


def get_init_inputs() -> list[int]:
    return []
