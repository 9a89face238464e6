"""Two witnesses of one call, and how far they may be apart.

``event_s`` is the worker's word: its own clock around the call, through names bound before the candidate was loaded.
``clock_s`` is the orchestrator's: from just before it lets the frozen worker run (with "go" already waiting) until it
has read "done". Both read the same monotonic clock, so an event longer than its clock is a lie by itself. What waking
and answering cost is measured on empty calls when a session starts, and again, under the load of the moment, on every
call of the trusted baseline. A candidate's sample whose witnesses are further apart than that allows is void and taken
again: on a busy machine that is noise, which falls outside the call and so does not bias the samples that are kept. Too
few valid samples leave a candidate without a time; one whose every sample is far apart works outside the time that it
reports. How far apart they may be, and so what a lie could gain, is stated with the times.

Short calls could hide a whole call in that. So the orchestrator also times batches, up to 16 calls in a row on as many
values, without coming back in between: what waking and answering cost counts once. A batch agrees with the samples when

    clock_s - floor_s <= calls * median * (1 + 0.15) + waking and answering + 0.25 ms + 1.5 * beyond

where ``beyond`` is what the main thread of the baseline's quickest batch computed beyond the baseline's own samples
(delivering results, writing them back to memory). What returning results takes is added where the baseline writes in
place. Whatever disturbs a batch makes it longer, so one that agrees is proof. Up to three are taken; if the candidate's
main thread has itself computed, not waited, far longer than it says in all of them (by three times as much as is
allowed, and after what it says has been stretched as far as the baseline's batch was), it is found out. Else up to
three more with a quarter of the calls, which confirm less; where none of them agrees, the workload has no time: a
candidate can have others compute while it waits, and so can a busy machine. What a batch cannot show: work that is
shared between its calls, or done for several at once on processors that a single call leaves idle.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# Waking and answering may take this many times what they take for an empty call and this much more, or a gap be this
# many times the baseline's longest; and beyond that this share of the time that is reported.
GAP_FACTOR, GAP_SLACK_S, NOISE_FACTOR, GAP_SHARE = 2.0, 1e-3, 3.0, 0.05
# After a call's last event a card may be busy this many times as long as after an empty call's, and this much more, and
# GAP_SHARE of the call's time: the longer it took, the later the host notices that it is over.
LEFT_FACTOR, LEFT_SLACK_S = 1.5, 10e-6
# Handing over a result may take this many times the baseline's quickest and this much more, or as much as noise makes.
DELIVER_FACTOR, DELIVER_SLACK_S = 4.0, 1e-3
# Where no batch includes that, what a call and its delivery take beside the event may be this share longer than the
# baseline's, and DELIVER_SLACK_S, and GAP_SHARE of the event.
LATE_SHARE = 0.5
# Where the baseline writes in place: bytes a second that a copy reaches at least.
COPY_BYTES_PER_S = 0.5e9
# Times beyond these limits are void; this many times beyond them, in every sample, they are no accident.
ACCUSED_BEYOND = 3.0
# A batch may take this share of the reported times more than they say, an empty call's gap and this much more, and this
# many times what the baseline's batch computed beyond the baseline's own times.
BATCH_SHARE, BATCH_SLACK_S, BATCH_FACTOR = 0.15, 0.25e-3, 1.5
# Calls of a batch: so many that the slack is this share of the reported time, but no more than these; nor more than
# take this long, at the rate of the slower side.
BATCH_SLACK_SHARE, BATCH_CALLS_MOST, BATCH_MOST_S = 0.05, 16, 1.0
# What launching a call may keep the host busy beyond what it keeps it for the baseline: a slow Triton launcher.
LAUNCH_BESIDE_S = 0.3e-3
# Batches of one number of calls until one agrees; then as many with a fraction of the calls.
BATCH_TRIES, FEWER_CALLS = 3, 4


@dataclass(frozen=True)
class Sample:
    """One call by both witnesses, and handing over its result (None: written in place), in seconds.

    ``launch_s``, ``left_s``: see :class:`solbench.evaluate.compute.Times`, None without a card. ``alone``: nothing else
    was on that card.
    """

    event_s: float
    clock_s: float
    deliver_s: float | None = None
    launch_s: float | None = None
    left_s: float | None = None
    alone: bool = True

    @property
    def gap_s(self) -> float:
        """What the orchestrator saw beyond the worker's word."""
        return self.clock_s - self.event_s


