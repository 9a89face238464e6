from __future__ import annotations

import os
import subprocess
import sys
import threading

from solbench.evaluate.watch import Look, labels, look

MIB = 1 << 20


def test_a_look_counts_threads_and_memory() -> None:
    code = (
        "import threading, sys; kept = bytearray(b'x' * (64 << 20)); stop = threading.Event()\n"
        "for _ in range(3): threading.Thread(target=stop.wait, daemon=True).start()\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-S", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        seen = look([process.pid])
        assert seen.threads == 4 and 64 * MIB <= seen.memory_bytes < 256 * MIB
        both = look([process.pid, os.getpid()])
        assert both.threads >= 4 + threading.active_count() and both.memory_bytes > seen.memory_bytes
    assert look([process.pid]) == Look(0, 0), "a process that is gone counts nothing"


def looks(threads: int, *memory: int) -> list[Look]:
    return [Look(threads, size) for size in memory]


def test_a_pool_as_large_as_the_baselines_is_nothing_to_say() -> None:
    assert labels(looks(3, *[MIB] * 8), looks(3, *[MIB] * 8), MIB) == ()


def test_threads_that_are_left() -> None:
    (label,) = labels(looks(5, *[MIB] * 8), looks(3, *[MIB] * 8), MIB)
    assert label == "threads: after every call at least 2 more than the baseline's are left"


def test_memory_that_grows_by_every_result() -> None:
    grows = looks(3, *(100 * MIB + 16 * MIB * call for call in range(8)))
    (label,) = labels(grows, looks(3, MIB), 16 * MIB)
    assert label == "memory: grows by about 16 MiB a call"


def test_a_workspace_made_once_and_a_slow_leak_are_nothing_to_say() -> None:
    once = looks(3, 100 * MIB, *[900 * MIB] * 7)
    slow = looks(3, *(100 * MIB + MIB * call for call in range(8)))
    for seen in (once, slow, looks(3, MIB, MIB)):
        assert labels(seen, looks(3, MIB), 16 * MIB) == ()
