"""Measuring on several cards at once: one process a card, jobs from one queue, one set at the end.

Each process owns its card, with its own session, and appends to a part of the set; the parent hands out the jobs in
their order and gathers the parts. Whoever is killed, the next run gathers what there is and goes on.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from solbench.corpus.load import Problem
from solbench.device import evidence, locks
from solbench.device.card import Card, Driver, drivers_for, refuse_busy
from solbench.device.ownership import BORROWED
from solbench.errors import InputError, SolbenchError, UndecidedError
from solbench.evaluate import sandbox
from solbench.evaluate.controls import controls_here, refuse
from solbench.evaluate.jobs import Estimates, Job, Work, jobs
from solbench.evaluate.measure import Summary, finish, header, report_kept
from solbench.evaluate.merging import Key, by_card, require_same
from solbench.evaluate.processes import exit_text
from solbench.evaluate.recording import Appender, Writer
from solbench.evaluate.session import Session, Transport
from solbench.model.trace import Protocol, SetHeader

# A child ends its session's processes, restores the clocks and writes its receipt.
END_LIMIT_S = 60.0


@dataclass(frozen=True)
class Seat:
    """One card to measure on, and how."""

    target: str
    uuid: str
    lock_dir: Path
    unsandboxed: bool
    transport: Transport = "ipc"


OpenSession = Callable[[Seat], AbstractContextManager[Session]]


def open_session(seat: Seat) -> AbstractContextManager[Session]:
    """A session that owns the card of ``seat`` from its start to its end."""
    return Session(
        target=seat.target, uuid=seat.uuid, lock_dir=seat.lock_dir, unsandboxed=seat.unsandboxed,
        transport=seat.transport,
    )  # fmt: skip


def seats_here(target: str, count: int, lock_dir: Path | None, unsandboxed: bool) -> tuple[Seat, ...]:
    """:func:`seats` of this machine. :class:`UnsupportedError` where no platform's driver answers."""
    return seats(drivers_for(target), target, count, lock_dir, unsandboxed)


def seats(
    found: Sequence[Driver], target: str, count: int, lock_dir: Path | None, unsandboxed: bool,
    environment: Mapping[str, str] = os.environ,
) -> tuple[Seat, ...]:  # fmt: skip
    """The first ``count`` free cards of ``target`` by UUID; the one that ``GPU_LOCK_UUID`` names, if it does.

    :class:`InputError` when so many are not here, :class:`UndecidedError` saying what keeps them from being free.
    """
    folder, named = locks.directory(lock_dir, environment), locks.uuid(None, environment)
    if named is not None and count > 1:
        raise InputError(locks.UUID, f"names one card; unset it for --workers {count}")
    cards = [(driver, card) for driver in found for card in driver.cards() if card.arch == target]
    cards = [pair for pair in cards if named is None or pair[1].uuid.lower() == named.lower()]
    cards.sort(key=lambda pair: pair[1].uuid)
    if len(cards) < count:
        here = f"only {len(cards)}" if cards else "no"
        raise InputError(f"--workers {count}", f"{here} {target} card{'s' * (len(cards) != 1)} here")
    # Under `solbench device lock` the card is an ancestor's, and lent.
    lent = bool(environment.get(BORROWED))
    reasons = {card.uuid: None if lent else _taken(driver, card, folder) for driver, card in cards}
    free = [uuid for uuid, reason in reasons.items() if reason is None]
    if len(free) < count:
        why = "; ".join(reason for reason in reasons.values() if reason)
        raise UndecidedError(f"--workers {count}: {len(free)} of {len(cards)} {target} cards free: {why}")
    return tuple(Seat(target, uuid, folder, unsandboxed) for uuid in free[:count])


def _taken(driver: Driver, card: Card, folder: Path) -> str | None:
    """What keeps a card, or None."""
    if locks.is_held(locks.ownership(folder, card.uuid)):
        return f"{card.uuid} is owned by another process"
    if evidence.read(folder, card.uuid) is not None:
        return f"{card.uuid} was left unrecovered, run `solbench device recover --uuid {card.uuid}`"
    try:
        refuse_busy(card, driver.observe(card), ())
    except UndecidedError as error:
        return str(error)
    return None


class CardFailure(SolbenchError):
    """What a child said before it ended, with its exit code; 3 where it could say nothing."""

    def __init__(self, message: str, exit_code: int = UndecidedError.exit_code) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass
class _Child:
    """A process, the parent's end of its link, the job that it has in hand, and what it has told so far."""

    seat: Seat
    process: SpawnProcess
    link: Connection
    job: Job | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    omissions: int = 0
    failure: CardFailure | None = None

    def receive(self, say: Callable[[str], None]) -> tuple[Any, ...] | None:
        """The next message that is not for the user; None when there will be none, and why is in ``failure``."""
        while True:
            try:
                message: tuple[Any, ...] = self.link.recv()
            except (EOFError, ConnectionResetError):
                self.process.join(END_LIMIT_S)
                if self.process.exitcode is None or self.process.exitcode != 0 or self.job is not None:
                    how = "hangs" if self.process.exitcode is None else exit_text(self.process.exitcode)
                    doing = f" in {self.job.name}" if self.job is not None else ""
                    self.failure = self.failure or CardFailure(f"{self.seat.uuid}: its process {how}{doing}")
                return None
            if message[0] == "say":
                say(f"{self.seat.uuid}: {message[1]}")
            elif message[0] == "failed":
                self.failure = CardFailure(message[2], message[1])
            else:
                return message


