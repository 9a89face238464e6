"""Verdicts for gfx1200 without the card: the machine code of a candidate runs on the emulated one.

Same referee, fresh inputs and checks as elsewhere; no baseline, no time. Each workload is run whole if a call stays
within a limit of executed instructions, and again at small sizes, where every access and order is looked at. See
docs/emulator.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from solbench.corpus.load import Problem
from solbench.corpus.reduce import Instance, elements, reduced
from solbench.errors import InputError, UnsupportedError
from solbench.evaluate import arena, build, gate, identity
from solbench.evaluate.arena import Shared
from solbench.evaluate.processes import RefereeFailure
from solbench.evaluate.session import Session, is_native
from solbench.evaluate.support import unsupported
from solbench.evaluate.timing import Floor
from solbench.evaluate.turns import CheckFailure, OverLimit, Side, merge
from solbench.evaluate.verdict import check_workload
from solbench.evaluate.workers import Tampering, Worker, WorkerFailure
from solbench.model.emulation import TARGET, EmulatedInstance, Emulation, Way
from solbench.model.solution import Solution
from solbench.model.trace import MAX_LOG_CHARS, CheckResult, Correctness, Status, Trace
from solbench.model.workload import Workload

LABEL: Final = "functional emulation of gfx1200 code, not run on the card: a verdict, no time"
# Elements of all inputs and outputs at which every order is tried.
SMALL_ELEMENTS: Final = 1 << 16
# Wave-instructions of one call: some seconds in lock-step.
INSTRUCTIONS: Final = 20_000_000
# A workload of more elements than so many for each of these is not tried whole: no launch would come to its end.
ELEMENTS_PER_INSTRUCTION: Final = 8
# How much more the last attempt may execute than the limit says.
LONGER: Final = 8
# What cannot be made smaller is run in every order up to so many of them.
AGAIN_INSTRUCTIONS: Final = 1_000_000
# Seconds of one launch, whatever it executes; waves in turn take up to thirty times as long as in lock-step.
DEADLINE_S: Final = 90.0
_LOG_CHARS_OF_A_PASS: Final = 2_000
_SEEDS: Final = (1, 2)
_NO_FLOOR: Final = Floor(0.0, 0.0, 0.0, 0.0)
_Run = tuple[Way, dict[str, Any]]


@dataclass(frozen=True)
class Plan:
    """How workloads are run. ``quick``: one call each, in lock-step, whole or else small. ``configuration``: of
    autotuned kernels, as Triton prints it, or ``each``; None takes the first one that fits."""

    instructions: int = INSTRUCTIONS
    quick: bool = False
    configuration: str | None = None

    def whole(self, instance: Instance) -> tuple[_Run, ...]:
        """How the calls at a workload's own sizes run: in every order only where it is small."""
        if not self.quick and elements(instance.definition, instance.axes) <= SMALL_ELEMENTS:
            return self.orders()
        return (("lock-step", {**self._limits(), "poison": "nan"}),)

    def longest(self) -> tuple[_Run, ...]:
        """One call in lock-step that may execute more, where nothing else comes to its end."""
        limit = self.instructions * LONGER
        return (("lock-step", {**self._limits(), "poison": "nan", "max_instructions": limit}),)

    def orders(self) -> tuple[_Run, ...]:
        """Everything that is looked at, in every order; registers and local memory hold something else in each."""
        checked: _Run = (
            "lock-step, checked",
            {**self._limits(), "poison": "nan", "races": True, "strict_waits": True, "uninitialised": True},
        )
        permuted = [
            ("permuted", {**self._limits(), "poison": poison, "order": "permuted", "seed": seed})
            for seed, poison in zip(_SEEDS, ("zero", "ones"), strict=True)
        ]
        return (checked, *cast(list[_Run], permuted))

    def _limits(self) -> dict[str, Any]:
        return {
            "max_instructions": self.instructions, "deadline_s": DEADLINE_S, "configuration": self.configuration,
        }  # fmt: skip


def instances(problem: Problem, workload: Workload) -> tuple[Instance, ...]:
    """The workload, and the same at small sizes where it is larger than those."""
    axes = workload.validate_against(problem.definition, f"{problem.key}/{workload.uuid}")
    whole = Instance(problem.definition, workload, axes)
    # A candidate may have the problem's constants written into it.
    small = reduced(problem.definition, workload, SMALL_ELEMENTS, constants=False)
    return (whole,) if small.note is None else (whole, small)


@dataclass
class _Case:
    """What is known of one workload so far."""

    workload: Workload
    instances: list[EmulatedInstance] = field(default_factory=list)
    checks: dict[str, CheckResult] = field(default_factory=dict)
    rounds: int = 0
    log: str = ""


