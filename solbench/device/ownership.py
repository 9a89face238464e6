"""Owning a card: L1 for everything from the first look to the final receipt, L2 for device work, one at a time.

An owner writes its evidence before it touches the clocks. When it ends, however that happens short of a kill, it drains
the process groups that it supervises, restores the level, writes a receipt, removes the evidence and unlocks, in this
order. What cannot be verified stays as evidence and blocks the next owner until :func:`recover`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from solbench.device import clocks, drain, evidence, locks
from solbench.device.card import Card, Driver, Observation, refuse_busy, refuse_override
from solbench.errors import UndecidedError

# Names the owner from whom a child borrows L1: the token in the owner's evidence.
BORROWED = "SOLBENCH_GPU_L1"
GRACE_S = 5.0
_local = threading.local()


class Ownership:
    """A held card; made by :func:`own`. ``borrowed``: it is an ancestor's, who also has the duty to restore."""

    def __init__(
        self, card: Card, folder: Path, token: str, clocks_: clocks.Clocks, *,
        handle: int | None, driver: Driver, before: Observation | None = None,
    ) -> None:  # fmt: skip
        self.card = card
        self.clocks = clocks_
        self.borrowed = handle is None
        self._folder = folder
        self._token = token
        self._handle = handle
        self._driver = driver
        self._before = before
        self._pid = os.getpid()
        self._started_s = time.time()
        self._groups: list[subprocess.Popen[bytes]] = []
        self._execution: int | None = None
        self._released = False

    @contextlib.contextmanager
    def execution(self, timeout_s: float = 60.0) -> Iterator[None]:
        """Hold L2: device work, one at a time. Nested use by the same thread is the same hold."""
        if self._execution is not None:
            yield
            return
        handle = locks.wait(locks.execution(self._folder, self.card.uuid), timeout_s)
        if handle is None:
            raise UndecidedError(f"{self.card.uuid}: other work of its owner runs there since {timeout_s:g} s or more")
        self._execution = handle
        try:
            yield
        finally:
            self._execution = None
            locks.release(handle)

    def lend(self) -> tuple[dict[str, str], tuple[int, ...]]:
        """Environment and descriptors (``pass_fds``) with which a child borrows L1.

        The descriptor keeps L1 held while such a child outlives a killed owner.
        """
        environment = {
            BORROWED: self._token, locks.DIRECTORY: str(self._folder), locks.UUID: self.card.uuid,
        }  # fmt: skip
        return environment, () if self._handle is None else (self._handle,)

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own, which borrows L1 and is drained before L1 is given up."""
        lent, handles = self.lend()
        process = subprocess.Popen(
            list(command), env={**environment, **lent}, pass_fds=handles, start_new_session=True
        )  # fmt: skip
        self._groups.append(process)
        return process

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """:meth:`start`, wait, end what is left of the group; the exit code as a shell would give it."""
        process = self.start(command, environment)
        drain.wait(process)
        left = drain.end(process, GRACE_S)
        if left:
            raise UndecidedError(f"{self.card.uuid}: {left}")
        self._groups.remove(process)
        return process.returncode if process.returncode >= 0 else 128 - process.returncode

    def release(self) -> None:
        """Drain, restore, receipt, unlock. :class:`UndecidedError` when that could not be verified: evidence stays."""
        if self._released or os.getpid() != self._pid:  # a forked child has no part in it
            return
        self._released = True
        stuck = [left for process in self._groups if (left := drain.end(process, GRACE_S))]
        if self._handle is None:
            return
        try:
            self._give_back(stuck)
        finally:
            locks.release(self._handle)

    def _give_back(self, stuck: list[str]) -> None:
        uuid = self.card.uuid
        if self.clocks.set is not None and self.clocks.found is not None:
            failed = clocks.restore(self._driver, self.card, self.clocks.found)
            if failed:
                stuck.append(f"level {self.clocks.found} not restored: {failed}")
        if stuck:
            left = evidence.read(self._folder, uuid)
            if left is not None:
                evidence.write(self._folder, replace(left, state="; ".join(stuck)))
            raise UndecidedError(f"{uuid}: {'; '.join(stuck)}; run `solbench device recover --uuid {uuid}`")
        after = None
        with contextlib.suppress(UndecidedError):
            after = self._driver.observe(self.card)
        receipt = {
            "card": asdict(self.card), "owner": asdict(evidence.this_process()), "clocks": asdict(self.clocks),
            "restored": None if self.clocks.set is None else self.clocks.found,
            "before": self._before and asdict(self._before), "after": after and asdict(after),
            "started_s": self._started_s, "ended_s": time.time(),
        }  # fmt: skip
        evidence.write_receipt(self._folder, uuid, receipt)
        evidence.remove(self._folder, uuid)


@contextlib.contextmanager
def own(
    driver: Driver, card: Card, folder: Path, *, timeout_s: float = 0.0, environment: Mapping[str, str] = os.environ
) -> Iterator[Ownership]:
    """Own ``card``: take L1 within ``timeout_s``, refuse a busy or unrecovered card, make its clocks stable.

    A nested call of the same thread gives the same ownership; one below an owner's child borrows from it.
    :class:`UndecidedError`: owned by another, left unrecovered, or busy. SIGTERM and SIGINT end the block; what follows
    it here is done first.
    """
    refuse_override(environment)
    held = _scopes()
    key = (str(folder), card.uuid)
    if key in held and held[key]._pid == os.getpid():
        yield held[key]
        return
    deadline = time.monotonic() + timeout_s
    mine: Ownership | None = None
    with drain.Signals() as signals:
        try:
            # Twice: a signal comes through once, and might do so before the inner clean-up begins.
            try:
                while mine is None:
                    with signals.held():
                        mine = _borrow(driver, card, folder, environment) or _acquire(driver, card, folder)
                    if mine is None and time.monotonic() >= deadline:
                        raise UndecidedError(f"{card.uuid}: {_owner(folder, card.uuid)}; wait for it, or end it")
                    if mine is None:
                        time.sleep(0.05)
                held[key] = mine
                yield mine
            finally:
                _close(signals, held, key, mine)
        finally:
            _close(signals, held, key, mine)


def recover(driver: Driver, card: Card, folder: Path) -> evidence.Evidence | None:
    """Restore what an owner that is gone left behind, verify it and remove the evidence; None if there was none.

    :class:`UndecidedError` when somebody owns the card, or the level cannot be restored.
    """
    handle = locks.attempt(locks.ownership(folder, card.uuid))
    if handle is None:
        raise UndecidedError(f"{card.uuid}: {_owner(folder, card.uuid)}; there is nothing to recover before it ends")
    try:
        left = evidence.read(folder, card.uuid)
        if left is None:
            return None
        if left.level_set is not None and left.level_found is not None:
            failed = clocks.restore(driver, card, left.level_found)
            if failed:
                raise UndecidedError(f"{card.uuid}: level {left.level_found} not restored: {failed}")
        evidence.remove(folder, card.uuid)
        return left
    finally:
        locks.release(handle)


def _scopes() -> dict[tuple[str, str], Ownership]:
    if not hasattr(_local, "scopes"):
        _local.scopes = {}
    scopes: dict[tuple[str, str], Ownership] = _local.scopes
    return scopes


def _close(
    signals: drain.Signals, held: dict[tuple[str, str], Ownership], key: tuple[str, str], mine: Ownership | None
) -> None:
    with signals.held():
        if mine is not None:
            held.pop(key, None)
            mine.release()


def _borrow(driver: Driver, card: Card, folder: Path, environment: Mapping[str, str]) -> Ownership | None:
    token = environment.get(BORROWED)
    if not token:
        return None
    left = evidence.read(folder, card.uuid)
    if left is None or left.token != token or not locks.is_held(locks.ownership(folder, card.uuid)):
        if environment.get(locks.UUID, card.uuid) != card.uuid:
            return None  # what is lent is another card
        raise UndecidedError(f"{BORROWED}: {card.uuid} is no longer owned by whom this names; unset it")
    found = clocks.Clocks(left.level_found, left.level_set, False, None)
    now = driver.level(card) if left.level_set else None
    locked = left.level_set is not None and now == left.level_set
    why = None if locked else "its owner holds no stable level"
    return Ownership(card, folder, token, replace(found, locked=locked, why=why), handle=None, driver=driver)


def _acquire(driver: Driver, card: Card, folder: Path) -> Ownership | None:
    handle = locks.attempt(locks.ownership(folder, card.uuid))
    if handle is None:
        return None
    mine: Ownership | None = None
    try:
        left = evidence.read(folder, card.uuid)
        if left is not None:
            state = "was killed" if left.state == evidence.OWNED else left.state
            raise UndecidedError(
                f"{card.uuid}: its last owner (pid {left.owner.pid}: {left.owner.command}) left it: {state}; "
                f"run `solbench device recover --uuid {card.uuid}`"
            )
        before = driver.observe(card)
        refuse_busy(card, before, {os.getpid()})
        planned = clocks.plan(driver, card)
        token, owner = secrets.token_hex(16), evidence.this_process()
        evidence.write(folder, evidence.Evidence(card.uuid, token, owner, planned.found, planned.set))
        mine = Ownership(card, folder, token, planned, handle=handle, driver=driver, before=before)
        mine.clocks = clocks.engage(driver, card, planned)
        return mine
    except BaseException:
        if mine is not None:
            mine.release()
        else:
            locks.release(handle)
        raise


def _owner(folder: Path, uuid: str) -> str:
    try:
        left = evidence.read(folder, uuid)
    except UndecidedError:
        left = None
    return "owned by another process" if left is None else f"owned by pid {left.owner.pid} ({left.owner.command})"
