"""The sample protocol: one workload, one pair of workers, rounds of fresh values, every output checked.

A round draws once for both sides; their turns come in random order, each on newly armed memory, the other side frozen.
Warm-ups, stress rounds, batches and timed samples take the same path, in an order that no candidate is told.

After the wanted number of samples, sampling goes on where the witnesses were apart, and, where the protocol states a
precision, until the 95 % interval of the median of either side, as far as this process tells, lies within that share of
it, or the protocol's cap is reached. (An interval that was stopped for being narrow covers a little less than it says.)
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from solbench import canonical
from solbench.corpus.load import Problem
from solbench.evaluate import arena, batches, watch
from solbench.evaluate.arena import Shared
from solbench.evaluate.processes import Referee
from solbench.evaluate.stopping import medians, precise, stop_reason
from solbench.evaluate.timing import BATCH_CALLS_MOST, Floor, Judge, LateJudge, Sample
from solbench.evaluate.turns import (
    CardBusy,
    Limits,
    Round,
    Side,
    Unshared,
    call_in_a_row,
    call_once,
    close_side,
    open_side,
    opening,
    scalars_of,
    take_batch,
    take_turn,
)
from solbench.evaluate.workers import Worker, WorkerFailure, nonce
from solbench.model.trace import CheckResult, Protocol, Status
from solbench.model.workload import Workload

MIN_WARMUPS, MAX_WARMUPS = 2, 4
# Void samples are taken again until there are this many times the wanted number, and at least so many.
MAX_ROUNDS_FACTOR, MAX_ROUNDS_LEAST = 4, 12
# A flush on a card may take this many times the median of solo ones and this much more; a sample after a longer one is
# void, and a candidate with more than this share of such flushes keeps the card busy between its calls.
SOLO_FLUSHES, FLUSH_FACTOR, FLUSH_SLACK_S, BUSY_SHARE = 30, 1.5, 0.2e-3, 0.5
_random = random.SystemRandom()


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


class OutOfTime(Exception):
    """The run has to end before this workload is done: nothing is known of it."""


class BaselineFailure(Exception):
    """The baseline did not pass its own checks: nothing can be said about the candidate."""


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
    time_left: Callable[[], float] = lambda: math.inf,
) -> Sampled:
    """Run the whole protocol for one workload in one pair of workers, both frozen at entry and at return.

    ``copies``: copies of the slots that ``memory`` holds, 1 for no batches. ``flush_limit_s``: how long a flush may
    take, see :func:`measure_flush`; None where it is not looked at.
    Raises :class:`WorkerFailure` (the candidate's verdict), :class:`RefereeFailure`, :class:`BaselineFailure`, and
    :class:`OutOfTime` between two rounds where ``time_left`` (seconds) says so.
    """
    referee.ask(opening(problem, workload, plan, memory, copies), limits.reference_s, (memory.descriptor,))
    for side in (candidate, baseline):
        side.staged = memory.staged
        opened = partial(open_side, problem=problem, workload=workload, plan=plan, axes=axes, memory=memory)
        _guard(side, partial(opened, limits=limits, copies=copies), side is baseline)
    rounds = _Rounds(problem, workload, referee, candidate, baseline, limits, flush_limit_s, time_left)
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
        void = f"not timed: {judge.why_void(candidate.samples)}"
    elif batch is not None and not batch.agreed:
        void = f"not timed: none of {batch.count} batches of calls in a row agrees with the samples' times "
        void += "(is the machine busy?)"
    if void is None and (selection := judge.selection(candidate.samples, medians(kept)[0])) is not None:
        void = f"not timed: {selection}"
    agreement_s = judge.agreement_s
    if void is None and batch is None and candidate.delivers:
        ours, theirs = ([pair[side] for pair in kept] for side in (0, 1))
        late = LateJudge.of(ours, theirs, plan.output_bytes)
        agreement_s, reason = late.limit_s, late.why_void(ours)
        void = f"not timed: {reason}" if reason else None
    return Sampled(
        tuple(pair[0] for pair in kept), tuple(pair[1] for pair in kept), batch, warmups, candidate.rounds,
        tuple(candidate.checks.values()), stop_reason(kept, taken, protocol), agreement_s, void,
        watch.labels(candidate.looks, baseline.looks, plan.output_bytes),
    )  # fmt: skip


class _Rounds:
    """Plays rounds of one workload: fresh values, a turn of each side on them."""

    def __init__(
        self, problem: Problem, workload: Workload, referee: Referee, candidate: Side, baseline: Side, limits: Limits,
        flush_limit_s: float | None, time_left: Callable[[], float],
    ) -> None:  # fmt: skip
        self.problem, self.workload, self.referee, self.limits = problem, workload, referee, limits
        self.candidate, self.baseline = candidate, baseline
        # Whether each flush found the card idle.
        self.flushes: list[bool] = []
        self._flush_limit_s = flush_limit_s
        self._time_left = time_left
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
            turn = partial(take_batch, referee=self.referee, baseline=self.baseline, limits=self.limits, calls=calls)
            _guard(side, turn, side is self.baseline)

    def _draw(self, stress: int | None, copy: int) -> None:
        if self._time_left() <= 0:
            raise OutOfTime
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


def measure_floor(worker: Worker, referee: Referee, count: int, limits: Limits, *, hold: bool = True) -> Floor:
    """Floor of an empty candidate whose worker is loaded and frozen: ``count`` samples on a flushed cache.

    ``hold``: whether samples will be held, see :func:`solbench.evaluate.turns.call_once`.
    """
    worker.thaw()
    message = {"op": "workload", "slots": [], "size": arena.ALIGNMENT, "heap_bytes": 0, "inputs": [], "outputs": []}
    copies: list[Any] = [[]] * (BATCH_CALLS_MOST - 1)
    worker.send({**message, "scalars": {}, "axes": {}, "handle": None, "copies": copies})
    worker.wait("ready", time.monotonic() + limits.load_s)
    worker.freeze()

    def empty_calls(hold: bool) -> list[Sample]:
        samples = []
        for number in range(count + 2):
            referee.ask({"op": "flush", "times": 1}, limits.reference_s)
            sample, _ = call_once(worker, referee, number, time.monotonic() + limits.call_s, hold=hold)
            worker.freeze()
            samples.append(sample)
        return samples[2:]

    samples = empty_calls(hold)
    unheld = empty_calls(False) if referee.on_a_card and hold else []
    found = []
    for number in range(count):
        referee.ask({"op": "flush", "times": 1}, limits.reference_s)
        found.append(call_in_a_row(worker, referee, number, BATCH_CALLS_MOST, time.monotonic() + limits.call_s))
    return Floor.of(samples, found, unheld)


def measure_flush(referee: Referee, limits: Limits) -> float:
    """Seconds that a flush may take on a card with nothing else on it, by flushes before any candidate is there."""
    referee.ask({"op": "flush", "times": SOLO_FLUSHES}, limits.reference_s)
    solo = referee.ask({"op": "flush", "times": SOLO_FLUSHES}, limits.reference_s)["flush_s"]
    return FLUSH_FACTOR * statistics.median(solo) + FLUSH_SLACK_S


def _guard(side: Side, step: Callable[[Side], object], is_baseline: bool) -> None:
    """Run one step of a side; a failure of the baseline is no verdict on the candidate."""
    if not is_baseline:
        step(side)
        return
    try:
        step(side)
    except (CardBusy, Unshared):
        raise
    except WorkerFailure as error:
        raise BaselineFailure(f"baseline {side.solution.name}: {error.status}: {error.reason}") from None
