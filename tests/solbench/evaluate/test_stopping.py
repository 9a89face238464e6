from __future__ import annotations

import pytest

from solbench.evaluate.protocols import FULL, QUICK, protocol
from solbench.evaluate.stopping import medians, precise, spread, stop_reason
from solbench.evaluate.timing import Sample


def pairs(candidate: list[float], baseline: list[float]) -> list[tuple[Sample, Sample]]:
    return [(Sample(k, k + 1e-4), Sample(b, b + 1e-4)) for k, b in zip(candidate, baseline, strict=True)]


CLOSE = [1.00, 1.01, 0.99, 1.00, 1.01, 0.99]
WIDE = [1.0, 1.0, 1.0, 1.0, 1.0, 1.1]


def test_spread() -> None:
    # Fewer than six values have no interval of 95 %; of six it is all of them, and its longer half counts.
    assert spread(CLOSE[:5]) is None and spread([]) is None
    assert spread(CLOSE) == pytest.approx(0.01) and spread(WIDE) == pytest.approx(0.1)
    # Nine values: from the second to the eighth.
    assert spread([1.0] * 8 + [9.0]) == 0


def test_precise_needs_both_sides() -> None:
    assert precise(pairs(CLOSE, CLOSE), 0.02) and not precise(pairs(CLOSE, CLOSE), 0.005)
    assert not precise(pairs(CLOSE, WIDE), 0.02) and not precise(pairs(WIDE, CLOSE), 0.02)
    assert not precise(pairs(CLOSE[:5], CLOSE[:5]), 0.02)
    assert precise(pairs(WIDE[:1], WIDE[:1]), None)
    assert medians(pairs([1.0, 3.0, 2.0], [5.0, 4.0, 6.0])) == [2.0, 5.0]


def test_stop_reasons() -> None:
    fixed = protocol("quick", samples=2)
    assert stop_reason(pairs([1.0, 2.0], [1.0, 2.0]), 2, fixed) == "fixed count: 2 samples"
    assert stop_reason(pairs(CLOSE, CLOSE), 8, QUICK) == (
        "precision: both medians known within 2% after 6 samples, 2 more because clock witnesses were apart"
    )
    # Eighteen values: from the fifth to the fourteenth. Six of 0.99 and six of 1.01; three of 1.1 are beyond.
    narrow = stop_reason(pairs(CLOSE * 3, WIDE * 3), 18, QUICK)
    assert narrow == "precision: both medians known within 2% after 18 samples"
    assert stop_reason(pairs(CLOSE, WIDE), 18, QUICK) == (
        "cap: 6 samples, 12 more because clock witnesses were apart; medians of candidate and baseline known "
        "within 1.0% and 10.0%, wanted 2%"
    )


def test_protocols() -> None:
    assert (QUICK.samples, QUICK.max_samples, FULL.samples, FULL.max_samples) == (6, 18, 9, 27)
    assert QUICK.precision == FULL.precision == 0.02 and QUICK.preamble_s and QUICK.batches
    # A number of one's own is just that number; more processes of the same kind go on until they know.
    own = protocol("quick", samples=4)
    assert (own.name, own.samples, own.max_samples, own.precision) == ("custom", 4, None, None)
    assert protocol("quick", samples=6) == QUICK and protocol("full", max_call_s=1.0).max_call_s == 1.0
    assert protocol("quick", processes=3).precision == 0.02 and protocol("quick", processes=3).name == "custom"
