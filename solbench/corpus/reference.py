"""Running a reference. Only trusted processes do so: the referee, extraction, corpus validation."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import torch

from solbench.errors import InputError
from solbench.model.definition import Definition


def load_namespace(definition: Definition) -> types.ModuleType:
    """Execute the reference's source in a module of its own and return the module."""
    module = types.ModuleType(f"reference_{definition.name}")
    where = f"{definition.name}: reference"
    try:
        exec(compile(definition.reference, f"<{where}>", "exec"), module.__dict__)  # noqa: S102
    except ImportError as error:
        raise InputError(where, f"cannot import: {error}") from None
    return module


def load_reference(definition: Definition) -> Callable[..., Any]:
    """The reference's ``run(*inputs)`` in the declared order of the inputs."""
    run: Callable[..., Any] = load_namespace(definition).run
    return run


def named_outputs(definition: Definition, result: Any) -> dict[str, torch.Tensor]:
    """Outputs by name, in declared order: from one tensor, a tuple or list in that order, or a mapping of exactly
    these names. :class:`InputError` if the number, the names or the types are others."""
    names = list(definition.outputs)
    where = f"{definition.name}: result of run"
    if isinstance(result, torch.Tensor):
        result = (result,)
    if isinstance(result, Mapping):
        if set(result) != set(names):
            raise InputError(where, f"must be named {', '.join(names)}")
        values = [result[name] for name in names]
    elif isinstance(result, (tuple, list)):
        values = list(result)
    else:
        raise InputError(where, f"is a {type(result).__name__}, not tensors")
    if len(values) != len(names):
        raise InputError(where, f"has {len(values)} values, declared are {len(names)}: {', '.join(names)}")
    for name, value in zip(names, values):
        if not isinstance(value, torch.Tensor):
            raise InputError(f"{where}: {name}", f"is a {type(value).__name__}, not a tensor")
    return dict(zip(names, values))
