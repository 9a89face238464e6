"""The ``verdicts`` stage of a release: which recorded verdicts are of its candidates and workloads, as artifacts.

``<problem>/<workload>/<solution>@<target>`` names one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.code.section import candidates
from solbench.errors import InputError
from solbench.evaluate.verdict_sets import Judged, read
from solbench.model.emulation import TARGET
from solbench.model.record import Descriptor as Reference
from solbench.model.trace import Status
from solbench.model.verdict import EmulatedBy, Verdict, VerdictSetHeader
from solbench.store import Descriptor, Store
from solbench.workspace import StageOutput


@dataclass(frozen=True)
class Counts:
    """``kept`` of ``wanted`` pairs of candidate and workload have a verdict, ``passed`` of them; ``stale``: records of
    solutions or workloads that the release has not, or has otherwise."""

    kept: int
    wanted: int
    passed: int
    stale: int

    def __str__(self) -> str:
        verdicts = f"{self.kept} of {self.wanted} pairs of candidate and workload have a verdict, {self.passed} passed"
        return f"{verdicts}; {self.stale} stale and left out"


def put(store: Store, folder: Path, output: StageOutput) -> Counts:
    """Store what the sets below ``folder`` say of the release in ``store``."""
    instances, solutions = store.index("workloads"), store.index("corpus")
    wanted = {
        f"{instance['problem']}/{instance['workload']['uuid']}/{candidate.solution['name']}@{candidate.target}"
        for candidate in candidates(store, [TARGET])
        for instance in candidate.instances
    }
    stale = passed = 0
    for path in sorted(folder.glob("*.jsonl")):
        header, records = read(path)
        if path.stem != header.target:
            raise InputError(str(path), f"is a set of {header.target}, and belongs into {header.target}.jsonl")
        for one in records:
            name = f"{one.key.problem}/{one.key.workload}/{one.key.solution}@{header.target}"
            instance = instances.get(f"{one.key.problem}/{one.key.workload}")
            solution = solutions.get(f"{one.key.problem}/solutions/{one.key.solution}")
            digests = tuple(None if entry is None else entry.digest for entry in (instance, solution))
            if name not in wanted or digests != (one.trace.workload_digest, one.trace.solution_digest):
                stale += 1
                continue
            assert instance is not None and solution is not None
            passed += one.trace.status is Status.PASSED
            output.put(name, "verdict", artifact(header, one, instance, solution))
    return Counts(len(output.index), len(wanted), passed, stale)


def artifact(header: VerdictSetHeader, one: Judged, instance: Descriptor, candidate: Descriptor) -> dict[str, Any]:
    """The ``verdict`` artifact of a record: of a pass neither what the candidate wrote nor why there is no time."""
    trace = one.trace
    passed = trace.status is Status.PASSED
    toolchain = EmulatedBy(emulator=header.emulator, tools=header.tools, instructions=header.instructions)
    return Verdict(  # type: ignore[call-arg]
        problem=one.key.problem,
        workload=trace.workload,
        solution=trace.solution,
        target=trace.target,
        instance=_reference(instance),
        candidate=_reference(candidate),
        toolchain=toolchain,
        status=trace.status,
        reason=None if passed else trace.reason,
        log="" if passed else trace.log,
        correctness=trace.correctness,
        emulation=trace.emulation,
    ).as_dict()


def _reference(descriptor: Descriptor) -> Reference:
    return Reference(kind=descriptor.kind, digest=descriptor.digest, size=descriptor.size)