def measure_on_cards(
    problems: Sequence[Problem],
    out: Path,
    cards: Sequence[Seat],
    *,
    protocol: Protocol,
    candidates: Sequence[str] | None = None,
    estimates: Estimates | None = None,
    budget_s: float | None = None,
    final: bool = False,
    hardware: Mapping[str, Any] | None = None,
    opened: OpenSession = open_session,
    progress: Callable[[str], None] | None = None,
) -> Summary:
    """Like :func:`solbench.evaluate.measure.measure`, with one process a card.

    Nothing is measured unless every card can be had. A process that ends before its time takes its card out of the run
    and leaves its job for the next one; the others go on, and :class:`CardFailure` comes at the end.
    """
    start = time.monotonic()
    deadline = None if budget_s is None else start + budget_s
    say = progress or (lambda text: None)
    todo = jobs(problems, candidates)
    children: list[_Child] = []
    try:
        context = multiprocessing.get_context("spawn")
        for seat in cards:
            ours, theirs = context.Pipe()
            settings = (seat, opened, todo, protocol, estimates, deadline, hardware, os.getpid())
            process = context.Process(target=_serve, args=(theirs, *settings), name=seat.uuid, daemon=True)
            process.start()
            theirs.close()
            children.append(_Child(seat, process, ours))
        headers = [_ready(child, say) for child in children]
        for seat, head in zip(cards[1:], headers[1:], strict=True):
            require_same(head, headers[0], f"{seat.uuid} and {cards[0].uuid}")
        with Writer(out, headers[0]) as writer:
            report_kept(writer, say)
            try:
                _hand_out(children, todo, writer, deadline, say)
            finally:
                _end(children)
                writer.gather()
            failed = next((child.failure for child in children if child.failure is not None), None)
            counts, omissions = _totals(children)
            summary = finish(writer, todo, final and failed is None, counts, omissions, start)
        if failed is not None:
            raise CardFailure(f"{failed}; {summary}", failed.exit_code)
        return summary
    finally:
        _end(children)


def _ready(child: _Child, say: Callable[[str], None]) -> SetHeader:
    """Header of what a child measures on; its failure where it cannot."""
    message = child.receive(say)
    if message is None:
        raise child.failure or CardFailure(f"{child.seat.uuid}: its process ended")
    return by_card(SetHeader.load(message[1], child.seat.uuid))


def _hand_out(
    children: Sequence[_Child], todo: Sequence[Job], writer: Writer, deadline: float | None, say: Callable[[str], None]
) -> None:
    """Give every child a part to write and one job after the other, until none is left or the time is over."""
    queue = iter([number for number, job in enumerate(todo) if job.left(writer.finished)])
    for child in children:
        _send(child, str(writer.part(child.seat.uuid)))
    busy = {child.link: child for child in children}
    for child in children:
        _next(child, todo, queue, writer.finished, deadline)
    while busy:
        for link in wait(list(busy)):
            child = busy[link]  # type: ignore[index]
            message = child.receive(say)
            if message is None:
                del busy[child.link]
                continue
            _, child.statuses, child.omissions = message
            child.job = None
            _next(child, todo, queue, writer.finished, deadline)


def _next(child: _Child, todo: Sequence[Job], queue: Any, finished: set[Key], deadline: float | None) -> None:
    """The next job, or the end."""
    number = None if deadline is not None and time.monotonic() >= deadline else next(queue, None)
    if number is None:
        _send(child, None)
        return
    child.job = todo[number]
    _send(child, (number, [key for key in child.job.keys() if key in finished]))  # noqa: SIM118


def _send(child: _Child, message: Any) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it has ended, which receiving will tell
        child.link.send(message)


def _totals(children: Sequence[_Child]) -> tuple[dict[str, int], int]:
    statuses: dict[str, int] = {}
    for child in children:
        for status, count in child.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    return statuses, sum(child.omissions for child in children)


def _end(children: Sequence[_Child]) -> None:
    """End what is left of the children, in order where they do not hang."""
    for child in children:
        child.link.close()
        if child.process.is_alive():
            child.process.terminate()
    for child in children:
        child.process.join(END_LIMIT_S)
        if child.process.is_alive():
            child.process.kill()
            child.process.join()


def _serve(
    link: Connection, seat: Seat, opened: OpenSession, todo: Sequence[Job], protocol: Protocol,
    estimates: Estimates | None, deadline: float | None, hardware: Mapping[str, Any] | None, parent: int,
) -> None:  # fmt: skip
    """A child: own the card, tell what it is, do the jobs that it is given."""
    # With the parent gone it ends as by SIGTERM: clocks are restored, the receipt is written.
    sandbox.die_with_parent(signal.SIGTERM)
    if os.getppid() != parent:
        return
    try:
        with opened(seat) as session:
            controls = controls_here(session, hardware, progress=_say(link))
            refuse(controls or ())
            head = header(session, seat.target, protocol, hardware, controls)
            link.send(("ready", head.as_dict()))
            with Appender(Path(link.recv()), head) as records:
                work = Work(session, records, protocol, seat.target, estimates, deadline, _say(link))
                while (order := link.recv()) is not None:
                    number, finished = order
                    work.do(todo[number], {*finished, *records.finished})
                    link.send(("done", {str(name): count for name, count in work.statuses.items()}, work.omissions))
    except SolbenchError as error:
        link.send(("failed", error.exit_code, str(error)))
        raise SystemExit(error.exit_code) from None
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise SystemExit(UndecidedError.exit_code) from None  # the parent has ended, or gives up
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _say(link: Connection) -> Callable[[str], None]:
    return lambda text: link.send(("say", text))
