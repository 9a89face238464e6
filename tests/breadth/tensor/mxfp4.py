"""MXFP4 weights: packed E2M1 in blocks of 32 under power-of-two scales (quantised)."""

from __future__ import annotations

import torch
from torch import nn

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, packed: torch.Tensor, exponents: torch.Tensor) -> torch.Tensor:
        table = torch.tensor(E2M1, device=x.device)
        codes = torch.stack([packed & 15, packed >> 4], -1).flatten(-2)
        blocks = table[codes.long()].reshape(codes.shape[0], -1, 32)
        weight = (blocks * torch.exp2(exponents.float() - 127)[..., None]).flatten(-2)
        return x @ weight.mT


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randn(4, 64),
        torch.randint(256, (6, 32), dtype=torch.uint8),
        torch.randint(124, 130, (6, 2), dtype=torch.uint8),
    ]


def get_init_inputs() -> list[int]:
    return []
