"""Operator graph: what a reference called, with shapes, storages, aliases and effects, before any interpretation.

One :class:`OperatorGraph` is a straight line of :class:`Node` in execution order, as stage 1 recorded them for one
workload. Tensors carry their storage, so that views and in-place writes can be told from copies; stage 2
(:mod:`solar.convert`) resolves both. Nothing here needs PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from solar.errors import GraphError

SCHEMA = "solar.operator-graph.v1"
PATHS = ("aten", "torchview")
LARGEST_JSON_INTEGER = 2**53 - 1

Scalar = int | float | bool


@dataclass(frozen=True)
class Input:
    """One input as stage 1 needs it.

    ``shape``: extents, ``()`` for a 0-d tensor, None for a Python scalar. ``value``: the scalar. ``values``: known
    contents of a tensor, row-major (offsets, lengths, block tables): they may decide shapes and work.
    """

    shape: tuple[int, ...] | None
    dtype: str
    value: Scalar | None = None
    values: tuple[Scalar, ...] | None = None


@dataclass(frozen=True)
class Ref:
    """A tensor among the arguments of a node."""

    tensor: str


@dataclass(frozen=True)
class Tensor:
    """``strides`` and ``offset`` in elements of ``storage``; ``values``: known contents, row-major, or None."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    storage: int
    offset: int = 0
    values: tuple[Scalar, ...] | None = None

    @property
    def contiguous(self) -> bool:
        """Row-major without gaps."""
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != expected:
                return math.prod(self.shape) == 0
            expected *= extent
        return True


@dataclass(frozen=True)
class Node:
    """One call.

    ``arguments``: by the operator's own argument names, defaults filled in, None left out; values are numbers,
    booleans, strings, :class:`Ref`, or (nested) tuples of these, None inside a tuple. A public function's (path
    ``torchview``) are written as it was called: see :mod:`solar.extract.public`. ``outputs``: one tensor name per
    result, None for a result that is not a tensor. ``mutates``: tensors written in place.
    """

    name: str
    op: str
    arguments: Mapping[str, Any]
    outputs: tuple[str | None, ...]
    mutates: tuple[str, ...] = ()

    def reads(self) -> Iterator[str]:
        """Tensors among the arguments, in order."""
        for value in self.arguments.values():
            yield from _refs(value)


@dataclass(frozen=True)
class OperatorGraph:
    """A whole reference for one workload, as called.

    ``inputs``/``outputs``: (declared name, tensor) in order; ``scalars``: declared Python scalars with their values;
    ``in_place``: inputs that the reference may write.
    """

    path: str
    tensors: Mapping[str, Tensor]
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    nodes: tuple[Node, ...]
    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    in_place: tuple[str, ...] = ()

    def aliases(self) -> dict[int, tuple[str, ...]]:
        """Tensors by storage, for storages with more than one."""
        groups: dict[int, list[str]] = {}
        for name, tensor in self.tensors.items():
            groups.setdefault(tensor.storage, []).append(name)
        return {storage: tuple(names) for storage, names in groups.items() if len(names) > 1}


def validate(graph: OperatorGraph) -> OperatorGraph:
    """Raise :class:`GraphError` unless every tensor exists, is defined before it is read, and effects are declared."""
    if graph.path not in PATHS:
        raise GraphError(f"path: {graph.path!r} is none of {', '.join(PATHS)}")
    for name, tensor in graph.tensors.items():
        if len(tensor.shape) != len(tensor.strides):
            raise GraphError(f"tensors.{name}: rank {len(tensor.shape)}, {len(tensor.strides)} strides")
        if any(extent < 0 for extent in tensor.shape) or tensor.offset < 0:
            raise GraphError(f"tensors.{name}: negative extent or offset")
        if tensor.values is not None and len(tensor.values) != math.prod(tensor.shape):
            raise GraphError(f"tensors.{name}: {len(tensor.values)} values for shape {list(tensor.shape)}")
    defined: set[str] = set()
    input_storages: dict[int, str] = {}
    for declared, name in graph.inputs:
        if name not in graph.tensors:
            raise GraphError(f"inputs.{declared}: unknown tensor {name!r}")
        defined.add(name)
        input_storages[graph.tensors[name].storage] = declared
    names: set[str] = set()
    for node in graph.nodes:
        where = f"nodes.{node.name}"
        if node.name in names:
            raise GraphError(f"{where}: this name is used twice")
        names.add(node.name)
        for name in (*node.reads(), *node.mutates):
            if name not in graph.tensors:
                raise GraphError(f"{where}: unknown tensor {name!r}")
            if name not in defined:
                raise GraphError(f"{where}: {name!r} is used before it is defined (a cycle, or wrong order)")
        for name in node.mutates:
            written = input_storages.get(graph.tensors[name].storage)
            if written is not None and written not in graph.in_place:
                raise GraphError(f"{where}: writes input {written!r}, which is not declared in place")
        for output in node.outputs:
            if output is None:
                continue
            if output not in graph.tensors:
                raise GraphError(f"{where}: unknown output {output!r}")
            if output in defined:
                raise GraphError(f"{where}: {output!r} is defined twice")
            defined.add(output)
    for declared, name in graph.outputs:
        if name not in defined:
            raise GraphError(f"outputs.{declared}: {name!r} is never written")
    return graph


