from __future__ import annotations

import pytest

from solbench.evaluate.timing import (
    BatchJudge,
    BatchSample,
    Floor,
    Judge,
    LateJudge,
    Sample,
    agreement,
    delivery_limit,
    impossible,
)

FLOOR = Floor.of([Sample(2e-6, 2e-6 + gap * 1e-6) for gap in (300, 310, 320, 330, 340, 5000, 4000, 4000)])
QUIET = [Sample(1e-4, 5e-4), Sample(1e-4, 5.5e-4)]
BUSY = [Sample(1e-4, 5e-4), Sample(1e-4, 41e-4)]
JUDGE = Judge.of(FLOOR, QUIET, 0)


def test_floor_is_the_lower_quartile_of_the_gap() -> None:
    assert FLOOR.event_s == 2e-6
    assert FLOOR.gap_s == pytest.approx(320e-6)


def test_agreement_follows_the_load() -> None:
    # Twice the floor's gap and a millisecond; three times the baseline's longest gap.
    assert agreement(FLOOR, QUIET) == pytest.approx(1640e-6)
    assert agreement(FLOOR, BUSY) == pytest.approx(12e-3)


def test_waiting_that_was_ordered_is_no_slack() -> None:
    """0.8 ms of which 0.5 ms are the kernel that makes the card wait: 0.5 + 2 * 0.3 + 1 ms, and nothing of it where
    calls come in a row."""
    held, unheld = [Sample(2e-6, 802e-6)] * 4, [Sample(2e-6, 302e-6)] * 4
    floor = Floor.of(held, [BatchSample(16, 317e-6)], unheld)
    assert floor.gap_s == pytest.approx(800e-6)
    assert floor.held_s == pytest.approx(500e-6) and floor.waking_s == pytest.approx(300e-6)
    assert agreement(floor, QUIET) == pytest.approx(2.1e-3)
    assert floor.call_s == pytest.approx(1e-6) and floor.batch_s(16) == pytest.approx(317e-6)
    # The same call without the kernel: its batches are held to the same.
    alone = Floor.of(unheld, [BatchSample(16, 317e-6)])
    limits = [BatchJudge.of(16, one, 1e-4, one, 1e-4, [BatchSample(16, 2e-3, 1.6e-3)], 0.0) for one in (floor, alone)]
    assert limits[0].limit_s == pytest.approx(limits[1].limit_s) and alone.held_s == 0.0
    # A machine that was disturbed meanwhile tells of no waiting, never of less than none.
    assert Floor.of(unheld, unheld=held).held_s == 0.0


@pytest.mark.parametrize(
    ("event_s", "clock_s", "lie"), [(1e-3, 2e-3, False), (0.0, 1e-3, False), (2e-3, 1e-3, True), (-1e-9, 1e-3, True)]
)
def test_impossible(event_s: float, clock_s: float, lie: bool) -> None:
    found = impossible(Sample(event_s, clock_s))
    assert (found is not None) == lie
    assert found is None or found.startswith("clock witness disagrees")


def test_admitted_samples() -> None:
    judge = Judge(1.6e-3, 0.1, FLOOR)
    close, far, slow = Sample(1e-3, 1.5e-3), Sample(1e-3, 3e-3), Sample(1e-3, 1.5e-3, deliver_s=0.5)
    # A long call may be further apart: 5 % of what it says.
    long = Sample(0.1, 0.106)
    assert [judge.admits(sample) for sample in (close, far, slow, long)] == [True, False, False, True]


def test_samples_that_a_candidate_selects() -> None:
    """It says of its slow calls what makes them void, and is asked for others."""
    judge = Judge(1.6e-3, 0.1, FLOOR)
    fast, slow, hidden = Sample(30e-3, 31e-3), Sample(60e-3, 61e-3), Sample(1e-6, 61e-3)
    text = judge.selection([fast, hidden, fast, hidden, hidden], 30e-3)
    assert text is not None and text.startswith(
        "3 of 5 samples are void, and the median of all may be 0.061 s, not 0.03"
    )
    # Few that are void are no selection, nor are slow ones that count.
    assert judge.selection([fast, hidden, fast, hidden, fast], 30e-3) is None
    assert judge.selection([fast, slow, slow], 60e-3) is None


