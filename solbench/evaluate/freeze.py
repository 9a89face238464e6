"""Stopping and continuing a tree of processes, verified through /proc. Standard library only.

A tree is found from the children lists of its threads; it is complete once every process in it is stopped, since a
stopped process starts no other.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

_STOPPED = frozenset(b"TtZX")


class FreezeError(Exception):
    """A process would not stop in time."""


def descendants(pid: int, *, stop: bool = False) -> list[int]:
    """Process ids below ``pid`` (not itself), parents first; ``stop`` each, ``pid`` first, before its children are
    looked up, which takes longer the more threads it has."""
    found: list[int] = []
    pending = [pid]
    if stop:
        _signal(pid, signal.SIGSTOP)
    while pending:
        for child in children(pending.pop()):
            if child not in found:
                if stop:
                    _signal(child, signal.SIGSTOP)
                found.append(child)
                pending.append(child)
    return found


def children(pid: int) -> list[int]:
    """Direct children of every thread of ``pid``; empty when it is gone."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return found or ([] if _has_children_files() else _children_by_scan(pid))
    except (ProcessLookupError, PermissionError):
        return found
    return found


def freeze(roots: Iterable[int], timeout_s: float = 5.0) -> list[int]:
    """Stop ``roots`` and all their descendants; returns the process ids. :class:`FreezeError` after ``timeout_s``."""
    roots = list(roots)
    deadline = time.monotonic() + timeout_s
    known: list[int] = []
    while True:
        # All at once on the way down: what is not stopped yet works on after its time has been taken.
        tree = roots + [pid for root in roots for pid in descendants(root, stop=not known)]
        running = [pid for pid in tree if not is_stopped(pid)]
        if not running and tree == known:
            return tree
        for pid in running:
            _signal(pid, signal.SIGSTOP)
        if tree == known:
            time.sleep(50e-6)  # signalled, but not stopped yet: leave it a processor to stop on
        known = tree
        if time.monotonic() > deadline:
            raise FreezeError(f"{len(running)} processes do not stop")


def thaw(pids: Iterable[int]) -> None:
    """Continue the given processes."""
    for pid in pids:
        _signal(pid, signal.SIGCONT)


def kill(roots: Iterable[int], timeout_s: float = 5.0) -> bool:
    """End ``roots`` and all their descendants; stops them first, so that none starts another meanwhile.

    False when they would not stop, and some may have escaped.
    """
    roots = list(roots)
    stopped = True
    try:
        tree = freeze(roots, timeout_s)
    except FreezeError:
        stopped = False
        tree = roots + [pid for root in roots for pid in descendants(root)]
    for pid in reversed(tree):
        _signal(pid, signal.SIGKILL)
    return stopped


def pid_of(pidfd: int) -> int:
    """Process id, as seen from this process, of a descriptor that may come from another PID namespace.

    :class:`ProcessLookupError` when the process is gone.
    """
    with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as file:
        pid = next(int(line.split()[1]) for line in file if line.startswith("Pid:"))
    if pid <= 0:  # which would be a group, or everybody, to kill()
        raise ProcessLookupError
    return pid


def is_stopped(pid: int) -> bool:
    """Whether every thread of ``pid`` is stopped or dead; true for a process that is gone."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return all(_state(pid, task) in _STOPPED for task in tasks)


def is_dead(pid: int) -> bool:
    """Whether ``pid`` is gone or a zombie."""
    return _state(pid, str(pid)) in b"ZX"


def _state(pid: int, task: str) -> int:
    try:
        with open(f"/proc/{pid}/task/{task}/stat", "rb") as file:
            # The name in parentheses may hold anything, parentheses included.
            return file.read().rpartition(b")")[2].split(None, 1)[0][0]
    except (FileNotFoundError, ProcessLookupError):
        return b"X"[0]


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _has_children_files() -> bool:
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _children_by_scan(pid: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    if int(file.read().rpartition(b")")[2].split()[1]) == pid:
                        found.append(int(name))
            except (OSError, ValueError, IndexError):
                continue
    return found
