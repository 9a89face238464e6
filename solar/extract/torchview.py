"""Path ``torchview``: the calls of public functions that a reference makes, on the meta device.

A function mode records every call with its exact arguments; a call inside a call belongs to the outer one. torchview
(unpatched) draws its graph of the same run, and is the witness of the wiring: the functions that it lists and the edges
between them have to be those that the mode saw. It runs without gradients, so a backward pass is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from graphviz import Digraph
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map
from torchview.computation_graph import ComputationGraph
from torchview.computation_node import FunctionNode, TensorNode
from torchview.recorder_tensor import RecorderTensor, orig_name_list
from torchview.torchview import forward_prop, process_input

from solar.errors import ExtractionError
from solar.extract.decompositions import table
from solar.extract.inputs import FOREIGN, Prepared, plain_settings, prepare, refusal
from solar.extract.known import FROM_PYTHON, KnownValues, Literals, storage_key
from solar.extract.public import learn_names, name_of, written_arguments
from solar.extract.record import Record
from solar.extract.results import named_results
from solar.graph import Input, Node, OperatorGraph

_BACKWARD = (torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward)
_FACTORIES = {name: getattr(torch, name) for name in orig_name_list}
_INDEXING = ("torch.Tensor.__getitem__", "torch.Tensor.__setitem__")


def extract(
    run: Callable[..., Any],
    inputs: Mapping[str, Input],
    *,
    outputs: Sequence[str] | None = None,
    in_place: Sequence[str] = (),
) -> OperatorGraph:
    """Operator graph of ``run(*inputs)`` whose nodes are calls of public functions (:mod:`solar.extract.public`).

    Arguments, names of outputs and errors are those of :func:`solar.extract.aten.extract`. Raises
    :class:`ExtractionError` also where torchview saw other calls or edges than the mode.
    """
    prepared = prepare(inputs, in_place)
    learn_names()
    reference = _Reference(run, prepared, tuple(in_place))
    arguments = [prepared.tensors[name] if name in prepared.tensors else prepared.scalars[name] for name in inputs]
    with plain_settings():
        try:
            drawn = _drawn(reference, arguments)
        except ExtractionError:
            raise
        except FOREIGN as error:
            # torchview hides what a reference raised behind an error of its own.
            cause = error.__cause__
            raise refusal(error if cause is None else cause) from None
    calls = reference.calls
    assert calls is not None
    _check_wiring(calls.listed, drawn)
    found = named_results(reference.result, outputs, ExtractionError)
    for name, tensor in found:
        with torch._C.DisableTorchFunctionSubclass():
            known = calls.record.find(tensor) is not None
        if not known:
            raise ExtractionError(f"{name}: the reference returns a tensor that no recorded call made")
    return calls.record.graph("torchview", prepared, found, in_place)


def _drawn(reference: _Reference, arguments: list[Any]) -> ComputationGraph:
    """torchview's graph of one run, without the picture that ``draw_graph`` makes of it at the end."""
    wrapped, _, roots = process_input(arguments, None, {}, "meta")
    graph = ComputationGraph(Digraph(), roots, depth=float("inf"))
    # Where a module stands outermost, it puts its own list here; ours is a function.
    (graph.context_tracker["current_context"],) = graph.node_hierarchy.values()
    forward_prop(reference, wrapped, "meta", graph, "eval")
    return graph


class _Reference:
    """What torchview takes for a module: it calls it with wrapped inputs."""

    training = False

    def __init__(self, run: Callable[..., Any], prepared: Prepared, in_place: tuple[str, ...]) -> None:
        self._run, self._prepared, self._in_place = run, prepared, in_place
        self.calls: _Calls | None = None
        self.result: Any = None

    def to(self, device: Any) -> _Reference:
        return self

    def train(self, mode: bool = True) -> _Reference:
        return self

    def eval(self) -> _Reference:
        return self

    def __call__(self, *arguments: Any) -> Any:
        wrapped = iter(argument for argument in arguments if isinstance(argument, torch.Tensor))
        given = {name: next(wrapped) for name in self._prepared.tensors}
        known = KnownValues()
        with torch._C.DisableTorchFunctionSubclass():
            record = Record(known, given, {name: item.clone() for name, item in self._prepared.contents.items()})
        self.calls = _Calls(record, self._in_place)
        with _Decomposed(), torch.device("meta"), Literals(known), known, self.calls:
            self.result = self._run(*arguments)
        return self.result


