"""The orchestrator's ends of the hostile side: the zygote that workers are forked from, and the workers. No torch.

Every wait has a deadline. A worker that dies, hangs or talks out of turn is a :class:`WorkerFailure` with the status
that its candidate gets.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import select
import signal
import socket
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from solbench.errors import UndecidedError
from solbench.evaluate import arena, frames, freeze, namespaces, sandbox
from solbench.evaluate.processes import START_LIMIT_S, RefereeFailure, Trusted, exit_text
from solbench.model.trace import Status

CPU_LIMIT_S = 4 * 3600
# What a worker does not get done whose message of this name does not come in time.
_TOO_LONG = {
    "loaded": "the solution was not loaded within the time limit",
    "ready": "the worker had not opened the workload within the time limit",
    "fetched": "the inputs were not on the card within the time limit",
    "done": "a call did not return within the time limit",
    "delivered": "a result was not handed over within the time limit",
    "profiled": "the profile was not made within the time limit",
    "closed": "the worker had not closed the workload within the time limit",
}
LOG_HEAD, LOG_TAIL = 4_000, 12_000
# How much a worker can print, and how long it can be ignored, until it has to wait for a reader.
LOG_PIPE_BYTES, LOG_INTERVAL_S = 1 << 20, 0.02


class WorkerFailure(Exception):
    """A candidate's verdict other than PASSED; ``detail`` is what it said itself (a traceback)."""

    def __init__(self, status: Status, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class CardAccess:
    """What a worker needs of a card: device nodes to open, and paths to read."""

    devices: tuple[str, ...]
    reads: tuple[str, ...]


class Zygote(Trusted):
    """The process that forks workers; ``torch`` says whether they have torch loaded."""

    def __init__(
        self, session: Path | None, threads: int, *, torch: bool, landlock: bool, card: CardAccess | None = None
    ) -> None:
        """``session``: the folder for the workers' folders; None: in namespaces of its own, in memory. ``card``: what
        they may open of a card."""
        self._outside = None if session is None else tempfile.mkdtemp(prefix="zygote-", dir=session)
        self.folder = self._outside or namespaces.PRIVATE_FOLDER
        self.threads = threads
        self.workers: dict[int, Worker] = {}
        self._landlock = landlock
        self._card = card
        self._pid: int | None = None
        environment = {**sandbox.environment(self.folder, threads), **sandbox.KEEPING_HEAP}
        arguments = f"{self.folder!r}, {threads if torch else 0}, {session is None}"
        reads, devices = (card.reads, card.devices) if card else ((), ())
        prefix = namespaces.command(reads=reads, devices=devices) if session is None else ()
        super().__init__("zygote", arguments, environment, prefix=prefix)

    @property
    def pid(self) -> int:
        """Of the interpreter; of the process that makes its namespaces while it is starting."""
        return self._pid if self._pid is not None else super().pid

    def ready(self) -> frames.Message:
        hello = super().ready()
        if hello.get("fault"):
            raise UndecidedError(f"torch cannot be imported ({hello['fault']}); run `pip install 'solbench[run]'`")
        return hello

    def read(self, timeout_s: float) -> tuple[frames.Message, list[int]]:
        message, fds = super().read(timeout_s)
        if message["op"] == "ready":
            try:
                self._pid = freeze.pid_of(fds[0])
            except ProcessLookupError:
                raise RefereeFailure(f"the zygote process died{self.last_words()}", died=True) from None
            finally:
                os.close(fds[0])
        return message, fds

    def kill(self) -> None:
        """End it and all its workers: at once where the kernel does so, with the first process of the namespaces."""
        if self._outside is None and self._pid is not None and self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self.process.wait()
        super().kill()

    def spawn(self, config: Mapping[str, Any], files: Mapping[str, bytes], memory: int, *, trusted: bool) -> Worker:
        """Fork a worker over the memory file ``memory`` with ``files`` in its private folder."""
        self.ready()
        folder = f"{self.folder}/worker-{secrets.token_hex(4)}"
        ours, theirs = socket.socketpair()
        log_read, log_write = os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(PermissionError):  # a user's pipes may be used up; the usual size serves
            fcntl.fcntl(log_write, fcntl.F_SETPIPE_SZ, LOG_PIPE_BYTES)
        config = {
            **config, "folder": folder, "environment": sandbox.environment(folder, self.threads),
            "memory_bytes": None if self._card else _address_space(self.pid), "cpu_s": CPU_LIMIT_S,
            "dumpable": not trusted, "landlock": self._landlock, "devices": self._card.devices if self._card else (),
            "files": {name: len(data) for name, data in files.items()},
        }  # fmt: skip
        contents = os.memfd_create("files", os.MFD_CLOEXEC)
        try:
            with open(contents, "wb", closefd=False) as target:
                target.writelines(files.values())
            message = {"op": "spawn", "config": config}
            reply, fds = self.exchange(message, START_LIMIT_S, (theirs.fileno(), log_write, memory, contents))
        except RefereeFailure as error:
            ours.close()
            os.close(log_read)
            raise WorkerFailure(Status.RUNTIME_ERROR, f"no worker could be started: {error.reason}") from None
        finally:
            theirs.close()
            os.close(log_write)
            os.close(contents)
        try:
            worker = Worker(self, fds[0], int(reply["pid"]), ours, log_read, folder)
        except ProcessLookupError:
            for handle in (fds[0], log_read):
                os.close(handle)
            ours.close()
            self.reap(int(reply["pid"]), folder)
            raise WorkerFailure(Status.RUNTIME_ERROR, "the worker was killed before its handshake") from None
        self.workers[worker.pid] = worker
        return worker

    def kill_orphans(self) -> None:
        """End processes that a worker left behind and that are now this zygote's children."""
        orphans = [pid for pid in freeze.children(self.pid) if pid not in self.workers and not freeze.is_dead(pid)]
        if orphans:
            freeze.kill(orphans)

    def reap(self, pid: int, folder: str) -> int | None:
        """Exit code of the worker that it knows as ``pid`` and that has ended (negative: a signal), None when unknown;
        its folder is removed."""
        try:
            status = self.call({"op": "reap", "pid": pid, "folder": folder}, 10.0).get("status")
        except RefereeFailure:
            return None
        return status if isinstance(status, int) else None


Scheduling = dict[int, tuple[frozenset[int], int, int]]


def scheduling(pids: Iterable[int]) -> Scheduling:
    """Processors, niceness and policy of every thread of ``pids``: what one process can change about another."""
    found: Scheduling = {}
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for task in map(int, os.listdir(f"/proc/{pid}/task")):
                affinity = frozenset(os.sched_getaffinity(task))
                found[task] = (affinity, os.getpriority(os.PRIO_PROCESS, task), os.sched_getscheduler(task))
    return found


def same_scheduling(before: Scheduling, now: Scheduling) -> bool:
    """Whether every thread that is in both is treated as before; threads come and go."""
    return all(now[task] == state for task, state in before.items() if task in now)


@dataclass
class Reply:
    """A frame from a worker, and when its last byte was read (nanoseconds of the orchestrator's clock)."""

    frame: frames.Message
    at_ns: int


@dataclass
class Log:
    """First and last characters of what a process wrote; the middle is dropped."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    dropped: int = 0

    def add(self, data: bytes) -> None:
        room = LOG_HEAD - len(self.head)
        self.head += data[:room] if room > 0 else b""
        self.tail += data[room:] if room > 0 else data
        if len(self.tail) > LOG_TAIL:
            self.dropped += len(self.tail) - LOG_TAIL
            del self.tail[:-LOG_TAIL]

    def text(self) -> str:
        middle = f"\n[{self.dropped} bytes dropped]\n".encode() if self.dropped else b""
        return (bytes(self.head) + middle + bytes(self.tail)).decode("utf-8", "replace").replace("\0", "\\0")

    def clear(self) -> None:
        self.head.clear()
        self.tail.clear()
        self.dropped = 0


class Tampering(WorkerFailure):
    """The candidate did something to the harness's own processes: they are to be replaced."""

    def __init__(self, reason: str, status: Status = Status.REWARD_HACK) -> None:
        super().__init__(status, reason)


class Worker:
    """A hostile process: its frames, its log, its tree. Frozen whenever it is not its turn."""

    def __init__(
        self, zygote: Zygote, pidfd: int, inner_pid: int, channel: socket.socket, log: int, folder: str
    ) -> None:
        self.pid = freeze.pid_of(pidfd)
        self.log = Log()
        self._zygote = zygote
        self._channel = channel
        self._log_fd = log
        self._folder = folder
        self._assembler = frames.Assembler()
        self._pidfd = pidfd
        self._inner_pid = inner_pid
        self._frozen: list[int] = []
        self._read_at_ns = 0
        channel.setblocking(False)
        os.set_blocking(log, False)
        self._poll = select.poll()
        # Not the log: being woken to read it would make this process late for "done".
        for fd in (channel.fileno(), self._pidfd):
            self._poll.register(fd, select.POLLIN)
        self._log_open = True

    # -- frames

    def send(self, message: frames.Message) -> None:
        """Queue one frame; the worker may be frozen, so this never waits for it."""
        try:
            self._channel.sendall(frames.encode(message))
        except (BrokenPipeError, ConnectionResetError, BlockingIOError):
            raise self._death() from None

    def wait(self, operation: str, deadline: float) -> Reply:
        """The next frame, which must be ``operation``; at ``deadline`` (monotonic seconds) the candidate hangs."""
        while True:
            frame = self._pop()
            if frame is not None:
                if frame.get("op") != operation:
                    reason = f"control channel: {_short(frame)} where {operation!r} was due"
                    raise WorkerFailure(Status.REWARD_HACK, reason)
                return Reply(frame, self._read_at_ns)
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise WorkerFailure(Status.TIMEOUT, _TOO_LONG[operation])
            self._listen(remaining)

    def expect_silence(self) -> None:
        """Nothing may be on the channel that nobody asked for."""
        self._read_channel()
        if self._assembler.pending:
            raise WorkerFailure(Status.REWARD_HACK, "control channel: bytes that nobody asked for")

    def _pop(self) -> frames.Message | None:
        try:
            return self._assembler.pop()
        except frames.FrameError as error:
            raise WorkerFailure(Status.REWARD_HACK, f"control channel: {error}") from None

    def _listen(self, seconds: float) -> None:
        events = dict(self._poll.poll(min(seconds, LOG_INTERVAL_S) * 1000.0))
        if self._channel.fileno() in events:
            open_ = self._read_channel()
            if not open_ and not self._assembler.pending:
                self.drain_log()
                raise self._death()
        elif self._pidfd in events:
            self.drain_log()
            raise self._death()
        else:
            self.drain_log()

    def _read_channel(self) -> bool:
        """Take what is there; False when the other end is closed."""
        try:
            data = self._channel.recv(1 << 16)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        self._read_at_ns = time.perf_counter_ns()
        self._assembler.feed(data)
        return bool(data)

    def drain_log(self) -> None:
        """Read what is in the log pipe now, at most one pipe's worth."""
        if not self._log_open:
            return
        for _ in range(LOG_PIPE_BYTES >> 16):
            try:
                data = os.read(self._log_fd, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                self._log_open = False
                return
            self.log.add(data)

    def without_folder(self, text: str) -> str:
        """``text`` with the private folder, whose name is of no interest, written as a dot."""
        return text.replace(self._folder, ".")

    # -- life

    def ancestors(self) -> tuple[int, ...]:
        """Our processes above this one."""
        return (self._zygote.pid,)

    @property
    def frozen(self) -> tuple[int, ...]:
        """Its stopped processes; none while it runs."""
        return tuple(self._frozen)

    def thaw(self) -> None:
        freeze.thaw(self._frozen)
        self._frozen = []

    def freeze(self) -> None:
        """Stop the whole tree, verified; whatever has left the tree is ended."""
        try:
            self._frozen = freeze.freeze([self.pid])
        except freeze.FreezeError as error:
            raise Tampering(f"cannot be stopped: {error}", Status.RUNTIME_ERROR) from None
        self._zygote.kill_orphans()
        self.drain_log()
        if freeze.is_dead(self.pid):
            raise self._death()

    def alive(self) -> bool:
        return not freeze.is_dead(self.pid)

    def busy_s(self) -> float | None:
        """Seconds that its main thread, which makes the calls, has had a processor; None where the kernel does not say.

        To the last moment only for a process that is frozen.
        """
        try:
            with open(f"/proc/{self.pid}/schedstat", encoding="ascii") as file:
                return int(file.read().split()[0]) / 1e9
        except (OSError, ValueError, IndexError):
            return None

    def exit_code(self, deadline: float) -> int | None:
        """Its exit code once it has ended by itself; None when it still runs at ``deadline`` (monotonic seconds)."""
        ended = select.poll()
        ended.register(self._pidfd, select.POLLIN)
        while not ended.poll(1000 * LOG_INTERVAL_S):
            self.drain_log()
            if time.monotonic() > deadline:
                return None
        self.drain_log()
        return self._zygote.reap(self._inner_pid, self._folder)

    def end(self) -> None:
        """Kill the tree, reap it, remove its folder."""
        if self.pid not in self._zygote.workers:
            return
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGSTOP)
            if not freeze.kill([self.pid]):
                self._zygote.kill()
        except ProcessLookupError:
            pass
        self._zygote.workers.pop(self.pid)
        self._zygote.kill_orphans()
        self._zygote.reap(self._inner_pid, self._folder)
        self.drain_log()
        self._channel.close()
        os.close(self._log_fd)
        os.close(self._pidfd)

    def _death(self) -> WorkerFailure:
        """The failure to raise for a worker that has gone; says how."""
        deadline = time.monotonic() + 5.0
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.002)  # the channel closes a moment before the process is gone
        self.drain_log()
        if not self._zygote.alive():
            return WorkerFailure(Status.RUNTIME_ERROR, "the worker's parent process was killed")
        if self.alive():
            return WorkerFailure(Status.RUNTIME_ERROR, "the worker closed its control channel")
        self._zygote.kill_orphans()
        code = self._zygote.reap(self._inner_pid, self._folder)
        how = "the worker ended" if code is None else f"the worker {exit_text(code)}"
        return WorkerFailure(Status.RUNTIME_ERROR, f"{how} before its handshake")


def nonce() -> bytes:
    """Secret of one workload's run, drawn after its candidate was loaded."""
    return secrets.token_bytes(32)


def _short(frame: frames.Message) -> str:
    text = repr(frame.get("op"))
    return text if len(text) <= 60 else f"{text[:57]}..."


def _address_space(pid: int) -> int:
    """Limit of a worker's address space: what the interpreter that it is forked from has mapped, and three quarters of
    the memory that is free now."""
    mapped = 0
    # One that was killed just now says so when it is spoken to.
    with (
        contextlib.suppress(FileNotFoundError, ProcessLookupError),
        open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file,
    ):
        for line in file:
            if line.startswith("VmSize:"):
                mapped = int(line.split()[1]) * 1024
    return mapped + arena.available_memory() * 3 // 4 + (1 << 30)