def evaluate_emulated(
    problem: Problem,
    solution: Solution,
    session: Session,
    *,
    workloads: Sequence[Workload] | None = None,
    plan: Plan | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[Trace]:
    """Yield one trace a workload, in order. ``session``: an emulated one for gfx1200."""
    if not session.emulated or session.target != TARGET:
        raise UnsupportedError(f"--target {session.target}: only {TARGET} is emulated")
    run = _Emulated(session, problem, solution, plan or Plan(), progress)
    yield from run.traces(tuple(workloads) if workloads is not None else problem.workloads)


class _Emulated:
    """One solution of one problem."""

    def __init__(
        self, session: Session, problem: Problem, solution: Solution, plan: Plan, progress: Callable[[str], None]
    ) -> None:
        self.session, self.problem, self.solution, self.plan = session, problem, solution, plan
        self.progress = progress
        self.solution_digest = identity.solution_digest(solution)
        self._worker: Worker | None = None
        self._heap_bytes = self._memory_bytes = 0

    def traces(self, workloads: Sequence[Workload]) -> Iterator[Trace]:
        reason = unsupported(self.problem.definition, self.solution, TARGET)
        if reason is None and "pytorch" in self.solution.spec.languages:
            reason = "language: pytorch launches the kernels of its own library, which is not emulated"
        if reason is not None:
            yield from (self._failed(_Case(one), Status.UNSUPPORTED, reason) for one in workloads)
            return
        looked = (
            gate.Looked()
            if is_native(self.solution)
            else gate.look(self.session, self.problem, self.solution, workloads, TARGET)
        )
        cases = [(_Case(workload), instances(self.problem, workload)) for workload in workloads]
        plans = [arena.layout(one.definition, one.axes) for _, wanted in cases for one in wanted]
        fitting = [plan for plan in plans if self._too_large(plan) is None]
        self._heap_bytes = max((arena.heap_bytes(plan) for plan in fitting), default=0)
        self._memory_bytes = max((plan.size for plan in fitting), default=arena.ALIGNMENT)
        memory = Shared(arena.create(self._memory_bytes))
        try:
            for case, wanted in cases:
                if (why := looked.refused.get(case.workload.uuid)) is not None:
                    yield self._failed(case, Status.RUNTIME_ERROR, why)
                else:
                    yield self._trace(case, wanted, memory)
        finally:
            self._end()
            memory.close()

    def _trace(self, case: _Case, wanted: Sequence[Instance], memory: Shared) -> Trace:
        """The workload whole, then at small sizes in every order; the first that fails is its verdict."""
        whole, *smaller = wanted
        calls = self.plan.whole(whole)
        failed = self._attempt(case, whole, calls, memory)
        orders = self.plan.orders()
        if failed is None and calls != orders and not (self.plan.quick and case.rounds):
            for instance in smaller or self._again(case, whole):
                failed = failed or self._attempt(case, instance, calls if self.plan.quick else orders, memory)
        if failed is None and not case.rounds:
            # Nothing has come to its end: once more in lock-step alone, and longer.
            failed = self._attempt(case, wanted[-1], self.plan.longest(), memory, last=True)
        if failed is not None:
            return failed
        return Trace(
            status=Status.PASSED,
            reason="not timed: emulated",
            log=case.log[-_LOG_CHARS_OF_A_PASS:],
            correctness=Correctness(rounds=case.rounds, checks=tuple(case.checks.values())),
            **self._common(case),
        )

    def _again(self, case: _Case, whole: Instance) -> list[Instance]:
        """What cannot be made smaller is run in every order as it is, if it executes little."""
        executed = case.instances[-1].executed
        return [whole] if executed is not None and executed.instructions <= AGAIN_INSTRUCTIONS else []

    def _too_large(self, plan: arena.Layout) -> str | None:
        """Why an instance does not fit into this machine, or None."""
        needed, available = arena.needed_memory(plan), self.session.available_memory()
        if needed <= available:
            return None
        return f"memory: needs about {needed / 2**30:.2g} GiB, {available / 2**30:.2g} GiB are available"

    def _attempt(
        self, case: _Case, instance: Instance, calls: Sequence[_Run], memory: Shared, last: bool = False
    ) -> Trace | None:
        """Run one instance; the trace of its failure, or None."""
        self.progress(f"{case.workload.uuid} {instance.note or 'whole'}: {', '.join(way for way, _ in calls)}")
        plan = arena.layout(instance.definition, instance.axes)
        problem = replace(self.problem, definition=instance.definition)
        count = elements(instance.definition, instance.axes)
        if instance.note is None and not last and count > ELEMENTS_PER_INSTRUCTION * self.plan.instructions:
            many = f"{count:,} elements are more than {ELEMENTS_PER_INSTRUCTION} for each instruction of the limit"
            return self._unfinished(case, instance, calls, many, last)
        if (reason := self._too_large(plan)) is None and plan.size > self._memory_bytes:
            reason = "memory: there was too little for it when the run began"
        if reason is not None:
            return self._unfinished(case, instance, calls, reason, last)
        try:
            side = self._side(memory)
            said = check_workload(
                problem, instance.workload, plan, instance.axes, self.session.referee(), memory, side,
                self.session.limits, [options for _, options in calls],
            )  # fmt: skip
            done = _done(instance, calls, said.get("emulated"))
        except build.BuildFailure as error:
            return self._failed(case, error.status, error.reason, error.log)
        except OverLimit as error:
            self._end()
            return self._unfinished(case, instance, calls, error.reason, last)
        except WorkerFailure as error:
            log = self._end(error.detail)
            if isinstance(error, Tampering):
                self.session.replace_processes()
            correctness = None
            if isinstance(error, CheckFailure) and error.checks and error.status is Status.INCORRECT_NUMERICAL:
                correctness = Correctness(rounds=case.rounds + error.rounds, checks=error.checks)
            case.instances.append(_ended(instance, calls, error.reason))
            return self._failed(case, error.status, error.reason, log, correctness)
        except RefereeFailure as error:
            self._end()
            return self._failed(case, Status.INVALID_REFERENCE, error.reason[-1000:], error.reason)
        for check in side.checks.values():
            case.checks[check.output] = merge(case.checks.get(check.output), check)
        case.rounds += side.rounds
        case.log = side.worker.without_folder(side.worker.log.text())
        case.instances.append(done)
        return None

    def _unfinished(
        self, case: _Case, instance: Instance, calls: Sequence[_Run], reason: str, last: bool
    ) -> Trace | None:
        """An instance that is too large: the verdict is that of the smaller one, if there is one."""
        case.instances.append(_ended(instance, calls, reason))
        return self._failed(case, Status.UNSUPPORTED, reason) if last and not case.rounds else None

    def _side(self, memory: Shared) -> Side:
        """A side with its worker, started if it is not there. Nothing is timed, so an empty call takes no time."""
        if self._worker is not None and not self._worker.alive():
            self._end()
        if self._worker is None:
            self._worker = self.session.start(self.solution, memory, trusted=False, heap_bytes=self._heap_bytes)
        return Side(self._worker, self.solution, _NO_FLOOR)

    def _end(self, detail: str = "") -> str:
        """End the worker; what it wrote, and ``detail``, without the name of its folder."""
        worker, self._worker = self._worker, None
        if worker is None:
            return detail
        worker.end()
        return worker.without_folder("\n".join(part for part in (worker.log.text().strip(), detail.strip()) if part))

    def _failed(
        self, case: _Case, status: Status, reason: str, log: str = "", correctness: Correctness | None = None
    ) -> Trace:
        return Trace(
            status=status, reason=reason, log=log[-MAX_LOG_CHARS:], correctness=correctness, **self._common(case)
        )

    def _common(self, case: _Case) -> dict[str, Any]:
        emulation = Emulation(limit=self.plan.instructions, instances=tuple(case.instances)) if case.instances else None
        return {
            "definition": self.problem.definition.name,
            "workload": case.workload.uuid,
            "workload_digest": identity.workload_digest(self.problem, case.workload),
            "solution": self.solution.name,
            "solution_digest": self.solution_digest,
            "target": TARGET,
            "labels": (LABEL, self.session.isolation.label),
            "emulation": emulation,
        }


def _ended(instance: Instance, calls: Sequence[_Run], why: str) -> EmulatedInstance:
    """An instance whose calls did not all end well."""
    ways = tuple(way for way, _ in calls)
    return EmulatedInstance(
        axes=instance.axes, reduced=instance.note, calls=ways, executed=None, ended=why[:1000], warnings=()
    )


def _done(instance: Instance, calls: Sequence[_Run], said: Any) -> EmulatedInstance:
    """An instance and what the worker says that it executed: its word, so anything else is refused."""
    if not isinstance(said, Mapping):
        raise WorkerFailure(Status.REWARD_HACK, "control channel: the worker does not say what it executed")
    fields = {
        "axes": instance.axes, "reduced": instance.note, "calls": [way for way, _ in calls], "ended": None,
        "executed": said.get("executed"), "warnings": said.get("warnings"),
    }  # fmt: skip
    try:
        found = EmulatedInstance.load(fields, "emulated")
    except InputError as error:
        raise WorkerFailure(Status.REWARD_HACK, f"control channel: {error}") from None
    if found.executed is None:
        raise WorkerFailure(Status.REWARD_HACK, "control channel: the worker does not say what it executed")
    return found
