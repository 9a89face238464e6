"""When a process has sampled enough: a fixed count, or until the medians are known well enough, with a cap.

The interval of a median comes from order statistics and covers it with at least 95 %
(:mod:`solbench.score.statistics`), which needs six samples. Where sampling stops because it has become narrow, it
covers a little less than it says; what is published is an interval over processes, which this leaves alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from solbench.evaluate.timing import Sample
from solbench.model.trace import Protocol
from solbench.score.statistics import COVERAGE, interval, order_statistics

# (candidate, baseline) of each round that is kept.
Pairs = Sequence[tuple[Sample, Sample]]


def spread(values: Sequence[float]) -> float | None:
    """How far an interval of the median reaches from it, the longer half, as a share of it; None while no interval of
    order statistics covers it with 95 %."""
    wanted, of = COVERAGE
    if not values or order_statistics(len(values))[1] * of < wanted:
        return None
    low, high = interval(values)
    middle = statistics.median(values)
    return max(high - middle, middle - low) / middle if middle > 0 else None


def medians(kept: Pairs) -> list[float]:
    """Median event (s) of candidate and baseline."""
    return [statistics.median(times) for times in _events(kept)]


def precise(kept: Pairs, precision: float | None) -> bool:
    """Whether the medians of both sides are known to that share of them; always, where none is asked for."""
    return precision is None or all(share is not None and share <= precision for share in map(spread, _events(kept)))


def stop_reason(kept: Pairs, taken: int, protocol: Protocol) -> str:
    """One sentence with counts: why no more samples were taken."""
    void = taken - len(kept)
    again = f", {void} more because clock witnesses were apart" if void else ""
    if protocol.precision is None:
        return f"fixed count: {len(kept)} samples{again}"
    wanted = f"{protocol.precision:.0%}"
    if precise(kept, protocol.precision):
        return f"precision: both medians known within {wanted} after {len(kept)} samples{again}"
    known = " and ".join("unknown" if share is None else f"{share:.1%}" for share in map(spread, _events(kept)))
    return f"cap: {len(kept)} samples{again}; medians of candidate and baseline known within {known}, wanted {wanted}"


def _events(kept: Pairs) -> list[list[float]]:
    return [[pair[side].event_s for pair in kept] for side in (0, 1)]
