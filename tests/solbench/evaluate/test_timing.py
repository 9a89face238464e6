from __future__ import annotations

import pytest

from solbench.evaluate.timing import Floor, Judge, Sample, agreement, delivery_limit, impossible

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
