"""Stage 1: what a reference calls, recorded on the meta device. One module a path; paths are never mixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from solar.errors import ExtractionError
from solar.graph import PATHS, Input, OperatorGraph


def extract(
    run: Callable[..., Any],
    inputs: Mapping[str, Input],
    *,
    path: str = "aten",
    outputs: Sequence[str] | None = None,
    in_place: Sequence[str] = (),
) -> OperatorGraph:
    """Operator graph of ``run(*inputs)`` by the path of that name: ``aten`` or ``torchview``.

    The other path is never tried. ``inputs``, ``outputs`` and ``in_place``: see :func:`solar.extract.aten.extract`.
    Raises :class:`ExtractionError` for an unknown path, and where the reference cannot be recorded on this one.
    """
    if path not in PATHS:
        raise ExtractionError(f"path: {path!r} is none of {', '.join(PATHS)}")
    try:
        module = import_module(f"solar.extract.{path}")
    except ModuleNotFoundError as error:
        raise ExtractionError(
            f"path {path}: {error.name} is not installed; run `pip install 'solbench[run]'`"
        ) from None
    graph: OperatorGraph = module.extract(run, inputs, outputs=outputs, in_place=in_place)
    return graph
