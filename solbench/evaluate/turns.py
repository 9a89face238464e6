"""What one worker does for the sample protocol: load, open a workload, take a turn, make a batch, close.

After each call the worker is frozen, and what it left in memory is checked before anything else happens.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from solbench.corpus.load import Problem
from solbench.evaluate import arena, watch
from solbench.evaluate.arena import Shared
from solbench.evaluate.processes import Referee
from solbench.evaluate.timing import BatchSample, Floor, Sample, impossible
from solbench.evaluate.workers import Reply, Scheduling, Tampering, Worker, WorkerFailure, same_scheduling, scheduling
from solbench.model.solution import Solution
from solbench.model.trace import CheckResult, Status
from solbench.model.workload import Constant, ScalarInput, Workload

# A card that is not free so long after "done" counts as lost, s.
PROBE_LIMIT_S = 60.0


@dataclass(frozen=True)
class Limits:
    """Seconds after which an operation counts as hanging. ``call_s`` also covers delivering a result."""

    compile_s: float = 120.0
    load_s: float = 120.0
    first_call_s: float = 120.0
    call_s: float = 30.0
    reference_s: float = 120.0


@dataclass
class Side:
    """One worker during one workload: its samples (warm-ups are only among ``all_calls``), its merged checks."""

    worker: Worker
    solution: Solution
    floor: Floor
    samples: list[Sample] = field(default_factory=list)
    all_calls: list[Sample] = field(default_factory=list)
    batches: list[BatchSample] = field(default_factory=list)
    checks: dict[str, CheckResult] = field(default_factory=dict)
    looks: list[watch.Look] = field(default_factory=list)
    rounds: int = 0
    calls: int = 0
    # Shared memory is copied to a card before each call, and back after it.
    staged: bool = False

    @property
    def delivers(self) -> bool:
        """Whether results are copied to the shared memory after the call, rather than written there by it."""
        spec = self.solution.spec
        returns = bool({"pytorch", "triton"} & set(spec.languages)) and not spec.destination_passing_style
        return returns or self.staged


def load(worker: Worker, limits: Limits, heap_bytes: int = 0) -> None:
    """Let a new worker load its candidate and touch its heap, then stop it. :class:`WorkerFailure` when that fails."""
    worker.send({"op": "load", "heap_bytes": heap_bytes})
    reply = worker.wait("loaded", time.monotonic() + limits.load_s)
    worker.freeze()
    worker.expect_silence()
    if reply.frame.get("fault") is not None:
        raise _fault(reply.frame["fault"])


def opening(
    problem: Problem, workload: Workload, plan: arena.Layout, memory: Shared, copies: int = 1
) -> dict[str, Any]:
    """The referee's message that opens a workload."""
    return {
        "op": "workload", "definition": problem.definition.as_dict(), "workload": workload.as_dict(),
        "folder": str(problem.path.resolve()), **_places(problem, plan, memory, copies),
    }  # fmt: skip


def open_side(
    side: Side, problem: Problem, workload: Workload, plan: arena.Layout, axes: dict[str, int], memory: Shared,
    limits: Limits, copies: int = 1, runs: Sequence[Mapping[str, Any]] = (),
) -> None:  # fmt: skip
    """Let a frozen worker map the memory and bind its calls, one to each copy of the slots; stop it again.

    ``runs``: on the emulated card, options of :class:`solbench.gfx12.run.Options` for each call, and the autotuner's
    ``configuration``.
    """
    definition = problem.definition
    message = {
        "op": "workload",
        **_places(problem, plan, memory, copies),
        # A card's temporaries are not in the heap, and their allocator keeps them.
        "heap_bytes": arena.heap_bytes(plan) if memory.on_host else 0,
        "inputs": [[name, spec.dtype if spec.shape is None else "tensor"] for name, spec in definition.inputs.items()],
        "outputs": list(definition.outputs),
        "in_place": list(definition.in_place),
        "scalars": scalars_of(problem, workload, {}),
        "axes": axes,
        "runs": list(runs),
    }
    side.worker.log.clear()
    side.worker.send(message)
    side.worker.thaw()
    reply = side.worker.wait("ready", time.monotonic() + limits.load_s)
    side.worker.freeze()
    if reply.frame.get("fault") is not None:
        raise _fault(reply.frame["fault"], opening=True)