def to_dict(graph: OperatorGraph) -> dict[str, Any]:
    """Plain JSON value, the artifact ``operator-graph``. What canonical JSON cannot hold: {"float": "inf" | "-inf" |
    "nan"} and {"int": "<digits>"} beyond 2^53 - 1."""
    return {
        "schema": SCHEMA,
        "path": graph.path,
        "tensors": {name: _tensor_dict(tensor) for name, tensor in graph.tensors.items()},
        "inputs": [list(pair) for pair in graph.inputs],
        "outputs": [list(pair) for pair in graph.outputs],
        "scalars": {name: _plain(value) for name, value in graph.scalars.items()},
        "in_place": list(graph.in_place),
        "nodes": [
            {
                "name": node.name,
                "op": node.op,
                "arguments": {key: _plain(value) for key, value in node.arguments.items()},
                "outputs": list(node.outputs),
                "mutates": list(node.mutates),
            }
            for node in graph.nodes
        ],
    }


def from_dict(value: Mapping[str, Any]) -> OperatorGraph:
    """Inverse of :func:`to_dict`; validates. A whole float comes back as an int: canonical JSON has one number type."""
    try:
        if value["schema"] != SCHEMA:
            raise GraphError(f"schema: {value['schema']!r}, expected {SCHEMA!r}")
        graph = OperatorGraph(
            path=value["path"],
            tensors={name: _tensor(entry) for name, entry in value["tensors"].items()},
            inputs=tuple((declared, name) for declared, name in value["inputs"]),
            outputs=tuple((declared, name) for declared, name in value["outputs"]),
            nodes=tuple(
                Node(
                    node["name"],
                    node["op"],
                    {key: _structured(item) for key, item in node["arguments"].items()},
                    tuple(node["outputs"]),
                    tuple(node["mutates"]),
                )
                for node in value["nodes"]
            ),
            scalars={name: _structured(item) for name, item in value["scalars"].items()},
            in_place=tuple(value["in_place"]),
        )
        return validate(graph)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise GraphError(f"operator-graph: {type(error).__name__}: {error}") from None


def _tensor_dict(tensor: Tensor) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "strides": list(tensor.strides),
        "storage": tensor.storage,
        "offset": tensor.offset,
    }
    if tensor.values is not None:
        entry["values"] = list(tensor.values) if _are_plain(tensor.values) else [_plain(v) for v in tensor.values]
    return entry


def _tensor(entry: Mapping[str, Any]) -> Tensor:
    values = entry.get("values")
    storage, offset = _whole([entry["storage"], entry["offset"]])
    return Tensor(
        _whole(entry["shape"]),
        entry["dtype"],
        _whole(entry["strides"]),
        storage,
        offset,
        None if values is None else tuple(values if _are_plain(values) else map(_structured, values)),
    )


def _whole(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or any(type(value) is not int for value in values):
        raise GraphError(f"operator-graph: {values!r} is not a list of integers")
    return tuple(values)


def _are_plain(values: Any) -> bool:
    """Whether these are whole numbers or truth values that canonical JSON holds as they are; soon told of millions."""
    return set(map(type, values)) <= {int, bool} and (
        not values or (max(values) <= LARGEST_JSON_INTEGER and min(values) >= -LARGEST_JSON_INTEGER)
    )


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, Ref):
        yield value.tensor
    elif isinstance(value, tuple):
        for item in value:
            yield from _refs(item)


def _plain(value: Any) -> Any:
    if isinstance(value, Ref):
        return {"tensor": value.tensor}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": number_text(value)}
    if isinstance(value, int) and abs(value) > LARGEST_JSON_INTEGER:
        return {"int": str(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _structured(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "tensor" in value:
            return Ref(value["tensor"])
        return int(value["int"]) if "int" in value else float(value["float"])
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_structured(item) for item in value)
    return value


def number_text(value: float) -> str:
    """How both IRs write a float that JSON has no form for."""
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
