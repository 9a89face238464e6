"""Level ``replay``: graphs, IRs and attestations of a bundle are made again from its references, and compared.

References are hostile code: they run in confined child processes, one a problem, or not at all where the full sandbox
cannot be had. A child's answers are its word for its own problem, and count by digest alone; docs/release.md says what
follows. The IR of a recorded graph is made in a child that runs no reference, so that it holds whatever a reference
does. No PyTorch here.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from solbench import canonical
from solbench.child import ask
from solbench.errors import InputError, IntegrityError, UndecidedError
from solbench.evaluate import sandbox
from solbench.model.record import DIGEST, Value
from solbench.release.findings import Findings
from solbench.release.levels import Contents
from solbench.store import Descriptor, without_kind

LEVEL: Final = "replay"
# More children at once would rather fill the memory than save time.
_MOST_WORKERS: Final = 8
_SHOWN_NAMES: Final = 10


@dataclass(frozen=True)
class Request:
    """What to make again: ``problems`` by key or by the last part of it, all where empty.

    ``timeout_s``, ``memory_bytes``: of one child, which serves one problem. ``on_problem`` hears how many of how many
    problems are done, and the key of the last.
    """

    problems: tuple[str, ...] = ()
    timeout_s: float = 600.0
    memory_bytes: int = 4 << 30
    on_problem: Callable[[int, int, str], None] = lambda done, total, key: None


@dataclass(frozen=True)
class Count:
    """``n`` of ``total`` made again."""

    n: int = 0
    total: int = 0

    def __str__(self) -> str:
        return f"{self.n} of {self.total}"

    def plus(self, other: Count) -> Count:
        return Count(self.n + other.n, self.total + other.total)


@dataclass(frozen=True)
class Replayed:
    """What was made again. ``problems``: how many were asked for, of those that have workloads."""

    problems: Count = field(default_factory=Count)
    graphs: Count = field(default_factory=Count)
    irs: Count = field(default_factory=Count)
    attestations: Count = field(default_factory=Count)

    @property
    def partial(self) -> bool:
        return self.problems.n < self.problems.total

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for was made again."""
        return all(count.n == count.total for count in (self.graphs, self.irs, self.attestations))

    @property
    def note(self) -> str:
        made = f"{self.graphs} graphs, {self.irs} IRs, {self.attestations} attestations"
        begin = f"PARTIAL {self.problems} problems: " if self.partial else ""
        return f"{begin}{made} of {self.problems.n} problems made again"

    @property
    def statement(self) -> str:
        """What a verdict says of it."""
        return f"replay PARTIAL: {self.problems} problems" if self.partial else "replayed"

    def as_dict(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("problems", "graphs", "irs", "attestations")}
        return {"partial": self.partial, **{name: [count.n, count.total] for name, count in counts.items()}}


class _Made(Value):
    kind: Literal["operator-graph", "einsum-graph", "attestation", "no-graph"]
    digest: str = Field(pattern=DIGEST)
    size: int = Field(ge=0)
    reason: str | None

    @property
    def descriptor(self) -> Descriptor:
        return Descriptor(self.kind, self.digest, self.size)


class _Answer(Value):
    workload: str
    graph: _Made | None = None
    einsum: _Made | None = None
    attestation: _Made | None = None
    error: str | None = None


@dataclass(frozen=True)
class _Job:
    """One problem: ``workloads`` as the children get them, in the order of their names."""

    problem: str
    definition: Mapping[str, Any]
    path: str
    workloads: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class _Said:
    """What one child answered, and why it answered no more, or None."""

    answers: tuple[_Answer, ...]
    ended: str | None


def replay(contents: Contents, request: Request, findings: Findings) -> Replayed:
    """Make again what ``request`` asks for, of a bundle that every level before has found sound.

    Findings: ``replay-mismatch`` and ``cannot-replay``. :class:`InputError` for a problem that the bundle does not
    have.
    """
    graphs = contents.sections["graphs"]
    problems: dict[str, list[str]] = {}
    for name, entry in sorted(contents.sections["workloads"].items()):
        if entry.kind == "workload":
            problems.setdefault(name.rpartition("/")[0], []).append(name)
    asked = _asked(request.problems, list(problems))
    lacks = missing()
    if lacks is None and not asked:
        lacks = "no workload to make anything again of"
    if lacks is not None:
        findings.add(LEVEL, "cannot-replay", ".", found=lacks)
        return Replayed(Count(0, len(problems)))
    paths = {contents.load("graphs", e)["path"] for e in graphs.values() if e.kind == "operator-graph"}
    if len(paths) > 1:
        findings.add(LEVEL, "replay-mismatch", "graphs", "one path of extraction", ", ".join(sorted(paths)))
    path = min(paths, default="aten")
    other = _other_pytorch(contents)
    total = Replayed(Count(len(asked), len(problems)))

    def jobs() -> Iterator[_Job]:
        for key in asked:
            yield _job(contents, key, problems[key], path)

    for done, (job, conversion, extraction) in enumerate(_answers(jobs(), request), 1):
        total = _compare(contents, job, conversion, extraction, other, findings, total)
        request.on_problem(done, len(asked), job.problem)
    if not total.complete and findings.clean(LEVEL):
        findings.add(LEVEL, "cannot-replay", ".", "everything made again", total.note)
    return total


