"""What the site shows: the records of a release, joined by problem, workload and target, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import ConfigDict, Field

from solbench.errors import IntegrityError
from solbench.model.code import Code, Kernel
from solbench.model.configuration import Configuration
from solbench.model.definition import Definition
from solbench.model.readiness import Readiness
from solbench.model.record import Value
from solbench.model.release import Release, TargetState
from solbench.model.score import Entry, ProblemScore, Score
from solbench.model.solution import Solution
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.model.verdict import Verdict
from solbench.model.workload import Workload
from solbench.store import Descriptor

if TYPE_CHECKING:
    from solbench.release.diff import Diff

T = TypeVar("T")


class _Read(Value):
    """A record of another package: only the fields that a page shows."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, populate_by_name=True)


class ComputeTerm(_Read):
    engine: str
    mode: str
    ops: float
    rate_per_s: float = Field(gt=0)
    seconds: float = Field(ge=0)


class MemoryTerm(_Read):
    live_bytes: float
    live_read_bytes: float
    live_write_bytes: float
    absorbed_write_bytes: float = 0
    declared_bytes: float
    bandwidth_bytes_per_s: float = Field(gt=0)
    seconds: float = Field(ge=0)


class OpTerm(_Read):
    op: str
    kind: str
    function: str
    engine: str | None
    mode: str | None
    work: float | None


class TensorTerm(_Read):
    name: str
    role: str
    live_bytes: float
    declared_bytes: float


class BoundResult(_Read):
    """``solar.bound.v1``: seconds, bytes and operations of one workload on one machine model.

    ``terms`` and ``tensors`` are many, and are read where they are shown: see :func:`terms_of` and :func:`tensors_of`.
    """

    class_: str = Field(alias="class")
    coverage: Literal["complete", "partial"]
    uncounted: tuple[str, ...]
    t_sol_s: float = Field(ge=0)
    binds: str
    compute: tuple[ComputeTerm, ...]
    memory: MemoryTerm
    macs: float
    dense_macs: float | None = None
    flops: float
    terms: tuple[Any, ...]
    tensors: tuple[Any, ...]
    draws: str
    assumptions: tuple[str, ...]
    looseness: tuple[str, ...]


class Bound(_Read):
    """One workload on one target: a result, or the reason why there is none."""

    problem: str
    workload: str
    target: str
    rejected_formats: tuple[str, ...]
    result: BoundResult | None
    reason: str | None


def terms_of(record: Record[Bound]) -> list[OpTerm]:
    return [OpTerm.load(term, record.name) for term in record.value.result.terms] if record.value.result else []


def tensors_of(record: Record[Bound]) -> list[TensorTerm]:
    return [TensorTerm.load(one, record.name) for one in record.value.result.tensors] if record.value.result else []


@dataclass(frozen=True)
class Record(Generic[T]):
    """One artifact of the release: its logical name, its reference, what it says."""

    name: str
    descriptor: Descriptor
    value: T


@dataclass(frozen=True)
class Unread(Generic[T]):
    """A :class:`Record` that is read when its value is asked for, for many are shown on one page only."""

    name: str
    descriptor: Descriptor
    read: Callable[[], T] = field(repr=False)

    @cached_property
    def value(self) -> T:
        """Raises as the store does for an object that is not what it should be."""
        return self.read()


@dataclass(frozen=True)
class WorkloadRecords:
    """A workload with everything known about it; scores, verdicts and code by target, in name order."""

    record: Record[Workload]
    axes: Mapping[str, int]
    bounds: Mapping[str, Record[Bound]]
    scores: Mapping[str, tuple[Record[Score], ...]]
    verdicts: Mapping[str, tuple[Record[Verdict], ...]]
    code: Mapping[str, tuple[Record[Code], ...]]
    attestation: Record[dict[str, Any]] | None
    evidence: tuple[tuple[str, Descriptor], ...]
    # Where a configuration generated it: its slot by target.
    slots: Mapping[str, str]

    @property
    def uuid(self) -> str:
        return self.record.value.uuid

    def on(self, target: str) -> bool:
        """Whether the release has it for ``target``."""
        return not self.slots or target in self.slots


