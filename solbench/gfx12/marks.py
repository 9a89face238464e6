"""Marks of values that nothing wrote: :mod:`solbench.gfx12.defined` says what they are."""

from __future__ import annotations

from typing import Final

import numpy as np

from solbench.gfx12.integers import Array

# The mark of what nothing wrote and no instruction read yet.
UNWRITTEN: Final = np.uint32(0xFFFFFFFF)
# No mark at all.
CLEAN: Final[Array] = np.zeros((1, 1), np.uint32)


def register_mark(number: int) -> int:
    """The mark of what instruction ``number`` made of a register that nothing wrote."""
    return 2 * number + 1


def memory_mark(number: int) -> int:
    """The mark of what instruction ``number`` read of memory that nothing wrote."""
    return 2 * number + 2
