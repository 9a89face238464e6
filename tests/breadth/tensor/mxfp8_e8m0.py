"""MXFP8 weights with scales in PyTorch's own power-of-two dtype (quantised)."""

from __future__ import annotations

import torch
from torch import nn

AS_DRAWN = ("scales",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        blocks = codes.float().reshape(codes.shape[0], -1, 32) * scales.float()[..., None]
        return x @ blocks.flatten(-2).mT


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randn(4, 64),
        torch.randn(6, 64).to(torch.float8_e5m2),
        torch.randint(124, 130, (6, 2), dtype=torch.uint8).view(torch.float8_e8m0fnu),
    ]


def get_init_inputs() -> list[int]:
    return []
