from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from solbench.evaluate import freeze

# A parent with a thread and a child, each counting into a shared file; prints the child's process id.
TREE = """
import mmap, os, sys, threading, time
memory = mmap.mmap(-1, 24)
def count(place):
    while True:
        memory[place] = (memory[place] + 1) % 256
        time.sleep(0.0005)
child = os.fork()
if child == 0:
    os.setsid()
    count(0)
threading.Thread(target=count, args=(8,), daemon=True).start()
print(child, flush=True)
last = bytes(memory)
while True:
    time.sleep(0.02)
    now = bytes(memory)
    print("moved" if now[0] != last[0] and now[8] != last[8] else "still", flush=True)
    last = now
"""


@pytest.fixture
def tree() -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    yield process, child
    freeze.kill([process.pid])
    process.wait()
    process.stdout.close()
    assert freeze.is_dead(child)


def test_freeze_and_thaw_the_whole_tree(tree: tuple[subprocess.Popen[str], int]) -> None:
    process, child = tree
    assert freeze.descendants(process.pid) == [child]
    frozen = freeze.freeze([process.pid])
    assert sorted(frozen) == sorted([process.pid, child])
    assert freeze.is_stopped(process.pid) and freeze.is_stopped(child)
    before = [_cpu(pid) for pid in frozen]
    time.sleep(0.05)
    assert [_cpu(pid) for pid in frozen] == before
    freeze.thaw(frozen)
    deadline = time.monotonic() + 10
    assert process.stdout is not None
    while "moved" not in process.stdout.readline():
        assert time.monotonic() < deadline
    assert not freeze.is_stopped(process.pid)


def test_children_without_the_kernels_list(
    tree: tuple[subprocess.Popen[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, child = tree
    assert freeze._children_by_scan(process.pid) == [child]


def test_gone_processes_count_as_stopped() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert freeze.is_stopped(process.pid) and freeze.is_dead(process.pid)
    assert freeze.children(process.pid) == []
    assert not freeze.is_dead(os.getpid())
    freeze.kill([process.pid])


def test_kill_ends_a_stopped_tree(tree: tuple[subprocess.Popen[str], int]) -> None:
    process, child = tree
    os.kill(child, signal.SIGSTOP)
    freeze.kill([process.pid])
    assert process.wait(10) == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while not freeze.is_dead(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _cpu(pid: int) -> list[bytes]:
    """User and system time of a process."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[11:13]


def test_each_process_is_stopped_before_its_children_are_looked_up(
    tree: tuple[subprocess.Popen[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking takes milliseconds where there are many threads, and those would work on meanwhile."""
    process, child = tree
    steps: list[tuple[str, int]] = []
    children, signalled = freeze.children, freeze._signal

    def looked_up(pid: int) -> list[int]:
        steps.append(("children", pid))
        return children(pid)

    def signal_sent(pid: int, number: int) -> None:
        steps.append(("signal", pid))
        signalled(pid, number)

    monkeypatch.setattr(freeze, "children", looked_up)
    monkeypatch.setattr(freeze, "_signal", signal_sent)
    freeze.freeze([process.pid])
    assert steps[:4] == [("signal", process.pid), ("children", process.pid), ("signal", child), ("children", child)]
