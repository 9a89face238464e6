"""Which batches a workload needs, and what they say in the end: see :mod:`solbench.evaluate.timing`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solbench.evaluate.stopping import Pairs, medians
from solbench.evaluate.timing import (
    BATCH_TRIES,
    COPY_BYTES_PER_S,
    FEWER_CALLS,
    LAUNCH_BESIDE_S,
    BatchJudge,
    BatchSample,
    agreement,
    batch_calls,
)
from solbench.evaluate.workers import WorkerFailure
from solbench.model.trace import Status

if TYPE_CHECKING:
    from solbench.evaluate.turns import Side


@dataclass(frozen=True)
class Settled:
    """Batches of one number of calls, the candidate's and the baseline's, and what they were held to.

    ``agreed``: whether one agrees with the samples. ``count``: batches of any number of calls that were taken.
    """

    judge: BatchJudge
    candidate: tuple[BatchSample, ...]
    baseline: tuple[BatchSample, ...]
    agreed: bool
    count: int


def calls_in_a_row(candidate: Side, baseline: Side, copies: int, kept: Pairs | None = None) -> int:
    """Calls of the next batch, 0 for none: by the times that are ``kept``, or else by the fastest so far."""
    event_s = medians(kept)[0] if kept else min(sample.event_s for sample in candidate.all_calls)
    slowest_s = max(min(sample.clock_s for sample in side.all_calls) for side in (candidate, baseline))
    return batch_calls(candidate.floor, event_s, slowest_s, agreement(candidate.floor, baseline.all_calls), copies)


def settle(
    take: Callable[[int], None], candidate: Side, baseline: Side, kept: Pairs, copies: int, output_bytes: int
) -> Settled | None:
    """Take batches until one agrees with the samples that are ``kept``; None where none is needed.

    ``take``: takes one batch of so many calls of each side. Raises :class:`WorkerFailure` for a candidate that is found
    out. Batches that were disturbed are tried again with fewer calls, which confirm less, but are over sooner.
    """
    calls = calls_in_a_row(candidate, baseline, copies, kept)
    if not calls:
        return None
    # More calls than are needed were made where the first were the quickest; these batches serve.
    calls = max(calls, *(batch.calls for batch in candidate.batches), 0)
    settled = _try(take, calls, candidate, baseline, kept, output_bytes)
    fewer = max(calls // FEWER_CALLS, 2)
    if not settled.agreed:
        accusation = settled.judge.accusation(settled.candidate)
        if accusation is not None:
            raise WorkerFailure(Status.REWARD_HACK, accusation)
        if fewer < calls:
            settled = _try(take, fewer, candidate, baseline, kept, output_bytes)
    return settled


def _try(
    take: Callable[[int], None], calls: int, candidate: Side, baseline: Side, kept: Pairs, output_bytes: int
) -> Settled:
    """Batches of ``calls`` calls until one agrees, those that were taken before included."""
    while True:
        found = [tuple(batch for batch in side.batches if batch.calls == calls) for side in (candidate, baseline)]
        if found[0]:
            judge = _judge(calls, candidate, baseline, kept, found[1], output_bytes)
            agreed = any(map(judge.admits, found[0]))
            if agreed or len(found[0]) >= BATCH_TRIES:
                return Settled(judge, found[0], found[1], agreed, len(candidate.batches))
        take(calls)


def _judge(
    calls: int, candidate: Side, baseline: Side, kept: Pairs, found: tuple[BatchSample, ...], output_bytes: int
) -> BatchJudge:
    """Beside the event of a call, a batch shows what its launches took longer, and handing over its result."""
    event_s, baseline_event_s = medians(kept)
    # The quickest launch: in a row they are no slower.
    host_s, baseline_host_s = (
        min(max((sample.launch_s or 0.0) - sample.event_s, 0.0) for sample in side) for side in zip(*kept, strict=True)
    )
    # That is the candidate's word: no more than its baseline and a slow launcher take.
    host_s = min(host_s, baseline_host_s + LAUNCH_BESIDE_S)
    returning_s = output_bytes / COPY_BYTES_PER_S if candidate.delivers and not baseline.delivers else 0.0
    return BatchJudge.of(
        calls, candidate.floor, event_s, baseline.floor, baseline_event_s + baseline_host_s, found,
        host_s + returning_s,
    )  # fmt: skip
