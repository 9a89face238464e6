"""However a pull or a push ends, the next one finishes: killed at any moment, interrupted, out of space."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from remote_checkout import ROOT, Checkout, files_below, fresh_clone

PROGRAM = "import sys; from solbench.cli import run; sys.exit(run(sys.argv[1:]))"


def start(checkout, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, *arguments, "--root", str(checkout.root)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=checkout.root.parent, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def count(*folders):
    """Files below some folders, finished or not."""
    found, stack = 0, list(folders)
    while stack:
        try:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
                    else:
                        found += 1
        except FileNotFoundError:
            pass
    return found


def kill_at(process, moment, *folders):
    """Kill the process group once ``moment`` files are below ``folders``; whether it was still running."""
    while process.poll() is None and count(*folders) < moment:
        time.sleep(0.0005)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    return running


def pulled(checkout):
    return checkout.cache, checkout.root / "store", checkout.root / "site"


# A pull makes 167 files in the cache, then 166 in the outs (and 5 files lie there before).
FAST = (40, 172, 260)
SLOW = tuple(range(1, 336, 24))


@pytest.mark.parametrize("moment", [*FAST, *(pytest.param(moment, marks=pytest.mark.slow) for moment in SLOW)])
def test_a_killed_pull(made, clone, moment):
    if not kill_at(start(clone, "pull"), moment, *pulled(clone)):
        pytest.fail("it ended before it could be killed")
    lying = {name for name in files_below(clone.cache) if not name.startswith(".incoming")}
    # What has a name in the cache is whole.
    whole = files_below(made.cache)
    assert all((clone.cache / name).read_bytes() == whole[name] for name in lying)
    assert clone.run("pull") == 0
    assert clone.outs() == made.outs()
    assert files_below(clone.cache) == whole


@pytest.mark.parametrize(
    "moment", [*(3, 60, 150), *(pytest.param(moment, marks=pytest.mark.slow) for moment in range(1, 166, 13))]
)
def test_a_killed_push(made, checkout, moment):
    shutil.rmtree(checkout.folder)
    if not kill_at(start(checkout, "push"), moment, checkout.folder):
        pytest.fail("it ended before it could be killed")
    whole = files_below(made.folder)
    for name, data in files_below(checkout.folder).items():
        assert ".incoming" in name or data == whole[name]
    assert checkout.run("push") == 0
    assert files_below(checkout.folder) == whole


@pytest.mark.slow
@pytest.mark.parametrize("tenth", range(12))
def test_killed_by_the_clock(made, clone, tenth):
    """Also before the first file, between fetching and DVC's start, and after the last."""
    began = time.monotonic()
    reference = fresh_clone(made, clone.root.parent / "reference", clone.folder)
    process = start(reference, "pull")
    assert process.wait() == 0
    process.stderr.close()
    whole = time.monotonic() - began
    process = start(clone, "pull")
    time.sleep(whole * tenth / 11)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert clone.run("pull") == 0
    assert clone.outs() == made.outs() == reference.outs()


def test_an_interrupt(made, clone, serve):
    """Ctrl-C while a server keeps us waiting: 130, soon, one line; the next pull finishes."""
    server = serve(clone.folder)
    clone.add_remote("web", server.url, "verify = true")
    hung = []

    def hang(handler):
        hung.append(handler.path)
        time.sleep(30)

    server.rules["a"] = hang
    process = start(clone, "pull", "-r", "web")
    deadline = time.monotonic() + 60
    while not hung:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said.strip() == "solbench: interrupted"
    assert clone.run("pull") == 0
    assert clone.outs() == made.outs()


def limited(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.slow
def test_no_room_for_a_file(made, clone):
    """In the cache, and later where DVC checks out; the largest object has 384,000 bytes."""
    process = start(clone, "pull", preexec_fn=limited(200_000))
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "cannot be written: File too large" in said
    shutil.copytree(made.cache, clone.cache, dirs_exist_ok=True)
    process = start(clone, "pull", preexec_fn=limited(200_000))
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "dvc checkout failed" in said.splitlines()[-1]
    assert clone.run("pull") == 0
    assert clone.outs() == made.outs()


@pytest.mark.slow
def test_no_room_on_the_remote(made, checkout: Checkout):
    shutil.rmtree(checkout.folder)
    process = start(checkout, "push", preexec_fn=limited(200_000))
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "cannot be written: File too large" in said
    assert checkout.run("push") == 0
    assert files_below(checkout.folder) == files_below(made.folder)
