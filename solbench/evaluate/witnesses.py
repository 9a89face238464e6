"""What a trace says of its witnesses: batches, looks at the device, and to what a call's time is confirmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from solbench.evaluate.batches import Settled
from solbench.model.trace import Batch, Observation, Observed, Protocol


def batch_records(settled: Settled | None) -> dict[str, Batch]:
    """The record of each side's batches; empty without."""
    if settled is None:
        return {}
    judge = settled.judge
    sides = (
        ("candidate", settled.candidate, judge.floor_s, judge.limit_s),
        ("baseline", settled.baseline, judge.baseline_floor_s, None),
    )
    return {
        side: Batch(
            calls=judge.calls, clock_s=tuple(batch.clock_s for batch in found), floor_s=floor_s, limit_s=limit_s
        )
        for side, found, floor_s, limit_s in sides
    }  # fmt: skip


def observed(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Observed | None:
    """Two looks at the device as a record; None where it tells nothing."""
    if before is None or after is None:
        return None
    return Observed(before=Observation.load(before, "device"), after=Observation.load(after, "device"))


def label(confirmed_s: float, batch_calls: Sequence[int], copies: int, protocol: Protocol) -> str:
    """To what a call's time is confirmed, and by which witnesses.

    ``batch_calls``: calls of the batches of each process, 0 where none were needed. ``copies``: what memory holds.
    """
    counts = sorted(set(batch_calls))
    if counts[-1]:
        how = f"batches of {' and '.join(str(calls) for calls in counts if calls)} calls"
        if not counts[0]:
            how += " where single calls do not suffice"
    elif not protocol.batches:
        how = "single calls, no batches in this protocol"
    elif copies < 2:
        how = "single calls, a second copy for a batch has no room"
    else:
        how = "single calls, long enough without batches"
    return f"clock witness: a call's time is confirmed to {confirmed_s:.2g} s ({how})"


def in_one_line(reasons: Sequence[str]) -> str:
    """Why each process stopped sampling."""
    if len(set(reasons)) == 1:
        return reasons[0]
    return "; ".join(f"process {number}: {reason}" for number, reason in enumerate(reasons))
