"""A verdict without a time: the candidate alone, every call on fresh values and checked, as in the sample protocol.

For what runs elsewhere than where it would be timed: a Triton kernel under Triton's interpreter, a gfx1200 kernel on
the emulated card.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from solbench import canonical
from solbench.corpus.load import Problem
from solbench.evaluate import arena
from solbench.evaluate.arena import Shared
from solbench.evaluate.processes import Referee
from solbench.evaluate.turns import Limits, Round, Side, close_side, open_side, opening, scalars_of, take_turn
from solbench.evaluate.workers import nonce
from solbench.model.workload import Workload

# Draws of the workload's own inputs, beside each stress round once. Random, so that no candidate knows the last one.
MIN_ROUNDS, MAX_ROUNDS = 3, 5
_random = random.SystemRandom()


def check_workload(
    problem: Problem,
    workload: Workload,
    plan: arena.Layout,
    axes: dict[str, int],
    referee: Referee,
    memory: Shared,
    candidate: Side,
    limits: Limits,
    runs: Sequence[Mapping[str, Any]] = (),
) -> Mapping[str, Any]:
    """Make the calls of one workload in a worker that is frozen at entry and at return; ``candidate`` keeps the checks.

    ``runs``: on the emulated card, how each call on the workload's own inputs is run, and so how many there are; then
    those of stress rounds, as the first. Returns what the worker says when it is done.

    Raises :class:`solbench.evaluate.workers.WorkerFailure` (the candidate's verdict), :class:`RefereeFailure`.
    """
    secret = nonce()
    referee.ask(opening(problem, workload, plan, memory), limits.reference_s, (memory.descriptor,))
    schedule: list[int | None] = [*range(len(workload.stress_rounds))]
    if runs:
        runs = [*runs, *([runs[0]] * len(schedule))]
        schedule = [*([None] * (len(runs) - len(schedule))), *schedule]
    else:
        schedule += [None] * _random.randint(MIN_ROUNDS, MAX_ROUNDS)
        _random.shuffle(schedule)
    open_side(candidate, problem, workload, plan, axes, memory, limits, runs=runs)
    for number, stress in enumerate(schedule):
        seed = int(canonical.derived_key("sample seed", [secret.hex(), number])[:13], 16)
        referee.ask({"op": "draw", "seed": seed, "stress": stress}, limits.reference_s)
        referee.ask({"op": "arm", "byte": _random.randrange(2, 256)}, limits.reference_s)
        overrides = None if stress is None else workload.stress_rounds[stress].inputs
        scalars = None if overrides is None else scalars_of(problem, workload, overrides)
        take_turn(candidate, referee, None, limits, Round(keep=False, scalars=scalars, alone=True))
    said = close_side(candidate, limits)
    referee.ask({"op": "close"}, limits.reference_s)
    return said
