"""The sample protocol: one workload, one pair of workers, rounds of fresh values, every output checked.

A round draws once for both sides; their turns come in random order, each on newly armed memory, the other side frozen.
Warm-ups, stress rounds, batches and timed samples take the same path, in an order that no candidate is told.

After the wanted number of samples, sampling goes on where the witnesses were apart, and, where the protocol states a
precision, until the 95 % interval of the median of either side, as far as this process tells, lies within that share of
it, or the protocol's cap is reached. (An interval that was stopped for being narrow covers a little less than it says.)
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from solbench import canonical
from solbench.corpus.load import Problem
from solbench.evaluate import arena, batches, watch
from solbench.evaluate.arena import Shared
from solbench.evaluate.processes import Referee
from solbench.evaluate.stopping import precise, stop_reason
from solbench.evaluate.timing import (
    BATCH_CALLS_MOST,
    BatchSample,
    Floor,
    Judge,
    Sample,
    impossible,
)
from solbench.evaluate.workers import (
    Reply,
    Scheduling,
    Tampering,
    Worker,
    WorkerFailure,
    nonce,
    same_scheduling,
    scheduling,
)
from solbench.model.solution import Solution
from solbench.model.trace import CheckResult, Protocol, Status
from solbench.model.workload import Constant, ScalarInput, Workload

MIN_WARMUPS, MAX_WARMUPS = 2, 4
# Void samples are taken again until there are this many times the wanted number, and at least so many.
MAX_ROUNDS_FACTOR, MAX_ROUNDS_LEAST = 4, 12
# Who prints more than that during a batch may have had to wait until its log was read.
QUIET_BYTES = 1 << 15
# A card that is not free so long after "done" counts as lost, s.
PROBE_LIMIT_S = 60.0
# A flush on a card may take this many times the median of solo ones and this much more; a sample after a longer one is
# void, and a candidate with more than this share of such flushes keeps the card busy between its calls.
SOLO_FLUSHES, FLUSH_FACTOR, FLUSH_SLACK_S, BUSY_SHARE = 30, 1.5, 0.2e-3, 0.5
_random = random.SystemRandom()


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


@dataclass(frozen=True)
class Sampled:
    """What one process observed of one workload; the n-th samples of both sides come from one round.

    ``batch``: None where none is needed or has room. ``agreement_s``: how far apart clock witnesses could be; ``void``:
    why the samples are no times, or None. ``notes``: what a reader should know of the candidate.
    """

    candidate: tuple[Sample, ...]
    baseline: tuple[Sample, ...]
    batch: batches.Settled | None
    warmups: int
    rounds: int
    checks: tuple[CheckResult, ...]
    stop_reason: str
    agreement_s: float
    void: str | None
    notes: tuple[str, ...] = ()


class BaselineFailure(Exception):
    """The baseline did not pass its own checks: nothing can be said about the candidate."""


def load(worker: Worker, limits: Limits) -> None:
    """Let a new worker load its candidate, then stop it. :class:`WorkerFailure` when that fails."""
    worker.send({"op": "load"})
    reply = worker.wait("loaded", time.monotonic() + limits.load_s)
    worker.freeze()
    worker.expect_silence()
    if reply.frame.get("fault") is not None:
        raise _fault(reply.frame["fault"])


def run_workload(
    problem: Problem,
    workload: Workload,
    plan: arena.Layout,
    axes: dict[str, int],
    referee: Referee,
    memory: Shared,
    candidate: Side,
    baseline: Side,
    protocol: Protocol,
    copies: int,
    limits: Limits,
    flush_limit_s: float | None = None,
) -> Sampled:
    """Run the whole protocol for one workload in one pair of workers, both frozen at entry and at return.

    ``copies``: copies of the slots that ``memory`` holds, 1 for no batches. ``flush_limit_s``: how long a flush may
    take, see :func:`measure_flush`; None where it is not looked at.
    Raises :class:`WorkerFailure` (the candidate's verdict), :class:`RefereeFailure`, :class:`BaselineFailure`.
    """
    referee.ask(opening(problem, workload, plan, memory, copies), limits.reference_s, (memory.descriptor,))
    for side in (candidate, baseline):
        side.staged = memory.staged
        opened = partial(open_side, problem=problem, workload=workload, plan=plan, axes=axes, memory=memory)
        _guard(side, partial(opened, limits=limits, copies=copies), side is baseline)
    rounds = _Rounds(problem, workload, referee, candidate, baseline, limits, flush_limit_s)
    warmups = _random.randint(MIN_WARMUPS, MAX_WARMUPS)
    for _ in range(warmups):
        rounds.play(None, keep=False)
    schedule: list[int | None] = [*range(len(workload.stress_rounds)), *([None] * protocol.samples)]
    _random.shuffle(schedule)
    batch_at = _random.randrange(len(schedule))
    for place, stress in enumerate(schedule):
        rounds.play(stress, keep=stress is None)
        if place == batch_at:
            rounds.batch(batches.calls_in_a_row(candidate, baseline, copies))
    least, most = protocol.samples, protocol.max_samples or protocol.samples
    while True:
        judge = Judge.of(candidate.floor, baseline.all_calls, plan.output_bytes)
        # By rounds: what made a candidate's sample void has touched the baseline's of the same round as well.
        kept = [pair for pair in zip(candidate.samples, baseline.samples, strict=True) if judge.admits(pair[0])]
        taken = len(candidate.samples)
        enough = len(kept) >= least and (len(kept) >= most or precise(kept, protocol.precision))
        if enough or taken >= max(MAX_ROUNDS_FACTOR * least, MAX_ROUNDS_LEAST, most):
            break
        rounds.play(None, keep=True)
    if rounds.flushes.count(False) > BUSY_SHARE * len(rounds.flushes):
        busy = f"{rounds.flushes.count(False)} of {len(rounds.flushes)} flushes found the card busy"
        raise WorkerFailure(Status.REWARD_HACK, f"{busy}: a kernel runs on between calls")
    kept = kept[:most]
    batch = None
    if len(kept) >= least:
        batch = batches.settle(rounds.batch, candidate, baseline, kept, copies, plan.output_bytes)
    for side in (candidate, baseline):
        _guard(side, partial(close_side, limits=limits), side is baseline)
    referee.ask({"op": "close"}, limits.reference_s)
    void = None
    if len(kept) < least:
        reason = judge.accusation(candidate.samples)
        if reason is not None:
            raise WorkerFailure(Status.REWARD_HACK, reason)
        void = f"not timed: the clock witnesses agree in {len(kept)} of {taken} samples (is the machine busy?)"
    elif batch is not None and not batch.agreed:
        void = f"not timed: none of {batch.count} batches of calls in a row agrees with the samples' times "
        void += "(is the machine busy?)"
    return Sampled(
        tuple(pair[0] for pair in kept), tuple(pair[1] for pair in kept), batch, warmups, candidate.rounds,
        tuple(candidate.checks.values()), stop_reason(kept, taken, protocol), judge.agreement_s, void,
        watch.labels(candidate.looks, baseline.looks, plan.output_bytes),
    )  # fmt: skip


class _Rounds:
    """Plays rounds of one workload: fresh values, a turn of each side on them."""

    def __init__(
        self, problem: Problem, workload: Workload, referee: Referee, candidate: Side, baseline: Side, limits: Limits,
        flush_limit_s: float | None,
    ) -> None:  # fmt: skip
        self.problem, self.workload, self.referee, self.limits = problem, workload, referee, limits
        self.candidate, self.baseline = candidate, baseline
        # Whether each flush found the card idle.
        self.flushes: list[bool] = []
        self._flush_limit_s = flush_limit_s
        self._secret = nonce()
        self._drawn = 0

    def play(self, stress: int | None, keep: bool) -> None:
        """One call of each side, of the candidate alone in a stress round; ``keep`` it as a sample."""
        self._draw(stress, 0)
        scalars = None
        if stress is not None:
            scalars = scalars_of(self.problem, self.workload, self.workload.stress_rounds[stress].inputs)
        for side in self._turns(stress is not None):
            round_ = Round(keep, scalars, self._arm(0))
            turn = partial(take_turn, referee=self.referee, baseline=self.baseline, limits=self.limits, round_=round_)
            _guard(side, turn, side is self.baseline)

    def batch(self, calls: int) -> None:
        """A batch of each side, every call on values of its own; nothing for less than two calls."""
        if calls < 2:
            return
        for copy in range(calls):
            self._draw(None, copy)
        for side in self._turns(alone=False):
            for copy in reversed(range(calls)):
                self._arm(copy, flush=copy == 0)
            turn = partial(_batch, referee=self.referee, baseline=self.baseline, limits=self.limits, calls=calls)
            _guard(side, turn, side is self.baseline)

    def _draw(self, stress: int | None, copy: int) -> None:
        self._drawn += 1
        seed = int(canonical.derived_key("sample seed", [self._secret.hex(), self._drawn])[:13], 16)
        self.referee.ask({"op": "draw", "seed": seed, "stress": stress, "copy": copy}, self.limits.reference_s)

    def _arm(self, copy: int, *, flush: bool = True) -> bool:
        """Put values into a copy of the slots; whether the flush, if one is due, found the card idle."""
        message = {"op": "arm", "byte": _random.randrange(2, 256), "copy": copy, "flush": flush}
        armed = self.referee.ask(message, self.limits.reference_s)
        if not flush:
            return True
        self.flushes.append(self._flush_limit_s is None or armed["flush_s"] <= self._flush_limit_s)
        return self.flushes[-1]

    def _turns(self, alone: bool) -> list[Side]:
        turns = [self.candidate] if alone else [self.candidate, self.baseline]
        _random.shuffle(turns)
        return turns


def measure_floor(worker: Worker, referee: Referee, count: int, limits: Limits) -> Floor:
    """Floor of an empty candidate whose worker is loaded and frozen: ``count`` samples on a flushed cache."""
    worker.thaw()
    message = {"op": "workload", "slots": [], "size": arena.ALIGNMENT, "heap_bytes": 0, "inputs": [], "outputs": []}
    copies: list[Any] = [[]] * (BATCH_CALLS_MOST - 1)
    worker.send({**message, "scalars": {}, "axes": {}, "handle": None, "copies": copies})
    worker.wait("ready", time.monotonic() + limits.load_s)
    worker.freeze()
    samples = []
    for number in range(count + 2):
        referee.ask({"op": "flush", "times": 1}, limits.reference_s)
        sample, _ = _call(worker, referee, number, time.monotonic() + limits.call_s)
        worker.freeze()
        samples.append(sample)
    found = []
    for number in range(count):
        referee.ask({"op": "flush", "times": 1}, limits.reference_s)
        found.append(_call_batch(worker, referee, number, BATCH_CALLS_MOST, time.monotonic() + limits.call_s))
        worker.freeze()
    return Floor.of(samples[2:], found)


def measure_flush(referee: Referee, limits: Limits) -> float:
    """Seconds that a flush may take on a card with nothing else on it, by flushes before any candidate is there."""
    referee.ask({"op": "flush", "times": SOLO_FLUSHES}, limits.reference_s)
    solo = referee.ask({"op": "flush", "times": SOLO_FLUSHES}, limits.reference_s)["flush_s"]
    return FLUSH_FACTOR * statistics.median(solo) + FLUSH_SLACK_S


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
    limits: Limits, copies: int = 1,
) -> None:  # fmt: skip
    """Let a frozen worker map the memory and bind its calls, one to each copy of the slots; stop it again."""
    definition = problem.definition
    message = {
        "op": "workload",
        **_places(problem, plan, memory, copies),
        # A card's temporaries are not in the heap, and their allocator keeps them.
        "heap_bytes": arena.heap_bytes(plan) if memory.on_host else 0,
        "inputs": [[name, spec.dtype if spec.shape is None else "tensor"] for name, spec in definition.inputs.items()],
        "outputs": list(definition.outputs),
        "scalars": scalars_of(problem, workload, {}),
        "axes": axes,
    }
    side.worker.log.clear()
    side.worker.send(message)
    side.worker.thaw()
    reply = side.worker.wait("ready", time.monotonic() + limits.load_s)
    side.worker.freeze()
    if reply.frame.get("fault") is not None:
        raise _fault(reply.frame["fault"])


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
    sample, at_ns = _call(worker, referee, side.calls, deadline, round_.scalars)
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


def _batch(side: Side, referee: Referee, baseline: Side, limits: Limits, calls: int) -> None:
    """A batch on armed memory, and the check of every result that it left there."""
    worker = side.worker
    trusted = (os.getpid(), referee.pid, baseline.worker.pid, *worker.ancestors())
    before = scheduling(trusted)
    side.calls += 1
    batch = _call_batch(worker, referee, side.calls, calls, time.monotonic() + calls * limits.call_s)
    worker.freeze()
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
    """When a call was over by the orchestrator's clock: once "done" was read, and on a card, where "done" may come before
    the work is, once the referee has got through to it."""
    if not referee.on_a_card:
        return reply.at_ns
    referee.ask({"op": "probe"}, PROBE_LIMIT_S)
    return time.perf_counter_ns()


def _call(
    worker: Worker, referee: Referee, number: int, deadline: float, scalars: dict[str, Any] | None = None
) -> tuple[Sample, int]:
    """Let the frozen worker make one call; the sample, and when it was over."""
    worker.send({"op": "go", "sample": number, "scalars": scalars})
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
    event_ns = frame.get("event_ns")
    if isinstance(event_ns, bool) or not isinstance(event_ns, int) or abs(event_ns) > 10**15:
        raise WorkerFailure(Status.REWARD_HACK, "control channel: a time that is no number of nanoseconds")
    host_ns = frame.get("host_ns")
    if host_ns is not None and (isinstance(host_ns, bool) or not isinstance(host_ns, int) or abs(host_ns) > 10**15):
        raise WorkerFailure(Status.REWARD_HACK, "control channel: a time that is no number of nanoseconds")
    return Sample(event_ns / 1e9, (ended_ns - start_ns) / 1e9, host_s=host_ns and host_ns / 1e9), ended_ns


def _call_batch(worker: Worker, referee: Referee, number: int, calls: int, deadline: float) -> BatchSample:
    """Let the frozen worker make ``calls`` calls in a row, on the first copies of the slots."""
    worker.send({"op": "batch", "sample": number, "calls": calls})
    waited_s, printed = worker.waited_s(), worker.log.total
    start_ns = time.perf_counter_ns()
    worker.thaw()
    reply = worker.wait("done", deadline)
    ended_ns = _ended_ns(referee, reply)
    now_s = worker.waited_s()
    frame = reply.frame
    if frame.get("sample") != number:
        raise WorkerFailure(Status.REWARD_HACK, "control channel: done with another sample than was asked for")
    if frame.get("fault") is not None:
        worker.freeze()
        raise _fault(frame["fault"])
    waited = None if waited_s is None or now_s is None else max(now_s - waited_s, 0.0)
    if worker.log.total - printed > QUIET_BYTES:
        waited = None
    return BatchSample(calls, (ended_ns - start_ns) / 1e9, waited)


def close_side(side: Side, limits: Limits) -> None:
    side.worker.send({"op": "close"})
    side.worker.thaw()
    reply = side.worker.wait("closed", time.monotonic() + limits.call_s)
    side.worker.freeze()
    side.worker.expect_silence()
    if reply.frame.get("samples") != side.calls:
        raise WorkerFailure(Status.REWARD_HACK, "closing handshake: the count of samples is not what was asked for")


def _guard(side: Side, step: Callable[[Side], None], is_baseline: bool) -> None:
    """Run one step of a side; a failure of the baseline is no verdict on the candidate."""
    if not is_baseline:
        step(side)
        return
    try:
        step(side)
    except WorkerFailure as error:
        raise BaselineFailure(f"baseline {side.solution.name}: {error.status}: {error.reason}") from None


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
}


def _fault(fault: Any) -> WorkerFailure:
    """Verdict of a fault that the worker itself reports."""
    if not (isinstance(fault, list) and len(fault) == 2 and fault[0] in _FAULTS and isinstance(fault[1], str)):
        return WorkerFailure(Status.REWARD_HACK, "control channel: a fault of no known kind")
    kind, text = fault
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