def _places(problem: Problem, plan: arena.Layout, memory: Shared, copies: int) -> dict[str, Any]:
    """Where the tensors lie, in every copy of the slots; persistent inputs once for all."""
    shared = frozenset(problem.definition.persistent) - frozenset(problem.definition.in_place)
    slots = [[slot.as_dict() for slot in arena.copy_slots(plan, number, shared)] for number in range(copies)]
    size = max(copies * plan.size, arena.ALIGNMENT)
    return {"slots": slots[0], "copies": slots[1:], "size": size, "handle": memory.handle}


@dataclass(frozen=True)
class Round:
    """Whether it is a timed one, scalars of its own, and whether the card was idle before it."""

    keep: bool
    scalars: dict[str, Any] | None
    alone: bool


def take_turn(side: Side, referee: Referee, baseline: Side | None, limits: Limits, round_: Round) -> None:
    """One call on armed memory, and the check of what it left there; ``baseline`` where there is one."""
    worker = side.worker
    # Looked at for the baseline too: what precedes a call is the same on both sides, to the last microsecond.
    trusted = (os.getpid(), referee.pid, *((baseline.worker.pid,) if baseline else ()), *worker.ancestors())
    before = scheduling(trusted)
    side.calls += 1
    limit_s = limits.first_call_s if side.calls == 1 else limits.call_s
    deadline = time.monotonic() + limit_s
    if side.staged:
        _fetch(worker, deadline)
    sample, at_ns = call_once(worker, referee, side.calls, deadline, round_.scalars, hold=not side.staged)
    deliver_s = None
    if side.delivers:
        delivered = worker.wait("delivered", deadline)
        deliver_s = max(delivered.at_ns - at_ns, 0) / 1e9
        if delivered.frame.get("sample") != side.calls:
            raise WorkerFailure(Status.REWARD_HACK, "control channel: delivered another sample than was asked for")
        worker.freeze()
        if delivered.frame.get("fault") is not None:
            raise _fault(delivered.frame["fault"])
    else:
        worker.freeze()
    worker.expect_silence()
    _untouched(referee, baseline, before, scheduling(trusted))
    if (lie := impossible(sample)) is not None:
        raise WorkerFailure(Status.REWARD_HACK, lie)
    _check(side, referee, limits, 0)
    side.looks.append(watch.look(worker.frozen))
    sample = replace(sample, deliver_s=deliver_s, alone=round_.alone)
    side.all_calls.append(sample)
    if round_.keep:
        side.samples.append(sample)


def take_batch(side: Side, referee: Referee, baseline: Side, limits: Limits, calls: int) -> None:
    """A batch on armed memory, and the check of every result that it left there."""
    worker = side.worker
    trusted = (os.getpid(), referee.pid, baseline.worker.pid, *worker.ancestors())
    before = scheduling(trusted)
    side.calls += 1
    batch = call_in_a_row(worker, referee, side.calls, calls, time.monotonic() + calls * limits.call_s)
    worker.expect_silence()
    _untouched(referee, baseline, before, scheduling(trusted))
    for copy in range(calls):
        _check(side, referee, limits, copy)
    side.batches.append(batch)


def _check(side: Side, referee: Referee, limits: Limits, copy: int) -> None:
    """Check what one call left in its copy of the slots."""
    # As thorough for the baseline: what the referee did last shows in the next call, by 5 us with a lighter check.
    verdict = referee.ask({"op": "check", "copy": copy}, limits.reference_s)
    if verdict["mutated"]:
        reason = f"input {', '.join(verdict['mutated'])} was changed, and is not declared in-place"
        raise WorkerFailure(Status.REWARD_HACK, reason)
    status = Status(verdict["status"])
    checks = [CheckResult.load(check, "referee") for check in verdict["checks"]]
    side.rounds += 1
    if status is not Status.PASSED:
        raise CheckFailure(status, str(verdict["reason"] or status.value), side.rounds, tuple(checks))
    for check in checks:
        side.checks[check.output] = merge(side.checks.get(check.output), check)


