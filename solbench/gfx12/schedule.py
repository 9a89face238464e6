"""Which waves run next.

All waves that are at the same block run as one batch. Where they part, those at the lowest block go on until they
reach another's block, so that they come together after a branch or a loop. No set runs more than a quantum of
instructions while others can: a wave that spins on a lock lets the one that holds it go on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from solbench.gfx12.barriers import Barriers
from solbench.gfx12.blocks import Block
from solbench.gfx12.control import ENDED
from solbench.gfx12.program import Program
from solbench.gfx12.state import State

QUANTUM: Final = 3000


class Limit(Exception):
    """The run came to its limit: ``instructions`` or ``time``."""


@dataclass
class Budget:
    """What a run may still use. ``used``: wave-instructions; ``executed``: waves by block."""

    max_instructions: int
    deadline: float
    executed: np.ndarray
    used: int = 0
    _checked: int = field(default=0)

    def spend(self, block: int, waves: int, instructions: int) -> None:
        """Waves run a block. :class:`Limit` where that is too much."""
        self.executed[block] += waves
        self.used += waves * instructions
        self._checked += 1
        if self.used > self.max_instructions:
            raise Limit("instructions")
        if self._checked & 63 == 0 and time.monotonic() > self.deadline:
            raise Limit("time")


def lock_step(m: State, program: Program, blocks: Sequence[Block], entry: int, budget: Budget, seed: int) -> None:
    """Run all waves of a batch to their ends."""
    ready: dict[int, np.ndarray] = {entry: np.arange(m.waves)}
    parked: dict[int, np.ndarray] = {}
    choose = np.random.default_rng(seed)
    tired = False
    while ready or parked:
        _wake(m, ready, parked)
        if not ready:
            _deadlock(m, program, blocks, parked)
            return
        block = int(choose.choice(sorted(ready))) if tired else min(ready)
        tired = False
        waves = ready.pop(block)
        m.select(_selection(waves, m.waves), len(waves))
        others = min(ready) if ready else None
        ran = 0
        while True:
            held = blocks[block]
            budget.spend(block, m.count, held.stop - held.start)
            for step in held.steps:
                step(m)
            after = held.end(m)
            if type(after) is int:
                if after == ENDED:
                    m.barriers.ended(m, waves)
                    break
                ran += held.stop - held.start
                block = after
                if others is None:
                    if ran <= QUANTUM or not parked:
                        continue
                elif block < others and ran <= QUANTUM:
                    continue
                tired = ran > QUANTUM
                _join(ready, block, waves)
                break
            _part(m, waves, after, ready, parked)
            break


def _selection(waves: np.ndarray, whole: int) -> slice | np.ndarray | None:
    """Waves that follow each other as a slice, which numpy reads without a copy."""
    if len(waves) == whole:
        return None
    first, last = int(waves[0]), int(waves[-1])
    return slice(first, last + 1) if last - first + 1 == len(waves) else waves


def _join(ready: dict[int, np.ndarray], block: int, waves: np.ndarray) -> None:
    there = ready.get(block)
    ready[block] = waves if there is None else np.sort(np.concatenate((there, waves)))


def _part(
    m: State, waves: np.ndarray, after: np.ndarray, ready: dict[int, np.ndarray], parked: dict[int, np.ndarray]
) -> None:
    """Send each wave where its end of the block says."""
    for target in np.unique(after):
        some = waves[after == target]
        if target == ENDED:
            m.barriers.ended(m, some)
        elif target < 0:
            _join(parked, -1 - int(target), some)
        else:
            _join(ready, int(target), some)


def _wake(m: State, ready: dict[int, np.ndarray], parked: dict[int, np.ndarray]) -> None:
    """Waves whose barrier is complete go on."""
    for block in list(parked):
        waves = parked[block]
        free = m.barriers.free(m, waves)
        if free.any():
            _join(ready, block, waves[free])
            if free.all():
                del parked[block]
            else:
                parked[block] = waves[~free]


def _deadlock(m: State, program: Program, blocks: Sequence[Block], parked: dict[int, np.ndarray]) -> None:
    """Nobody can go on: every wave that is left waits at a barrier."""
    for block, waves in parked.items():
        # They wait at the end of the block before.
        held = program.instructions[blocks[block].start - 1]
        m.report.waves(m, held, "deadlock", waves)
