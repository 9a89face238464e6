"""The work of a measurement run: every chosen solution of every problem, one after the other, within a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from solbench.corpus.load import Problem, eager_solution
from solbench.errors import InputError
from solbench.evaluate import arena, identity
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.merging import Key
from solbench.evaluate.processes import RefereeFailure
from solbench.evaluate.recording import Appender
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.trace import Omission, Protocol, Status
from solbench.model.workload import Workload

# Bytes per second that no eager call on a plain cpu, or on a card, exceeds by much: what takes longer at this rate is
# not even tried.
ASSUMED_BYTES_PER_S = {"cpu": 10e9, "card": 10e12}
Estimates = Mapping[tuple[str, str], float] | Callable[[Problem, Workload], float | None]


@dataclass(frozen=True)
class Job:
    """One solution of one problem: its workloads go through the same processes."""

    problem: Problem
    solution: Solution

    @property
    def name(self) -> str:
        return f"{self.problem.key} {self.solution.name}"

    def keys(self) -> list[Key]:
        return [Key(self.problem.key, workload.uuid, self.solution.name) for workload in self.problem.workloads]

    def left(self, finished: Iterable[Key]) -> list[Workload]:
        """Workloads without a record among ``finished``."""
        done = set(finished)
        pairs = zip(self.problem.workloads, self.keys(), strict=True)
        return [workload for workload, key in pairs if key not in done]


def jobs(problems: Sequence[Problem], candidates: Sequence[str] | None) -> list[Job]:
    """All jobs in the order in which they are done. ``candidates``: names of solutions, None for all.

    :class:`InputError` for a name that no solution has.
    """
    wanted = None if candidates is None else set(candidates)
    every = list(_every(problems))
    known = {job.solution.name for job in every}
    if wanted is not None and not wanted <= known:
        unknown = sorted(wanted - known)[0]
        raise InputError("--candidates", f"no solution is named {unknown!r}; there are {', '.join(sorted(known))}")
    return [job for job in every if wanted is None or job.solution.name in wanted]


def _every(problems: Sequence[Problem]) -> Iterator[Job]:
    for problem in sorted(problems, key=lambda problem: problem.key):
        for solution in (eager_solution(problem.definition), *problem.solutions):
            yield Job(problem, solution)


def omission(job: Job, workload: Workload, reason: str) -> Omission:
    return Omission(
        definition=job.problem.definition.name,
        workload=workload.uuid,
        workload_digest=identity.workload_digest(job.problem, workload),
        solution=job.solution.name,
        reason=reason,
    )


class Work:
    """Does jobs in one session and records what comes of them. ``deadline``: monotonic seconds; after it nothing new is
    begun, and what was not finished has no record.
    """

    def __init__(
        self,
        session: Session,
        records: Appender,
        protocol: Protocol,
        target: str,
        estimates: Estimates | None,
        deadline: float | None,
        say: Callable[[str], None],
    ) -> None:
        self.session, self.records, self.protocol, self.target = session, records, protocol, target
        self.estimates, self.deadline, self.say = estimates, deadline, say
        self.statuses: dict[str, int] = {}
        self.omissions = 0
        self._known: dict[tuple[str, str], float] = {}

    def time_left(self) -> float:
        """Seconds until the deadline."""
        return math.inf if self.deadline is None else self.deadline - time.monotonic()

    def do(self, job: Job, finished: Iterable[Key]) -> None:
        """Measure what is left of one job beside ``finished``."""
        chosen = []
        for workload in job.left(finished):
            if self.time_left() <= 0:
                return
            reason = self._too_slow(job.problem, workload)
            if reason is None:
                chosen.append(workload)
            else:
                self.records.add(job.problem.key, omission(job, workload, reason))
                self.omissions += 1
        if not chosen:
            return
        traces = evaluate(
            job.problem, job.solution, workloads=chosen, target=self.target, protocol=self.protocol,
            session=self.session, progress=lambda text: self.say(f"{job.name}: {text}"), time_left=self.time_left,
        )  # fmt: skip
        try:
            for trace in traces:
                self.records.add(job.problem.key, trace)
                self.statuses[trace.status] = self.statuses.get(trace.status, 0) + 1
                if trace.status is not Status.PASSED:
                    self.say(f"{job.name}: {trace.workload}: {trace.status}: {trace.reason}")
        finally:
            traces.close()  # type: ignore[attr-defined]

    def _too_slow(self, problem: Problem, workload: Workload) -> str | None:
        """Why this workload is over the budget of one call, or None. A failing reference is no such reason."""
        limit = self.protocol.max_call_s
        seconds = self._estimate(problem, workload)
        if seconds <= limit:
            return None
        return f"over the {self.target} budget: estimated {seconds:.3g} s a call, limit {limit:g} s"

    def _estimate(self, problem: Problem, workload: Workload) -> float:
        """Seconds of one eager call, remembered for the other solutions of the problem; 0 where it cannot be told."""
        key = (problem.key, workload.uuid)
        if key not in self._known:
            self._known[key] = self._new_estimate(problem, workload)
        return self._known[key]

    def _new_estimate(self, problem: Problem, workload: Workload) -> float:
        if callable(self.estimates):
            given = self.estimates(problem, workload)
        else:
            given = (self.estimates or {}).get((problem.key, workload.uuid))
        if given is not None:
            return given
        axes = workload.validate_against(problem.definition, f"{problem.key}/{workload.uuid}")
        plan = arena.layout(problem.definition, axes)
        least = (plan.input_bytes + plan.output_bytes) / ASSUMED_BYTES_PER_S["card" if self.session.card else "cpu"]
        if least > self.protocol.max_call_s or arena.needed_memory(plan) > self.session.available_memory():
            return least
        try:
            return self.session.estimate(problem, workload, self.protocol.max_call_s, 30.0)
        except RefereeFailure:
            return 0.0  # the evaluation will say what is wrong with it
