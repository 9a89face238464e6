"""Two witnesses of one call, and how far they may be apart.

``event_s`` is the worker's word: its own clock around the call, through names bound before the candidate was loaded.
``clock_s`` is the orchestrator's: from just before it lets the frozen worker run (with "go" already waiting) until it
has read "done". Both read the same monotonic clock, so an event longer than its clock is a lie by itself; a clock
longer than its event by more than waking and answering cost is one as well. What those cost is measured: on empty calls
when a session starts, and on the baseline's own samples taken in turn with the candidate's, under the same load.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# A candidate's gap may be this many times the usual gap, this much more, and this share of the time that it reports:
# a long call on a busy machine is more often interrupted just before its answer.
GAP_FACTOR = 3.0
GAP_SLACK_S = 500e-6
GAP_SHARE = 0.05
DELIVER_FACTOR = 4.0
DELIVER_SLACK_S = 1e-3


@dataclass(frozen=True)
class Sample:
    """One call by both witnesses, in seconds."""

    event_s: float
    clock_s: float

    @property
    def gap_s(self) -> float:
        """What the orchestrator saw beyond the worker's word."""
        return self.clock_s - self.event_s


@dataclass(frozen=True)
class Floor:
    """Medians over empty calls, seconds: the event of an empty call, and the gap between the witnesses."""

    event_s: float
    gap_s: float

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Floor:
        return cls(statistics.median(s.event_s for s in samples), statistics.median(s.gap_s for s in samples))


def gap_limit(floor: Floor, baseline: Sequence[Sample], candidate: Sequence[Sample]) -> float:
    """Seconds by which the clock may exceed the event in the median of a candidate's samples."""
    usual = max(floor.gap_s, statistics.median(sample.gap_s for sample in baseline))
    reported = statistics.median(sample.event_s for sample in candidate)
    return GAP_FACTOR * usual + GAP_SLACK_S + GAP_SHARE * reported


def impossible(sample: Sample) -> str | None:
    """Why a single sample cannot be: a call longer than its own window, or of less than no time."""
    if 0 <= sample.event_s <= sample.clock_s:
        return None
    return (
        f"clock witness disagrees: the worker says {sample.event_s:.6g} s, "
        f"the orchestrator saw {sample.clock_s:.6g} s in all"
    )


def disagreement(candidate: Sequence[Sample], limit_s: float) -> str | None:
    """Why the orchestrator's clock shows more than the worker's times in the median, or None."""
    gap = statistics.median(sample.gap_s for sample in candidate)
    if gap <= limit_s:
        return None
    return f"clock witness disagrees: {gap:.6g} s a call are missing from the worker's times, limit {limit_s:.6g} s"


def delivery_limit(baseline_s: Sequence[float], output_bytes: int) -> float:
    """Seconds that handing over a returned result may take in the median: a copy, judged by the baseline's copies, or
    by 0.5 GB/s where the baseline writes in place."""
    usual = statistics.median(baseline_s) if baseline_s else output_bytes / 0.5e9
    return DELIVER_FACTOR * usual + DELIVER_SLACK_S
