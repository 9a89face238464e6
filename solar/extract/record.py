"""Nodes and tensors of an operator graph as a trace meets them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from solar.errors import ExtractionError
from solar.extract.inputs import Prepared, dtype_name
from solar.extract.known import KnownValues, storage_key
from solar.graph import Node, OperatorGraph, Tensor, validate

# Elements; longer contents stay out of the graph (they still resolve shapes while tracing).
LARGEST_VALUES = 1 << 16


class Record:
    """A tensor is known by its identity, and all are held until the end. ``given``: the inputs, by name."""

    def __init__(self, known: KnownValues, given: Mapping[str, torch.Tensor], contents: Mapping[str, torch.Tensor]):
        self.known = known
        self.names: dict[int, str] = {}
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self._held: list[torch.Tensor] = []
        self._places: dict[Tensor, str] = {}
        self._storages: dict[int, int] = {}
        self._inputs = {storage_key(tensor): name for name, tensor in given.items()}
        for name, tensor in given.items():
            self.name(tensor, f"in.{name}")
            if name in contents:
                known.learn(tensor, contents[name])
                self.remember(tensor)

    def name(self, tensor: torch.Tensor, name: str) -> str:
        """From now on ``tensor`` is called ``name``."""
        if tensor.is_complex():
            raise ExtractionError(f"{name}: complex numbers are not supported")
        self.names[id(tensor)] = name
        self._held.append(tensor)
        self.tensors[name] = self._described(tensor)
        self._places[self.tensors[name]] = name
        return name

    def find(self, tensor: torch.Tensor) -> str | None:
        """Name of ``tensor``, also where it is another object at the same place (wrapped anew)."""
        name = self.names.get(id(tensor))
        if name is None:
            name = self._places.get(self._described(tensor))
            if name is not None:
                self.names[id(tensor)] = name
                self._held.append(tensor)
        return name

    def is_new(self, tensor: torch.Tensor) -> bool:
        """Whether ``tensor`` has no name yet, or has changed its shape or place since it got one."""
        name = self.names.get(id(tensor))
        return name is None or replace(self.tensors[name], values=None) != self._described(tensor)

    def _described(self, tensor: torch.Tensor) -> Tensor:
        return Tensor(
            tuple(tensor.shape),
            dtype_name(tensor.dtype),
            tuple(tensor.stride()),
            self._storages.setdefault(storage_key(tensor), len(self._storages)),
            tensor.storage_offset(),
        )

    def remember(self, tensor: torch.Tensor) -> None:
        """Write the known contents of a tensor beside it, as far as they are short."""
        value = self.known.contents(tensor)
        name = self.names[id(tensor)]
        entry = self.tensors[name]
        if value is None or entry.values is not None or value.numel() > LARGEST_VALUES:
            return
        self.tensors[name] = replace(entry, values=tuple(value.flatten().tolist()))

    def constant(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """A node that makes ``tensor`` from its known contents."""
        value = self.known.contents(tensor)
        assert value is not None
        if value.numel() > LARGEST_VALUES:
            raise ExtractionError(f"{name}: a constant of {value.numel()} elements; make it an input")
        arguments = {"values": tuple(value.flatten().tolist())}
        self.nodes.append(Node(name, "solar.constant", arguments, (self.name(tensor, name),)))
        return tensor

    def check_write(self, op: str, tensor: torch.Tensor, in_place: Sequence[str]) -> None:
        """Refuse a write into an input that is not declared in place."""
        source = self._inputs.get(storage_key(tensor))
        if source is not None and source not in in_place:
            raise ExtractionError(f"{op}: the reference writes its input {source!r}, which is not declared in place")

    def graph(
        self, path: str, prepared: Prepared, results: Sequence[tuple[str, torch.Tensor]], in_place: Sequence[str]
    ) -> OperatorGraph:
        """Everything recorded, as a graph whose outputs are ``results``."""
        return validate(
            OperatorGraph(
                path=path,
                tensors=self.tensors,
                inputs=tuple((name, f"in.{name}") for name in prepared.tensors),
                outputs=tuple((name, self.names[id(tensor)]) for name, tensor in results),
                nodes=tuple(self.nodes),
                scalars=prepared.scalars,
                in_place=tuple(in_place),
            )
        )
