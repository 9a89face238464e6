"""A strided view replaced without writing in place, a part copied out (copies)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        # Detached: PyTorch's own gradient to the base of a strided scatter fails torch.autograd.gradcheck.
        return torch.as_strided_scatter(x.detach(), source, (5,), (3,), 2) * torch.narrow_copy(x, 0, -2, 1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 6), torch.randn(5)]


def get_init_inputs() -> list[int]:
    return []
