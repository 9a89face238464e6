"""Conditions that tie two axes together (a diagonal, a triangle, a window), and how many positions meet them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from solar.bound import axes as ax
from solar.bound.axes import Axis

LARGEST_PAIR_MASK = 1 << 24


@dataclass(frozen=True, slots=True)
class Pair:
    """A condition on the positions x of axis ``first`` and y of axis ``second``.

    ``low <= a*x + b*y <= high`` (an absent limit is None), or y in the bit mask ``rows[x]``.
    """

    first: int
    second: int
    a: int = -1
    b: int = 1
    low: int | None = None
    high: int | None = None
    rows: tuple[int, ...] | None = None

    def swapped(self) -> Pair:
        """The same condition with its axes named in the other order (bands only)."""
        return replace(self, first=self.second, second=self.first, a=self.b, b=self.a)

    def led_by(self, first: int, columns: int) -> Pair:
        """The same condition with ``first`` named first; ``columns``: extent of the second axis."""
        if self.first == first:
            return self
        if self.rows is None:
            return self.swapped()
        return Pair(self.second, self.first, rows=transposed(self.rows, columns))


def count_pair(pair: Pair, x: Axis, y: Axis) -> int:
    """Number of (x, y) in the two sets that meet a condition; 0 where counting would be too long."""
    if x.unplaced is not None or y.unplaced is not None:
        return 0
    if pair.rows is not None:
        mask = ax.mask_of(y)
        if mask is None or x.count > len(pair.rows):
            return 0
        return sum((pair.rows[position] & mask).bit_count() for position in x)
    if x.contiguous and y.contiguous and abs(pair.a) == 1 and abs(pair.b) == 1:
        return _count_unit_band(pair, x, y)
    if x.count > y.count:
        pair, x, y = pair.swapped(), y, x
    if x.count > ax.LARGEST_WALK * 4:
        return 0
    return _walked(pair, x, y) if x.bits is None and y.bits is None else _walked.__wrapped__(pair, x, y)


# One condition is asked about again for every operation behind it. What holds a mask is not kept: it may be large.
@lru_cache(maxsize=1024)
def _walked(pair: Pair, x: Axis, y: Axis) -> int:
    """:func:`count_pair` of a band, position by position."""
    return sum(between(y, *limits(pair, position)) for position in x)


def limits(pair: Pair, x: int) -> tuple[int | None, int | None]:
    """Inclusive limits of y for one x."""
    low = None if pair.low is None else pair.low - pair.a * x
    high = None if pair.high is None else pair.high - pair.a * x
    if pair.b < 0:
        low, high = (None if high is None else -high), (None if low is None else -low)
    b = abs(pair.b)
    return (None if low is None else -(-low // b)), (None if high is None else high // b)


def between(axis: Axis, low: int | None, high: int | None) -> int:
    """Members of ``axis`` in [low, high]."""
    first = axis.start if low is None and axis.bits is None else max(0, low if low is not None else 0)
    last = axis.extent - 1 if high is None else min(high, axis.extent - 1)
    if last < first:
        return 0
    if axis.bits is not None:
        return (axis.bits >> first & ((1 << (last - first + 1)) - 1)).bit_count()
    first = max(first, axis.start)
    first += -(first - axis.start) % axis.step
    return max(0, (min(last, axis.stop - 1) - first) // axis.step + 1) if first <= last else 0


def _count_unit_band(pair: Pair, x: Axis, y: Axis) -> int:
    """Closed form for a, b in {1, -1} over runs: by inclusion from the counts below either limit."""
    # Bring to the form low <= y + s*x <= high.
    s = pair.a * pair.b
    low, high = pair.low, pair.high
    if pair.b < 0:
        low, high = (None if high is None else -high), (None if low is None else -low)
    total = x.length * y.length
    upto_high = total if high is None else _count_below(x, y, s, high)
    upto_low = 0 if low is None else _count_below(x, y, s, low - 1)
    return max(0, upto_high - upto_low)


def _count_below(x: Axis, y: Axis, s: int, limit: int) -> int:
    """#{(x, y): y <= limit - s*x} = sum over x of clamp(limit - s*x - y0 + 1, 0, ny)."""
    width = y.length
    # Values in the order in which they grow: first + k for k = 0 .. n-1.
    first = (limit - x.start if s < 0 else limit - (x.stop - 1)) - y.start + 1
    if s < 0:
        first = limit + x.start - y.start + 1
    n = x.length
    zeros = min(n, max(0, -first))
    saturated = min(n, max(0, first + n - 1 - width + 1))
    ramp = n - zeros - saturated
    if ramp < 0:
        return width * saturated
    begin = first + zeros
    return ramp * begin + ramp * (ramp - 1) // 2 + width * saturated


