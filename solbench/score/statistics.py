"""Medians of samples, and intervals that assume nothing about their distribution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from solbench.errors import InputError
from solbench.model.score import Estimate
from solbench.model.trace import SampleSet, Timing

# Coverage that an interval of order statistics aims at; with fewer than six values it states the less that it has.
COVERAGE: Final = (19, 20)


def estimate(sets: Sequence[SampleSet], side: str) -> Estimate:
    """Point and interval (s) of one side's samples: ``event_s``, one set a process.

    Point: median over process medians. Interval: order statistics of the process medians, or, with one process, of its
    samples; the narrowest symmetric pair that covers the median with at least 95 %, else [min, max]. Six values give
    [min, max] 96.9 %, three 75 %, one 0 %. :class:`InputError` names ``side`` where a process has no samples.
    """
    if not sets or not all(samples.event_s for samples in sets):
        raise InputError(side, "a process without samples")
    values = sorted(sets[0].event_s if len(sets) == 1 else [median(samples.event_s) for samples in sets])
    low, high = interval(values)
    return Estimate(
        point_s=median(values),
        low_s=low,
        high_s=high,
        coverage=order_statistics(len(values))[1],
        processes=len(sets),
        samples=sum(len(samples.event_s) for samples in sets),
    )


def median(values: Iterable[float]) -> float:
    """Middle value, or the mean of the two middle ones."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def order_statistics(n: int) -> tuple[int, float]:
    """Rank r of the interval [x_(r), x_(n+1-r)] for a median, and its coverage 1 - 2 * sum_{i<r} C(n, i) / 2^n.

    The largest r that covers at least 95 %, else 1. Distribution-free, for independent values of one continuous
    distribution (e.g. David and Nagaraja, Order Statistics, 7.1).
    """
    wanted, of = COVERAGE
    total = 2**n
    rank, outside, choices = 1, 2, n
    while rank < n // 2 and (total - outside - 2 * choices) * of >= wanted * total:
        outside += 2 * choices
        choices = choices * (n - rank) // (rank + 1)
        rank += 1
    return rank, max(total - outside, 0) / total


def pairs(timing: Timing) -> list[tuple[float, float]]:
    """(T_k, T_b) in s of what was measured together: the process medians, or, with one process, its samples.

    Both sides of a pair ran moments apart, so what slows a whole process or round slows both, and cancels in a ratio.
    """
    sides = (timing.candidate, timing.baseline)
    if len(timing.candidate) == 1:
        return list(zip(*(side[0].event_s for side in sides), strict=True))
    return list(zip(*([median(samples.event_s) for samples in side] for side in sides), strict=True))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Ends of the order-statistic interval for the median of ``values``; see :func:`order_statistics`."""
    ordered = sorted(values)
    rank, _ = order_statistics(len(ordered))
    return ordered[rank - 1], ordered[-rank]


def timing_error(measured: Sequence[tuple[float, float]]) -> float:
    """Relative error of T_k / T_b: half the width of its interval over its median."""
    ratios = [t_k / t_b for t_k, t_b in measured]
    low, high = interval(ratios)
    return (high - low) / (2 * median(ratios))
