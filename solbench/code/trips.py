"""How often loops run, where that is a constant of the program.

A loop's header is entered with the scalar registers that are constant on every way into it; then its body is followed
for one iteration after the other, with branches whose condition is known taken only where they lead. Once only exits
are reached, the iterations so far are the trip count. Where an exit depends on anything else there is no count.
"""

from __future__ import annotations

from collections.abc import Sequence

from solbench.code.assembly import Function
from solbench.code.loops import Flow, Loop, branch_target
from solbench.code.scalars import State, Step, run, steps, taken

# Iterations of one loop, steps of all loops together, and rounds over all blocks; beyond them nothing is known.
MAX_TRIPS = 100_000
MAX_STEPS = 1_000_000
MAX_ROUNDS = 64


def trip_counts(function: Function, flow: Flow) -> tuple[int | None, ...]:
    """Times that each loop's header runs for each time that the loop is entered; None where that is not constant.

    A loop that tests at its end runs its body so often; one that tests at its start runs the rest once less.
    """
    program = _Program(function, flow)
    before = program.constants()
    return tuple(program.count(number, before) for number in range(len(flow.loops)))


class _Program:
    """The scalar steps of every block, how each block ends, and how many steps may still be taken."""

    def __init__(self, function: Function, flow: Flow) -> None:
        self.flow = flow
        self.steps: list[tuple[Step, ...]] = []
        self.branches: list[str | None] = []
        for block in flow.blocks:
            body = function.instructions[block.start : block.end]
            self.steps.append(steps(body))
            self.branches.append(body[-1].mnemonic if branch_target(body[-1]) and len(block.successors) == 2 else None)
        self.written = [self._written(loop) for loop in flow.loops]
        self.left = MAX_STEPS

    def successors(self, block: int, state: State) -> tuple[int, ...]:
        """Blocks that may follow a block that ends in ``state``."""
        following = self.flow.blocks[block].successors
        branch = self.branches[block]
        decided = taken(branch, state) if branch else None
        return following if decided is None else (following[1 if decided else 0],)

    def constants(self) -> dict[tuple[int, int], State]:
        """What is known on each edge that can be reached, over all ways to it. Empty if that takes too long."""
        edges: dict[tuple[int, int], State] = {}
        for _ in range(MAX_ROUNDS):
            changed = False
            for block in self.flow.order:
                incoming = [edges[edge] for p in self.flow.predecessors[block] if (edge := (p, block)) in edges]
                if not incoming and block:
                    continue
                # The entry's registers are the launch's: unknown.
                state = meet(incoming) if block else {}
                self.left -= len(self.steps[block]) + len(state) + 1
                if self.left < 0:
                    return {}
                run(self.steps[block], state)
                for successor in self.successors(block, state):
                    if edges.get((block, successor)) != state:
                        edges[block, successor] = dict(state)
                        changed = True
            if not changed:
                return edges
        return {}

    def count(self, number: int, before: dict[tuple[int, int], State]) -> int | None:
        """The trip count of one loop."""
        loop = self.flow.loops[number]
        entries = [before[e] for p in self.flow.predecessors[loop.header] if p not in loop.blocks
                   and (e := (p, loop.header)) in before]  # fmt: skip
        if not entries:
            return None
        state = meet(entries)
        order = [block for block in self.flow.order if block in loop.blocks]
        inner = self._inner(number)
        for trip in range(1, MAX_TRIPS + 1):
            back, leaves = self._iteration(loop, order, inner, state)
            if back is None or self.left < 0:
                return trip if leaves and self.left >= 0 else None
            if leaves or back == state:
                return None
            state = back
        return None

    def _written(self, loop: Loop) -> set[str] | None:
        """Registers that a loop may write; None if it may write all."""
        written = [step for block in loop.blocks for step in self.steps[block]]
        return None if any(step.everything for step in written) else {name for step in written for name in step.written}

    def _inner(self, number: int) -> dict[int, set[str] | None]:
        """Headers of the loops within a loop, to the registers written there."""
        within = {number}
        for other, loop in enumerate(self.flow.loops):
            if loop.parent in within:
                within.add(other)
        return {self.flow.loops[other].header: self.written[other] for other in within - {number}}

    def _iteration(
        self, loop: Loop, order: Sequence[int], inner: dict[int, set[str] | None], start: State
    ) -> tuple[State | None, bool]:
        """One pass through a loop: what is known where its header is reached again, if it is; whether it may leave."""
        incoming: dict[int, list[State]] = {loop.header: [start]}
        back: list[State] = []
        leaves = False
        for block in order:
            if block not in incoming:
                continue
            self.left -= len(self.steps[block]) + 1
            state = meet(incoming[block])
            if block in inner:
                written = inner[block]
                state = {} if written is None else {name: v for name, v in state.items() if name not in written}
            run(self.steps[block], state)
            for successor in self.successors(block, state):
                if successor == loop.header:
                    back.append(state)
                elif successor not in loop.blocks:
                    leaves = True
                else:
                    incoming.setdefault(successor, []).append(state)
        return (meet(back) if back else None), leaves


def meet(states: Sequence[State]) -> State:
    """What is the same in all of them."""
    first = dict(states[0])
    for other in states[1:]:
        first = {name: value for name, value in first.items() if other.get(name) == value}
    return first
