"""The batch witness: what it is held to, when it is needed, what it says in the end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from solbench.evaluate import arena, batches
from solbench.evaluate.arena import Layout, Slot
from solbench.evaluate.timing import BatchJudge, BatchSample, Floor, Sample, batch_calls
from solbench.evaluate.workers import WorkerFailure
from solbench.model.trace import Status

FLOOR = Floor(event_s=2e-6, gap_s=250e-6, call_s=1e-6)
# 16 calls of 0.1 ms, and the baseline's, which computed what its samples say.
QUIET = [BatchSample(16, 2e-3, 1.6e-3)]


def judge(*baseline: BatchSample, beside_s: float = 0.0) -> BatchJudge:
    return BatchJudge.of(16, FLOOR, 1e-4, FLOOR, 1e-4, baseline or QUIET, beside_s)


def test_floor_of_a_batch() -> None:
    # 0.25 ms of waking and answering, one call, 15 more.
    assert FLOOR.batch_s(16) == pytest.approx(267e-6)
    measured = Floor.of([Sample(2e-6, 252e-6)] * 4, [BatchSample(16, 267e-6), BatchSample(16, 900e-6)])
    assert measured.call_s == pytest.approx(1e-6) and measured.batch_s(16) == pytest.approx(267e-6)


def test_limit_is_what_the_docstring_says() -> None:
    # 0.15 of 1.6 ms, a gap of 0.25 ms, 0.25 ms.
    assert judge().limit_s == pytest.approx(0.74e-3) and judge().confirmed_s == pytest.approx(0.74e-3 / 16)
    # The baseline computed 3 ms for 1.6 ms and a floor of 0.267 ms: 1.133 ms beyond, in its better batch.
    noisy = judge(BatchSample(16, 9e-3, 5e-3), BatchSample(16, 8e-3, 3e-3))
    assert noisy.limit_s == pytest.approx(0.74e-3 + 1.5 * 1.133e-3) and noisy.stretch == pytest.approx(1 + 1.133 / 1.6)
    # Without the kernel's word its clock stands for it; returning results is allowed for by the call.
    assert judge(BatchSample(16, 3e-3)).limit_s == pytest.approx(0.74e-3 + 1.5 * 1.133e-3)
    assert judge(beside_s=1e-5).limit_s == pytest.approx(0.90e-3)


def test_agreement() -> None:
    # 16 calls of 0.1 ms, floor and limit: 1.6 + 0.267 + 0.74 ms.
    assert judge().admits(BatchSample(16, 2.60e-3)) and not judge().admits(BatchSample(16, 2.62e-3))


def test_accusation_needs_computing_in_every_batch() -> None:
    lie = BatchSample(16, 12e-3, 9e-3)
    text = judge().accusation([lie] * 3)
    assert text is not None
    assert text.startswith("batch witness disagrees: 16 calls in a row computed for at least 0.0074 s more")
    # Long by the clock alone: it waited, for a processor or for others; too few; the kernel does not say.
    assert judge().accusation([lie, lie, BatchSample(16, 12e-3, 2e-3)]) is None
    assert judge().accusation([lie] * 2) is None
    assert judge().accusation([BatchSample(16, 12e-3)] * 3) is None
    # A machine that stretches the trusted baseline sixfold stretches all.
    assert judge(BatchSample(16, 12e-3, 9e-3)).accusation([lie] * 3) is None


@pytest.mark.parametrize(
    ("candidate_s", "slowest_s", "most", "calls"),
    [
        (1e-6, 1e-6, 16, 16),  # never more than 16
        (1e-3, 1e-3, 16, 10),  # a slack of 0.5 ms is 5 % of 10 ms
        (9e-3, 9.2e-3, 16, 2),
        (50e-3, 50e-3, 16, 0),  # what one sample confirms, 1.5 ms, is 3 %
        (1e-3, 0.3, 16, 3),  # a second in all
        (1e-3, 0.9, 16, 0),
        (1e-6, 1e-6, 1, 0),  # no room for a second copy
    ],
)
def test_calls_in_a_row(candidate_s: float, slowest_s: float, most: int, calls: int) -> None:
    assert batch_calls(FLOOR, candidate_s, slowest_s, 1.5e-3, most) == calls


def side(event_s: float, *taken: BatchSample, delivers: bool = False) -> Any:
    samples = [Sample(event_s, event_s + 250e-6)] * 6
    return SimpleNamespace(floor=FLOOR, samples=samples, all_calls=samples, batches=list(taken), delivers=delivers)


def settled(*clocks: tuple[float, float], taken: tuple[BatchSample, ...] = ()) -> tuple[Any, list[int]]:
    """What comes out, and calls of the batches taken, when the candidate's batches look like ``clocks`` in turn."""
    candidate, baseline = side(1e-4, *taken), side(1e-4, *(BatchSample(one.calls, 2e-3, 1.6e-3) for one in taken))
    queue, asked = list(clocks), []

    def take(calls: int) -> None:
        asked.append(calls)
        candidate.batches.append(BatchSample(calls, *queue.pop(0)))
        baseline.batches.append(BatchSample(calls, calls * 1.2e-4, calls * 1e-4))

    kept = list(zip(candidate.samples, baseline.samples, strict=True))
    return batches.settle(take, candidate, baseline, kept, 16, 0), asked


