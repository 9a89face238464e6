"""Curves of traffic over capacity: step functions that only fall."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Curve:
    """Pareto points: ``capacity`` strictly rising, ``traffic`` strictly falling, in one unit (bits or elements)."""

    capacity: tuple[int, ...]
    traffic: tuple[int, ...]

    @property
    def points(self) -> list[tuple[int, int]]:
        return list(zip(self.capacity, self.traffic))

    def at(self, capacity: int) -> int | None:
        """Least traffic with a buffer of this capacity; None where no schedule of the space fits."""
        position = bisect_right(self.capacity, capacity)
        return self.traffic[position - 1] if position else None

    def scaled(self, factor: int) -> Curve:
        """The work done ``factor`` times, one after the other, in the same buffer."""
        return Curve(self.capacity, tuple(factor * value for value in self.traffic))

    def shifted(self, capacity: int) -> Curve:
        """The same with ``capacity`` more of the buffer taken by something else."""
        return Curve(tuple(value + capacity for value in self.capacity), self.traffic)

    def bytes(self) -> Curve:
        """From bits to whole bytes."""
        return lower((-(-size // 8), -(-moved // 8)) for size, moved in self.points)


def lower(points: Iterable[tuple[int, int]]) -> Curve:
    """The curve under a set of (capacity, traffic) points."""
    kept: list[tuple[int, int]] = []
    for size, moved in sorted(points):
        if not kept or moved < kept[-1][1]:
            kept.append((size, moved))
    return Curve(tuple(size for size, _ in kept), tuple(moved for _, moved in kept))


def either(*curves: Curve) -> Curve:
    """The better of several schedules at every capacity."""
    return lower(point for curve in curves for point in curve.points)


def both(first: Curve, second: Curve) -> Curve:
    """Two pieces of work, one after the other, each in the whole buffer."""
    least = max(first.capacity[0], second.capacity[0])
    sizes = sorted({size for size in (*first.capacity, *second.capacity) if size >= least})
    return lower((size, (first.at(size) or 0) + (second.at(size) or 0)) for size in sizes)


def pareto(capacity: Any, traffic: Any) -> list[tuple[int, int]]:
    """Pareto points of two equally shaped int64 arrays, by capacity."""
    import numpy as np

    sizes, moved = capacity.ravel(), traffic.ravel()
    order = np.lexsort((moved, sizes))
    moved = moved[order]
    drops: Any = np.ones(len(moved), dtype=bool)
    drops[1:] = moved[1:] < np.minimum.accumulate(moved)[:-1]
    return list(zip(sizes[order][drops].tolist(), moved[drops].tolist()))
