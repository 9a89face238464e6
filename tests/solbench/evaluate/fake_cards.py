"""Scripted cards: a session that owns one through the fake amdsmi, and an evaluation that only says what it was asked.

In a module of its own, for the processes of a measurement import it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from solbench.corpus.load import Problem
from solbench.device import rocm
from solbench.device.card import find
from solbench.device.ownership import own
from solbench.evaluate import cards, identity, jobs
from solbench.model.solution import Solution
from solbench.model.trace import Status, Trace
from solbench.model.workload import Workload

DEVICE_TESTS = Path(__file__).resolve().parents[1] / "device"
sys.path.insert(0, str(DEVICE_TESTS))

# Read by the processes of a run: seconds an evaluation takes; workload at which a process ends itself by a signal.
PAUSE_S, DIES_AT = "FAKE_PAUSE_S", "FAKE_DIES_AT"


@contextlib.contextmanager
def opened(seat: cards.Seat) -> Iterator[Any]:
    """In a process of a run."""
    sys.path.insert(0, str(DEVICE_TESTS / "fake_amdsmi"))
    jobs.evaluate = evaluate  # type: ignore[assignment]
    cards.controls_here = lambda *_, **__: None
    driver, card = find([rocm.start()], seat.uuid)
    with own(driver, card, seat.lock_dir) as mine:
        yield SimpleNamespace(
            card=SimpleNamespace(identity=lambda: asdict(card), clocks=mine.clocks),
            referee=lambda: SimpleNamespace(environment={"torch": "scripted"}),
            floors=lambda: {"python": {"event_s": 1e-6 * int(seat.uuid[-1])}},
            flush_bytes=1, isolation=SimpleNamespace(names=("none",)), estimate=lambda *_: 0.0,
            available_memory=lambda: 2**40, transport="ipc",
        )  # fmt: skip


def evaluate(
    problem: Problem, solution: Solution, *, workloads: Sequence[Workload], target: str, time_left: Any, **_: Any
) -> Iterator[Trace]:
    for workload in workloads:
        if time_left() <= 0:
            return
        if f"{solution.name}/{workload.uuid}" == os.environ.get(DIES_AT):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(float(os.environ.get(PAUSE_S, "0")))
        yield Trace(
            definition=problem.definition.name, workload=workload.uuid, target=target, status=Status.TIMEOUT,
            workload_digest=identity.workload_digest(problem, workload), solution=solution.name,
            solution_digest=identity.solution_digest(solution), reason="scripted",
        )  # fmt: skip