@dataclass(frozen=True)
class ProblemRecords:
    key: str
    record: Record[Definition]
    solutions: tuple[Record[Solution], ...]
    workloads: tuple[WorkloadRecords, ...]

    @property
    def corpus(self) -> str:
        return self.key.partition("/")[0]


@dataclass(frozen=True)
class MeasurementSet:
    """A header and how many traces and omissions stand below it."""

    header: Record[SetHeader]
    traces: int
    omissions: int


@dataclass(frozen=True)
class TargetRecords:
    state: TargetState
    hardware: Record[dict[str, Any]] | None
    configurations: tuple[Record[Configuration], ...]
    entries: tuple[Record[Entry], ...]
    sets: tuple[MeasurementSet, ...]
    readiness: tuple[Record[Readiness], ...]

    @property
    def name(self) -> str:
        return self.state.target


@dataclass(frozen=True)
class Book:
    """Everything that the site shows, in a fixed order."""

    release: Record[Release]
    problems: tuple[ProblemRecords, ...]
    targets: tuple[TargetRecords, ...]
    traces: Mapping[str, Unread[Trace | Omission]]
    kernels: Mapping[str, Record[Kernel]]
    sections: tuple[tuple[str, Descriptor, int], ...]
    stage_of: Mapping[str, str] = field(repr=False)
    # Digests of objects that were read, and so are there.
    read: frozenset[str] = field(repr=False)
    # What changed since an earlier release, where one was named.
    since: Diff | None = field(default=None, repr=False)

    def workloads(self) -> Iterator[tuple[ProblemRecords, WorkloadRecords]]:
        for problem in self.problems:
            for workload in problem.workloads:
                yield problem, workload

    @cached_property
    def _problems(self) -> dict[str, ProblemRecords]:
        return {problem.key: problem for problem in self.problems}

    @cached_property
    def _workloads(self) -> dict[str, tuple[ProblemRecords, WorkloadRecords]]:
        return {found.record.name: (problem, found) for problem, found in self.workloads()}

    @cached_property
    def _solutions(self) -> dict[str, tuple[ProblemRecords, Record[Solution]]]:
        return {found.name: (problem, found) for problem in self.problems for found in problem.solutions}

    def target(self, name: str) -> TargetRecords:
        return next(target for target in self.targets if target.name == name)

    def problem(self, key: str) -> ProblemRecords:
        return self._problems[key]

    def workload(self, name: str) -> tuple[ProblemRecords, WorkloadRecords]:
        return self._workloads[name]

    def solution(self, name: str) -> tuple[ProblemRecords, Record[Solution]]:
        return self._solutions[name]

    def digests_of(self, problem: ProblemRecords) -> Iterator[str]:
        """Digests of everything that the release has of one problem; what these refer to is named in them."""
        yield problem.record.descriptor.digest
        yield from (solution.descriptor.digest for solution in problem.solutions)
        for workload in problem.workloads:
            yield workload.record.descriptor.digest
            yield from (descriptor.digest for _, descriptor in workload.evidence)
            yield from (bound.descriptor.digest for bound in workload.bounds.values())
            for scores in workload.scores.values():
                yield from (score.descriptor.digest for score in scores)
            for verdicts in workload.verdicts.values():
                yield from (verdict.descriptor.digest for verdict in verdicts)
            for codes in workload.code.values():
                yield from (code.descriptor.digest for code in codes)

    def problem_score(self, entry: Record[Entry], problem: ProblemRecords) -> ProblemScore | None:
        """An entry's result on one problem, by key or, where that is unambiguous, by definition name."""
        by_key = [score for score in entry.value.problems if score.definition == problem.key]
        name = problem.record.value.name
        found = by_key or [score for score in entry.value.problems if score.definition == name]
        namesakes = sum(other.record.value.name == name for other in self.problems)
        if len(found) > 1 or (found and not by_key and namesakes > 1):
            raise IntegrityError(f"{entry.name}: problems named {name!r} cannot be told apart")
        return found[0] if found else None
