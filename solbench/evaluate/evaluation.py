"""Evaluate one solution of one problem: verdict and time of every workload, as traces.

The orchestrator's loop: one pair of workers (candidate, baseline) a replicate, all workloads through the same pair,
restarted after a failure. A failure of one workload never ends the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from solbench.corpus.load import Problem, eager_solution
from solbench.errors import UnsupportedError
from solbench.evaluate import arena, build, gate, identity, profiling, witnesses
from solbench.evaluate.arena import Shared
from solbench.evaluate.processes import Referee, RefereeFailure
from solbench.evaluate.protocols import QUICK
from solbench.evaluate.sampling import BaselineFailure, OutOfTime, Sampled, run_workload
from solbench.evaluate.session import Session, is_native
from solbench.evaluate.support import unsupported
from solbench.evaluate.timing import BATCH_CALLS_MOST
from solbench.evaluate.turns import CheckFailure, Limits, Side, Unshared, merge
from solbench.evaluate.verdict import check_workload
from solbench.evaluate.workers import Tampering, Worker, WorkerFailure
from solbench.model.solution import Solution
from solbench.model.trace import (
    MAX_LOG_CHARS,
    CheckResult,
    Correctness,
    Observed,
    Protocol,
    SampleSet,
    Status,
    Timing,
    Trace,
)
from solbench.model.workload import Workload

LOG_CHARS_OF_A_PASS = 2_000
INTERPRETED = "Triton's interpreter"


def evaluate(
    problem: Problem,
    solution: Solution,
    *,
    workloads: Sequence[Workload] | None = None,
    target: str = "cpu",
    protocol: Protocol = QUICK,
    baseline: Solution | None = None,
    session: Session | None = None,
    limits: Limits | None = None,
    progress: Callable[[str], None] | None = None,
    time_left: Callable[[], float] | None = None,
    profile: bool = False,
) -> Iterator[Trace]:
    """Yield one trace a workload (default: all of the problem), in order where one process suffices; before them those
    that are refused because their code would not launch.

    ``baseline``: what the candidate's samples are interleaved with; default the reference run eagerly. ``session``:
    processes to share with other evaluations; without one, a session with ``limits`` is opened for this call.
    :class:`UnsupportedError` for a target that is not here; every fault of the candidate is a trace.

    ``time_left``: seconds. Once there are none the run ends, between two samples, and workloads that would not get
    through all processes in time are let go. They have no trace. ``profile``: see ``profiling.py``.
    """
    chosen = tuple(workloads) if workloads is not None else problem.workloads
    with ExitStack() as stack:
        if session is None:
            session = stack.enter_context(Session(limits, target=target))
        if session.target != target:
            raise UnsupportedError(f"--target {target}: this session is for {session.target}")
        baseline = baseline or eager_solution(problem.definition)
        run = _Run(session, problem, solution, baseline, target, protocol, profile)
        yield from run.traces(chosen, progress or (lambda text: None), time_left or (lambda: math.inf))


@dataclass
class _Case:
    """What is known of one workload so far."""

    workload: Workload
    axes: dict[str, int]
    plan: arena.Layout
    candidate: list[SampleSet] = field(default_factory=list)
    baseline: list[SampleSet] = field(default_factory=list)
    checks: dict[str, CheckResult] = field(default_factory=dict)
    rounds: int = 0
    copies: int = 1
    stop_reasons: list[str] = field(default_factory=list)
    agreement_s: float = 0.0
    batch_calls: list[int] = field(default_factory=list)
    void: str | None = None
    log: str = ""
    spent_s: float = 0.0
    labels: tuple[str, ...] = ()
    notes: dict[str, None] = field(default_factory=dict)


class _Run:
    """One solution of one problem on one target."""

    def __init__(
        self,
        session: Session,
        problem: Problem,
        solution: Solution,
        baseline: Solution,
        target: str,
        protocol: Protocol,
        profile: bool,
    ) -> None:
        self.session = session
        self.problem = problem
        self.solution = solution
        self.baseline = baseline
        self.target = target
        self.protocol = protocol
        self.profile = profile
        self.solution_digest = identity.solution_digest(solution)
        self.native = is_native(solution)
        self.interpreted = session.interprets(solution)
        self._workers: dict[str, Worker] = {}
        self._memory: Shared | None = None
        self._memory_of: Referee | None = None
        self.time_left: Callable[[], float] = lambda: math.inf
        # Of each worker, from its start on.
        self._heap_bytes = 0

    def traces(
        self, workloads: Sequence[Workload], progress: Callable[[str], None], time_left: Callable[[], float]
    ) -> Iterator[Trace]:
        self.time_left = time_left
        reason = unsupported(self.problem.definition, self.solution, self.target)
        if reason is None and not self.interpreted and self.session.interprets(self.baseline):
            reason = f"baseline: {self.baseline.name} cannot be timed under {INTERPRETED}"
        if reason is not None:
            yield from (self._failed(workload, Status.UNSUPPORTED, reason) for workload in workloads)
            return
        if self.native:
            progress(f"building {self.solution.name}")
            try:
                self.session.library(self.solution)
            except build.BuildFailure as error:
                for workload in workloads:
                    yield self._failed(workload, error.status, error.reason, error.log)
                return
        looked = gate.look(self.session, self.problem, self.solution, workloads, self.target)
        cases = []
        for workload in workloads:
            if (why := looked.refused.get(workload.uuid)) is not None:
                yield self._failed(workload, Status.RUNTIME_ERROR, why)
                continue
            axes = workload.validate_against(self.problem.definition, f"{self.problem.key}/{workload.uuid}")
            case = _Case(workload, axes, arena.layout(self.problem.definition, axes))
            case.notes |= dict.fromkeys(looked.labels)
            cases.append(case)
        if cases:
            with suppress(OutOfTime):
                yield from self._replicates(cases, progress)

    def _replicates(self, cases: list[_Case], progress: Callable[[str], None]) -> Iterator[Trace]:
        available = self.session.available_memory()
        if self.protocol.batches and self.session.transport != "host":
            batch_bytes = arena.BATCH_BYTES_OF_A_CARD if self.session.card else arena.BATCH_BYTES
            for case in cases:
                case.copies = arena.copies(case.plan, BATCH_CALLS_MOST, available, batch_bytes)
        fitting = [case for case in cases if arena.needed_memory(case.plan) <= available]
        size_bytes = max((case.copies * case.plan.size for case in fitting), default=arena.ALIGNMENT)
        self._heap_bytes = max((arena.heap_bytes(case.plan) for case in fitting), default=0)
        processes = 1 if self.interpreted else self.protocol.processes
        try:
            for process in range(processes):
                last = process == processes - 1
                if processes > 1:
                    self.session.renew()
                for case in list(cases):
                    if process == 0 and _spent_s(cases) * (processes - 1) > self.time_left():
                        break  # what was begun takes all the time that is left
                    if self.time_left() <= 0:
                        raise OutOfTime
                    begun_s = time.monotonic()
                    progress(f"{case.workload.uuid} process {process + 1}/{processes}")
                    failure = self._attempt(case, process, size_bytes)
                    case.spent_s += time.monotonic() - begun_s
                    if failure is not None:
                        cases.remove(case)
                        yield failure
                    elif last:
                        if self.profile:
                            worker, limit_s = self._workers["candidate"], self.session.limits.first_call_s
                            case.labels = profiling.labels(worker, self.solution.spec.languages, limit_s)
                            # What a profiler leaves behind would be in the next workload's times.
                            self._end("candidate")
                        yield self._passed(case)
                self._end_workers()
                cases = [case for case in cases if case.spent_s]
                cases = _in_time(cases, (processes - process - 1) / (process + 1), self.time_left())
                if not cases:
                    return
        finally:
            self._end_workers()
            if self._memory is not None:
                self._memory.close()
                self._memory = None

    def _attempt(self, case: _Case, process: int, size_bytes: int) -> Trace | None:
        """As :meth:`_attempt_once`, again in new workers where one could not map the shared memory."""
        try:
            return self._attempt_once(case, process, size_bytes)
        except Unshared:
            self._end_workers()
        try:
            return self._attempt_once(case, process, size_bytes)
        except Unshared as error:
            self._end_workers()
            return self._failed(case.workload, error.status, f"{error.reason}; in new processes as well")

    def _attempt_once(self, case: _Case, process: int, size_bytes: int) -> Trace | None:
        """Sample one workload in the current pair of workers; the trace of its failure, or None."""
        workload = case.workload
        sides: dict[str, Side] = {}
        fresh = "candidate" not in self._workers
        try:
            needed, available = arena.needed_memory(case.plan), self._available(size_bytes)
            if needed > available and self.session.card and self._workers:
                self._end_workers()  # what the candidate has kept since the last workload is its own
                available = self._available(size_bytes)
            if needed > available:
                reason = f"memory: needs about {needed / 2**30:.2g} GiB, {available / 2**30:.2g} GiB are available"
                return self._failed(workload, Status.UNSUPPORTED, reason)
            memory = self._shared(size_bytes)
            if self.interpreted:
                self._check(case, memory)
                return None
            try:
                sides["baseline"] = self._side("baseline", self.baseline, memory)
            except (WorkerFailure, build.BuildFailure) as error:
                raise BaselineFailure(f"baseline {self.baseline.name}: {error.status}: {error.reason}") from None
            sides["candidate"] = self._side("candidate", self.solution, memory)
            if fresh and self.protocol.preamble_s is not None:
                warm = {"op": "warm", "seconds": self.protocol.preamble_s}
                self.session.referee().ask(warm, self.session.limits.reference_s)
            before = self.session.observe()
            sampled = run_workload(
                self.problem, workload, case.plan, case.axes, self.session.referee(), memory, sides["candidate"],
                sides["baseline"], self.protocol, case.copies, self.session.limits, self.session.flush_limit_s(),
                self.time_left,
            )  # fmt: skip
            observed = witnesses.observed(before, self.session.observe())
        except Unshared:
            raise
        except WorkerFailure as error:
            log = self._end("candidate", error.detail)
            if isinstance(error, Tampering):
                self._end_workers()
                self.session.replace_processes()
            correctness = None
            if isinstance(error, CheckFailure) and error.checks and error.status is Status.INCORRECT_NUMERICAL:
                correctness = Correctness(rounds=case.rounds + error.rounds, checks=error.checks)
            return self._failed(workload, *self._verdict(error), log, correctness)
        except BaselineFailure as error:
            if (hogged := self._hogged(case, size_bytes, str(error))) is not None:
                return hogged
            self._end("candidate")
            return self._failed(workload, Status.INVALID_REFERENCE, str(error), self._end("baseline"))
        except RefereeFailure as error:
            if not error.died and (hogged := self._hogged(case, size_bytes, error.reason)) is not None:
                return hogged
            self._end_workers()
            return self._failed(workload, Status.INVALID_REFERENCE, _last_line(error.reason), error.reason)
        worker = sides["candidate"].worker
        self._keep(case, process, sampled, observed, worker.without_folder(worker.log.text()))
        return None

    def _available(self, size_bytes: int) -> int:
        """Bytes for tensors where calls run, what this run shares there already included."""
        shared = self._memory is not None and self._memory_of is self.session.referee()
        if self.session.card:
            return self.session.available_memory() + (size_bytes if shared else 0)
        return self.session.available_memory() + len(self._workers) * self._heap_bytes

    def _hogged(self, case: _Case, size_bytes: int, reason: str) -> Trace | None:
        """The candidate's failure where it left the others too little of a card's memory; None if it did not."""
        if self.session.card is None or "out of memory" not in reason.lower():
            return None
        before = self._available(size_bytes)
        log = self._end("candidate")
        self._end("baseline")
        after = self._available(size_bytes)
        if after - before < arena.needed_memory(case.plan):
            return None
        kept = f"it keeps {(after - before) / 2**30:.3g} GiB of the card's memory"
        return self._failed(
            case.workload, Status.RUNTIME_ERROR, f"{kept}, and leaves too little for the reference", log
        )

    def _check(self, case: _Case, memory: Shared) -> None:
        """The verdict on one workload, without a time."""
        side = self._side("candidate", self.solution, memory)
        check_workload(
            self.problem, case.workload, case.plan, case.axes, self.session.referee(), memory, side, self.session.limits
        )  # fmt: skip
        case.checks, case.rounds, case.void = side.checks, side.rounds, f"not timed: {INTERPRETED}"
        case.log = side.worker.without_folder(side.worker.log.text())

    def _verdict(self, error: WorkerFailure) -> tuple[Status, str]:
        """Status and reason of a failure; only an interpreter may call something unsupported."""
        if self.interpreted and error.status is Status.TIMEOUT:
            return error.status, f"{error.reason}, under {INTERPRETED}, which runs the programs of a grid in turn"
        if not self.interpreted and error.status is Status.UNSUPPORTED:
            return Status.REWARD_HACK, "control channel: a fault of no known kind"
        return error.status, error.reason

    def _shared(self, size_bytes: int) -> Shared:
        """Memory for the tensors of every workload; on a card anew when the referee, whose memory it is, is new."""
        if self._memory is not None and self.session.card and self._memory_of is not self.session.referee():
            self._end_workers()
            self._memory.close()
            self._memory = None
        if self._memory is None:
            self._memory, self._memory_of = self.session.share(size_bytes), self.session.referee()
        return self._memory

    def _side(self, name: str, solution: Solution, memory: Shared) -> Side:
        """A side with its worker, started if it is not there, and the floor of its kind."""
        floor = self.session.floor(is_native(solution))
        if name in self._workers and not self._workers[name].alive():
            self._end(name)  # with its zygote, when another worker could not be stopped
        if name not in self._workers:
            self._workers[name] = self.session.start(
                solution, memory, trusted=name == "baseline", heap_bytes=self._heap_bytes
            )
        return Side(self._workers[name], solution, floor)

    def _end_workers(self) -> None:
        for name in list(self._workers):
            self._end(name)

    def _end(self, name: str, detail: str = "") -> str:
        """End one worker; what it wrote, and ``detail``, without the name of its folder."""
        worker = self._workers.pop(name, None)
        if worker is None:
            return detail
        worker.end()
        return worker.without_folder("\n".join(part for part in (worker.log.text().strip(), detail.strip()) if part))

    def _keep(self, case: _Case, process: int, sampled: Sampled, observed: Observed | None, log: str) -> None:
        batches = witnesses.batch_records(sampled.batch)
        for side, samples in (("candidate", sampled.candidate), ("baseline", sampled.baseline)):
            kept: list[SampleSet] = getattr(case, side)
            kept.append(
                SampleSet(
                    process=process,
                    warmups=sampled.warmups,
                    event_s=tuple(sample.event_s for sample in samples),
                    clock_s=tuple(sample.clock_s for sample in samples),
                    batch=batches.get(side),
                    observed=observed,
                )
            )
        for check in sampled.checks:
            case.checks[check.output] = merge(case.checks.get(check.output), check)
        case.rounds += sampled.rounds
        case.stop_reasons.append(sampled.stop_reason)
        calls, confirmed_s = 0, sampled.agreement_s
        if sampled.batch is not None:
            calls, confirmed_s = sampled.batch.judge.calls, min(confirmed_s, sampled.batch.judge.confirmed_s)
        case.agreement_s = max(case.agreement_s, confirmed_s)
        case.batch_calls.append(calls)
        case.void = case.void or sampled.void
        case.notes |= dict.fromkeys(sampled.notes)
        case.log = log

    def _passed(self, case: _Case) -> Trace:
        """A pass; without a time where too few samples are valid."""
        common = self._common(case.workload)
        common["labels"] += (*case.labels, *case.notes)
        timing = None
        if case.void is None:
            common["labels"] += (witnesses.label(case.agreement_s, case.batch_calls, case.copies, self.protocol),)
            timing = Timing(
                method=self.session.method, flush_bytes=self.session.flush_bytes,
                stop_reason=witnesses.in_one_line(case.stop_reasons),
                candidate=tuple(case.candidate), baseline=tuple(case.baseline),
            )  # fmt: skip
        return Trace(
            status=Status.PASSED,
            reason=case.void,
            log=case.log[-LOG_CHARS_OF_A_PASS:],
            correctness=Correctness(rounds=case.rounds, checks=tuple(case.checks.values())),
            timing=timing,
            **common,
        )

    def _failed(
        self, workload: Workload, status: Status, reason: str, log: str = "", correctness: Correctness | None = None
    ) -> Trace:
        return Trace(
            status=status, reason=reason, log=log[-MAX_LOG_CHARS:], correctness=correctness, **self._common(workload)
        )

    def _common(self, workload: Workload) -> dict[str, Any]:
        return {
            "definition": self.problem.definition.name,
            "workload": workload.uuid,
            "workload_digest": identity.workload_digest(self.problem, workload),
            "solution": self.solution.name,
            "solution_digest": self.solution_digest,
            "target": self.target,
            "labels": self._labels(),
        }

    def _labels(self) -> tuple[str, ...]:
        start = "a fresh interpreter a process" if self.protocol.processes > 1 else "forked from a warm interpreter"
        beside = f"baseline: {self.baseline.name}"
        if self.interpreted:
            start = "forked from a warm interpreter"
            beside = f"verdict only: {INTERPRETED}, Triton {_version('triton')}; autotune takes the first configuration"
        return (
            self.session.isolation.label,
            *self.session.labels(),
            beside,
            f"threads: {self.session.threads}",
            f"start: {start}",
        )


def _spent_s(cases: list[_Case]) -> float:
    return sum(case.spent_s for case in cases)


def _in_time(cases: list[_Case], factor: float, time_left_s: float) -> list[_Case]:
    """The cases, in their order, that can take ``factor`` times as long again in the time that is left."""
    kept = []
    for case in cases:
        if (needed_s := factor * case.spent_s) <= time_left_s:
            kept.append(case)
            time_left_s -= needed_s
    return kept


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2][:1000] or "no reason given"
