"""Which number formats can no contraction of a reference be computed in? Operands are rounded, and the checks asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from solbench.checks import check_outputs
from solbench.corpus.reduce import Instance
from solbench.corpus.reference import load_reference, named_outputs
from solbench.inputs import Input, torch_dtype
from solbench.model.trace import Status

FORMATS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8")
# A check that fails on fewer elements than this may pass on another draw.
MARGIN = 1e-3

Outputs = Mapping[str, torch.Tensor]
Round = tuple[Mapping[str, Input], Outputs]

aten = torch.ops.aten
# Positions of a contraction's two operands.
OPERANDS = {
    aten.mm: (0, 1), aten.bmm: (0, 1), aten.mv: (0, 1), aten.dot: (0, 1), aten.addmm: (1, 2), aten.baddbmm: (1, 2),
    aten.addmv: (1, 2), aten.convolution: (0, 1),
}  # fmt: skip


class _ChangedOperands(TorchDispatchMode):  # type: ignore[misc]
    """Changes the operands of contraction number ``only`` (in order of dispatch); ``contractions`` counts them all."""

    def __init__(self, change: Callable[[torch.Tensor], torch.Tensor], only: int) -> None:
        super().__init__()
        self.change = change
        self.only = only
        self.contractions = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        positions = OPERANDS.get(func.overloadpacket)
        if positions:
            if self.contractions == self.only:
                args = tuple(self.change(value) if at in positions else value for at, value in enumerate(args))
            self.contractions += 1
        return func(*args, **(kwargs or {}))


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
    """Share of the elements that fail the checks once operands are rounded, one number a round.

    One contraction is rounded at a time, and the smallest share counts: a kernel may choose a format for each. Once a
    share is too small to reject the format, no further contraction and no further round is tried.
    """

    format: str
    failing: tuple[float, ...]

    @property
    def rejects(self) -> bool:
        """Whether the format breaks a check in every round and in every contraction, clearly."""
        return bool(self.failing) and min(self.failing) > MARGIN


def format_evidence(instance: Instance, rounds: Sequence[Round]) -> list[FormatEvidence]:
    """What rounding to each of :data:`FORMATS` does to the instance's checks; empty without contractions.

    ``rounds``: inputs and the reference's outputs of several draws. A contraction that decides no bit of the outputs
    (of an expert to which no row is routed) is no evidence for or against a format, and is left out.
    """
    run = load_reference(instance.definition)
    needed = [list(_needed(instance, run, *pair)) for pair in rounds]
    if not any(needed):
        return []
    evidence = []
    for name in FORMATS:
        failing: list[float] = []
        for (inputs, expected), contractions in zip(rounds, needed):
            failing.append(1.0)
            for only in contractions:
                failing[-1] = min(failing[-1], _failing_share(instance, run, name, only, inputs, expected))
                if failing[-1] <= MARGIN:
                    break
            if failing[-1] <= MARGIN:
                break
        evidence.append(FormatEvidence(name, tuple(failing)))
    return evidence


def _needed(
    instance: Instance, run: Callable[..., Any], inputs: Mapping[str, Input], expected: Outputs
) -> Iterator[int]:
    with _ChangedOperands(lambda tensor: tensor, -1) as mode:
        run(**copied(inputs))
    for only in range(mode.contractions):
        with _ChangedOperands(lambda tensor: tensor * 1.25, only):
            changed = named_outputs(instance.definition, run(**copied(inputs)))
        if not all(same_bits(changed[name], expected[name]) for name in expected):
            yield only


def _failing_share(
    instance: Instance, run: Callable[..., Any], name: str, only: int, inputs: Mapping[str, Input], expected: Outputs
) -> float:
    with _ChangedOperands(lambda tensor: round_to(tensor, name), only):
        actual = named_outputs(instance.definition, run(**copied(inputs)))
    status, _, results = check_outputs(instance.definition, instance.workload, instance.axes, inputs, expected, actual)
    if status is Status.PASSED:
        return 0.0
    return max((result.mismatched / result.compared for result in results if not result.passed), default=0.0)


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors have the same bits: NaN differs from itself as a number, and float8 has no comparison."""
    views = [tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (left, right)]
    return torch.equal(*views)


def copied(inputs: Mapping[str, Input]) -> dict[str, Input]:
    """The inputs for one more run: a reference may write those that are declared ``in_place``."""
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}
