"""Which group's accesses come before which, by atomics: vector clocks, one component a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from solbench.gfx12.integers import Array

# Groups and addresses up to which clocks are kept exactly.
_MOST_GROUPS: Final = 4096
_MOST_WORDS: Final = 1 << 26
_SOMETHING: Final[Array] = np.zeros(1, np.int32)
Pair = tuple[int, tuple[int, int]]


class Clocks:
    """``now``: each group's own time. Without atomics no group is before another.

    Beyond the limits a group that changed an atomic counts as before every group that reads one later.
    """

    def __init__(self, groups: int) -> None:
        self.groups = groups
        self.now: Array = np.ones(groups, np.int64)
        self.seen: Array = None
        self.published: dict[tuple[int, int], Array] = {}
        self.lenient = False
        self._turn = 0
        self._looked: dict[int, Array] = {}
        self._acquired: Array = np.full(groups, -1, np.int64)

    def tick(self, accesses: int) -> None:
        """So many accesses ran."""
        self._turn = accesses

    def release(self, pairs: Sequence[Pair]) -> None:
        """Groups make what they did known to who looks at the address."""
        if not pairs:
            return
        self._start()
        for group, address in pairs:
            known = self.published.get(address)
            if self.lenient:
                self.published[address] = _SOMETHING
                continue
            mine = self.seen[group]
            self.published[address] = mine.copy() if known is None else np.maximum(known, mine, out=known)
            if len(self.published) * self.groups > _MOST_WORDS:
                self.lenient = True
                self.published = dict.fromkeys(self.published, _SOMETHING)
                self._looked = dict.fromkeys(self._looked, _SOMETHING)
        for group in {group for group, _ in pairs}:
            self.now[group] += 1
            if not self.lenient:
                self.seen[group, group] = self.now[group]

    def acquire(self, pairs: Sequence[Pair]) -> None:
        """Groups look at the address; what they learn counts from their next fence on."""
        if not pairs:
            return
        self._start()
        for group, address in pairs:
            known = self.published.get(address)
            if known is None:
                continue
            looked = self._looked.get(group)
            self._looked[group] = known.copy() if looked is None else np.maximum(looked, known, out=looked)

    def fence(self, groups: Sequence[int]) -> None:
        """What these groups learnt comes before what they do from now on."""
        for group in groups:
            learnt = self._looked.pop(group, None)
            if learnt is None:
                continue
            self._acquired[group] = self._turn
            if not self.lenient:
                np.maximum(self.seen[group], learnt, out=self.seen[group])

    def ordered(self, before: Array, time: Array, after: Array) -> Array:
        """Whether what groups ``before`` did at their ``time`` comes before what groups ``after`` do now."""
        if self.lenient:
            return (self.now[before] > time) & (self._acquired[after] >= 0)
        if self.seen is None:
            return np.zeros(np.shape(before), bool)
        return self.seen[after, before] >= time

    def acquired_since(self, groups: Array, access: Array) -> Array:
        """Whether groups looked at an address after the access of that number."""
        return self._acquired[groups] > access

    def _start(self) -> None:
        if self.seen is None and not self.lenient:
            if self.groups > _MOST_GROUPS:
                self.lenient = True
                return
            self.seen = np.zeros((self.groups, self.groups), np.int32)
            np.fill_diagonal(self.seen, 1)
