"""The reference run in other ways that are right too: in float64, in another order of summation, as a fused kernel.

All watch the operators that the reference dispatches, so that its own casts and sums are seen; operators that hold a
sum (softmax, the norms) are taken apart first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from solbench.corpus.formats import copied
from solbench.corpus.reduce import Instance
from solbench.corpus.reference import load_reference, named_outputs
from solbench.inputs import Input, torch_dtype

aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)


class TakenApart(TorchDispatchMode):  # type: ignore[misc]
    """Composite operators in their parts, every other one through :meth:`step`."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        parts = _COMPOSITE.get(func)
        if parts is None and _is_composite(func):
            parts = func.decompose
        if parts is None:
            return self.step(func, args, kwargs)
        with self:
            return parts(*args, **kwargs)

    def step(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of one operator that is not composite."""
        raise NotImplementedError


def _is_composite(func: Any) -> bool:
    """Whether the operator is defined by others (``aten.var_mean.dim``): a decomposition may call such a one."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


def _variance_and_mean(
    x: torch.Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    axes = list(range(x.dim())) if dim is None else list(dim)
    mean = x.mean(axes, keepdim=True)
    count = math.prod(x.shape[axis] for axis in axes)
    variance = (x - mean).square().sum(axes, keepdim=keepdim) / (count - (1 if correction is None else correction))
    return variance, mean if keepdim else x.mean(axes)


_COMPOSITE = {
    operator: decomposition_table[operator]
    for operator in (
        aten._softmax.default, aten._log_softmax.default, aten.native_layer_norm.default,
        aten.native_group_norm.default, aten.native_batch_norm.default,
    )
} | {
    aten.var_mean.correction: _variance_and_mean,
    aten.var.correction: lambda *args, **kwargs: _variance_and_mean(*args, **kwargs)[0],
}  # fmt: skip


class _Double(TorchDispatchMode):  # type: ignore[misc]
    """Runs every float32 step in float64; roundings to narrower formats stay, they belong to the formula."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is aten.view.dtype:  # whoever looks at bits looks at those of a float32
            args = (args[0].float() if args[0].dtype == torch.float64 else args[0], *args[1:])
        else:
            args, kwargs = tree_map(_doubled, (args, kwargs or {}))
        return func(*args, **(kwargs or {}))


class _OtherOrder(TakenApart):
    """Splits the summed axis of products and convolutions in two, and sums and means from the other end."""

    def step(self, func: Any, args: Any, kwargs: Any) -> Any:
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
            args = (args[0].flip(summed_axes(args)), *args[1:])
        return func(*args, **kwargs)


class _Fused(TakenApart):
    """What a fused kernel does: fp32 from the inputs to the one rounding of each output (a 16-bit step between is kept
    in fp32), softmax from running parts, exponentials as powers of two, quotients as products with a reciprocal."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map(_single, (args, kwargs or {}))
        if func is aten._softmax.default:
            return _online_softmax(args[0], args[1])
        return super().__torch_dispatch__(func, types, args, kwargs)

    def step(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten.exp.default and args[0].is_floating_point():
            return torch.exp2(args[0] * math.log2(math.e))
        if func is aten.div.Tensor and isinstance(args[1], torch.Tensor) and args[1].is_floating_point():
            return args[0] * (1 / args[1])
        return func(*args, **kwargs)


def _online_softmax(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Softmax of two halves of the axis, joined by their maxima and sums (Milakov and Gimelshein, 2018)."""
    largest = x.amax(dim, keepdim=True)
    total = torch.zeros_like(largest)
    for part in x.tensor_split(2, dim):
        if part.shape[dim]:
            top = part.amax(dim, keepdim=True)
            shift = torch.where(top == -torch.inf, 0.0, top)  # all hidden
            total = total + torch.exp2((part - shift) * math.log2(math.e)).sum(dim, keepdim=True) * torch.exp(
                top - largest
            )
    return torch.exp2((x - largest) * math.log2(math.e)) * (1 / total)


def _split_product(func: Any, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    half = left.shape[-1] // 2
    if not half or left.dtype != torch.float32:
        return func(left, right)
    return func(left[..., :half], right[..., :half, :]) + func(left[..., half:], right[..., half:, :])


def summed_axes(args: Any) -> list[int]:
    """The axes that ``aten.sum`` or ``aten.mean`` with these arguments sums over."""
    return list(args[1]) if len(args) > 1 and args[1] else list(range(args[0].dim()))


def _doubled(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
        return value.double()
    return torch.float64 if value is torch.float32 else value


def _single(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype in _HALF:
        return value.float()
    return torch.float32 if value in _HALF else value


def in_float64(instance: Instance, inputs: Mapping[str, Input]) -> dict[str, torch.Tensor]:
    """Outputs of the reference with its float steps in float64, rounded to the declared dtypes at the end.

    A reference may have a step that float64 cannot run: ``RuntimeError`` or ``NotImplementedError``.
    """
    wide = {
        name: value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for name, value in inputs.items()
    }
    return run_under(_Double(), instance, wide)


def in_another_order(instance: Instance, inputs: Mapping[str, Input]) -> dict[str, torch.Tensor]:
    """Outputs of the reference with its products, convolutions, sums and means added up in another order."""
    return run_under(_OtherOrder(), instance, inputs)


def fused(instance: Instance, inputs: Mapping[str, Input]) -> dict[str, torch.Tensor]:
    """Outputs of the reference in fp32 throughout, with the rewritings of a fused kernel."""
    return run_under(_Fused(), instance, inputs)


def run_under(mode: TorchDispatchMode, instance: Instance, inputs: Mapping[str, Input]) -> dict[str, torch.Tensor]:
    """Outputs of the reference under ``mode``, contiguous and rounded to the declared dtypes."""
    given = copied(inputs)
    with mode:
        outputs = named_outputs(instance.definition, load_reference(instance.definition)(**given))
    return {
        name: outputs[name].to(torch_dtype(spec.dtype)).contiguous()
        for name, spec in instance.definition.outputs.items()
    }


# What must pass every check, by its name in reports.
RIGHT: Mapping[str, Callable[[Instance, Mapping[str, Input]], dict[str, torch.Tensor]]] = {
    "float64": in_float64,
    "another order of summation": in_another_order,
    "a fused kernel's arithmetic": fused,
}
