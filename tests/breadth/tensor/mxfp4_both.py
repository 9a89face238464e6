"""MXFP4 on both sides of the product (quantised)."""

from __future__ import annotations

import torch
from torch import nn

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


def widened(packed: torch.Tensor, exponents: torch.Tensor) -> torch.Tensor:
    codes = torch.stack([packed & 15, packed >> 4], -1).flatten(-2)
    blocks = torch.tensor(E2M1, device=packed.device)[codes.long()].reshape(codes.shape[0], -1, 32)
    return (blocks * torch.exp2(exponents.float() - 127)[..., None]).flatten(-2)


class Model(nn.Module):
    def forward(self, a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor) -> torch.Tensor:
        return widened(a, a_scale) @ widened(b, b_scale).mT


def get_inputs() -> list[torch.Tensor]:
    codes = [torch.randint(256, (rows, 32), dtype=torch.uint8) for rows in (4, 6)]
    scales = [torch.randint(124, 130, (rows, 2), dtype=torch.uint8) for rows in (4, 6)]
    return [codes[0], scales[0], codes[1], scales[1]]


def get_init_inputs() -> list[int]:
    return []
