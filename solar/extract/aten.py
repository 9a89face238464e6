"""Path ``aten``: a reference traced by ``make_fx`` on the meta device into ATen calls.

Nothing of the workload's size is allocated, and nothing of the processor enters: fake CPU tensors would choose other
kernels on other machines, meta tensors choose the plain mathematical form everywhere. Autograd inside the reference is
traced like the rest. Integer inputs with declared values carry them (:mod:`solar.extract.known`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten

from solar.errors import ExtractionError
from solar.extract.decompositions import table
from solar.extract.draws import Draws
from solar.extract.inputs import FOREIGN, Prepared, plain_settings, prepare, refusal
from solar.extract.inputs import dtype_name as dtype_name
from solar.extract.known import KnownValues, Literals, written
from solar.extract.record import LARGEST_VALUES as LARGEST_VALUES
from solar.extract.record import Record
from solar.extract.results import named_results
from solar.graph import Input, Node, OperatorGraph, Ref

# Operators whose integer or boolean operands decide which elements are touched.
_BY_VALUES = """index index_put index_put_ _unsafe_index _unsafe_index_put gather index_select embedding scatter
    scatter_ scatter_add scatter_add_ scatter_reduce index_add index_add_ index_copy index_fill where masked_fill
    masked_fill_ masked_scatter"""
_DECIDED_BY_VALUES = frozenset(_BY_VALUES.split())
_DROPPED_ARGUMENTS = frozenset(("device", "layout", "pin_memory", "memory_format", "generator", "non_blocking"))


def extract(
    run: Callable[..., Any],
    inputs: Mapping[str, Input],
    *,
    outputs: Sequence[str] | None = None,
    in_place: Sequence[str] = (),
) -> OperatorGraph:
    """Operator graph of ``run(*inputs)``, called positionally in the order of ``inputs``.

    ``outputs`` names the results in order (nested results count depth first); without it a dict names its own, and
    others are called ``output`` or ``output.0``, ``output.1`` ... ``in_place`` lists the inputs that ``run`` may write.
    Raises :class:`ExtractionError` where the reference cannot be recorded.
    """
    prepared = prepare(inputs, in_place)
    tensors, scalars = prepared.tensors, prepared.scalars
    first = {name: value.clone() for name, value in prepared.contents.items()}
    constants: list[torch.Tensor] = []
    names: list[str] = []

    def traced(*arguments: torch.Tensor) -> list[torch.Tensor]:
        by_name = dict(zip(tensors, arguments, strict=True))
        with Draws() as draws, torch.enable_grad(), torch.device("meta"):
            known = KnownValues(constants, draws)
            for name, value in first.items():
                known.learn(by_name[name], value)
            with Literals(known), known:
                result = run(*(by_name[name] if name in by_name else scalars[name] for name in inputs))
        found = named_results(result, outputs, ExtractionError)
        names[:] = [name for name, _ in found]
        return [tensor for _, tensor in found]

    # One mode for the notes that make_fx takes of every result; it would make one for each, at twice the time.
    notes = tracing(TracingContext(FakeTensorMode(allow_fallback_kernels=True)))
    with plain_settings():
        try:
            with notes:
                module = make_fx(traced, decomposition_table=table(), tracing_mode="real")(*tensors.values())
        except (ExtractionError, *FOREIGN) as error:
            raise refusal(error) from None
        return _recorded(module, names, prepared, constants, tuple(in_place))


def _recorded(
    module: torch.fx.GraphModule,
    names: list[str],
    prepared: Prepared,
    constants: list[torch.Tensor],
    in_place: tuple[str, ...],
) -> OperatorGraph:
    """The traced module as an operator graph: it runs once more on meta tensors, to see storages and effects."""
    record = _Calls(KnownValues(constants), prepared.tensors, prepared.contents)
    placeholders = iter(prepared.tensors.values())
    environment: dict[torch.fx.Node, Any] = {}
    results: list[torch.Tensor] = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            environment[node] = next(placeholders)
            continue
        arguments = torch.fx.map_arg((node.args, node.kwargs), lambda item: environment[item])
        if node.op == "output":
            results = list(arguments[0][0])
        elif node.op == "get_attr":
            held = getattr(module, node.target).detach()
            if held.device.type == "meta":
                raise ExtractionError(
                    f"the reference reads a {dtype_name(held.dtype)} tensor of shape {list(held.shape)} that is none "
                    "of its inputs and has no contents; make it an input (in a module: a buffer)"
                )
            with record.known:
                value = record.known.constant(held.to("cpu"))
            environment[node] = record.constant(node.name, value)
        elif node.target is operator.getitem:
            environment[node] = arguments[0][0][arguments[0][1]]
        else:
            for tensor in written(node.target, *arguments):
                record.check_write(str(node.target), tensor, in_place)
            with record.known:
                environment[node] = node.target(*arguments[0], **arguments[1])
            record.call(node.name, node.target, arguments[0], arguments[1], environment[node])
    return record.graph("aten", prepared, list(zip(names, results, strict=True)), in_place)


class _Calls(Record):
    """Calls of ATen operators, by their schemas."""

    def call(self, name: str, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        if target is torch.ops.solar.constant.default:
            self.constant(name, result)
            return
        schema = target._schema
        arguments: dict[str, Any] = {}
        for position, argument in enumerate(schema.arguments):
            if argument.name in _DROPPED_ARGUMENTS:
                continue
            if position < len(args):
                value = args[position]
            elif argument.name in kwargs:
                value = kwargs[argument.name]
            elif argument.has_default_value():
                value = argument.default_value
            else:
                continue
            if value is not None:
                arguments[argument.name] = self._structured(name, value)
        packet = schema.name.partition("::")[2]
        if packet in _DECIDED_BY_VALUES:
            for leaf in tree_flatten((args, kwargs))[0]:
                if isinstance(leaf, torch.Tensor) and (
                    not leaf.is_floating_point() if leaf.dtype != torch.bool else self.known.declared(leaf)
                ):
                    self.remember(leaf)
        mutated = tuple(dict.fromkeys(self.names[id(tensor)] for tensor in written(target, args, kwargs)))
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        outputs: list[str | None] = []
        for position, item in enumerate(results):
            known = id(item) in self.names and torch.Tag.inplace_view not in target.tags
            if not isinstance(item, torch.Tensor) or known:
                outputs.append(None)
            else:
                outputs.append(self.name(item, name if len(results) == 1 else f"{name}.{position}"))
        if mutated and all(output is None for output in outputs):
            outputs = []
        self.nodes.append(Node(name, str(target), arguments, tuple(outputs), mutated))

    def _structured(self, name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return Ref(self.names[id(value)])
        if isinstance(value, (list, tuple)):
            return tuple(self._structured(name, item) for item in value)
        if isinstance(value, torch.dtype):
            return dtype_name(value)
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise ExtractionError(f"{name}: an argument of type {type(value).__name__} cannot be recorded")