class CardBusy(WorkerFailure):
    """Something of the candidate's runs on: the baseline, in whose turn it may show, waits for its own work."""


class Unshared(WorkerFailure):
    """A worker could not map the shared memory of a card: no fault of what it holds, if another one can."""


class OverLimit(WorkerFailure):
    """On the emulated card, a launch did not come to its end within its limit: nothing is known of it."""


class CheckFailure(WorkerFailure):
    """An output failed its check: carries the rounds and the results of the failing one."""

    def __init__(self, status: Status, reason: str, rounds: int, checks: tuple[CheckResult, ...]) -> None:
        super().__init__(status, reason)
        self.rounds = rounds
        self.checks = checks


def _fetch(worker: Worker, deadline: float) -> None:
    """Let the frozen worker copy the shared memory to its card and flush the caches there."""
    worker.send({"op": "fetch"})
    worker.thaw()
    reply = worker.wait("fetched", deadline)
    worker.freeze()
    worker.expect_silence()
    if reply.frame.get("fault") is not None:
        raise _fault(reply.frame["fault"])


def _ended_ns(referee: Referee, reply: Reply) -> int:
    """When a call was over by the orchestrator's clock: once "done" was read; on a card, where "done" may come before
    the work is, once the referee has found it idle."""
    if not referee.on_a_card:
        return reply.at_ns
    if not referee.ask({"op": "probe"}, PROBE_LIMIT_S)["idle"]:
        raise CardBusy(Status.REWARD_HACK, "the card is still busy long after the call was said to be done")
    return time.perf_counter_ns()


def call_once(
    worker: Worker, referee: Referee, number: int, deadline: float, scalars: dict[str, Any] | None = None, *,
    hold: bool = True,
) -> tuple[Sample, int]:  # fmt: skip
    """Let the frozen worker make one call; the sample, and when it was over.

    ``hold``: let a card be busy meanwhile; not where the worker has just had its turn there, which would begin again.
    """
    worker.send({"op": "go", "sample": number, "scalars": scalars})
    if referee.on_a_card and hold:
        referee.ask({"op": "hold"}, PROBE_LIMIT_S)
    start_ns = time.perf_counter_ns()
    worker.thaw()
    reply = worker.wait("done", deadline)
    ended_ns = _ended_ns(referee, reply)
    frame = reply.frame
    if frame.get("sample") != number:
        raise WorkerFailure(Status.REWARD_HACK, "control channel: done with another sample than was asked for")
    if frame.get("fault") is not None:
        worker.freeze()
        raise _fault(frame["fault"])
    event_s, launch_s, left_s = (_seconds(frame, name) for name in ("event_ns", "launch_ns", "left_ns"))
    # On the host there is nothing that such times could excuse.
    if event_s is None or any((told is not None) != referee.on_a_card for told in (launch_s, left_s)):
        raise WorkerFailure(Status.REWARD_HACK, "control channel: not the times of a call here")
    return Sample(event_s, (ended_ns - start_ns) / 1e9, launch_s=launch_s, left_s=left_s), ended_ns


def _seconds(frame: Mapping[str, Any], name: str) -> float | None:
    """A time that a worker tells, or None where it tells none."""
    value = frame.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 10**15:
        raise WorkerFailure(Status.REWARD_HACK, f"control channel: {name} is no number of nanoseconds")
    return value / 1e9


def call_in_a_row(worker: Worker, referee: Referee, number: int, calls: int, deadline: float) -> BatchSample:
    """Let the frozen worker make ``calls`` calls in a row, on the first copies of the slots, and stop it again."""
    worker.send({"op": "batch", "sample": number, "calls": calls})
    before_s = worker.busy_s()
    start_ns = time.perf_counter_ns()
    worker.thaw()
    reply = worker.wait("done", deadline)
    ended_ns = _ended_ns(referee, reply)
    worker.freeze()
    now_s = worker.busy_s()
    frame = reply.frame
    if frame.get("sample") != number:
        raise WorkerFailure(Status.REWARD_HACK, "control channel: done with another sample than was asked for")
    if frame.get("fault") is not None:
        raise _fault(frame["fault"])
    busy_s = None if before_s is None or now_s is None else now_s - before_s
    return BatchSample(calls, (ended_ns - start_ns) / 1e9, busy_s)


