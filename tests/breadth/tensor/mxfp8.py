"""MXFP8: FP8 e4m3 in blocks of 32 under power-of-two scales, both operands (quantised)."""

from __future__ import annotations

import torch
from torch import nn


def widened(codes: torch.Tensor, exponents: torch.Tensor) -> torch.Tensor:
    blocks = codes.float().reshape(codes.shape[0], -1, 32)
    return (blocks * torch.exp2(exponents.float() - 127)[..., None]).flatten(-2)


class Model(nn.Module):
    def forward(self, a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor) -> torch.Tensor:
        return widened(a, a_scale) @ widened(b, b_scale).mT


def get_inputs() -> list[torch.Tensor]:
    codes = [torch.randn(rows, 64).to(torch.float8_e4m3fn) for rows in (4, 6)]
    scales = [torch.randint(124, 130, (rows, 2), dtype=torch.uint8) for rows in (4, 6)]
    return [codes[0], scales[0], codes[1], scales[1]]


def get_init_inputs() -> list[int]:
    return []