@dataclass(frozen=True)
class Floor:
    """Empty calls, seconds: the median of their event, and the lower quartile of the gap between the witnesses.

    ``call_s``: what one more empty call adds to a batch. ``left_s``: median of an empty call's, 0 without a card.
    ``held_s``: how much of the gap a card was made to wait for, 0 without; nothing waits in a batch.
    """

    event_s: float
    gap_s: float
    call_s: float = 0.0
    left_s: float = 0.0
    held_s: float = 0.0

    @classmethod
    def of(cls, samples: Sequence[Sample], batches: Sequence[BatchSample] = (), unheld: Sequence[Sample] = ()) -> Floor:
        """``unheld``: samples for which the card did not wait; none where it never does."""
        event_s, gap_s = statistics.median(sample.event_s for sample in samples), _quartile_gap(samples)
        waking_s = min(_quartile_gap(unheld), gap_s) if unheld else gap_s
        more = [(batch.clock_s - waking_s - event_s) / (batch.calls - 1) for batch in batches]
        left_s = statistics.median(sample.left_s or 0.0 for sample in samples)
        return cls(event_s, gap_s, max(min(more), 0.0) if more else event_s, left_s, gap_s - waking_s)

    @property
    def waking_s(self) -> float:
        """What waking a worker and answering takes, the gap of an empty call that nothing waits for."""
        return self.gap_s - self.held_s

    def batch_s(self, calls: int) -> float:
        """Seconds by the clock of a batch of ``calls`` empty calls."""
        return self.waking_s + self.event_s + (calls - 1) * self.call_s


