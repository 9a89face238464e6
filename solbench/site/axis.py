"""Axes of the charts: where a value stands, and which steps are drawn and labelled. Pure numbers to pure numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from solbench.errors import SolbenchError
from solbench.site import text

# Up to so many powers of ten are labelled; on a longer axis every second one, every third, and so on.
_LABELS = 8


@dataclass(frozen=True)
class Axis:
    """From ``low`` to ``high`` in the unit of the values. ``ticks``: (value, label); ``minor``: steps without one."""

    low: float
    high: float
    log: bool
    ticks: tuple[tuple[float, str], ...]
    minor: tuple[float, ...]

    def place(self, value: float) -> float:
        """Share of the way from ``low`` (0) to ``high`` (1). On a log axis what is not positive stands at 0."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        if value <= 0:
            return 0.0
        return (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def log_axis(values: Sequence[float], unit: str, margin: float = 1.15) -> Axis:
    """Steps 1, 2 and 5 of every decade, from below the smallest to above the largest of ``values``, all positive.

    Powers of ten are labelled; where the axis has no more than seven steps, every one is. Raises
    :class:`SolbenchError` for a value that is not a positive number.
    """
    for value in values:
        if not (math.isfinite(value) and value > 0):
            raise SolbenchError(f"site: {value!r} has no place on a log axis")
    low, high = nice_below(min(values) / margin), nice_above(max(values) * margin)
    every = list(steps(low, high))
    if len(every) > 7:
        powers = [step for step in every if _leading(step) == 1]
        stride = math.ceil(len(powers) / _LABELS)
        kept = [step for step in powers if _exponent(step) % stride == 0]
    else:
        kept = every
    return Axis(low, high, True, tuple((step, text.quantity(step, unit, 1)) for step in kept), tuple(every))


def linear_axis(values: Sequence[float], unit: str) -> Axis:
    """Whole steps of 1, 2 or 5 times a power of ten, about seven of them, around finite ``values``.

    Every label has the same prefix and as many digits as tell two steps apart.
    """
    for value in values:
        if not math.isfinite(value):
            raise SolbenchError(f"site: {value!r} has no place on an axis")
    least, most = min(values), max(values)
    size = max(abs(least), abs(most))
    # Wide enough for steps that differ as floats; a single value stands in the middle.
    span = max(most - least, size * (0.1 if most == least else 1e-6)) or 1.0
    slack = (span - (most - least)) / 2
    least, most = least - slack, most + slack
    step = nice_above(span / 7)
    first, last = math.floor((least - span / 40) / step), math.ceil((most + span / 40) / step)
    exact = Decimal(repr(step))
    # From decimals: 3 steps of 0.1 are 0.3.
    marks = [float(exact * count) for count in range(first, last + 1)]
    like = max(abs(marks[0]), abs(marks[-1]))
    ticks = tuple((mark, text.step(mark, step, unit, like)) for mark in marks)
    return Axis(marks[0], marks[-1], False, ticks, ())


def steps(low: float, high: float) -> Iterator[float]:
    """1, 2 and 5 of every decade within [``low``, ``high``]."""
    for exponent in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1):
        for leading in (1, 2, 5):
            step = float(f"{leading}e{exponent}")
            if low <= step <= high:
                yield step


def nice_below(value: float) -> float:
    return max(step for step in steps(value / 10, value) if step <= value)


def nice_above(value: float) -> float:
    return min(step for step in steps(value, value * 10) if step >= value)


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """``places`` moved as little as needed for labels ``gap`` apart, in their order, from ``low`` to ``high``.

    More than fit are spaced evenly.
    """
    order = sorted(range(len(places)), key=lambda index: places[index])
    if len(order) > 1:
        gap = min(gap, (high - low) / (len(order) - 1))
    found = [0.0] * len(places)
    least = low
    for index in order:
        found[index] = least = max(places[index], least)
        least += gap
    most = high
    for index in reversed(order):
        found[index] = most = min(found[index], most)
        most -= gap
    return found


def clip(words: str, length: int) -> str:
    return words if len(words) <= length else words[: length - 1] + "…"


def _leading(step: float) -> int:
    return int(f"{step:.0e}"[0])


def _exponent(step: float) -> int:
    return int(f"{step:.0e}".partition("e")[2])
