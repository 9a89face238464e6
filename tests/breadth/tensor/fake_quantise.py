"""Quantised and back, by tensor and by channel (quantised)."""

from __future__ import annotations

import torch
from torch import nn

AS_DRAWN = ("scale",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
        # Forwards only: backwards it passes gradients straight through, which no function of x does.
        x = x.detach()
        whole = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127)
        return whole + torch.fake_quantize_per_channel_affine(x, scale, zero, 1, 0, 255)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.rand(6) + 0.1, torch.zeros(6, dtype=torch.int32)]


def get_init_inputs() -> list[int]:
    return []