def missing() -> str | None:
    """What keeps this machine from a replay, and what to install; None where nothing does."""
    try:
        version("torch")
    except PackageNotFoundError:
        return "PyTorch is not installed; run `pip install 'solbench[run]'`"
    try:
        lacks = sandbox.isolation().lacks
    except UndecidedError as error:
        lacks = str(error).partition(";")[0]
    if lacks is None:
        return None
    if "not installed" in lacks:
        return f"no full sandbox: {lacks}; apt-get install bubblewrap"
    return f"no full sandbox: {lacks}; it takes bubblewrap, unprivileged user namespaces and a kernel with Landlock"


def _asked(names: Sequence[str], problems: Sequence[str]) -> list[str]:
    """The keys among ``problems`` that ``names`` ask for, in their order."""
    found = set() if names else set(problems)
    for name in names:
        keys = [key for key in problems if name in (key, key.rpartition("/")[2])]
        if len(keys) != 1:
            shown = ", ".join(keys or problems[:_SHOWN_NAMES]) + (
                "" if keys or len(problems) <= _SHOWN_NAMES else ", ..."
            )
            rule = f"is {'not one problem' if keys else 'no problem'} of this bundle: {shown}"
            raise InputError(f"--replay-problem {name}", rule)
        found.update(keys)
    return [key for key in problems if key in found]


def _other_pytorch(contents: Contents) -> str | None:
    """How PyTorch here differs from the one that the bundle says it was made with; None where it does not."""
    here = version("torch").partition("+")[0]
    value: Any = canonical.loads(contents.read("provenance.json"), "provenance.json")
    for name in ("predicate", "runDetails", "builder", "version", "torch"):
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, str):
        return f"provenance.json does not say which PyTorch made it, here is {here}"
    there = value.partition("+")[0]
    return None if there == here else f"provenance.json says that PyTorch {there[:40]} made it, here is {here}"


def _job(contents: Contents, problem: str, names: Sequence[str], path: str) -> _Job:
    sections = contents.sections
    workloads = []
    for name in names:
        entry = sections["graphs"][name]
        recorded = None
        if entry.kind == "operator-graph":
            recorded = without_kind(contents.load("graphs", entry))
        instance = contents.load("workloads", sections["workloads"][name])
        workloads.append({"name": name, "instance": instance, "graph": recorded})
    return _Job(problem, contents.load("corpus", sections["corpus"][problem]), path, tuple(workloads))


def _answers(jobs: Iterator[_Job], request: Request) -> Iterator[tuple[_Job, _Said, _Said]]:
    """Each job with what its two children said, as they end. The children end when the caller stops early."""
    workers = min(len(os.sched_getaffinity(0)), _MOST_WORKERS)
    children = _Children()
    with ThreadPoolExecutor(workers) as pool:
        pending: dict[Future[tuple[_Said, _Said]], _Job] = {}
        try:
            # Objects are read in this thread alone, and of no more problems than are at work.
            for job in jobs:
                pending[pool.submit(_served, job, request, children)] = job
                if len(pending) > workers:
                    yield from _finished(pending)
            while pending:
                yield from _finished(pending)
        except BaseException:
            children.end()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _finished(pending: dict[Future[tuple[_Said, _Said]], _Job]) -> Iterator[tuple[_Job, _Said, _Said]]:
    for future in wait(pending, return_when=FIRST_COMPLETED).done:
        yield (pending.pop(future), *future.result())


