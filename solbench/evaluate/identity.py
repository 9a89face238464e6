"""Digests that tie a trace to what was evaluated: the same artifacts that the pipeline stores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solbench import canonical, store
from solbench.corpus.load import Problem
from solbench.model.solution import Solution
from solbench.model.workload import Workload

WORKLOAD_SCHEMA = "solbench.workload-instance.v1"
_HARNESS = ("evaluate", "device", "inputs.py", "checks.py", "corpus/reference.py")
_EMULATOR = ("gfx12", "evaluate/emulated.py", "evaluate/emulated_card.py")


def workload_artifact(problem: Problem, workload: Workload) -> dict[str, Any]:
    """The ``workload`` artifact: the workload, its resolved axes, and the definition that it belongs to."""
    definition = store.Descriptor.of("definition", store.encode("definition", problem.definition.as_dict()))
    return {
        "schema": WORKLOAD_SCHEMA,
        "problem": problem.key,
        "definition": definition.as_dict(),
        "workload": workload.as_dict(),
        "axes": workload.validate_against(problem.definition, f"{problem.key}/{workload.uuid}"),
    }


def workload_digest(problem: Problem, workload: Workload) -> str:
    """Digest of the ``workload`` artifact of one workload."""
    return canonical.digest(store.encode("workload", workload_artifact(problem, workload)))


def solution_digest(solution: Solution) -> str:
    """Digest of the ``solution`` artifact."""
    return canonical.digest(store.encode("solution", solution.as_dict()))


def harness_digest() -> str:
    """Digest of the code that draws, runs, times and checks: numbers of two harnesses are not compared."""
    return _code_digest(_HARNESS)


def emulator_digest() -> str:
    """Digest of the code that makes up the emulated card."""
    return _code_digest(_EMULATOR)


def _code_digest(names: Sequence[str]) -> str:
    package = Path(__file__).resolve().parent.parent
    files: dict[str, str] = {}
    for name in names:
        path = package / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            files[file.relative_to(package).as_posix()] = canonical.digest(file.read_bytes())
    return canonical.digest(canonical.dumps(files))
