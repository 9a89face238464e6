"""Sampling at a grid, written out: PyTorch has no gradient of it in simple operators, and none in three dimensions."""

from __future__ import annotations

import itertools
import math

import torch

_MODES, _BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
# R. Keys, "Cubic convolution interpolation for digital image processing", IEEE Trans. ASSP 29, 1981; PyTorch's choice.
_CUBIC = -0.75


def grid_sample(
    input: torch.Tensor,
    grid: torch.Tensor,
    mode: str | int = "bilinear",
    padding_mode: str | int = "zeros",
    align_corners: bool | None = None,
) -> torch.Tensor:
    """Values of ``input`` [N, C, ...] at coordinates [N, ..., d] in [-1, 1], the last dimension's coordinate first.
    Sums over the nearest places, weighted by distance; outside are zeros, or the border, or its reflection."""
    mode = mode if isinstance(mode, str) else _MODES[mode]
    border = padding_mode if isinstance(padding_mode, str) else _BORDERS[padding_mode]
    narrow = input.dtype in (torch.float16, torch.bfloat16)
    value, grid = (input.float(), grid.float()) if narrow else (input, grid)
    sizes, rank = value.shape[2:], value.dim() - 2
    choices = []
    for d, size in enumerate(sizes):
        x = grid.select(-1, rank - 1 - d)
        x = x * ((size - 1) / 2 if align_corners else size / 2) + (size - 1) / 2
        choices.append(_places(x, size, mode, border, bool(align_corners)))
    last = value.movedim(1, -1)
    batch = torch.arange(value.shape[0]).reshape(-1, *[1] * rank)
    total: torch.Tensor | None = None
    for combination in itertools.product(*choices):
        picked = last[(batch, *(place for place, _ in combination))]
        factors = [factor for _, factor in combination if factor is not None]
        picked = picked * math.prod(factors[1:], start=factors[0]).unsqueeze(-1) if factors else picked
        total = picked if total is None else total + picked
    assert total is not None
    return total.movedim(-1, 1).to(input.dtype)


def _places(
    x: torch.Tensor, size: int, mode: str, border: str, align: bool
) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
    """Places along one dimension, inside it, with their weights (None: one). Zeros outside enter the weights."""
    if mode != "bicubic":
        x = _inside(x, size, border, align)
    base = x.round() if mode == "nearest" else x.floor()
    away = x - base
    found: list[tuple[torch.Tensor, torch.Tensor | None]] = []
    for offset in {"bilinear": (0, 1), "nearest": (0,), "bicubic": (-1, 0, 1, 2)}[mode]:
        place = base + offset if offset else base
        weight: torch.Tensor | None = None
        if mode == "bilinear":
            weight = away if offset else 1 - away
        elif mode == "bicubic":
            weight = _cubic(offset - away if offset > 0 else away - offset, near=offset in (0, 1))
            place = _inside(place, size, border, align)
        if border == "zeros":
            held = (place >= 0) & (place <= size - 1)
            weight = torch.where(held, 1.0 if weight is None else weight, 0.0).to(x.dtype)
        found.append((place.clamp(0, size - 1).long(), weight))
    return found


def _cubic(x: torch.Tensor, near: bool) -> torch.Tensor:
    """Keys' kernel at a distance below one, or between one and two."""
    a = _CUBIC
    return ((a + 2) * x - (a + 3)) * x * x + 1 if near else ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def _inside(x: torch.Tensor, size: int, border: str, align: bool) -> torch.Tensor:
    """Coordinates stopped at the border, or reflected at it: at the outer edge of the last elements, or (``align``)
    at their centres."""
    if border == "reflection":
        low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
        if not span:
            return x * 0
        # A triangle wave of period 2 span.
        x = torch.fmod((x - low).abs(), 2 * span)
        x = torch.minimum(x, 2 * span - x) + low
    return x if border == "zeros" else x.clamp(0, size - 1)
