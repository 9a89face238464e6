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
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten

from solar.errors import ExtractionError
from solar.extract.decompositions import table
from solar.extract.known import KnownValues, Literals, storage_key, written
from solar.extract.results import named_results
from solar.graph import Input, Node, OperatorGraph, Ref, Scalar, Tensor, validate

# Elements; longer contents stay out of the graph (they still resolve shapes while tracing).
LARGEST_VALUES = 1 << 16

# Operators whose integer or boolean operands decide which elements are touched.
_BY_VALUES = """index index_put index_put_ _unsafe_index _unsafe_index_put gather index_select embedding scatter
    scatter_ scatter_add scatter_add_ scatter_reduce index_add index_add_ index_copy index_fill where masked_fill
    masked_fill_ masked_scatter"""
_DECIDED_BY_VALUES = frozenset(_BY_VALUES.split())
_DROPPED_ARGUMENTS = frozenset(("device", "layout", "pin_memory", "memory_format", "generator", "non_blocking"))
_FOREIGN = (
    RuntimeError,
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    ArithmeticError,
    AssertionError,
    NameError,
    ImportError,
)


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
    for name in in_place:
        if name not in inputs or inputs[name].shape is None:
            raise ExtractionError(f"in_place: {name!r} is not a tensor input")
    tensors = {name: _meta(name, spec) for name, spec in inputs.items() if spec.shape is not None}
    contents = {name: _contents(name, spec) for name, spec in inputs.items() if spec.values is not None}
    scalars = {name: _scalar(name, spec) for name, spec in inputs.items() if spec.shape is None}
    first = {name: value.clone() for name, value in contents.items()}
    constants: list[torch.Tensor] = []
    names: list[str] = []

    def traced(*arguments: torch.Tensor) -> list[torch.Tensor]:
        by_name = dict(zip(tensors, arguments, strict=True))
        known = KnownValues(constants)
        for name, value in first.items():
            known.learn(by_name[name], value)
        with torch.enable_grad(), torch.device("meta"), Literals(known), known:
            result = run(*(by_name[name] if name in by_name else scalars[name] for name in inputs))
        found = named_results(result, outputs, ExtractionError)
        names[:] = [name for name, _ in found]
        return [tensor for _, tensor in found]

    with torch.autocast("cpu", enabled=False), _default_dtype():
        try:
            module = make_fx(traced, decomposition_table=table(), tracing_mode="real")(*tensors.values())
        except ExtractionError:
            raise
        except NotImplementedError as error:
            raise ExtractionError(
                f"the reference calls what has no form on the meta device: {_first_line(error)}"
            ) from None
        except _FOREIGN as error:
            raise ExtractionError(
                f"the reference cannot be traced on the meta device: {type(error).__name__}: {_first_line(error)}"
            ) from None
        return _recorded(module, names, tensors, contents, scalars, constants, tuple(in_place))


def _recorded(
    module: torch.fx.GraphModule,
    names: list[str],
    inputs: dict[str, torch.Tensor],
    contents: dict[str, torch.Tensor],
    scalars: Mapping[str, Scalar],
    constants: list[torch.Tensor],
    in_place: tuple[str, ...],
) -> OperatorGraph:
    """The traced module as an operator graph: it runs once more on meta tensors, to see storages and effects."""
    record = _Record(constants)
    for name, tensor in inputs.items():
        record.name(tensor, f"in.{name}")
        if name in contents:
            record.known.learn(tensor, contents[name])
            record.remember(tensor)
    declared = {storage_key(tensor): name for name, tensor in inputs.items()}
    placeholders = iter(inputs.values())
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
            with record.known:
                value = record.known.constant(getattr(module, node.target).detach().to("cpu"))
            environment[node] = record.constant(node.name, value)
        elif node.target is operator.getitem:
            environment[node] = arguments[0][0][arguments[0][1]]
        else:
            for tensor in written(node.target, *arguments):
                source = declared.get(storage_key(tensor))
                if source is not None and source not in in_place:
                    raise ExtractionError(
                        f"{node.target}: the reference writes its input {source!r}, which is not declared in place"
                    )
            with record.known:
                environment[node] = node.target(*arguments[0], **arguments[1])
            record.call(node.name, node.target, arguments[0], arguments[1], environment[node])
    return validate(
        OperatorGraph(
            path="aten",
            tensors=record.tensors,
            inputs=tuple((name, f"in.{name}") for name in inputs),
            outputs=tuple((name, record.names[id(tensor)]) for name, tensor in zip(names, results, strict=True)),
            nodes=tuple(record.nodes),
            scalars=scalars,
            in_place=in_place,
        )
    )


