"""Signals that end a block but never its clean-up, and process groups that end whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from solbench.device import drain


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_the_first_signal_ends_the_block() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as caught, drain.Signals():
        send(signal.SIGTERM)
        pytest.fail("went on")
    assert caught.value.code == 143 and signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(KeyboardInterrupt), drain.Signals():
        send(signal.SIGINT)
        pytest.fail("went on")


def test_a_clean_up_is_not_interrupted() -> None:
    """Neither by the first signal, which comes through after it, nor by a later one."""
    steps = []
    with pytest.raises(SystemExit), drain.Signals() as signals:
        with signals.held():
            send(signal.SIGTERM)
            with signals.held():
                steps.append("inner")
            steps.append("cleaned")
        pytest.fail("went on")
    assert steps == ["inner", "cleaned"]
    with pytest.raises(SystemExit), drain.Signals() as signals:
        try:
            send(signal.SIGTERM)
        finally:
            send(signal.SIGINT)
            steps.append("later")
    assert steps[-1] == "later"


def test_another_thread_changes_no_handler() -> None:
    before, seen = signal.getsignal(signal.SIGTERM), []

    def other() -> None:
        with drain.Signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_group_ends_whole_and_only_that_group() -> None:
    code = "import subprocess, time; subprocess.Popen(['sleep', '60']); print('up', flush=True); time.sleep(60)"
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    leader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert leader.stdout is not None and leader.stdout.readline() == b"up\n"
        assert len(drain.members(leader.pid)) == 2
        assert drain.end(leader, grace_s=5) is None
        assert drain.members(leader.pid) == [] and leader.returncode == -signal.SIGTERM
        assert drain.members(bystander.pid) == [bystander.pid]
    finally:
        leader.stdout and leader.stdout.close()
        bystander.kill()
        bystander.wait()


def test_what_does_not_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    with monkeypatch.context() as patch:
        patch.setattr(drain, "_END_LIMIT_S", 0.05)
        patch.setattr(os, "killpg", lambda *_: None)  # as if it hung in a driver
        assert drain.end(process, grace_s=0.05) == f"processes {process.pid} do not end"
    process.kill()
    process.wait()
