from __future__ import annotations

import pytest

from solbench.evaluate.timing import Floor, Sample, accusation, delivery_limit, impossible, valid

FLOOR = Floor.of([Sample(2e-6, 2e-6 + gap * 1e-6) for gap in (300, 310, 320, 330, 340, 5000, 4000, 4000)])


def test_floor_is_the_lower_quartile_of_the_gap() -> None:
    assert FLOOR.event_s == 2e-6
    assert FLOOR.gap_s == pytest.approx(320e-6)
    # Twice that and a millisecond.
    assert FLOOR.agreement_s == pytest.approx(1640e-6)


@pytest.mark.parametrize(
    ("event_s", "clock_s", "lie"), [(1e-3, 2e-3, False), (0.0, 1e-3, False), (2e-3, 1e-3, True), (-1e-9, 1e-3, True)]
)
def test_impossible(event_s: float, clock_s: float, lie: bool) -> None:
    found = impossible(Sample(event_s, clock_s))
    assert (found is not None) == lie
    assert found is None or found.startswith("clock witness disagrees")


def test_valid_samples() -> None:
    close, far, slow = Sample(1e-3, 1.5e-3), Sample(1e-3, 3e-3), Sample(1e-3, 1.5e-3, deliver_s=0.5)
    # A long call may be further apart: 5 % of what it says.
    long = Sample(0.1, 0.106)
    assert valid([close, far, slow, long], FLOOR, 0.1) == [close, long]


def test_accusation_needs_every_sample_far_beyond() -> None:
    lies = [Sample(1e-6, 0.05), Sample(1e-6, 0.06)]
    text = accusation(lies, FLOOR, 0.1)
    assert text is not None and text.startswith("clock witness disagrees: at least 0.049999 s")
    assert accusation([*lies, Sample(0.05, 0.0505)], FLOOR, 0.1) is None
    # Beyond the limit of 1.64 ms, but not ten times: void, no lie.
    assert accusation([Sample(1e-6, 5e-3)], FLOOR, 0.1) is None


def test_accusation_of_late_work() -> None:
    late = [Sample(1e-3, 1.2e-3, deliver_s=0.5)] * 3
    text = accusation(late, FLOOR, 1e-3)
    assert text is not None and text.startswith("work was left for after the call")
    assert accusation(late, FLOOR, 0.1) is None


def test_delivery_limit() -> None:
    baseline = [Sample(1e-3, 2e-3, deliver_s=seconds) for seconds in (2e-3, 1e-3, 9e-3)]
    assert delivery_limit(baseline, 10**9) == pytest.approx(5e-3)
    # In place: a copy of 10 MB at 0.5 GB/s takes 20 ms.
    assert delivery_limit([Sample(1e-3, 2e-3)], 10**7) == pytest.approx(0.081)
