"""One Triton kernel with its inputs, host code and reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """``inputs`` draws arguments by name; ``run`` (host code with Triton) and ``reference`` (PyTorch in float64 or in
    integers) take them and return tensors. An output is right within ``rtol`` of the reference plus ``atol``, and
    ``why`` says where these come from; both are 0 where every bit is decided."""

    name: str
    inputs: Callable[[torch.Generator], Inputs]
    run: Callable[..., Any]
    reference: Callable[..., Any]
    rtol: float = 0.0
    atol: float = 0.0
    why: str = "every bit is decided"
    slow: bool = False


def normal(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=generator).to(dtype)


def integers(
    generator: torch.Generator, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32
) -> torch.Tensor:
    """Of [low, high)."""
    return torch.randint(low, high, shape, generator=generator, dtype=torch.int64).to(dtype)
