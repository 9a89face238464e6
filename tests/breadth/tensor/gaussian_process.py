"""Posterior mean and likelihood of a Gaussian process (linear algebra)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, test: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kernel = (-0.5 * torch.cdist(x, x.clone() + 0.01).square()).exp() + 3.0 * torch.eye(x.shape[0], device=x.device)
        kernel = 0.5 * (kernel + kernel.mT)
        factor = torch.linalg.cholesky(kernel)
        weights = torch.cholesky_solve(y[:, None], factor)
        mean = (-0.5 * torch.cdist(test, x).square()).exp() @ weights
        return mean[:, 0], (y @ weights)[0] + 2.0 * factor.diagonal().log().sum()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(6, 2), torch.randn(6), torch.randn(4, 2)]


def get_init_inputs() -> list[int]:
    return []
