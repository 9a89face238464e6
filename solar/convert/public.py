"""Calls of public functions as calls of ATen operators, so that both paths are priced by one set of rules.

Path ``torchview`` records *what* is called on *which* tensors; what such a call consists of is asked of PyTorch: every
recorded call is made again, with its own recorded arguments and on the tensors that the recorded calls before it gave,
under the tracer of path ``aten``. The reference itself is not needed and not run. Needs PyTorch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from solar.errors import ConversionError, ExtractionError, GraphError
from solar.graph import Input, Node, OperatorGraph, Tensor

if TYPE_CHECKING:
    import torch


def expanded(graph: OperatorGraph) -> OperatorGraph:
    """``graph`` (path ``torchview``) with each call replaced by the ATen calls inside it.

    A call ``softmax_1`` of one ATen operator keeps its name; the operators of another are called ``softmax_1.1``,
    ``softmax_1.2`` ... Raises :class:`ConversionError` naming the call that PyTorch refuses or answers otherwise than
    it was recorded (shape, dtype, strides, place, alias).
    """
    from solar.extract.aten import extract

    inputs = {declared: _declared(declared, graph.tensors[name]) for declared, name in graph.inputs}
    calls = _Calls(graph)
    try:
        lowered = extract(calls, inputs, outputs=[name for name, _ in graph.outputs], in_place=graph.in_place)
    except (ExtractionError, GraphError) as error:
        raise ConversionError(f"{calls.present}: {error}") from None
    names = calls.renamed([node.name for node in lowered.nodes])
    nodes = tuple(replace(node, name=names[node.name]) for node in lowered.nodes)
    return replace(lowered, path=graph.path, nodes=nodes, scalars=graph.scalars)


def _declared(name: str, tensor: Tensor) -> Input:
    if not tensor.contiguous or tensor.offset:
        raise ConversionError(f"inputs.{name}: an input is laid out row-major")
    return Input(tensor.shape, tensor.dtype, values=tensor.values)


def _nested(values: list[Any], shape: tuple[int, ...]) -> Any:
    """Row-major ``values`` as lists in lists."""
    for extent in reversed(shape[1:]):
        values = [values[i : i + extent] for i in range(0, len(values), extent or 1)]
    return values if shape else values[0]


class _Calls:
    """The recorded calls as a function of the inputs; ``present`` says which one is being made."""

    def __init__(self, graph: OperatorGraph) -> None:
        self.present = "inputs"
        self._graph = graph
        self._storages: dict[int, int] = {}
        self._owners: dict[str, str] = {}

    def __call__(self, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        graph = self._graph
        tensors: dict[str, torch.Tensor] = {}
        for (_, name), tensor in zip(graph.inputs, inputs, strict=True):
            self._define(tensors, name, tensor)
        self._claim("")
        for node in graph.nodes:
            self.present = f"{node.op} ({node.name})"
            self._make(node, tensors)
            self._claim(node.name)
        self.present = "outputs"
        return {declared: tensors[name] for declared, name in graph.outputs}

    def _make(self, node: Node, tensors: dict[str, torch.Tensor]) -> None:
        import torch
        from torch.utils._pytree import tree_flatten

        from solar.extract.inputs import torch_dtype
        from solar.extract.public import function_of, read_arguments

        if node.op == "solar.constant":
            for constant in filter(None, node.outputs):
                entry = self._graph.tensors[constant]
                nested = _nested(list(node.arguments["values"]), entry.shape)
                value = torch.tensor(nested, dtype=torch_dtype(node.name, entry.dtype))
                self._define(tensors, constant, value if value.shape == entry.shape else value.reshape(entry.shape))
            return
        args, kwargs = read_arguments(node.arguments, tensors)
        results = tree_flatten(function_of(node.op)(*args, **kwargs))[0]
        if node.outputs and len(results) != len(node.outputs):
            raise GraphError(f"{len(results)} results, recorded are {len(node.outputs)}")
        for name, result in zip(node.outputs, results):
            if name is not None:
                self._define(tensors, name, result)

    def _define(self, tensors: dict[str, torch.Tensor], name: str, tensor: Any) -> None:
        from solar.extract.inputs import dtype_name
        from solar.extract.known import storage_key

        entry = self._graph.tensors[name]
        found = (tuple(tensor.shape), dtype_name(tensor.dtype), tuple(tensor.stride()), tensor.storage_offset())
        if found != (entry.shape, entry.dtype, entry.strides, entry.offset):
            raise GraphError(
                f"{name}: {found[1]} {list(found[0])}, strides {list(found[2])}, offset {found[3]}; recorded is "
                f"{entry.dtype} {list(entry.shape)}, strides {list(entry.strides)}, offset {entry.offset}"
            )
        key = storage_key(tensor)
        if self._storages.setdefault(key, entry.storage) != entry.storage:
            raise GraphError(f"{name}: shares memory with a tensor that it was recorded apart from")
        tensors[name] = tensor

    def _claim(self, owner: str) -> None:
        """What was traced since the last claim belongs to ``owner``."""
        from torch.fx.experimental.proxy_tensor import get_proxy_mode

        mode = get_proxy_mode()
        assert mode is not None
        for node in reversed(mode.tracer.graph.nodes):
            if node.name in self._owners:
                return
            self._owners[node.name] = owner

    def renamed(self, names: list[str]) -> dict[str, str]:
        """New name of each traced node: its owner's, numbered where the owner has several."""
        parts: dict[str, list[str]] = {}
        for name in names:
            parts.setdefault(self._owners.get(name, name), []).append(name)
        return {
            name: owner if len(members) == 1 else f"{owner}.{position}"
            for owner, members in parts.items()
            for position, name in enumerate(members, 1)
        }
