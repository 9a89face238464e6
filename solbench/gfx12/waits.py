"""Strict waits: a load's result reaches its registers only when the program waited for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solbench.gfx12.state import State, Step


class Waits:
    """What loads of a batch have read and their registers do not hold yet."""

    def withhold(
        self, m: State, counter: str, registers: Sequence[tuple[int, int]], words: Sequence[np.ndarray]
    ) -> None:
        """Keep the words of a load."""
        raise NotImplementedError


def step(name: str, texts: Sequence[str]) -> Step | None:
    """The step of a wait instruction."""
    del name, texts
    return None


_: Any = None
