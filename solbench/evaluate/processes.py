"""The orchestrator's end of its own processes: the referee here, zygotes and workers in ``workers.py``. No torch.

Every wait has a deadline. A process that dies or answers late is a :class:`RefereeFailure`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from solbench.errors import UndecidedError
from solbench.evaluate import frames, freeze, sandbox

START_LIMIT_S = 120.0
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
# -I: no environment, no user site, no current folder in the path; the package is put there by hand and taken out again.
_BOOT = (
    "import sys; sys.path.insert(0, {root!r}); from solbench.evaluate.{module} import main; sys.path.pop(0); "
    "main({arguments})"
)


class RefereeFailure(Exception):
    """The reference failed (``reason``); the workload is INVALID_REFERENCE. ``died``: the process is gone."""

    def __init__(self, reason: str, *, died: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.died = died


class Trusted:
    """One of our own processes behind a channel that answers each frame with one frame.

    It is starting when the constructor returns; :meth:`ready` waits for its first frame.
    """

    def __init__(
        self, module: str, arguments: str, environment: Mapping[str, str], *, prefix: Sequence[str] = ()
    ) -> None:
        """``prefix``: start of a command line that runs the rest of it elsewhere."""
        ours, theirs = socket.socketpair()
        self._channel = ours
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        self._name = module
        fd = theirs.fileno()
        code = _BOOT.format(root=_PACKAGE_ROOT, module=module, arguments=f"{fd}, {arguments}")
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-I", "-B", "-X", "faulthandler", "-c", code],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, cwd="/", env=dict(environment),
            pass_fds=(fd,), start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self._hello: frames.Message | None = None

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    def ready(self) -> frames.Message:
        """Its first frame; :class:`UndecidedError` when it does not start."""
        if self._hello is None:
            try:
                self._hello, _ = self.read(START_LIMIT_S)
            except RefereeFailure as error:
                raise UndecidedError(_start_failure(error.reason)) from None
        return self._hello

    def alive(self) -> bool:
        return self.process.poll() is None

    def call(self, message: frames.Message, timeout_s: float, fds: tuple[int, ...] = ()) -> frames.Message:
        """Send one frame and return the answer."""
        return self.exchange(message, timeout_s, fds)[0]

    def exchange(
        self, message: frames.Message, timeout_s: float, fds: tuple[int, ...] = ()
    ) -> tuple[frames.Message, list[int]]:
        """Send one frame and return the answer with the descriptors beside it, which are the caller's to close."""
        try:
            self._channel.settimeout(timeout_s)
            frames.send(self._channel, message, fds)
            return self.read(timeout_s)
        except (BrokenPipeError, ConnectionResetError):
            raise RefereeFailure(f"the {self._name} process died{self.last_words()}", died=True) from None

    def read(self, timeout_s: float) -> tuple[frames.Message, list[int]]:
        """The next frame, and the descriptors beside it."""
        self._channel.settimeout(timeout_s)
        try:
            received = frames.receive(self._channel)
        except TimeoutError:
            self.kill()
            reason = f"the {self._name} process gave no answer within {timeout_s:g} s"
            raise RefereeFailure(reason, died=True) from None
        except ConnectionResetError:
            received = None
        if received is None:
            raise RefereeFailure(f"the {self._name} process died{self.last_words()}", died=True)
        return received

    def last_words(self) -> str:
        """What it left on stderr, as the end of a sentence."""
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 2000))
        text = self._log.read().decode("utf-8", "replace").strip()
        cause = f" ({exit_text(code)})"
        return f"{cause}: {text}" if text else cause

    def kill(self) -> None:
        if self.alive():
            freeze.kill([self.pid])
        self.process.wait()

    def close(self) -> None:
        """Let it end by itself (it cleans up when its channel closes), else kill it."""
        with contextlib.suppress(OSError):
            frames.send(self._channel, {"op": "end"})
            # Closing now, with a frame of it unread, would reset the channel and take "end" with it.
            self._channel.shutdown(socket.SHUT_WR)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
        self._channel.close()
        self._log.close()


class Referee(Trusted):
    """The trusted process with the reference; see ``referee.py``."""

    def __init__(self, threads: int, flush_bytes: int, device: Mapping[str, Any] | None = None) -> None:
        """``device``: the card that it works on, see :mod:`solbench.evaluate.compute`; None is the host."""
        # No folder of its own, which a kill of this process would leave behind. Its idle threads must sleep at once: a
        # spinning one would take a processor from the call that is timed.
        environment = sandbox.environment("/nonexistent", threads)
        environment |= {"TMPDIR": tempfile.gettempdir(), "OMP_WAIT_POLICY": "PASSIVE"}
        self.on_a_card = device is not None
        super().__init__("referee", f"{flush_bytes}, {json.dumps(device)!r}", environment)

    @property
    def environment(self) -> dict[str, str]:
        """What it computes with."""
        return {name: str(value) for name, value in self.ready()["environment"].items()}

    @property
    def flush_bytes(self) -> int:
        """What a flush writes."""
        return int(self.ready()["flush_bytes"])

    def ask(self, message: frames.Message, timeout_s: float, fds: tuple[int, ...] = ()) -> frames.Message:
        """Answer to one frame; :class:`RefereeFailure` when the reference failed, died or hung."""
        self.ready()
        reply = self.call(message, timeout_s, fds)
        if not reply.get("ok"):
            raise RefereeFailure(str(reply.get("reason", "no reason given")))
        return reply


def exit_text(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _start_failure(reason: str) -> str:
    if "No module named 'torch'" in reason:
        return "PyTorch is not installed here; run `pip install 'solbench[run]'`"
    return reason
