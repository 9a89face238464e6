"""Inverse from a Cholesky factor, and a system by the older call (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        lower = x.tril(-1) + 3.0 * torch.eye(x.shape[-1], device=x.device)
        old = torch.triangular_solve(b, lower, upper=False, transpose=True).solution
        return torch.cholesky_inverse(lower), old


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 5), torch.randn(5, 3)]


def get_init_inputs() -> list[int]:
    return []
