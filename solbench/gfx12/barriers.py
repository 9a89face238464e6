"""Work-group barriers in two halves: waves signal that they arrived, and wait until all of their group have."""

from __future__ import annotations

from typing import Any

import numpy as np

from solbench.gfx12.integers import Array
from solbench.gfx12.state import State


class Barriers:
    """One barrier a group of a batch. A wave that ended counts no more."""

    def __init__(self, groups: int, waves_per_group: int) -> None:
        self.arrived: Array = np.zeros(groups, np.int64)
        self.alive: Array = np.full(groups, waves_per_group, np.int64)
        self.passed: Array = np.zeros(groups, np.int64)
        self.awaited: Array = np.zeros(groups * waves_per_group, np.int64)
        self.signalled: Array = np.zeros(groups * waves_per_group, bool)
        self.whole = groups * waves_per_group

    def signal(self, m: State) -> Array:
        """The selected waves arrive; returns which of them came first in their group."""
        if m.count == self.whole and not self.arrived.any() and m.selected is None:
            self.awaited[:] = (self.passed + 1)[m.group]
            self.passed += 1
            self.signalled[:] = True
            return np.arange(m.count) % m.waves_per_group == 0
        waves = m.numbers()
        groups = m.group[waves]
        first = self.arrived[groups] == 0
        first[1:] &= groups[1:] != groups[:-1]
        self.awaited[waves] = self.passed[groups] + 1
        self.signalled[waves] = True
        np.add.at(self.arrived, groups, 1)
        self._complete()
        return first

    def wait(self, m: State, after: int) -> Any:
        """Where the selected waves go: on to block ``after``, or parked (-1 - block) until the others arrive.

        A wave that did not signal waits for the barrier that is to come.
        """
        here = slice(None) if m.selected is None else m.selected
        if not self.signalled[here].all():
            waves = m.numbers()
            silent = waves[~self.signalled[waves]]
            self.awaited[silent] = self.passed[m.group[silent]] + 1
        self.signalled[here] = False
        if m.selected is None:
            blocked = self.passed[m.group] < self.awaited
        else:
            blocked = self.passed[m.group[m.selected]] < self.awaited[m.selected]
        if not blocked.any():
            return after
        return np.where(blocked, -1 - after, after)

    def free(self, m: State, waves: Array) -> Array:
        """Which of these parked waves may go on."""
        return self.passed[m.group[waves]] >= self.awaited[waves]

    def ended(self, m: State, waves: Array) -> None:
        """These waves ended: the others of their groups wait for them no longer."""
        np.subtract.at(self.alive, m.group[waves], 1)
        self._complete()

    def _complete(self) -> None:
        complete = (self.arrived > 0) & (self.arrived >= self.alive)
        if complete.any():
            self.passed[complete] += 1
            self.arrived[complete] = 0
