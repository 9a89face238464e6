"""NVFP4 weights: packed E2M1 in blocks of 16 under FP8 scales and one FP32 scale (quantised)."""

from __future__ import annotations

import torch
from torch import nn

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
        table = torch.tensor(E2M1, device=x.device)
        codes = torch.stack([packed & 15, packed >> 4], -1).flatten(-2)
        blocks = table[codes.int()].reshape(codes.shape[0], -1, 16)
        weight = (blocks * scales.float()[..., None]).flatten(-2) * whole
        return x @ weight.to(x.dtype).mT


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randn(4, 32).bfloat16(),
        torch.randint(256, (6, 16), dtype=torch.uint8),
        torch.rand(6, 2).to(torch.float8_e4m3fn),
        torch.tensor(0.5),
    ]


def get_init_inputs() -> list[int]:
    return []
