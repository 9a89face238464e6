"""Mixture of experts, every expert on every token, gated by top-2 (routing)."""

from __future__ import annotations

import torch
from torch import nn

EXPERTS = 3


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(4, EXPERTS)
        self.up = nn.Parameter(torch.randn(EXPERTS, 4, 5))
        self.down = nn.Parameter(torch.randn(EXPERTS, 5, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores, chosen = self.router(x).softmax(-1).topk(2, -1)
        gate = torch.zeros(x.shape[0], EXPERTS, device=x.device).scatter(
            1, chosen, scores / scores.sum(-1, keepdim=True)
        )
        hidden = torch.einsum("td,edf->etf", x, self.up).relu()
        return torch.einsum("etf,efd,te->td", hidden, self.down, gate)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(6, 4)]


def get_init_inputs() -> list[int]:
    return []