def test_accusation_needs_every_sample_far_beyond() -> None:
    lies = [Sample(1e-6, 0.05), Sample(1e-6, 0.06)]
    text = JUDGE.accusation(lies)
    assert text is not None and text.startswith("clock witness disagrees: at least 0.049999 s")
    assert JUDGE.accusation([*lies, Sample(0.05, 0.0505)]) is None
    # Beyond the limit of 1.64 ms, but not three times: void, no lie.
    assert JUDGE.accusation([Sample(1e-6, 4e-3)]) is None and not JUDGE.admits(Sample(1e-6, 4e-3))


def test_accusation_of_late_work() -> None:
    late = [Sample(1e-3, 1.2e-3, deliver_s=0.5)] * 3
    text = Judge(1e-3, 1e-3, FLOOR).accusation(late)
    assert text is not None and text.startswith("work was left for after the call")
    assert Judge(1e-3, 0.2, FLOOR).accusation(late) is None


def test_delivery_limit() -> None:
    baseline = [Sample(1e-3, 2e-3, deliver_s=seconds) for seconds in (2e-3, 1e-3, 1.5e-3)]
    assert delivery_limit(baseline, 10**9) == pytest.approx(3 * 2e-3)
    assert delivery_limit([*baseline, Sample(1e-3, 2e-3, deliver_s=9e-3)], 10**9) == pytest.approx(27e-3)
    # In place: a copy of 10 MB at 0.5 GB/s takes 20 ms.
    assert delivery_limit([Sample(1e-3, 2e-3)], 10**7) == pytest.approx(0.081)


def test_work_in_handing_over_that_no_batch_sees() -> None:
    baseline = [Sample(20e-3, 21e-3, deliver_s=seconds * 1e-3) for seconds in (400, 10, 400)]
    honest = [Sample(20e-3, 21e-3, 0.3), Sample(20e-3, 34e-3, deliver_s=0.0), Sample(20e-3, 21e-3, 0.3)]
    judge = LateJudge.of(honest, baseline, 10**9)
    # 1 ms until "done" and 10 ms of handing over, half of that, a millisecond, and 5 % of 20 ms.
    assert (judge.usual_s, judge.limit_s) == (pytest.approx(11e-3), pytest.approx(18.5e-3))
    assert judge.why_void(honest) is None
    # The rest of the call before its result is copied; in the second "done" and "delivered" were read together. Two
    # that are honest excuse nothing: they are above the median.
    late = [Sample(1e-3, 2e-3, deliver_s=29e-3), Sample(1e-3, 32e-3, deliver_s=0.0), Sample(1e-3, 2e-3, 40e-3)]
    text = LateJudge.of(late, baseline, 10**9).why_void([*late, *honest[1:]])
    assert text is not None and text.startswith("handing over results takes 0.03 s, 0.011 s where the baseline does")
    # A baseline that writes in place is taken to hand over 10 MB at 0.5 GB/s.
    assert LateJudge.of(honest, [Sample(20e-3, 21e-3)], 10**7).usual_s == pytest.approx(21e-3)


CARD = Floor.of([Sample(2e-6, 3e-4, left_s=left * 1e-6) for left in (12, 11, 13, 12, 30)])


def test_work_that_is_left_on_a_card() -> None:
    """An empty call leaves it busy for 12 us; half as long again, 10 us and 5 % of the call more are allowed."""
    assert CARD.left_s == pytest.approx(12e-6) and FLOOR.left_s == 0.0
    judge = Judge.of(CARD, QUIET, 0)
    inside, beyond = Sample(1e-4, 4e-4, left_s=32e-6), Sample(1e-4, 4e-4, left_s=34e-6)
    assert judge.admits(inside) and not judge.admits(beyond)
    assert "the card worked on after the call in 2 of 3" in judge.why_void([inside, beyond, beyond])


def test_a_card_that_was_not_alone() -> None:
    judge = Judge.of(CARD, QUIET, 0)
    alone, shared = Sample(1e-4, 4e-4), Sample(1e-4, 4e-4, alone=False)
    assert judge.admits(alone) and not judge.admits(shared)
    assert "busy before the call in 2 of 2" in judge.why_void([shared, shared])
    assert "clock witnesses agree in 1 of 2" in judge.why_void([alone, Sample(1e-4, 1.0)])
