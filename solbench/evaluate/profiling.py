"""Where the time of one call goes, by PyTorch's profiler in the worker: labels for a trace, never a verdict.

It is the worker's word about one more call, made after all samples. On a card the times are those of kernels, on the
cpu those of PyTorch's operators against the whole call. What the operators of PyTorch take of it contradicts a
solution that declares another language.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from solbench.evaluate.workers import Worker, WorkerFailure

WORD = "the worker's word"
# More than this share of the time in PyTorch's own operators, and the declared language is not what does the work.
MOST_BY_OPERATORS = 0.5
LISTED, LEAST_LISTED = 5, 0.005
_MAX_NAME = 160
# Loading and starting PyTorch's profiler takes seconds.
PROFILER_START_S = 60.0


@dataclass(frozen=True)
class Row:
    """``host_s``, ``device_s``: seconds of its own, without what it called; ``kernel``: it ran on the card itself."""

    name: str
    kernel: bool
    host_s: float
    device_s: float


def labels(worker: Worker, languages: Sequence[str], limit_s: float) -> tuple[str, ...]:
    """Labels of one more call of the open workload in ``worker``, which is of no further use afterwards."""
    if languages[0] not in ("pytorch", "triton"):
        return (f"profile: none: a {languages[0]} solution runs without PyTorch",)
    try:
        worker.send({"op": "profile"})
        worker.thaw()
        reply = worker.wait("profiled", time.monotonic() + PROFILER_START_S + limit_s).frame
        worker.freeze()
    except WorkerFailure as error:
        return (f"profile: none: {error.reason}",)
    if reply.get("fault") is not None:
        return (f"profile: none: {_plain(reply['fault'])}",)
    try:
        rows = [Row(_plain(row[0]), bool(row[1]), float(row[2]), float(row[3])) for row in reply["rows"]]
        call_s = float(reply["call_s"])
    except (KeyError, IndexError, TypeError, ValueError):
        return ("profile: none: the worker's answer cannot be read",)
    return tuple(described(rows, call_s, languages))


def described(rows: Sequence[Row], call_s: float, languages: Sequence[str]) -> list[str]:
    """What took how much of the time, and the warning where that contradicts ``languages``."""
    kernels = [(row.name, row.device_s) for row in rows if row.kernel]
    operators = [row for row in rows if not row.kernel and row.name.startswith("aten::")]
    on_card = sum(seconds for _, seconds in kernels) > 0
    whole_s = sum(seconds for _, seconds in kernels) if on_card else call_s
    by_operator = [(row.name, row.device_s if on_card else row.host_s) for row in operators]
    if not whole_s > 0:
        return ["profile: none: it saw nothing"]
    unit = "kernels on the card" if on_card else "operators on the cpu"
    parts = _shares(kernels if on_card else by_operator, whole_s) or "none of PyTorch's"
    found = [f"profile ({WORD}): {unit}: {parts}"]
    share = min(sum(seconds for _, seconds in by_operator) / whole_s, 1.0)
    declared = next((name for name in languages if name != "pytorch"), None)
    if declared is not None and share > MOST_BY_OPERATORS:
        names = ", ".join(name for name, _ in _largest(by_operator)[:3])
        found.append(f"language: declared {declared}, {share:.0%} of the profiled time is in {names} ({WORD})")
    return found


def _largest(parts: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted((part for part in parts if part[1] > 0), key=lambda part: -part[1])


def _shares(parts: Sequence[tuple[str, float]], whole_s: float) -> str:
    listed = [(name, seconds / whole_s) for name, seconds in _largest(parts)[:LISTED]]
    return ", ".join(f"{share:.0%} {name}" for name, share in listed if share >= LEAST_LISTED)


def _plain(text: object) -> str:
    """A name that a hostile process gave, fit for one line."""
    return "".join(character for character in str(text) if character.isprintable())[:_MAX_NAME]
