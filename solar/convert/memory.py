"""In-place writes and aliases resolved: what each tensor of the graph holds at each moment, as values of the program.

Per storage there is one present value of its base tensor. A view is a chain of view ops on the base; a write into a
view makes a new base (``slice_scatter`` and its like), and every other view of that storage is taken anew where it is
read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solar.convert.build import Build, Value


@dataclass(frozen=True)
class _View:
    function: str
    attributes: dict[str, Any]
    shape: tuple[int, ...]
    dtype: str


class Memory:
    """Present contents by storage."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self._base: dict[int, Value] = {}
        self._version: dict[int, int] = {}
        self._seen: dict[str, int] = {}
        self._chains: dict[str, tuple[_View, ...] | None] = {}
        # What was written into a view is that view of the new base, though no view op leads to it.
        self._anchors: dict[tuple[int, Value], tuple[_View, ...]] = {}

    def define(self, tensor: str, value: Value) -> None:
        """A new tensor of the graph holds ``value``."""
        storage = self._build.graph.tensors[tensor].storage
        self._build.values[tensor] = value
        if storage not in self._base:
            self._base[storage] = value
            self._version[storage] = 0
            self._chains[tensor] = ()
        else:
            self._chains[tensor] = self._chain(value, storage)
        self._seen[tensor] = self._version[storage]

    def refresh(self, tensor: str) -> None:
        """Bring ``build.values`` up to date for a tensor about to be read."""
        storage = self._build.graph.tensors[tensor].storage
        if tensor not in self._seen:
            return
        if self._seen[tensor] == self._version[storage]:
            return
        value = self._base[storage]
        for view in self._required(tensor):
            value = self._apply(view, value)
        self._build.values[tensor] = value
        self._seen[tensor] = self._version[storage]

    def write(self, tensor: str, value: Value) -> None:
        """The reference overwrote ``tensor`` with ``value``."""
        build = self._build
        declared = build.graph.tensors[tensor]
        if build.shape(value) != declared.shape or build.dtype(value) != declared.dtype:
            raise build.fail(
                f"writes {build.dtype(value)} {list(build.shape(value))} into {declared.dtype} {list(declared.shape)}"
            )
        chain = self._required(tensor)
        shapes = self._shapes(declared.storage, chain)
        new = value
        for position in range(len(chain) - 1, -1, -1):
            new = self._undo(chain, position, shapes, declared.storage, new)
        self._base[declared.storage] = new
        self._version[declared.storage] += 1
        build.values[tensor] = value
        self._seen[tensor] = self._version[declared.storage]
        self._anchors = {key: views for key, views in self._anchors.items() if key[0] != declared.storage}
        self._anchors[declared.storage, value] = chain

    def written(self, tensor: str) -> bool:
        """Whether the storage of ``tensor`` was ever written in place."""
        return self._version.get(self._build.graph.tensors[tensor].storage, 0) > 0

    def whole(self, tensor: str) -> bool:
        """Whether ``tensor`` covers its base, whatever its shape."""
        chain = self._chains[tensor]
        return chain is not None and all(v.function in ("reshape", "permute", "squeeze", "unsqueeze") for v in chain)

    def _required(self, tensor: str) -> tuple[_View, ...]:
        chain = self._chains[tensor]
        if chain is None:
            raise self._build.fail(
                f"{tensor} shares memory with a tensor that is written in place, in a way not followed"
            )
        return chain

    def _chain(self, value: Value, storage: int) -> tuple[_View, ...] | None:
        views: list[_View] = []
        while value != self._base[storage]:
            anchor = self._anchors.get((storage, value))
            if anchor is not None:
                return (*anchor, *reversed(views))
            op = self._build.producer(value)
            if op is None or op.kind != "view":
                return None
            attributes = {k: v for k, v in op.attributes.items() if k != "source"}
            views.append(_View(op.function, attributes, self._build.shape(value), self._build.dtype(value)))
            value = op.operands[0]
        return tuple(reversed(views))

    def _apply(self, view: _View, value: Value) -> Value:
        return self._build.view(view.function, value, view.shape, dtype=view.dtype, **view.attributes)

    def _shapes(self, storage: int, chain: tuple[_View, ...]) -> list[tuple[tuple[int, ...], str]]:
        base = self._base[storage]
        return [(self._build.shape(base), self._build.dtype(base)), *((v.shape, v.dtype) for v in chain)]

    def _undo(
        self,
        chain: tuple[_View, ...],
        position: int,
        shapes: list[tuple[tuple[int, ...], str]],
        storage: int,
        new: Value,
    ) -> Value:
        """Content of the parent of view ``position`` after that view became ``new``."""
        build, view = self._build, chain[position]
        shape, dtype = shapes[position]
        a = view.attributes

        def parent() -> Value:
            value = self._base[storage]
            for earlier in chain[:position]:
                value = self._apply(earlier, value)
            return value

        if view.function in ("reshape", "squeeze", "unsqueeze"):
            return build.reshape(new, shape)
        if view.function == "permute":
            return build.permute(new, [a["dims"].index(d) for d in range(len(shape))])
        if view.function == "bitcast":
            return build.view("bitcast", new, shape, dtype=dtype)
        if view.function == "slice" and shape == view.shape:
            return new
        if view.function == "select" and shape[a["dim"]] == 1:
            return build.reshape(new, shape)
        if view.function in ("slice", "select", "diagonal", "as_strided"):
            return build.copy(f"{view.function}_scatter", [parent(), new], shape, dtype, **a)
        raise build.fail(f"writes in place through {view.function}")
