"""A verdict without a time: the candidate alone, every call on fresh values and checked, as in the sample protocol.

For what runs elsewhere than where it would be timed: a Triton kernel under Triton's interpreter.
"""

from __future__ import annotations

import random

from solbench import canonical
from solbench.corpus.load import Problem
from solbench.evaluate import arena, sampling
from solbench.evaluate.arena import Shared
from solbench.evaluate.processes import Referee
from solbench.evaluate.sampling import Limits, Side
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
) -> None:
    """Make the calls of one workload in a worker that is frozen at entry and at return; ``candidate`` keeps the checks.

    Raises :class:`solbench.evaluate.workers.WorkerFailure` (the candidate's verdict), :class:`RefereeFailure`.
    """
    secret = nonce()
    referee.ask(sampling.opening(problem, workload, plan, memory), limits.reference_s, (memory.descriptor,))
    sampling.open_side(candidate, problem, workload, plan, axes, memory, limits)
    schedule: list[int | None] = [*range(len(workload.stress_rounds))]
    schedule += [None] * _random.randint(MIN_ROUNDS, MAX_ROUNDS)
    _random.shuffle(schedule)
    for number, stress in enumerate(schedule):
        seed = int(canonical.derived_key("sample seed", [secret.hex(), number])[:13], 16)
        referee.ask({"op": "draw", "seed": seed, "stress": stress}, limits.reference_s)
        referee.ask({"op": "arm", "byte": _random.randrange(2, 256)}, limits.reference_s)
        overrides = None if stress is None else workload.stress_rounds[stress].inputs
        scalars = None if overrides is None else sampling.scalars_of(problem, workload, overrides)
        sampling.take_turn(candidate, referee, None, limits, sampling.Round(False, scalars, True))
    sampling.close_side(candidate, limits)
    referee.ask({"op": "close"}, limits.reference_s)