def projection(pair: Pair, x: Axis, y: Axis, wanted: int) -> Axis:
    """Positions of axis ``wanted`` (one of the pair's) for which the other axis has a partner."""
    if x.unplaced is not None or y.unplaced is not None:
        return Axis(x.extent if wanted == pair.first else y.extent)
    if pair.rows is not None:
        mask = ax.mask_of(y)
        if mask is None or x.count > len(pair.rows):
            return Axis(x.extent if wanted == pair.first else y.extent)
        if wanted == pair.first:
            return ax.of(x.extent, (p for p in x if pair.rows[p] & mask))
        joined = 0
        for position in x:
            joined |= pair.rows[position]
        return ax.masked(y.extent, joined & mask)
    if wanted == pair.second:
        pair, x, y = pair.swapped(), y, x
    if not x.count or not y.count:
        return Axis(x.extent)
    if y.contiguous and abs(pair.a) == 1:
        # low <= a*x + b*y <= high for some y of a run: with |b| = 1 every value in between occurs.
        least = min(pair.b * y.start, pair.b * (y.stop - 1))
        most = max(pair.b * y.start, pair.b * (y.stop - 1))
        dense = abs(pair.b) == 1 or y.length == 1
        wide = pair.low is None or pair.high is None or pair.high - pair.low + 1 >= abs(pair.b)
        if dense or wide:
            low = None if pair.low is None else pair.low - most
            high = None if pair.high is None else pair.high - least
            if pair.a < 0:
                low, high = (None if high is None else -high), (None if low is None else -low)
            start = 0 if low is None else max(0, low)
            stop = x.extent if high is None else high + 1
            return ax.intersection(x, ax.run(x.extent, start, stop))
    if x.count > ax.LARGEST_WALK * 4:
        return Axis(x.extent)
    return _reached(pair, x, y) if x.bits is None and y.bits is None else _reached.__wrapped__(pair, x, y)


@lru_cache(maxsize=128)
def _reached(pair: Pair, x: Axis, y: Axis) -> Axis:
    """Positions of ``x`` that have a partner in ``y``, one by one."""
    return ax.of(x.extent, (p for p in x if between(y, *limits(pair, p))))


def rows_of(pair: Pair, x: int, y: int) -> tuple[int, ...] | None:
    """The condition as bit masks, one a position of the first axis; None where that would be large."""
    if pair.rows is not None:
        return pair.rows
    if x * y > LARGEST_PAIR_MASK or x > ax.LARGEST_WALK:
        return None
    return tuple(mask(pair, position, y) for position in range(x))


def transposed(rows: Sequence[int], columns: int) -> tuple[int, ...]:
    """A bit mask a column from a bit mask a row."""
    every = (1 << columns) - 1
    text = "".join(f"{row & every:0{columns}b}" for row in reversed(rows))
    return tuple(int(text[columns - 1 - column :: columns] or "0", 2) for column in range(columns))


def mask(pair: Pair, x: int, extent: int) -> int:
    """Positions y of an axis that meet a band with one x, as a bit mask."""
    low, high = limits(pair, x)
    first = 0 if low is None else min(max(0, low), extent)
    last = extent if high is None else max(min(high + 1, extent), first)
    return ((1 << (last - first)) - 1) << first


def canonical(pair: Pair) -> Pair:
    """Bands with the lower axis first and a positive coefficient on the second."""
    if pair.rows is not None:
        return pair
    if pair.first > pair.second:
        pair = pair.swapped()
    if pair.b < 0:
        low = None if pair.high is None else -pair.high
        high = None if pair.low is None else -pair.low
        pair = replace(pair, a=-pair.a, b=-pair.b, low=low, high=high)
    return pair


def join(p: Pair, q: Pair, axes: tuple[Axis, ...]) -> Pair | None:
    """Both conditions, on the same two axes, as one; None where that would be large."""
    q = q.led_by(p.first, axes[p.first].extent)
    if p.rows is None and q.rows is None and (p.a, p.b) == (q.a, q.b):
        low = p.low if q.low is None else q.low if p.low is None else max(p.low, q.low)
        high = p.high if q.high is None else q.high if p.high is None else min(p.high, q.high)
        return replace(p, low=low, high=high)
    x, y = axes[p.first].extent, axes[p.second].extent
    rows, others = rows_of(p, x, y), rows_of(q, x, y)
    if rows is None or others is None:
        return None
    return Pair(p.first, p.second, rows=tuple(r & o for r, o in zip(rows, others, strict=True)))
