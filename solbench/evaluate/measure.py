"""Measure a corpus into a measurement set: every chosen solution of every problem, within a budget of time.

Needs neither DVC nor git. What is not attempted is an omission with its reason, never a silence.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.corpus.load import Problem, eager_solution
from solbench.device import cpu
from solbench.errors import InputError
from solbench.evaluate import arena, build, identity
from solbench.evaluate.evaluation import evaluate, protocol
from solbench.evaluate.processes import RefereeFailure
from solbench.evaluate.recording import Key, Writer
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.trace import Omission, Protocol, SetHeader, Status, Trace
from solbench.model.workload import Workload

# Bytes per second that no eager call on a plain cpu, or on a card, exceeds by much: what takes longer at this rate is
# not even tried.
ASSUMED_BYTES_PER_S = {"cpu": 10e9, "card": 10e12}
Estimates = Mapping[tuple[str, str], float] | Callable[[Problem, Workload], float | None]


@dataclass(frozen=True)
class Summary:
    """What a measurement run did: records in the set by status, omissions, seconds spent."""

    statuses: dict[str, int]
    omissions: int
    seconds: float

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        return f"{counts or 'nothing measured'}; {self.omissions} omitted; {self.seconds:.0f} s"


def measure(
    problems: Sequence[Problem],
    out: Path,
    *,
    target: str = "cpu",
    protocol: Protocol = protocol("quick"),  # noqa: B008 (a frozen value)
    candidates: Sequence[str] | None = None,
    estimates: Estimates | None = None,
    budget_s: float | None = None,
    hardware: Mapping[str, Any] | None = None,
    session: Session | None = None,
    progress: Callable[[str], None] | None = None,
) -> Summary:
    """Write the set ``out``; resumes what an earlier, killed call left behind, and leaves a complete set as it is.

    ``candidates``: names of solutions (``eager`` is the baseline against itself); None: all. ``estimates``: seconds a
    call by (problem key, uuid), or a function of problem and workload; where it knows nothing, one reference call is
    timed. Workloads above ``protocol.max_call_s`` are omitted, and so is what is left when ``budget_s`` is spent.
    ``hardware``: the machine model that goes into the header.
    """
    start = time.monotonic()
    say = progress or (lambda text: None)
    pairs = list(_pairs(problems, candidates))
    with ExitStack() as stack:
        if session is None:
            session = stack.enter_context(Session(target=target))
        writer = stack.enter_context(Writer(out, header(session, target, protocol, hardware)))
        run = _Measurement(session, writer, protocol, target, estimates, say)
        if writer.finished:
            say(f"{len(writer.finished)} records of an earlier run are kept")
        for problem, solution in pairs:
            run.pair(problem, solution, None if budget_s is None else start + budget_s)
        writer.complete()
        return Summary(run.statuses, run.omissions, time.monotonic() - start)


def header(session: Session, target: str, protocol: Protocol, hardware: Mapping[str, Any] | None) -> SetHeader:
    """First line of a set: what everything below it ran on."""
    environment = {
        **session.referee().environment,
        "system": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
    }
    try:
        environment["compiler"] = build.find_compiler().version
    except build.BuildFailure:
        environment["compiler"] = "none"
    floors = session.floors()
    return SetHeader(
        schema="solbench.measurement-set.v1",
        target=target,
        protocol=protocol.model_copy(update={"isolation": session.isolation.names}),
        harness=identity.harness_digest(),
        environment=environment,
        device={
            **(session.card.identity() if session.card else cpu.identity()),
            "flush_bytes": session.flush_bytes,
            "floors": floors,
        },
        floor_s=min(floor["event_s"] for floor in floors.values()),
        clocks="locked" if session.card and session.card.clocks.locked else "unlocked",
        hardware=dict(hardware) if hardware is not None else None,
    )


def _pairs(problems: Sequence[Problem], candidates: Sequence[str] | None) -> Iterator[tuple[Problem, Solution]]:
    wanted = None if candidates is None else set(candidates)
    known: set[str] = set()
    for problem in sorted(problems, key=lambda problem: problem.key):
        for solution in (eager_solution(problem.definition), *problem.solutions):
            known.add(solution.name)
            if wanted is None or solution.name in wanted:
                yield problem, solution
    if wanted is not None and not wanted <= known:
        unknown = sorted(wanted - known)[0]
        raise InputError("--candidates", f"no solution is named {unknown!r}; there are {', '.join(sorted(known))}")


class _Measurement:
    """Progress of one call of :func:`measure`."""

    def __init__(
        self,
        session: Session,
        writer: Writer,
        protocol: Protocol,
        target: str,
        estimates: Estimates | None,
        say: Callable[[str], None],
    ) -> None:
        self.session, self.writer, self.protocol, self.target = session, writer, protocol, target
        self.estimates, self.say = estimates, say
        self.statuses: dict[str, int] = {}
        self.omissions = 0
        self._known: dict[tuple[str, str], float] = {}

    def pair(self, problem: Problem, solution: Solution, deadline: float | None) -> None:
        """Measure what is left of one solution of one problem."""
        left = [w for w in problem.workloads if Key(problem.key, w.uuid, solution.name) not in self.writer.finished]
        chosen = []
        for workload in left:
            reason = "budget" if _spent(deadline) else self._too_slow(problem, workload)
            if reason is None:
                chosen.append(workload)
            else:
                self._omit(problem, workload, solution, reason)
        if not chosen:
            return
        pending = {workload.uuid: workload for workload in chosen}
        traces = evaluate(
            problem, solution, workloads=chosen, target=self.target, protocol=self.protocol, session=self.session,
            progress=lambda text: self.say(f"{problem.key} {solution.name}: {text}"),
        )  # fmt: skip
        try:
            for trace in traces:
                self._keep(problem, trace)
                del pending[trace.workload]
                if pending and _spent(deadline) and self.protocol.processes == 1:
                    break
        finally:
            traces.close()  # type: ignore[attr-defined]
        for workload in pending.values():
            self._omit(problem, workload, solution, "budget")

    def _keep(self, problem: Problem, trace: Trace) -> None:
        self.writer.add(problem.key, trace)
        self.statuses[trace.status] = self.statuses.get(trace.status, 0) + 1
        if trace.status is not Status.PASSED:
            self.say(f"{problem.key} {trace.solution}: {trace.workload}: {trace.status}: {trace.reason}")

    def _omit(self, problem: Problem, workload: Workload, solution: Solution, reason: str) -> None:
        omission = Omission(
            definition=problem.definition.name,
            workload=workload.uuid,
            workload_digest=identity.workload_digest(problem, workload),
            solution=solution.name,
            reason=reason,
        )
        self.writer.add(problem.key, omission)
        self.omissions += 1

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


def _spent(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
