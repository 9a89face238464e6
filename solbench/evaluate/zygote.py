"""Starts workers by forking a warm interpreter that holds no secret. Standard library, and torch where asked.

Importing torch costs seconds, forking milliseconds. This process is also the reaper of whatever its workers leave
behind, and when the orchestrator goes away it ends them all. In namespaces of its own it is their first process: when
it ends, however, nothing of its workers is left. Elsewhere it removes the session's folder, should nobody else do so.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import socket
import subprocess
import sys
import time
import traceback
from typing import Any

from solbench.evaluate import frames, freeze, precision, sandbox, worker


def main(channel_fd: int, folder: str, torch_threads: int, in_namespaces: bool) -> None:
    """Serve fork requests of workers whose folders are in ``folder``.

    ``torch_threads`` > 0: import torch first and give every worker that many threads.
    """
    sandbox.go_first()
    sandbox.become_reaper()
    sandbox.set_dumpable(False)
    channel = socket.socket(fileno=channel_fd)
    hello: dict[str, Any] = {"op": "ready", "fault": None}
    if torch_threads:
        try:
            import torch
        except ImportError as error:
            hello["fault"] = str(error)
        else:
            hello["torch"] = torch.__version__
            precision.set_full(torch)
    gc.collect()
    gc.freeze()
    statuses: dict[int, int] = {}
    orchestrator, orderly = os.getppid(), False
    try:
        frames.send(channel, hello, (os.pidfd_open(os.getpid()),))
        while (received := frames.receive(channel)) is not None:
            message, fds = received
            if message["op"] == "spawn":
                pid = os.fork()
                if pid == 0:
                    _child(channel, fds, message)
                for fd in fds:
                    os.close(fd)
                # The orchestrator sees other process ids: the descriptor is the same process in both.
                process = os.pidfd_open(pid)
                frames.send(channel, {"op": "spawned", "pid": pid}, (process,))
                os.close(process)
            elif message["op"] == "reap":
                status = _reap(message["pid"], statuses)
                shutil.rmtree(message["folder"], ignore_errors=True)
                frames.send(channel, {"op": "reaped", "status": status})
            elif message["op"] == "end":
                orderly = True
    finally:
        if not in_namespaces:
            freeze.kill(freeze.children(os.getpid()))
            # An orchestrator that was killed removes nothing: its session's folder is the one that ours is in.
            killed = not orderly and _gone(orchestrator)
            shutil.rmtree(os.path.dirname(folder) if killed else folder, ignore_errors=True)
    os._exit(0)  # nothing is left to tidy; unloading torch takes a second


def _gone(parent: int) -> bool:
    """Whether the process that started this one has ended. Its channels close a moment before it is gone."""
    for _ in range(100):
        if os.getppid() != parent:
            return True
        time.sleep(0.01)
    return False


def _reap(pid: int, statuses: dict[int, int]) -> int | None:
    """Exit code of a worker that ended (negative: the signal), waiting for it; orphans are reaped on the way."""
    if pid not in statuses:
        try:
            statuses[pid] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except ChildProcessError:
            return None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            statuses[ended[0]] = os.waitstatus_to_exitcode(ended[1])
    return statuses.pop(pid)


def _child(channel: socket.socket, fds: list[int], message: dict[str, Any]) -> None:
    """Become the worker: own session, own folder, confined, nothing open but its channel, log and memory file."""
    try:
        os.setsid()
        sandbox.die_with_parent()
        control, log, memory, contents = fds
        config = message["config"]
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        channel.detach()
        _close_all_but({0, 1, 2, control, memory, contents})
        os.umask(0o077)
        _write_files(config["folder"], config["files"], contents)
        os.chdir(config["folder"])
        sandbox.set_environment(config["environment"])
        # Only a candidate needs to see its own /proc entries; the baseline must stay closed to the candidate.
        sandbox.set_dumpable(config["dumpable"])
        sandbox.confine(
            config["folder"], memory_bytes=config["memory_bytes"], cpu_s=config["cpu_s"], landlock=config["landlock"],
            devices=config["devices"],
        )  # fmt: skip
        # A candidate that is killed has its log whole.
        sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
        if "commands" in config:
            os._exit(_build(config["commands"], memory))
        worker.serve(socket.socket(fileno=control), memory, config)
    except BaseException:  # noqa: BLE001 (the fork must not run on in the zygote's loop)
        os.write(2, traceback.format_exc().encode())
        worker.flush()
        os._exit(70)
    worker.flush()
    os._exit(0)


def _write_files(folder: str, sizes: dict[str, int], contents: int) -> None:
    """Make the private folder, with files of these sizes that follow each other in ``contents``."""
    os.mkdir(folder)
    with os.fdopen(contents, "rb") as source:
        source.seek(0)
        for name, size in sizes.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(source.read(size))


def _build(commands: list[list[str]], memory: int) -> int:
    """Run commands in ``src``, the compiler last, and put ``library.so`` into the memory file; exit code of the first
    that fails."""
    for command in commands:
        if code := subprocess.call(command, cwd="src"):
            return code
    with open("library.so", "rb") as library, os.fdopen(memory, "wb") as target:
        shutil.copyfileobj(library, target)
    return 0


def _close_all_but(kept: set[int]) -> None:
    previous = -1
    for fd in [*sorted(kept), 1 << 16]:
        if previous + 1 < fd:  # an empty range from 0 closes everything (CPython hands -1 to the kernel)
            os.closerange(previous + 1, fd)
        previous = fd