def close_side(side: Side, limits: Limits) -> Mapping[str, Any]:
    """End a workload; what the worker says at its end."""
    side.worker.send({"op": "close"})
    side.worker.thaw()
    reply = side.worker.wait("closed", time.monotonic() + limits.call_s)
    side.worker.freeze()
    side.worker.expect_silence()
    if reply.frame.get("samples") != side.calls:
        raise WorkerFailure(Status.REWARD_HACK, "closing handshake: the count of samples is not what was asked for")
    return reply.frame


def _untouched(referee: Referee, baseline: Side | None, before: Scheduling, now: Scheduling) -> None:
    """The others were stopped or idle while the candidate ran: none may have died or been slowed down."""
    if not referee.alive():
        raise Tampering("the referee was killed while the candidate ran")
    if baseline is not None and not baseline.worker.alive():
        raise Tampering("the baseline was killed while the candidate ran")
    if not same_scheduling(before, now):
        raise Tampering("processors or priority of the harness's processes were changed")


def merge(before: CheckResult | None, now: CheckResult) -> CheckResult:
    """One result over several rounds: counts add up, errors are the largest."""
    if before is None:
        return now
    return CheckResult(
        output=now.output,
        type=now.type,
        passed=before.passed and now.passed,
        compared=before.compared + now.compared,
        mismatched=before.mismatched + now.mismatched,
        max_absolute_error=_largest((before.max_absolute_error, now.max_absolute_error)),
        max_relative_error=_largest((before.max_relative_error, now.max_relative_error)),
        has_nan=before.has_nan or now.has_nan,
        has_inf=before.has_inf or now.has_inf,
    )


def _largest(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None


_FAULTS = {
    "raised": Status.RUNTIME_ERROR,
    "shape": Status.INCORRECT_SHAPE,
    "dtype": Status.INCORRECT_DTYPE,
    "lazy": Status.REWARD_HACK,
    "hack": Status.REWARD_HACK,
    "unsupported": Status.UNSUPPORTED,
    "limit": Status.UNSUPPORTED,
    "finding": Status.RUNTIME_ERROR,
    "unshared": Status.RUNTIME_ERROR,
}


def _fault(fault: Any, *, opening: bool = False) -> WorkerFailure:
    """Verdict of a fault that the worker itself reports. Memory that it could not map is none while it opens a
    workload; later, when it may know its times, it could ask for another try that way."""
    if not (isinstance(fault, list) and len(fault) == 2 and fault[0] in _FAULTS and isinstance(fault[1], str)):
        return WorkerFailure(Status.REWARD_HACK, "control channel: a fault of no known kind")
    if fault[0] == "unshared" and not opening:
        return WorkerFailure(Status.REWARD_HACK, "control channel: a fault of no known kind")
    kind, text = fault[0], fault[1].encode("utf-8", "replace").decode()  # JSON can name half a character
    if kind == "unshared":
        return Unshared(_FAULTS[kind], text[:1000])
    if kind == "limit":
        return OverLimit(_FAULTS[kind], text[:1000])
    if kind == "finding":
        return WorkerFailure(_FAULTS[kind], text.strip().partition("\n")[0][:1000] or kind, text)
    reason = text.strip().rpartition("\n")[2] if kind == "raised" else text
    return WorkerFailure(_FAULTS[kind], reason[:1000] or kind, text if kind == "raised" else "")


def scalars_of(problem: Problem, workload: Workload, overrides: Mapping[str, Any]) -> dict[str, bool | int | float]:
    """Values of the scalar inputs in one round, typed as declared."""
    values: dict[str, bool | int | float] = {}
    for name, spec in problem.definition.inputs.items():
        generator = overrides.get(name, workload.inputs[name])
        if spec.shape is None and isinstance(generator, (Constant, ScalarInput)):
            kind = bool if spec.dtype == "bool" else int if spec.dtype.startswith(("int", "uint")) else float
            values[name] = kind(generator.value)
    return values
