"""Two witnesses of one call, and how far they may be apart.

``event_s`` is the worker's word: its own clock around the call, through names bound before the candidate was loaded.
``clock_s`` is the orchestrator's: from just before it lets the frozen worker run (with "go" already waiting) until it
has read "done". Both read the same monotonic clock, so an event longer than its clock is a lie by itself. What waking
and answering cost is measured on empty calls when a session starts, and again, under the load of the moment, on every
call of the trusted baseline. A candidate's sample whose witnesses are further apart than that allows is void and taken
again: on a busy machine that is noise, which falls outside the call and so does not bias the samples that are kept. Too
few valid samples leave a candidate without a time; one whose every sample is far apart works outside the time that it
reports. How far apart they may be, and so what a lie could gain, is stated with the times.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# A gap may be this many times the gap of an empty call and this much more, or this many times the baseline's longest;
# and beyond that this share of the time that is reported.
GAP_FACTOR, GAP_SLACK_S, NOISE_FACTOR, GAP_SHARE = 2.0, 1e-3, 3.0, 0.05
# Between the events' time and the worker's clock until the card is idle: launching, waiting, and this share.
LEFT_SLACK_S = 0.1e-3
# Handing over a result may take this many times the baseline's quickest and this much more, or as much as noise makes.
DELIVER_FACTOR, DELIVER_SLACK_S = 4.0, 1e-3
# Where the baseline writes in place: bytes a second that a copy reaches at least.
COPY_BYTES_PER_S = 0.5e9
# Times beyond these limits are void; this many times beyond them, in every sample, they are no accident.
ACCUSED_BEYOND = 3.0


@dataclass(frozen=True)
class Sample:
    """One call by both witnesses, and handing over its result (None: written in place), in seconds.

    ``host_s``: by the worker's own clock until its card was idle, None without a card. ``alone``: nothing else was on
    that card.
    """

    event_s: float
    clock_s: float
    deliver_s: float | None = None
    host_s: float | None = None
    alone: bool = True

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


def agreement(floor: Floor, baseline: Sequence[Sample]) -> float:
    """Seconds by which the witnesses of a short call may be apart: what a candidate could hide at most."""
    return max(GAP_FACTOR * floor.gap_s + GAP_SLACK_S, NOISE_FACTOR * max(sample.gap_s for sample in baseline))


def impossible(sample: Sample) -> str | None:
    """Why a single sample cannot be: a call longer than its own window, or of less than no time."""
    if 0 <= sample.event_s <= sample.clock_s:
        return None
    return (
        f"clock witness disagrees: the worker says {sample.event_s:.6g} s, "
        f"the orchestrator saw {sample.clock_s:.6g} s in all"
    )


def left_running(sample: Sample) -> bool:
    """Whether the card had work of a call that its events do not cover, as of a stream that was never joined."""
    return sample.host_s is not None and sample.host_s > sample.event_s * (1 + GAP_SHARE) + LEFT_SLACK_S


def delivery_limit(baseline: Sequence[Sample], output_bytes: int) -> float:
    """Seconds that handing over a returned result may take: a copy, judged by the baseline's copies, or by a slow
    copy's rate where the baseline writes in place."""
    known = [sample.deliver_s for sample in baseline if sample.deliver_s is not None]
    known = known or [output_bytes / COPY_BYTES_PER_S]
    return max(DELIVER_FACTOR * min(known) + DELIVER_SLACK_S, NOISE_FACTOR * max(known))


@dataclass(frozen=True)
class Judge:
    """Limits in seconds that a candidate's samples are held to: :func:`agreement` and :func:`delivery_limit`."""

    agreement_s: float
    deliver_s: float

    @classmethod
    def of(cls, floor: Floor, baseline: Sequence[Sample], output_bytes: int) -> Judge:
        return cls(agreement(floor, baseline), delivery_limit(baseline, output_bytes))

    def gap_limit(self, sample: Sample) -> float:
        """Seconds that the orchestrator may see beyond what the worker says."""
        return self.agreement_s + GAP_SHARE * sample.event_s

    def admits(self, sample: Sample) -> bool:
        """Whether the witnesses agree and the result was there when the call returned."""
        delivered = (sample.deliver_s or 0.0) <= self.deliver_s
        return sample.gap_s <= self.gap_limit(sample) and delivered and sample.alone and not left_running(sample)

    def accusation(self, samples: Sequence[Sample]) -> str | None:
        """What a candidate does whose every sample is far beyond the limits, or None."""
        best = min(samples, key=lambda sample: sample.gap_s / self.gap_limit(sample))
        if best.gap_s > ACCUSED_BEYOND * self.gap_limit(best):
            return (
                f"clock witness disagrees: at least {best.gap_s:.6g} s of every call are missing from the worker's "
                f"times, limit {self.gap_limit(best):.6g} s"
            )
        quickest = min(sample.deliver_s or 0.0 for sample in samples)
        if quickest > ACCUSED_BEYOND * self.deliver_s:
            return (
                f"work was left for after the call: handing over a result took at least {quickest:.3g} s, "
                f"limit {self.deliver_s:.3g} s"
            )
        return None