class _Decomposed(TorchDispatchMode):
    """Operators are decomposed as path ``aten`` does: some have no form of their own on the meta device."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        rule = table().get(func)
        if rule is None:
            return func(*args, **(kwargs or {}))
        with self:
            result = rule(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {})) if result is NotImplemented else result


@dataclass(frozen=True)
class _Listed:
    """A call that torchview has to list: its name there, the calls whose results it read, and torchview's node."""

    name: str
    reads: frozenset[int]
    node: Any


class _Calls(TorchFunctionMode):
    """Records calls of public functions; everything inside one runs with this mode off."""

    def __init__(self, record: Record, in_place: tuple[str, ...]) -> None:
        super().__init__()
        self.record = record
        self.listed: list[_Listed] = []
        self._in_place = in_place
        self._replaced = {name: getattr(torch, name) for name in _FACTORIES}
        self._latest: dict[int, int] = {}
        self._uses: dict[str, int] = {}
        # Real tensors that the reference holds itself, and what stands for them here.
        self._outside: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in _BACKWARD:
            raise ExtractionError(f"{func.__name__}: path torchview cannot record a backward pass; use path aten")
        literal = func in FROM_PYTHON and not isinstance(args[0] if args else (kwargs or {}).get("data"), torch.Tensor)
        if not literal:
            args, kwargs = self._given(func, args, dict(kwargs or {}))
        self.record.known.written.clear()
        with self._own_factories():
            if any(isinstance(leaf, RecorderTensor) for leaf in tree_flatten((args, kwargs))[0]):
                # torchview before the modes further in: what they write out is one call for it, too.
                result = RecorderTensor.__torch_function__(func, (RecorderTensor,), args, kwargs)
            else:
                result = func(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            if literal:
                self.record.constant(self._node_name(func), result)
            else:
                self._note(func, args, kwargs or {}, result)
        self._list(func, args, kwargs or {}, result)
        return result

    @contextmanager
    def _own_factories(self) -> Iterator[None]:
        """PyTorch's own Python code inside a call must not find the factories that torchview put into their place."""
        for name, function in _FACTORIES.items():
            setattr(torch, name, function)
        try:
            yield
        finally:
            for name, function in self._replaced.items():
                setattr(torch, name, function)

    def _given(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with every tensor known: one from outside becomes a constant, limits of slices numbers."""

        def given(leaf: Any) -> Any:
            if isinstance(leaf, slice):
                return slice(*(self._limit(func, item) for item in (leaf.start, leaf.stop, leaf.step)))
            if not isinstance(leaf, torch.Tensor):
                return leaf
            if torch._C._functorch.is_functorch_wrapped_tensor(leaf):
                raise ExtractionError(
                    f"{func.__name__}: path torchview cannot record a transform of torch.func; use path aten"
                )
            if self.record.find(leaf) is not None:
                if self.record.is_new(leaf):
                    raise ExtractionError(f"{func.__name__}: reads a tensor that was changed behind the recorded calls")
                return leaf
            if leaf.device.type == "meta":
                raise ExtractionError(
                    f"{func.__name__}: reads a tensor of shape {list(leaf.shape)} that no recorded call made"
                )
            if id(leaf) not in self._outside:
                constant = self.record.known.constant(leaf)
                self._outside[id(leaf)] = leaf, self.record.constant(self._node_name("constant"), constant)
            return self._outside[id(leaf)][1]

        with torch._C.DisableTorchFunctionSubclass():
            changed: tuple[tuple[Any, ...], dict[str, Any]] = tree_map(given, (args, kwargs))
        return changed

    def _limit(self, func: Any, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        contents = self.record.known.contents(value)
        if contents is None:
            raise ExtractionError(f"{func.__name__}: the limits of a slice are not known")
        return int(contents)

    def _node_name(self, func: Any) -> str:
        base = func if isinstance(func, str) else _short_name(func)
        self._uses[base] = self._uses.get(base, 0) + 1
        return base if self._uses[base] == 1 else f"{base}_{self._uses[base] - 1}"

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """A node, where the call made or wrote a tensor."""
        record = self.record
        before = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
        mutated: list[str] = []
        for leaf in before:
            if storage_key(leaf) in record.known.written:
                record.check_write(func.__name__, leaf, self._in_place)
                if any(storage_key(leaf) == storage_key(constant) for _, constant in self._outside.values()):
                    raise ExtractionError(f"{func.__name__}: writes a tensor that is not among the inputs")
                mutated.append(record.names[id(leaf)])
        results = tree_flatten(result)[0]
        fresh = [isinstance(item, torch.Tensor) and record.is_new(item) for item in results]
        if not any(fresh) and not mutated:
            return
        op = name_of(func)
        try:
            arguments = written_arguments(args, kwargs, record.names, index=op in _INDEXING)
        except ExtractionError as error:
            raise ExtractionError(f"{op}: {error}") from None
        name = self._node_name(func)
        outputs = [
            record.name(item, name if len(results) == 1 else f"{name}.{position}") if new else None
            for position, (item, new) in enumerate(zip(results, fresh, strict=True))
        ]
        record.nodes.append(
            Node(name, op, arguments, tuple(outputs) if any(fresh) else (), tuple(dict.fromkeys(mutated)))
        )

    def _list(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """Note the call if torchview has to list it: it lists what reads and gives tensors that it wrapped."""
        read = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, RecorderTensor)]
        made = [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, RecorderTensor)]
        if not read or not made:
            return
        reads = frozenset(self._latest[id(leaf)] for leaf in read if id(leaf) in self._latest)
        nodes = getattr(made[0], "tensor_nodes", None)
        self._latest |= {id(leaf): len(self.listed) for leaf in made}
        self.listed.append(_Listed(func.__name__, reads, next(iter(nodes[-1].parents), None) if nodes else None))


def _short_name(func: Any) -> str:
    """``softmax`` of a function, ``T`` of a property, ``setitem`` of a method with underscores."""
    name: str = func.__name__
    if name == "__get__":
        name = func.__self__.__name__
    return name.strip("_")


def _check_wiring(calls: Sequence[_Listed], drawn: ComputationGraph) -> None:
    """Raise :class:`ExtractionError` with the first function or edge that torchview and the mode disagree about."""
    positions: dict[int, int] = {}
    for position, call in enumerate(calls):
        if not isinstance(call.node, FunctionNode) or id(call.node) in positions:
            raise ExtractionError(f"{call.name}: torchview does not list this call (number {position + 1})")
        if call.node.name != call.name:
            raise ExtractionError(f"{call.name}: torchview lists {call.node.name} in its place")
        positions[id(call.node)] = position
    for node in _reached([*_entries(drawn.node_hierarchy), *(call.node for call in calls)]):
        if isinstance(node, FunctionNode) and node.name != "empty-pass" and id(node) not in positions:
            raise ExtractionError(f"{node.name}: torchview lists a call that was not seen")
    for call in calls:
        reads = {positions.get(id(node)) for parent in call.node.parents for node in _makers(parent)}
        if reads != set(call.reads):
            shown = [
                ", ".join(sorted(calls[i].name for i in side if i is not None)) or "inputs alone"
                for side in (reads, call.reads)
            ]
            raise ExtractionError(f"{call.name}: reads {shown[0]} by torchview, {shown[1]} as it was called")


def _entries(hierarchy: Any) -> Iterator[Any]:
    """Nodes of a (nested) {module: [node or hierarchy, ...]}, modules themselves left out."""
    for members in hierarchy.values():
        for member in members:
            if isinstance(member, Mapping):
                yield from _entries(member)
            else:
                yield member


def _reached(starts: Sequence[Any]) -> Iterator[Any]:
    seen: set[int] = set()
    waiting = list(starts)
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend((*node.children, *node.parents))


def _makers(node: TensorNode) -> Iterator[FunctionNode]:
    """The function that a tensor came from, through the copies that torchview keeps at the doors of modules."""
    for parent in node.main_node.parents:
        if isinstance(parent, FunctionNode) and parent.name == "empty-pass":
            for before in parent.parents:
                yield from _makers(before)
        elif isinstance(parent, FunctionNode):
            yield parent