class _Children:
    """The processes that are running, so that an interrupt ends them: they are in sessions of their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._ended = False

    def add(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._running = [one for one in self._running if one.returncode is None] + [process]
            if self._ended:
                process.kill()

    def end(self) -> None:
        with self._lock:
            self._ended = True
            for process in self._running:
                process.kill()


def _served(job: _Job, request: Request, children: _Children) -> tuple[_Said, _Said]:
    """What is said of one problem by the child that runs no reference, and by the one that does."""
    # Conversion asks PyTorch only what a public call consists of.
    conversion = _said("converted", {"workloads": job.workloads}, request, job.path == "torchview", children)
    asked = {"definition": job.definition, "path": job.path, "workloads": job.workloads}
    return conversion, _said("remade", asked, request, True, children)


def _said(function: str, asked: Mapping[str, Any], request: Request, torch: bool, children: _Children) -> _Said:
    with tempfile.TemporaryDirectory(prefix="solbench-replay-") as folder:
        answers, fault = ask(
            f"solbench.release.replaying:{function}", asked, Path(folder), timeout_s=request.timeout_s,
            memory_bytes=request.memory_bytes, torch=torch, threads=1, on_start=children.add,
        )  # fmt: skip
    read: list[_Answer] = []
    for item, answer in zip(asked["workloads"], answers):
        try:
            canonical.dumps(answer)
            one = _Answer.model_validate(answer)
        except (ValidationError, IntegrityError, ValueError, RecursionError):
            return _Said(tuple(read), "gave an answer that cannot be read")
        if one.workload != item["name"]:
            return _Said(tuple(read), "answered for another workload")
        if not _whole(one, item, function):
            return _Said(tuple(read), "left out an answer")
        read.append(one)
    if fault == "timeout":
        return _Said(tuple(read), f"not done within {request.timeout_s:g} s")
    if fault is not None:
        return _Said(tuple(read), f"its process {fault}")
    if len(answers) != len(asked["workloads"]):
        return _Said(tuple(read), f"its process gave {len(answers)} answers, not {len(asked['workloads'])}")
    return _Said(tuple(read), None)


def _whole(answer: _Answer, item: Mapping[str, Any], function: str) -> bool:
    """Whether there is an answer for everything that was asked of one workload, or an error."""
    if function == "converted":
        return item["graph"] is None or answer.einsum is not None
    if answer.error is not None:
        return True
    if answer.graph is None or (item["graph"] is not None and answer.einsum is None):
        return False
    return answer.einsum is None or answer.einsum.kind == "no-graph" or answer.attestation is not None


def _compare(
    contents: Contents, job: _Job, conversion: _Said, extraction: _Said, other: str | None, findings: Findings,
    total: Replayed,
) -> Replayed:  # fmt: skip
    """``total`` and what was made again of ``job``; the rest becomes findings."""
    if extraction.ended is not None:
        findings.add(LEVEL, "cannot-replay", f"corpus: {job.problem}", "graphs and attestations", extraction.ended)
    if conversion.ended is not None:
        findings.add(LEVEL, "cannot-replay", f"graphs: {job.problem}", "IRs", conversion.ended)
    sections = contents.sections
    conversion_other = None if job.path == "aten" else other
    graphs, irs, attestations = total.graphs, total.irs, total.attestations
    for position, item in enumerate(job.workloads):
        name = item["name"]
        made = _at(extraction, position, name)
        if made.error is not None:
            findings.add(LEVEL, "cannot-replay", f"corpus: {job.problem}", f"a graph of {name}", made.error)
            made = _Answer(workload=name)
        check = _Check(findings, other)
        graphs = graphs.plus(check.same(f"graphs: {name}", sections["graphs"][name], made.graph))
        if item["graph"] is None:
            continue
        where = f"einsums: {name}/graph"
        ir = sections["einsums"].get(f"{name}/graph")
        if ir is None or ir.kind == "no-graph":
            # Why there is none may lie in its replay.
            irs = irs.plus(check.same(where, ir, made.einsum))
            continue
        converted = _at(conversion, position, name)
        irs = irs.plus(_Check(findings, conversion_other).same(where, ir, converted.einsum))
        where = f"einsums: {name}/attestation"
        recorded = sections["einsums"].get(f"{name}/attestation")
        attestations = attestations.plus(check.same(where, recorded, made.attestation or made.einsum))
    return Replayed(total.problems, graphs, irs, attestations)


def _at(said: _Said, position: int, workload: str) -> _Answer:
    """What was said of one workload; an empty answer beyond the last."""
    return said.answers[position] if position < len(said.answers) else _Answer(workload=workload)


@dataclass(frozen=True)
class _Check:
    """``other``: what may be the reason of a difference, in place of the release."""

    findings: Findings
    other: str | None

    def same(self, where: str, recorded: Descriptor | None, made: _Made | None) -> Count:
        """Whether ``made`` is what is recorded; nothing is found where there is nothing made: that was said before."""
        if made is None:
            return Count(0, 1)
        if made.descriptor == recorded:
            return Count(1, 1)
        found = f"{made.kind} {made.digest}" + (f" ({made.reason})" if made.reason else "")
        code = "replay-mismatch"
        if self.other is not None:
            code, found = "cannot-replay", f"{made.kind} {made.digest}; {self.other}, which may be why"
        stated = "nothing" if recorded is None else f"{recorded.kind} {recorded.digest}"
        self.findings.add(LEVEL, code, where, stated, found)
        return Count(0, 1)
