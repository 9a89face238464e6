"""What a reference returns, as named tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from solar.errors import SolarError


def named_results(
    result: Any, declared: Sequence[str] | None, error: type[SolarError]
) -> list[tuple[str, torch.Tensor]]:
    """Tensors of a nested result, depth first, with their names.

    ``declared`` names them in order; a dict of exactly these names is taken by name. Without it a dict's keys are
    names, and others are ``output`` or ``output.0``, ``output.1`` ... Raises ``error`` for anything that is no tensor.
    """
    found: list[tuple[str, Any]] = []

    def walk(value: Any, path: str) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                walk(item, f"{path}.{key}" if path else str(key))
        elif isinstance(value, (tuple, list)):
            for position, item in enumerate(value):
                walk(item, f"{path or 'output'}.{position}")
        else:
            found.append((path or "output", value))

    walk(result, "")
    if not found:
        raise error("the reference returns nothing")
    for path, value in found:
        if not isinstance(value, torch.Tensor):
            raise error(f"{path}: the reference returns a {type(value).__name__}; an output is a tensor")
    if declared is None:
        return found
    if len(declared) != len(found):
        raise error(f"the reference returns {len(found)} tensors, {len(declared)} outputs are declared")
    by_path = dict(found)
    if isinstance(result, Mapping) and set(by_path) == set(declared):
        return [(name, by_path[name]) for name in declared]
    return [(name, tensor) for name, (_, tensor) in zip(declared, found, strict=True)]
