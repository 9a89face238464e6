"""Speed-of-light analysis: a lower bound on the time of a PyTorch reference on a target, without the candidate.

The three stages as functions, loaded where they are used: :func:`extract_graph` (needs PyTorch), :func:`convert_graph`,
:func:`bound_program`, and in a row :func:`analyze`; beside them :func:`replay_program`, :func:`attest_program` and
:func:`load_module` (PyTorch), :func:`attainable_traffic` (NumPy), and :func:`load_machine`.
``solar.einsum``, ``solar.hardware`` and ``solar.bound`` import neither PyTorch nor NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_STAGES = {
    "extract_graph": ("solar.extract", "extract"),
    "convert_graph": ("solar.convert", "convert"),
    "bound_program": ("solar.bound", "bound"),
    "replay_program": ("solar.replay", "replay"),
    "attest_program": ("solar.attest", "attest"),
    "load_machine": ("solar.hardware", "load"),
    "attainable_traffic": ("solar.mapper", "attainable"),
    "load_module": ("solar.module", "load"),
    "analyze": ("solar.analysis", "analyze"),
}


def __getattr__(name: str) -> Any:
    if name not in _STAGES:
        raise AttributeError(f"module 'solar' has no attribute {name!r}")
    module, function = _STAGES[name]
    return getattr(import_module(module), function)


def __dir__() -> list[str]:
    return sorted((*globals(), *_STAGES))
