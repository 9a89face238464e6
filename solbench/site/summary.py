"""The last line of a table: means over the rows above it. The script recomputes them the same way for filtered rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solbench.site import text
from solbench.site.cells import Cell


@dataclass(frozen=True)
class Mean:
    """A mean of scores as shown, and over how many of how many cells."""

    text: str
    count: str


def mean(cells: Sequence[Cell]) -> Mean:
    """The mean of the exact values of ``cells``; those that hold words in place of a number only count in the total."""
    values = [float(cell.sort) for cell in cells if cell.sort]
    total = 0.0
    # One after the other, as a script adds: Python's sum rounds in another way from 3.12 on.
    for value in values:
        total += value
    shown = text.score(total / len(values)) if values else "—"
    return Mean(shown, f"{len(values)} of {len(cells)}")
