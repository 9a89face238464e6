"""Which waves run next.

All waves that are at the same block run as one batch. Where they part, those at the lowest block go on until they
reach another's block, so that they come together after a branch or a loop. No set runs more than a quantum of
instructions while others can: a wave that spins on a lock lets the one that holds it go on.

In a permuted order the waves of a group take turns, one from barrier to barrier before the next, in an order drawn
anew after each barrier; a random half of the groups is a step behind the other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from solbench.gfx12.blocks import Block
from solbench.gfx12.control import ENDED
from solbench.gfx12.integers import Array
from solbench.gfx12.program import Program
from solbench.gfx12.state import State

# Of a program that may spin, and of another one.
SPIN_QUANTUM: Final = 300
QUANTUM: Final = 3000
# Turn and block.
Place = tuple[int, int]


class Limit(Exception):
    """The run came to its limit: ``instructions`` or ``time``."""


@dataclass
class Budget:
    """What a run may still use. ``used``: wave-instructions; ``executed``: waves by block."""

    max_instructions: int
    deadline: float
    executed: Array
    quantum: int
    used: int = 0
    _checked: int = 0

    def spend(self, block: int, waves: int, instructions: int) -> None:
        """Waves run a block. :class:`Limit` where that is too much."""
        self.executed[block] += waves
        self.used += waves * instructions
        self._checked += 1
        if self.used > self.max_instructions:
            raise Limit("instructions")
        if self._checked & 63 == 0 and time.monotonic() > self.deadline:
            raise Limit("time")


@dataclass
class Queue:
    """Waves that can run by turn and block, and those that wait at a barrier by the block after it.

    ``draws``: for turns, None for lock-step, in which every turn is 0.
    """

    draws: np.random.Generator | None
    turns: Array
    ready: dict[Place, Array] = field(default_factory=dict)
    parked: dict[int, Array] = field(default_factory=dict)

    def join(self, block: int, waves: Array) -> None:
        """These waves can run ``block``."""
        if self.draws is None:
            self._put((0, block), waves)
            return
        turns = self.turns[waves]
        for turn in np.unique(turns):
            self._put((int(turn), block), waves[turns == turn])

    def _put(self, place: Place, waves: Array) -> None:
        there = self.ready.get(place)
        self.ready[place] = waves if there is None else np.sort(np.concatenate((there, waves)))

    def park(self, block: int, waves: Array) -> None:
        """These waves wait; ``block`` comes after."""
        there = self.parked.get(block)
        self.parked[block] = waves if there is None else np.sort(np.concatenate((there, waves)))

    def wake(self, m: State) -> None:
        """Waves whose barrier is complete can go on."""
        for block in list(self.parked):
            waves = self.parked[block]
            free = m.barriers.free(m, waves)
            if not free.any():
                continue
            if free.all():
                del self.parked[block]
            else:
                self.parked[block] = waves[~free]
            self.draw(m, waves[free])
            self.join(block, waves[free])

    def draw(self, m: State, waves: Array) -> None:
        """New turns for the groups of these waves."""
        if self.draws is None:
            return
        size = m.waves_per_group
        for group in np.unique(m.group[waves]):
            order = self.draws.permutation(size)
            self.turns[group * size : (group + 1) * size] = 2 * order + self.draws.integers(2)


def run_batch(
    m: State, program: Program, blocks: Sequence[Block], entry: int, budget: Budget, draws: np.random.Generator | None,
    seed: int,
) -> None:  # fmt: skip
    """Run all waves of a batch to their ends."""
    everyone = np.arange(m.waves)
    queue = Queue(draws, np.zeros(m.waves, np.int64))
    queue.draw(m, everyone)
    queue.join(entry, everyone)
    choose = np.random.default_rng(seed)
    spent = 0
    while queue.ready or queue.parked:
        if queue.parked:
            queue.wake(m)
        if not queue.ready:
            _deadlock(m, program, blocks, queue.parked)
            return
        places = sorted(queue.ready)
        place = places[0]
        if spent > budget.quantum and len(places) > 1:
            place, spent = places[int(choose.integers(len(places)))], 0
        waves = queue.ready.pop(place)
        m.select(_selection(waves, m.waves), len(waves))
        spent += _run(m, blocks, place, waves, queue, budget)


def _run(m: State, blocks: Sequence[Block], place: Place, waves: Array, queue: Queue, budget: Budget) -> int:
    """Run these waves until they part, end, wait, meet others or have run a quantum; how many instructions they ran."""
    turn, block = place
    others = min(queue.ready) if queue.ready else None
    alone = others is None and not queue.parked
    ran = 0
    while True:
        held = blocks[block]
        budget.spend(block, m.count, held.stop - held.start)
        for step in held.steps:
            step(m)
        after = held.end(m)
        if type(after) is not int:
            for target in np.unique(after):
                some = waves[after == target]
                if target == ENDED:
                    m.barriers.ended(m, some)
                elif target < 0:
                    queue.park(-1 - int(target), some)
                else:
                    queue.join(int(target), some)
            return ran + held.stop - held.start
        if after == ENDED:
            m.barriers.ended(m, waves)
            return 0
        block = after
        ran += held.stop - held.start
        if alone or (ran <= budget.quantum and (others is None or (turn, block) < others)):
            continue
        queue.join(block, waves)
        return ran


def _selection(waves: Array, whole: int) -> Array:
    """All waves as None, and those that follow each other as a slice, which numpy reads without a copy."""
    if len(waves) == whole:
        return None
    first, last = int(waves[0]), int(waves[-1])
    return slice(first, last + 1) if last - first + 1 == len(waves) else waves


def _deadlock(m: State, program: Program, blocks: Sequence[Block], parked: dict[int, Array]) -> None:
    """Nobody can go on: every wave that is left waits at a barrier."""
    for block, waves in parked.items():
        # They wait at the end of the block before.
        held = program.instructions[blocks[block].start - 1]
        m.report.waves(m, held, "deadlock", waves)


def may_spin(program: Program) -> bool:
    """Whether waves can wait for each other through memory: atomics that return, loads that see others' stores."""
    return any(
        "RETURN" in operand
        or "_rtn_" in operation.mnemonic
        or ("_load_" in operation.mnemonic and ("SCOPE_DEV" in operand or "SCOPE_SYS" in operand))
        for held in program.instructions
        for operation in held.operations
        for operand in operation.operands
    )
