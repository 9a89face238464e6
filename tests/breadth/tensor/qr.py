"""Reduced QR factors (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.linalg.qr(x + 4.0 * torch.eye(*x.shape, device=x.device))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(7, 4)]


def get_init_inputs() -> list[int]:
    return []
