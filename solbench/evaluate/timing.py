"""Two witnesses of one call, and how far they may be apart.

``event_s`` is the worker's word: its own clock around the call, through names bound before the candidate was loaded.
``clock_s`` is the orchestrator's: from just before it lets the frozen worker run (with "go" already waiting) until it
has read "done". Both read the same monotonic clock, so an event longer than its clock is a lie by itself. What waking
and answering cost is measured on empty calls when a session starts; a sample whose witnesses are further apart than
that and a slack is void and taken again, whichever side it belongs to: on a busy machine that is noise, which falls
outside the call and so does not bias the samples that are kept. Too few valid samples leave a candidate without a
time. One whose every sample is far apart where its baseline's are not does its work outside the time that it reports.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# A gap may be this many times the gap of an empty call, this much more, and this share of the time that is reported.
GAP_FACTOR, GAP_SLACK_S, GAP_SHARE = 2.0, 1e-3, 0.05
# Handing over a result may take this many times the baseline's quickest, and this much more.
DELIVER_FACTOR, DELIVER_SLACK_S = 4.0, 1e-3
# Where the baseline writes in place: bytes a second that a copy reaches at least.
COPY_BYTES_PER_S = 0.5e9
# Times beyond these limits are void; this many times beyond them, in every sample, they are no accident.
ACCUSED_BEYOND = 10.0


@dataclass(frozen=True)
class Sample:
    """One call by both witnesses, and handing over its result (None: written in place), in seconds."""

    event_s: float
    clock_s: float
    deliver_s: float | None = None

    @property
    def gap_s(self) -> float:
        """What the orchestrator saw beyond the worker's word."""
        return self.clock_s - self.event_s


@dataclass(frozen=True)
class Floor:
    """Empty calls, seconds: the median of their event, and the lower quartile of the gap between the witnesses."""

    event_s: float
    gap_s: float

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Floor:
        gaps = sorted(sample.gap_s for sample in samples)
        return cls(statistics.median(sample.event_s for sample in samples), gaps[len(gaps) // 4])

    @property
    def agreement_s(self) -> float:
        """How far apart the witnesses of a short call may be: what a candidate could hide at most."""
        return GAP_FACTOR * self.gap_s + GAP_SLACK_S


def impossible(sample: Sample) -> str | None:
    """Why a single sample cannot be: a call longer than its own window, or of less than no time."""
    if 0 <= sample.event_s <= sample.clock_s:
        return None
    return (
        f"clock witness disagrees: the worker says {sample.event_s:.6g} s, "
        f"the orchestrator saw {sample.clock_s:.6g} s in all"
    )


def gap_limit(sample: Sample, floor: Floor) -> float:
    """Seconds that the orchestrator may see beyond what the worker says."""
    return floor.agreement_s + GAP_SHARE * sample.event_s


def delivery_limit(baseline: Sequence[Sample], output_bytes: int) -> float:
    """Seconds that handing over a returned result may take: a copy, judged by the baseline's quickest, or by a slow
    copy's rate where the baseline writes in place."""
    known = [sample.deliver_s for sample in baseline if sample.deliver_s is not None]
    usual = min(known) if known else output_bytes / COPY_BYTES_PER_S
    return DELIVER_FACTOR * usual + DELIVER_SLACK_S


def valid(samples: Sequence[Sample], floor: Floor, deliver_limit_s: float) -> list[Sample]:
    """Samples whose witnesses agree and whose result was there when the call returned."""
    return [
        sample
        for sample in samples
        if sample.gap_s <= gap_limit(sample, floor) and (sample.deliver_s or 0.0) <= deliver_limit_s
    ]


def accusation(candidate: Sequence[Sample], floor: Floor, deliver_limit_s: float) -> str | None:
    """What a candidate does whose every sample is far beyond the limits, or None."""
    best = min(candidate, key=lambda sample: sample.gap_s / gap_limit(sample, floor))
    if best.gap_s > ACCUSED_BEYOND * gap_limit(best, floor):
        return (
            f"clock witness disagrees: at least {best.gap_s:.6g} s of every call are missing from the worker's times, "
            f"limit {gap_limit(best, floor):.6g} s"
        )
    quickest = min(sample.deliver_s or 0.0 for sample in candidate)
    if quickest > ACCUSED_BEYOND * deliver_limit_s:
        return (
            f"work was left for after the call: handing over a result took at least {quickest:.3g} s, "
            f"limit {deliver_limit_s:.3g} s"
        )
    return None
