"""Public functions of PyTorch by name, and their arguments as an operator graph writes them.

A node of path ``torchview`` names its function as users write it (``torch.nn.functional.linear``,
``torch.Tensor.add_``, ``torch.Tensor.T.__get__``). Positional arguments are called "0", "1" ..., others by their
keyword. Beside numbers, strings, tensors and tuples a value may be a token, a string that begins with "@": ``@2.0``
(a whole float, which canonical JSON would make an int), ``@float16``, ``@channels_last``, ``@strided``, ``@device``
(whatever it was: a graph knows one), ``@...`` (Ellipsis); ("@slice", start, stop, step) and ("@list", items...) stand
among indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any

import torch
from torch.overrides import get_overridable_functions, resolve_name
from torch.utils._device import _device_constructors

from solar.errors import ExtractionError, GraphError
from solar.graph import Ref

_TYPES = (torch.dtype, torch.memory_format, torch.layout)
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodDescriptorType)
_DEVICE = "meta"
# Reads a file, hands memory out, or takes what a graph cannot hold.
_REFUSED = ("torch.from_file", "torch.frombuffer", "torch.Tensor.data.__set__", "torch.Tensor.set_")


@cache
def _names() -> dict[Callable[..., Any], str]:
    """Every function: what PyTorch lets a subclass override, what makes tensors from nothing, and the plain bindings of
    its operators, in this order: a function keeps the first name."""
    found: dict[Callable[..., Any], str] = {}
    for functions in get_overridable_functions().values():
        for function in functions:
            name = resolve_name(function)
            if isinstance(name, str) and name.startswith("torch."):
                found.setdefault(function, name)
    factories = {factory.__name__ for factory in _device_constructors() if factory is not None}
    places: tuple[tuple[Any, str, Callable[[str], bool]], ...] = (
        (torch, "torch", lambda short: short in factories),
        (torch.Tensor, "torch.Tensor", lambda short: not short.startswith("_")),
        (torch.nn.functional, "torch.nn.functional", lambda short: short.islower() and not short.startswith("_")),
        (torch._C._VariableFunctions, "torch", lambda short: not short.startswith("__")),
        (torch._C._nn, "torch._C._nn", lambda short: not short.startswith("__")),
    )
    for where, prefix, wanted in places:
        for short in dir(where):
            function = getattr(where, short)
            if wanted(short) and isinstance(function, _FUNCTIONS):
                found.setdefault(function, f"{prefix}.{short}")
    return {function: name for function, name in found.items() if name not in _REFUSED}


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    return {name: function for function, name in _names().items()}


def learn_names() -> None:
    """Look every function up now: while torchview records, PyTorch's factories are replaced."""
    _names()


def name_of(function: Callable[..., Any]) -> str:
    """Name of a public function; :class:`ExtractionError` for any other callable."""
    name = _names().get(function)
    if name is None:
        shown = getattr(function, "__name__", None) or str(function)
        raise ExtractionError(f"{shown}: is no public function that path torchview can record; use path aten")
    return name


def function_of(name: str) -> Callable[..., Any]:
    """Inverse of :func:`name_of`; :class:`GraphError` for a name that is no public function."""
    found = _functions().get(name)
    if found is None:
        raise GraphError(f"{name}: no public function of PyTorch {torch.__version__}")
    return found


def written_argument(value: Any, names: Mapping[int, str], *, index: bool = False) -> Any:
    """One argument as the graph holds it; ``names``: of tensors by identity. Lists keep their kind in an index."""
    if isinstance(value, torch.Tensor):
        return Ref(names[id(value)])
    if isinstance(value, slice):
        return ("@slice", *(written_argument(item, names) for item in (value.start, value.stop, value.step)))
    if isinstance(value, (list, tuple)):
        items = tuple(written_argument(item, names, index=index) for item in value)
        return ("@list", *items) if index and isinstance(value, list) else items
    if value is Ellipsis:
        return "@..."
    if isinstance(value, _TYPES):
        return "@" + str(value).removeprefix("torch.")
    if isinstance(value, torch.device):
        return "@device"
    if isinstance(value, float) and value.is_integer():
        return f"@{value!r}"
    if value is None or type(value) in (bool, int, float) or (type(value) is str and not value.startswith("@")):
        return value
    raise ExtractionError(f"an argument of type {type(value).__name__} cannot be recorded by path torchview")


def read_argument(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    """Inverse of :func:`written_argument`."""
    if isinstance(value, Ref):
        return tensors[value.tensor]
    if isinstance(value, tuple):
        if value[:1] == ("@slice",) and len(value) == 4:
            return slice(*(read_argument(item, tensors) for item in value[1:]))
        if value[:1] == ("@list",):
            return [read_argument(item, tensors) for item in value[1:]]
        return tuple(read_argument(item, tensors) for item in value)
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    token = value[1:]
    if token == "...":
        return Ellipsis
    if token == "device":
        return torch.device(_DEVICE)
    named = getattr(torch, token, None)
    if isinstance(named, _TYPES):
        return named
    try:
        return float(token)
    except ValueError:
        raise GraphError(f"{value!r}: no such value") from None


def written_arguments(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], names: Mapping[int, str], *, index: bool
) -> dict[str, Any]:
    """All arguments of a call."""
    positional = {str(i): written_argument(item, names, index=index) for i, item in enumerate(args)}
    return positional | {name: written_argument(item, names) for name, item in kwargs.items()}


def read_arguments(
    arguments: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
) -> tuple[list[Any], dict[str, Any]]:
    """Inverse of :func:`written_arguments`, whatever the order of the keys."""
    count = sum(name.isdecimal() for name in arguments)
    if any(str(i) not in arguments for i in range(count)):
        raise GraphError("positional arguments are not numbered from 0")
    args = [read_argument(arguments[str(i)], tensors) for i in range(count)]
    kwargs = {name: read_argument(item, tensors) for name, item in arguments.items() if not name.isdecimal()}
    return args, kwargs