def test_one_batch_that_agrees_is_enough() -> None:
    outcome, asked = settled((2e-3, 1.6e-3))
    assert asked == [16] and outcome.agreed and outcome.judge.calls == 16 and len(outcome.candidate) == 1
    # One that was taken among the samples already, with more calls than are needed, serves.
    outcome, asked = settled(taken=(BatchSample(16, 2e-3, 1.6e-3),))
    assert asked == [] and outcome.agreed


def test_disturbed_batches_are_tried_again_and_then_with_fewer_calls() -> None:
    outcome, asked = settled((9e-3, 2e-3), (2e-3, 1.6e-3))
    assert asked == [16, 16] and outcome.agreed
    outcome, asked = settled(*[(9e-3, 2e-3)] * 3, (0.7e-3, 0.4e-3))
    assert asked == [16, 16, 16, 4] and outcome.agreed and outcome.judge.calls == 4 and outcome.count == 4
    outcome, asked = settled(*[(9e-3, 2e-3)] * 6)
    assert asked == [16] * 3 + [4] * 3 and not outcome.agreed


def test_a_lie_is_found_out() -> None:
    with pytest.raises(WorkerFailure, match="batch witness disagrees") as caught:
        settled(*[(12e-3, 9e-3)] * 3)
    assert caught.value.status is Status.REWARD_HACK


def launching(event_s: float, launch_s: float) -> Any:
    samples = [Sample(event_s, 2e-3, launch_s=launch_s, left_s=0.0)] * 6
    taken = [BatchSample(16, 0.5e-3, 0.3e-3)]
    return SimpleNamespace(floor=FLOOR, samples=samples, all_calls=samples, batches=taken, delivers=False)


def test_launching_excuses_no_more_than_a_slow_launcher() -> None:
    """What launching took longer than running is the candidate's word, taken up to 0.3 ms over its baseline's."""

    def limit_s(launch_s: float) -> float:
        candidate, baseline = launching(1e-5, launch_s), launching(1e-5, 4e-5)
        kept = list(zip(candidate.samples, baseline.samples, strict=True))
        outcome = batches.settle(lambda calls: None, candidate, baseline, kept, 16, 0)
        assert outcome is not None
        return outcome.judge.limit_s

    assert limit_s(1.1e-4) - limit_s(1e-5) == pytest.approx(16 * 1e-4)
    assert limit_s(1.0) == limit_s(3.5e-4) == pytest.approx(limit_s(1e-5) + 16 * 3.3e-4)


def test_long_calls_need_no_batch() -> None:
    candidate, baseline = side(0.1), side(0.1)
    kept = list(zip(candidate.samples, baseline.samples, strict=True))
    assert batches.settle(lambda calls: None, candidate, baseline, kept, 16, 0) is None


def test_copies_of_the_slots() -> None:
    slots = (Slot("w", "input", (1,), "float32", 0, 4), Slot("x", "input", (1,), "float32", 4096, 4))
    plan = Layout((*slots, Slot("y", "output", (1,), "float32", 8192, 4)), 12288)
    assert arena.copy_slots(plan, 0, frozenset("w")) == plan.slots
    # A weight that stays lies once.
    offsets = [slot.offset for slot in arena.copy_slots(plan, 2, frozenset("w"))]
    assert offsets == [0, 4096 + 2 * 12288, 8192 + 2 * 12288]


def test_copies_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "needed_memory", lambda plan: 10 << 20)
    # 256 MiB for all copies; three times each in half of what is left.
    assert arena.copies(Layout((), 1 << 20), 16, 1 << 40) == 16
    assert arena.copies(Layout((), 100 << 20), 16, 1 << 40) == 2
    assert arena.copies(Layout((), 200 << 20), 16, 1 << 40) == 2, "two of any size, where there is memory"
    assert arena.copies(Layout((), 200 << 20), 16, 2 << 30) == 1
    assert arena.copies(Layout((), 200 << 20), 16, 1 << 40, arena.BATCH_BYTES_OF_A_CARD) == 16
    assert arena.copies(Layout((), 1 << 20), 16, (10 + 30) << 20) == 5
    assert arena.copies(Layout((), 1 << 20), 16, 5 << 20) == 1
