"""MXFP4 decoded by arithmetic on its bits instead of a table (quantised)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, packed: torch.Tensor, exponents: torch.Tensor) -> torch.Tensor:
        codes = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).to(torch.int32)
        exponent, fraction = (codes >> 1) & 3, (codes & 1).float()
        size = torch.where(exponent == 0, 0.5 * fraction, (1.0 + 0.5 * fraction) * torch.exp2(exponent.float() - 1.0))
        value = torch.where(codes >= 8, -size, size)
        return value.reshape(codes.shape[0], -1, 32) * torch.exp2(exponents.float() - 127)[..., None]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(256, (6, 32), dtype=torch.uint8), torch.randint(124, 130, (6, 2), dtype=torch.uint8)]


def get_init_inputs() -> list[int]:
    return []