class _Record:
    """Nodes and tensors as they come; a tensor is known by its identity, and all are held until the end."""

    def __init__(self, constants: list[torch.Tensor]) -> None:
        self.known = KnownValues(constants)
        self.names: dict[int, str] = {}
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self._held: dict[str, torch.Tensor] = {}
        self._storages: dict[int, int] = {}

    def name(self, tensor: torch.Tensor, name: str) -> str:
        if tensor.is_complex():
            raise ExtractionError(f"{name}: complex numbers are not supported")
        self.names[id(tensor)] = name
        self._held[name] = tensor
        self.tensors[name] = Tensor(
            tuple(tensor.shape),
            dtype_name(tensor.dtype),
            tuple(tensor.stride()),
            self._storages.setdefault(storage_key(tensor), len(self._storages)),
            tensor.storage_offset(),
        )
        return name

    def remember(self, tensor: torch.Tensor) -> None:
        """Write the known contents of a tensor beside it, as far as they are short."""
        value = self.known.contents(tensor)
        name = self.names[id(tensor)]
        entry = self.tensors[name]
        if value is None or entry.values is not None or value.numel() > LARGEST_VALUES:
            return
        self.tensors[name] = Tensor(
            entry.shape, entry.dtype, entry.strides, entry.storage, entry.offset, tuple(value.flatten().tolist())
        )

    def constant(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        value = self.known.contents(tensor)
        assert value is not None
        if value.numel() > LARGEST_VALUES:
            raise ExtractionError(f"{name}: a constant of {value.numel()} elements; make it an input")
        arguments = {"values": tuple(value.flatten().tolist())}
        self.nodes.append(Node(name, "solar.constant", arguments, (self.name(tensor, name),)))
        return tensor

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


def _meta(name: str, spec: Input) -> torch.Tensor:
    assert spec.shape is not None
    if any(extent < 0 for extent in spec.shape):
        raise ExtractionError(f"inputs.{name}: negative extent in {list(spec.shape)}")
    return torch.empty(spec.shape, dtype=torch_dtype(name, spec.dtype), device="meta")


def _contents(name: str, spec: Input) -> torch.Tensor:
    if spec.shape is None:
        raise ExtractionError(f"inputs.{name}: values belong to a tensor; a Python scalar has a value")
    try:
        return torch.tensor(spec.values, dtype=torch_dtype(name, spec.dtype)).reshape(spec.shape)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ExtractionError(f"inputs.{name}.values: {_first_line(error)}") from None


def _scalar(name: str, spec: Input) -> Scalar:
    if spec.value is None:
        raise ExtractionError(f"inputs.{name}: a Python scalar needs its value")
    if spec.dtype == "bool":
        return bool(spec.value)
    return float(spec.value) if spec.dtype.startswith(("float", "bfloat")) else int(spec.value)


def torch_dtype(where: str, name: str) -> torch.dtype:
    """The dtype of that name; :class:`ExtractionError` for one that PyTorch lacks."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ExtractionError(f"{where}: no dtype {name!r}")
    return dtype


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


class _default_dtype:
    """Whatever the caller set, a trace sees PyTorch's own default."""

    def __enter__(self) -> None:
        self._before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self._before)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
