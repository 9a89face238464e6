"""Measure a corpus into a measurement set: every chosen solution of every problem, within a budget of time.

Needs neither DVC nor git. A set that is not finished stays ``<name>.jsonl.partial``, and the next run goes on; one that
is closed before everything was attempted says of each workload that there was no time for it.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.corpus.load import Problem
from solbench.device import cpu
from solbench.evaluate import compilers, identity
from solbench.evaluate.controls import refuse
from solbench.evaluate.jobs import Estimates, Job, Work, jobs, omission
from solbench.evaluate.merging import BUDGET
from solbench.evaluate.protocols import protocol
from solbench.evaluate.recording import Writer
from solbench.evaluate.session import Session
from solbench.model.trace import Control, Protocol, SetHeader


@dataclass(frozen=True)
class Summary:
    """What a measurement run did: traces by status, omissions, seconds spent; and ``done`` of ``total`` records that
    the set has now. It is closed when none is left.
    """

    statuses: dict[str, int]
    omissions: int
    seconds: float
    done: int
    total: int

    @property
    def left(self) -> int:
        return self.total - self.done

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        text = f"{counts or 'nothing measured'}; {self.omissions} omitted; {self.seconds:.0f} s"
        if self.left:
            longer = "" if self.statuses or self.omissions else " with more time"
            text += f"; {self.done} of {self.total} done, run again{longer} to go on"
        return text


def measure(
    problems: Sequence[Problem],
    out: Path,
    *,
    target: str = "cpu",
    protocol: Protocol = protocol("quick"),  # noqa: B008 (a frozen value)
    candidates: Sequence[str] | None = None,
    estimates: Estimates | None = None,
    budget_s: float | None = None,
    final: bool = False,
    hardware: Mapping[str, Any] | None = None,
    controls: Sequence[Control] | None = None,
    withheld: str | None = None,
    session: Session | None = None,
    progress: Callable[[str], None] | None = None,
) -> Summary:
    """Write the set ``out``; resumes what an earlier call left behind, and leaves a complete set as it is.

    ``candidates``: names of solutions (``eager`` is the baseline against itself); None: all. ``estimates``: seconds a
    call by (problem key, uuid), or a function of problem and workload; where it knows nothing, one reference call is
    timed. Workloads above ``protocol.max_call_s`` are omitted. When ``budget_s`` is spent the run ends after the
    workload in hand: what is left waits for the next call, or is omitted if the set is to be ``final``.
    ``hardware``: the machine model that goes into the header. ``controls``: what was sampled just now, in ``session``
    (:mod:`solbench.evaluate.controls`); :class:`UndecidedError` where one reads wrong. None: not run. ``withheld``: why
    nothing is to be measured, such as a control that reads wrong; then the set is one of omissions with this reason.
    """
    if controls is not None and withheld is None:
        refuse(controls)
    start = time.monotonic()
    say = progress or (lambda text: None)
    todo = jobs(problems, candidates)
    with ExitStack() as stack:
        if session is None:
            session = stack.enter_context(Session(target=target))
        writer = stack.enter_context(Writer(out, header(session, target, protocol, hardware, controls)))
        deadline = None if budget_s is None else start + budget_s
        work = Work(session, writer, protocol, target, estimates, deadline, say)
        report_kept(writer, say)
        for job in todo if withheld is None else ():
            work.do(job, writer.finished)
        final = final or withheld is not None
        return finish(writer, todo, final, work.statuses, work.omissions, start, withheld or BUDGET)


def report_kept(writer: Writer, say: Callable[[str], None]) -> None:
    if writer.finished:
        say(f"{len(writer.finished)} records of an earlier run are kept")


def finish(
    writer: Writer, todo: Sequence[Job], final: bool, statuses: Mapping[str, int], omissions: int, start: float,
    reason: str = BUDGET,
) -> Summary:  # fmt: skip
    """Complete the set if nothing of ``todo`` is left, or if it is to be ``final``: then what is left is omitted for
    ``reason``."""
    total = len(writer.finished.union(*(job.keys() for job in todo)))
    if final:
        for job in todo:
            for workload in job.left(writer.finished):
                writer.add(job.problem.key, omission(job, workload, reason))
                omissions += 1
    done = len(writer.finished)
    if done == total:
        writer.complete()
    return Summary(dict(statuses), omissions, time.monotonic() - start, done, total)


def header(
    session: Session,
    target: str,
    protocol: Protocol,
    hardware: Mapping[str, Any] | None,
    controls: Sequence[Control] | None = None,
) -> SetHeader:
    """First line of a set: what everything below it ran on."""
    environment = {
        **session.referee().environment,
        "system": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        **compilers.titles(target if session.card else None),
    }
    floors = session.floors()
    return SetHeader(
        schema="solbench.measurement-set.v1",
        target=target,
        protocol=protocol.model_copy(update={"isolation": session.isolation.names}),
        harness=identity.harness_digest(),
        environment=environment,
        device={
            **(session.card.identity() if session.card else cpu.identity()),
            **({"transport": session.transport} if session.card else {}),
            "flush_bytes": session.flush_bytes,
            "floors": floors,
        },
        floor_s=min(floor["event_s"] for floor in floors.values()),
        clocks="locked" if session.card and session.card.clocks.locked else "unlocked",
        hardware=dict(hardware) if hardware is not None else None,
        controls=tuple(controls) if controls is not None else None,
    )
