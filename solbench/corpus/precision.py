"""The reference in a lower precision: operands, results or every step rounded, for what a tolerance admits of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from solbench.corpus.formats import OPERANDS, round_to
from solbench.corpus.reduce import Instance
from solbench.corpus.variants import RIGHT, run_under
from solbench.corpus.wrong import with_low_accumulation
from solbench.inputs import Input
from solbench.model.workload import NumericCheck

Outputs = dict[str, torch.Tensor]
Variant = Callable[[Instance, Mapping[str, Input]], Outputs]


class _Lowered(TorchDispatchMode):  # type: ignore[misc]
    """Rounds the float32 operands of every contraction to a format; with ``results`` also what contractions give, with
    ``steps`` what pointwise operations and softmax give as well."""

    def __init__(self, name: str, *, results: bool = False, steps: bool = False) -> None:
        super().__init__()
        self.name = name
        self.results = results or steps
        self.steps = steps

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        positions = OPERANDS.get(func.overloadpacket, ())
        args = tuple(self._rounded(value) if at in positions else value for at, value in enumerate(args))
        result = func(*args, **(kwargs or {}))
        pointwise = torch.Tag.pointwise in func.tags or func.overloadpacket is torch.ops.aten._softmax
        return self._rounded(result) if (positions and self.results) or (pointwise and self.steps) else result

    def _rounded(self, value: Any) -> Any:
        is_single = isinstance(value, torch.Tensor) and value.dtype == torch.float32
        return round_to(value, self.name) if is_single else value


def _lowered(name: str, instance: Instance, inputs: Mapping[str, Input], **reach: bool) -> Outputs:
    return run_under(_Lowered(name, **reach), instance, inputs)


def _sums(instance: Instance, inputs: Mapping[str, Input]) -> Outputs:
    return with_low_accumulation(instance, inputs, torch.bfloat16)


def _operands(name: str) -> tuple[str, Variant]:
    return f"contraction operands in {name}", partial(_lowered, name)


LOWER: Mapping[str, Variant] = {
    **dict(map(_operands, ("float16", "bfloat16", "float8_e4m3fn"))),
    "contractions in bfloat16": partial(_lowered, "bfloat16", results=True),
    "every step in bfloat16": partial(_lowered, "bfloat16", steps=True),
    "sums in bfloat16": _sums,
}


def required_variants(instance: Instance) -> dict[str, Variant]:
    """What the checks must pass, by name: the reference in other ways that are right, and where all tolerances belong
    to bfloat16 outputs, contraction operands in bfloat16."""
    numeric = [check.output for check in instance.workload.checks if isinstance(check, NumericCheck)]
    dtypes = {instance.definition.outputs[name].dtype for name in numeric}
    return {**RIGHT, **dict([_operands("bfloat16")])} if dtypes == {"bfloat16"} else dict(RIGHT)
