"""The reference run in other ways: in float64, in another order of summation, or with rounded contraction operands.

All watch the operators that the reference dispatches, so that its own casts and sums are seen. The first two are right
and must pass the checks; the third tells which number formats a contraction may not be computed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from solbench.checks import check_outputs
from solbench.corpus.reduce import Instance
from solbench.corpus.reference import load_reference, named_outputs
from solbench.inputs import Input, draw, torch_dtype
from solbench.model.trace import Status

FORMATS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8")
# A check that fails on fewer elements than this may pass on another draw.
MARGIN = 1e-3

aten = torch.ops.aten
# Positions of a contraction's two operands.
_OPERANDS = {
    aten.mm: (0, 1), aten.bmm: (0, 1), aten.mv: (0, 1), aten.dot: (0, 1), aten.addmm: (1, 2), aten.baddbmm: (1, 2),
    aten.addmv: (1, 2), aten.convolution: (0, 1),
}  # fmt: skip


class _RoundedOperands(TorchDispatchMode):  # type: ignore[misc]
    """Rounds the operands of contraction number ``only`` (in order of dispatch); ``contractions`` counts them all."""

    def __init__(self, rounding: Callable[[torch.Tensor], torch.Tensor], only: int) -> None:
        super().__init__()
        self.rounding = rounding
        self.only = only
        self.contractions = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        positions = _OPERANDS.get(func.overloadpacket)
        if positions:
            if self.contractions == self.only:
                args = tuple(self.rounding(value) if at in positions else value for at, value in enumerate(args))
            self.contractions += 1
        return func(*args, **(kwargs or {}))


class _Double(TorchDispatchMode):  # type: ignore[misc]
    """Runs every float32 step in float64; roundings to narrower formats stay, they belong to the formula."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is aten.view.dtype:  # whoever looks at bits looks at those of a float32
            args = (args[0].float() if args[0].dtype == torch.float64 else args[0], *args[1:])
        else:
            args, kwargs = tree_map(_widen, (args, kwargs or {}))
        return func(*args, **(kwargs or {}))


class _OtherOrder(TorchDispatchMode):  # type: ignore[misc]
    """Splits the summed axis of products and convolutions in two, and sums and means from the other end."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet in (aten.mm, aten.bmm):
            return _split_product(func, *args)
        if packet is aten.addmm and not kwargs:
            return args[0] + _split_product(aten.mm.default, *args[1:])
        if packet is aten.convolution and args[8] == 1 and args[0].shape[1] > 1 and not args[6]:
            half = args[0].shape[1] // 2
            first = func(args[0][:, :half], args[1][:, :half], *args[2:])
            return first + func(args[0][:, half:], args[1][:, half:], None, *args[3:])
        if packet in (aten.sum, aten.mean):
            axes = args[1] if len(args) > 1 and args[1] else list(range(args[0].dim()))
            args = (args[0].flip(axes), *args[1:])
        return func(*args, **kwargs)


def _split_product(func: Any, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    half = left.shape[-1] // 2
    if not half or left.dtype != torch.float32:
        return func(left, right)
    return func(left[..., :half], right[..., :half, :]) + func(left[..., half:], right[..., half:, :])


def _widen(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
        return value.double()
    return torch.float64 if value is torch.float32 else value


def in_float64(instance: Instance, inputs: Mapping[str, Input]) -> dict[str, torch.Tensor]:
    """Outputs of the reference with its float steps in float64, rounded to the declared dtypes at the end.

    A reference may have a step that float64 cannot run: ``RuntimeError`` or ``NotImplementedError``.
    """
    wide = {
        name: value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for name, value in inputs.items()
    }
    return _run_under(_Double(), instance, wide)


def in_another_order(instance: Instance, inputs: Mapping[str, Input]) -> dict[str, torch.Tensor]:
    """Outputs of the reference with its products, convolutions, sums and means added up in another order."""
    return _run_under(_OtherOrder(), instance, inputs)


def _run_under(mode: TorchDispatchMode, instance: Instance, inputs: Mapping[str, Input]) -> dict[str, torch.Tensor]:
    with mode:
        outputs = named_outputs(instance.definition, load_reference(instance.definition)(**inputs))
    return {
        name: outputs[name].to(torch_dtype(spec.dtype)).contiguous()
        for name, spec in instance.definition.outputs.items()
    }


def count_contractions(instance: Instance, inputs: Mapping[str, Input]) -> int:
    """How many matrix products and convolutions the reference dispatches."""
    with _RoundedOperands(lambda tensor: tensor, -1) as mode:
        load_reference(instance.definition)(**inputs)
    return mode.contractions


def round_to(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """``tensor`` rounded to the format ``name`` and back to its dtype.

    Every format but bfloat16 gets one scale a row of the last axis, so that the row's largest magnitude becomes the
    format's: what a careful kernel would do. A zero row stays zero.
    """
    value = tensor.float()
    if name == "bfloat16" or value.dim() == 0:
        return value.to(torch_dtype(name)).to(tensor.dtype)
    top = 127.0 if name == "int8" else torch.finfo(torch_dtype(name)).max
    if name == "float16":
        top /= 16  # a scale up to the largest number would overflow in the products' neighbours, and gains nothing
    largest = value.abs().amax(dim=-1, keepdim=True)
    scale = torch.where(largest > 0, largest / top, torch.ones_like(largest))
    coded = (value / scale).round() if name == "int8" else (value / scale).to(torch_dtype(name)).float()
    return (coded * scale).to(tensor.dtype)


@dataclass(frozen=True)
class FormatEvidence:
    """Share of the elements that fail the checks once operands are rounded, one number a seed.

    One contraction is rounded at a time, and the smallest share counts: a kernel may choose a format for each.
    """

    format: str
    failing: tuple[float, ...]

    @property
    def rejects(self) -> bool:
        """Whether the format breaks a check on every seed and in every contraction, clearly."""
        return bool(self.failing) and min(self.failing) > MARGIN


def format_evidence(instance: Instance, seeds: tuple[int, ...] = (0, 1, 2)) -> list[FormatEvidence]:
    """What rounding to each of :data:`FORMATS` does to the instance's checks; empty without contractions."""
    run = load_reference(instance.definition)
    rounds: list[tuple[dict[str, Input], dict[str, torch.Tensor]]] = []
    for seed in seeds:
        inputs = draw(instance.definition, instance.workload, instance.axes, seed)
        rounds.append((inputs, named_outputs(instance.definition, run(**inputs))))
    contractions = range(count_contractions(instance, rounds[0][0]))
    if not contractions:
        return []
    return [
        FormatEvidence(
            name,
            tuple(min(_failing_share(instance, run, name, only, *pair) for only in contractions) for pair in rounds),
        )
        for name in FORMATS
    ]


def _failing_share(
    instance: Instance,
    run: Callable[..., Any],
    name: str,
    only: int,
    inputs: Mapping[str, Input],
    expected: Mapping[str, torch.Tensor],
) -> float:
    with _RoundedOperands(lambda tensor: round_to(tensor, name), only):
        actual = named_outputs(instance.definition, run(**inputs))
    status, _, results = check_outputs(instance.definition, instance.workload, instance.axes, inputs, expected, actual)
    if status is Status.PASSED:
        return 0.0
    return max((result.mismatched / result.compared for result in results if not result.passed), default=0.0)
