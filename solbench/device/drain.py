"""Ending supervised process groups, and signals that end a block of code but never its clean-up."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_END_LIMIT_S = 10.0


class Signals:
    """SIGTERM and SIGINT end the ``with`` block, as SystemExit(143) and KeyboardInterrupt: the first one only.

    One that arrives inside :meth:`held` is raised at its end. In a thread other than the main one nothing changes: no
    signal is delivered there.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._depth = 0
        self._pending: int | None = None
        self._raised = False

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._pending is not None and not self._depth:
            self._raise(self._pending)

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self._depth:
            self._pending = self._pending or number
        else:
            self._raise(number)

    def _raise(self, number: int) -> None:
        if self._raised:
            return
        self._raised = True
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def wait(process: subprocess.Popen[bytes]) -> None:
    """Wait until the leader of a group has ended; it stays a zombie, so that its number still names the group."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def end(process: subprocess.Popen[bytes], grace_s: float) -> str | None:
    """End a whole process group, SIGTERM first, and reap its leader. None, or what would not end."""
    group = process.pid
    for number, limit_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _END_LIMIT_S)):
        if not members(group):
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
        deadline = time.monotonic() + limit_s
        while members(group) and time.monotonic() < deadline:
            time.sleep(0.01)
    left = members(group)
    if left:
        return f"processes {', '.join(map(str, left))} do not end"
    process.wait()
    return None


def members(group: int) -> list[int]:
    """Processes of a group that are alive."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, _, of_group = file.read().rpartition(b")")[2].split(None, 3)[:3]
        except OSError:
            continue
        if int(of_group) == group and state not in (b"Z", b"X"):
            found.append(int(name))
    return found