def _quartile_gap(samples: Sequence[Sample]) -> float:
    gaps = sorted(sample.gap_s for sample in samples)
    return gaps[len(gaps) // 4]


@dataclass(frozen=True)
class BatchSample:
    """``calls`` back-to-back calls by the orchestrator's clock, seconds.

    ``busy_s``: how long the worker's main thread had a processor, by the kernel; None where that does not say.
    """

    calls: int
    clock_s: float
    busy_s: float | None = None


def agreement(floor: Floor, baseline: Sequence[Sample]) -> float:
    """Seconds by which the witnesses of a short call may be apart: what a candidate could hide at most."""
    return max(
        floor.held_s + GAP_FACTOR * floor.waking_s + GAP_SLACK_S,
        NOISE_FACTOR * max(sample.gap_s for sample in baseline),
    )


def impossible(sample: Sample) -> str | None:
    """Why a single sample cannot be: a time of it longer than its own window, or of less than no time."""
    times = (sample.event_s, sample.launch_s or 0.0)
    if all(0 <= seconds <= sample.clock_s for seconds in times):
        return None
    return (
        f"clock witness disagrees: the worker says {min(times) if min(times) < 0 else max(times):.6g} s, "
        f"the orchestrator saw {sample.clock_s:.6g} s in all"
    )


def left_running(sample: Sample, floor: Floor) -> bool:
    """Whether the card had work of a call that its events do not cover, as of a stream that was never joined."""
    return (sample.left_s or 0.0) > LEFT_FACTOR * floor.left_s + LEFT_SLACK_S + GAP_SHARE * sample.event_s


def delivery_limit(baseline: Sequence[Sample], output_bytes: int) -> float:
    """Seconds that handing over a returned result may take: a copy, judged by the baseline's copies, or by a slow
    copy's rate where the baseline writes in place."""
    known = [sample.deliver_s for sample in baseline if sample.deliver_s is not None]
    known = known or [output_bytes / COPY_BYTES_PER_S]
    return max(DELIVER_FACTOR * min(known) + DELIVER_SLACK_S, NOISE_FACTOR * max(known))


@dataclass(frozen=True)
class LateJudge:
    """What a candidate that returns results is held to where no batch includes that: seconds beside its event until its
    result was there. They are all that it could leave for then. (When "done" is read late, handing over is in the gap:
    only their sum tells.)

    The quickest of the samples that say no more than the median: a busy machine leaves one of them alone, and who lies
    about the median lies in all of them.
    """

    usual_s: float
    limit_s: float

    @classmethod
    def of(cls, candidate: Sequence[Sample], baseline: Sequence[Sample], output_bytes: int) -> LateJudge:
        """By the baseline, with a slow copy where it writes in place."""
        usual_s = _beside(baseline, output_bytes / COPY_BYTES_PER_S)
        share_s = GAP_SHARE * statistics.median(sample.event_s for sample in candidate)
        return cls(usual_s, (1 + LATE_SHARE) * usual_s + DELIVER_SLACK_S + share_s)

    def why_void(self, candidate: Sequence[Sample]) -> str | None:
        """What is wrong with samples that take longer, or None."""
        seconds = _beside(candidate, 0.0)
        if seconds <= self.limit_s:
            return None
        return (
            f"handing over results takes {seconds:.3g} s, {self.usual_s:.3g} s where the baseline does "
            f"(work that is left for then? is the machine busy?)"
        )


def _beside(samples: Sequence[Sample], copy_s: float) -> float:
    median_s = statistics.median(sample.event_s for sample in samples)
    return min(
        sample.gap_s + (copy_s if sample.deliver_s is None else sample.deliver_s)
        for sample in samples
        if sample.event_s <= median_s
    )


@dataclass(frozen=True)
class Judge:
    """Limits in seconds that a candidate's samples are held to: :func:`agreement` and :func:`delivery_limit`."""

    agreement_s: float
    deliver_s: float
    floor: Floor

    @classmethod
    def of(cls, floor: Floor, baseline: Sequence[Sample], output_bytes: int) -> Judge:
        return cls(agreement(floor, baseline), delivery_limit(baseline, output_bytes), floor)

    def gap_limit(self, sample: Sample) -> float:
        """Seconds that the orchestrator may see beyond what the worker says."""
        return self.agreement_s + GAP_SHARE * sample.event_s

    def admits(self, sample: Sample) -> bool:
        """Whether the witnesses agree and the result was there when the call returned."""
        delivered = (sample.deliver_s or 0.0) <= self.deliver_s
        if not sample.alone or left_running(sample, self.floor):
            return False
        return sample.gap_s <= self.gap_limit(sample) and delivered

    def why_void(self, samples: Sequence[Sample]) -> str:
        """What most of the samples lack that are not admitted."""
        left = sum(left_running(sample, self.floor) for sample in samples)
        busy = sum(not sample.alone for sample in samples)
        if 2 * left > len(samples):
            return (
                f"the card worked on after the call in {left} of {len(samples)} samples (a stream that is not joined?)"
            )
        if 2 * busy > len(samples):
            return f"the card was busy before the call in {busy} of {len(samples)} samples"
        agreed = sum(map(self.admits, samples))
        return f"the clock witnesses agree in {agreed} of {len(samples)} samples (is the machine busy?)"

    def selection(self, samples: Sequence[Sample], median_s: float) -> str | None:
        """Why ``median_s``, of those that are admitted, stands for a selection; or None. A candidate can make a sample
        void, so one that is counts for as long as it can have been."""
        void = [sample.clock_s + (sample.deliver_s or 0.0) for sample in samples if not self.admits(sample)]
        all_s = statistics.median([*void, *(sample.event_s for sample in samples if self.admits(sample))])
        if all_s <= (1 + BATCH_SHARE) * median_s + self.agreement_s:
            return None
        return (
            f"{len(void)} of {len(samples)} samples are void, and the median of all may be {all_s:.3g} s, not "
            f"{median_s:.3g} s (is the machine busy?)"
        )

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


def batch_calls(floor: Floor, candidate_s: float, slowest_s: float, agreement_s: float, most: int) -> int:
    """Calls a batch so that its slack is small against ``candidate_s``, the time of a call; 0 where none is needed.

    ``slowest_s``: a call of the slower side by the clock. ``agreement_s``: what one sample confirms. ``most``: what
    memory holds.
    """
    if agreement_s <= BATCH_SLACK_SHARE * candidate_s:
        return 0
    wanted = (floor.waking_s + BATCH_SLACK_S) / (BATCH_SLACK_SHARE * max(candidate_s, 1e-9))
    quick_enough = BATCH_MOST_S / max(slowest_s, 1e-9)
    calls = int(min(math.ceil(max(wanted, 2)), most, BATCH_CALLS_MOST, quick_enough))
    return calls if calls >= 2 else 0


@dataclass(frozen=True)
class BatchJudge:
    """What batches of ``calls`` calls are held to, in seconds: a call's reported median, and for a batch the floor and
    the allowance beyond both. ``baseline_floor_s``: the floor of the baseline's kind. ``stretch``: how many times what
    its samples say the baseline's main thread computed.
    """

    calls: int
    median_s: float
    floor_s: float
    baseline_floor_s: float
    limit_s: float
    stretch: float = 1.0

    @classmethod
    def of(
        cls, calls: int, floor: Floor, median_s: float, baseline_floor: Floor, baseline_median_s: float,
        baseline: Sequence[BatchSample], beside_s: float,
    ) -> BatchJudge:  # fmt: skip
        """``baseline``: its batches on the same values; ``baseline_median_s`` until its card was idle, if it has one.
        ``beside_s``: what a call of the candidate takes beside its event, and not in the baseline's excess."""
        baseline_floor_s = baseline_floor.batch_s(calls)
        computed_s = min(batch.clock_s if batch.busy_s is None else batch.busy_s for batch in baseline)
        beyond = max(computed_s - baseline_floor_s - calls * baseline_median_s, 0.0)
        slack = floor.waking_s + BATCH_SLACK_S + BATCH_FACTOR * beyond + calls * beside_s
        limit_s = slack + BATCH_SHARE * calls * median_s
        stretch = 1 + beyond / (calls * baseline_median_s) if baseline_median_s > 0 else 1.0
        return cls(calls, median_s, floor.batch_s(calls), baseline_floor_s, limit_s, stretch)

    @property
    def confirmed_s(self) -> float:
        """Seconds by which a call may be longer than reported for all that a batch in agreement says."""
        return self.limit_s / self.calls

    def beyond_s(self, batch: BatchSample) -> float:
        """Seconds that a batch took beyond the floor and the reported times."""
        return batch.clock_s - self.floor_s - self.calls * self.median_s

    def admits(self, batch: BatchSample) -> bool:
        """Whether batch and samples agree. One that does is proof: all that disturbs a batch makes it longer."""
        return self.beyond_s(batch) <= self.limit_s

    def accusation(self, batches: Sequence[BatchSample]) -> str | None:
        """What a candidate does whose main thread computed far longer than it says in every batch; or None."""
        busy = [batch.busy_s for batch in batches if batch.busy_s is not None]
        if len(busy) < BATCH_TRIES:
            return None
        beyond = min(busy) - self.stretch * self.calls * self.median_s
        if beyond <= ACCUSED_BEYOND * self.limit_s:
            return None
        return (
            f"batch witness disagrees: {self.calls} calls in a row computed for at least {beyond:.6g} s more than the "
            f"worker's times say, limit {self.limit_s:.6g} s"
        )
