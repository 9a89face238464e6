"""Wrong outputs that a problem's checks have to refuse: what a lazy, a broken or a careless kernel leaves behind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from solbench.corpus.formats import same_bits
from solbench.corpus.reduce import Instance
from solbench.corpus.variants import TakenApart, aten, run_under, summed_axes
from solbench.inputs import Input

# A sum of fewer terms is not behind an output for what this control asks.
LEAST_TERMS = 16
# How often a running sum is rounded at most; more terms are added up in stretches.
ROUNDINGS = 64


def wrong_outputs(
    name: str, right: torch.Tensor, inputs: Mapping[str, Input], stale: torch.Tensor
) -> Iterator[tuple[str, torch.Tensor | str]]:
    """(control, wrong output) in the place of the output ``name``; a reason in place of a tensor where there is none.

    ``stale``: the output of another draw. What has the bits of the right output is no control.
    """
    found: dict[str, torch.Tensor | str] = {"zeros": torch.zeros_like(right), "a stale output": stale}
    if right.numel() > 1:
        mean = torch.full(right.shape, float(right.double().mean()), dtype=torch.float64)
        found["the mean"] = mean.to(right.dtype)
        half = right.flatten().clone()
        half[right.numel() // 2 :] = stale.flatten()[right.numel() // 2 :]
        found["half the rows"] = half.reshape(right.shape)
    else:
        found["the mean"] = found["half the rows"] = "has one element"
    found["transposed"] = _transposed(right)
    for source, value in inputs.items():
        if isinstance(value, torch.Tensor) and value.shape == right.shape and value.dtype == right.dtype:
            found[f"a copy of {source}"] = value
    for control, value in found.items():
        if isinstance(value, torch.Tensor) and same_bits(value, right):
            value = "is the right output"
        yield f"{name}: {control} must fail", value


def _transposed(right: torch.Tensor) -> torch.Tensor | str:
    """The elements in the order of the transpose over the last two axes that have an extent, in the right's shape."""
    axes = [axis for axis, extent in enumerate(right.shape) if extent > 1]
    if len(axes) < 2:
        return "has one axis"
    return right.transpose(axes[-2], axes[-1]).contiguous().reshape(right.shape)


class _LowAccumulation(TakenApart):
    """Rounds the running sum of products, convolutions, sums and means to ``dtype``; sums of few terms are left, and
    without a ``dtype`` all are."""

    def __init__(self, dtype: torch.dtype | None) -> None:
        super().__init__()
        self.dtype = dtype

    def step(self, func: Any, args: Any, kwargs: Any) -> Any:
        packet = func.overloadpacket if self.dtype is not None else None
        if packet in (aten.mm, aten.bmm) and _is_long(args[0], args[0].shape[-1]):
            return self._product(func, *args)
        if packet in (aten.addmm, aten.baddbmm) and not kwargs and _is_long(args[1], args[1].shape[-1]):
            return args[0] + self._product(aten.mm.default if packet is aten.addmm else aten.bmm.default, *args[1:])
        if packet is aten.convolution and args[8] == 1 and not args[6] and _is_long(args[0], args[1][0].numel()):
            return self._convolution(func, args)
        if packet in (aten.sum, aten.mean):
            axes = [axis % args[0].dim() for axis in summed_axes(args)]
            count = math.prod(args[0].shape[axis] for axis in axes)
            if _is_long(args[0], count):
                result = func(*args, **kwargs)
                kept = [axis for axis in range(args[0].dim()) if axis not in axes]
                total = self._sum(args[0].permute(kept + axes).reshape(-1, count))
                return (total / count if packet is aten.mean else total).reshape(result.shape).to(result.dtype)
        return func(*args, **kwargs)

    def _rounded(self, value: torch.Tensor) -> torch.Tensor:
        return value.to(self.dtype).to(value.dtype)  # type: ignore[arg-type]

    def _product(self, func: Any, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        total = None
        for part in _stretches(left.shape[-1]):
            piece = func(left[..., part], right[..., part, :])
            total = self._rounded(piece if total is None else total + piece)
        assert total is not None
        return total

    def _convolution(self, func: Any, args: Any) -> torch.Tensor:
        total = None
        for part in _stretches(args[0].shape[1]):
            piece = func(args[0][:, part], args[1][:, part], None, *args[3:])
            total = self._rounded(piece if total is None else total + piece)
        assert total is not None
        bias = args[2]
        return total if bias is None else total + bias.reshape(-1, *[1] * (total.dim() - 2))

    def _sum(self, rows: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(rows[:, 0])
        for part in _stretches(rows.shape[1]):
            total = self._rounded(total + rows[:, part].sum(1))
        return total


def _is_long(operand: torch.Tensor, terms: int) -> bool:
    return terms >= LEAST_TERMS and operand.is_floating_point()


def _stretches(terms: int) -> list[slice]:
    length = -(-terms // ROUNDINGS)
    return [slice(start, start + length) for start in range(0, terms, length)]


def with_low_accumulation(
    instance: Instance, inputs: Mapping[str, Input], dtype: torch.dtype | None
) -> dict[str, torch.Tensor]:
    """Outputs of the reference with its long sums rounded to ``dtype`` again and again as they grow (None: not rounded,
    with operators taken apart just so)."""
    return run_under(_LowAccumulation(dtype), instance, inputs)
