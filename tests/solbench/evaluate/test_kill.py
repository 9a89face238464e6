"""Whatever is killed at whatever moment, no process and no temporary folder is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from solbench.corpus.load import Problem, load_solution
from solbench.evaluate import freeze, namespaces, sandbox
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.protocols import protocol
from solbench.evaluate.session import Session
from solbench.model.trace import Status

HONEST = Path(__file__).parents[2] / "honest" / "try_except.py"
SANDBOXED = [
    pytest.param(
        False, marks=pytest.mark.skipif(namespaces.missing() is not None, reason=str(namespaces.missing())), id="full"
    ),
    pytest.param(True, marks=pytest.mark.slow, id="unsandboxed"),
]
ORCHESTRATOR = """
import sys
from pathlib import Path
from solbench.corpus.load import load_problem, load_solution
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.session import Session
problem = load_problem(Path(sys.argv[1]))
solution = load_solution(Path(sys.argv[2]), problem.definition)
with Session(unsandboxed=sys.argv[3] == "True") as session:
    list(evaluate(problem, solution, session=session))
"""


@pytest.mark.parametrize("unsandboxed", SANDBOXED)
def test_nothing_is_left_behind(
    unsandboxed: bool, problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    tempfile.tempdir = None
    others = running(os.getpid())
    solution = load_solution(HONEST, problem.definition)
    try:
        with Session(cache=tmp_path / "cache", unsandboxed=unsandboxed) as session:
            (trace, _) = evaluate(problem, solution, protocol=protocol("quick", samples=1), session=session)
            assert trace.status is Status.PASSED and trace.labels[0] == session.isolation.label
            assert len(running(os.getpid()) - others) >= 2
    finally:
        tempfile.tempdir = None
    assert running(os.getpid()) == others
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == []


class Run:
    """An evaluation in a process of its own, of a candidate that hangs."""

    def __init__(self, problem: Problem, folder: Path, unsandboxed: bool) -> None:
        sandbox.become_reaper()  # what loses its parent becomes a child of this process, and is found
        self.others = running(os.getpid())
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        hang = folder / "hang.py"
        hang.write_text("import time\ndef run(x, scale):\n    time.sleep(3600)\n")
        self.process = subprocess.Popen(
            [sys.executable, "-c", ORCHESTRATOR, str(problem.path), str(hang), str(unsandboxed)], cwd=folder,
            env={**os.environ, "TMPDIR": str(self.temporary)}, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def tree(self) -> list[int]:
        return sorted(running(self.process.pid))

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline, [names(pid) for pid in self.tree()]
            time.sleep(0.02)

    def hangs(self) -> bool:
        """Whether both workers are there beside the interpreter that they were forked from."""
        found = [names(pid) for pid in self.tree()]
        return sum(name.startswith(sys.executable) and "evaluate.zygote" in name for name in found) >= 3

    def assert_gone(self) -> None:
        self.until(lambda: running(os.getpid()) <= self.others and not list(self.temporary.iterdir()))

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def start(problem: Problem, tmp_path: Path) -> Iterator[Callable[[bool], Run]]:
    runs: list[Run] = []

    def start(unsandboxed: bool) -> Run:
        folder = tmp_path / str(len(runs))
        folder.mkdir()
        runs.append(Run(problem, folder, unsandboxed))
        return runs[-1]

    yield start
    for run in runs:
        run.end()


def running(pid: int) -> set[int]:
    return {child for child in freeze.descendants(pid) if not freeze.is_dead(child)}


def names(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@pytest.mark.parametrize("unsandboxed", SANDBOXED)
def test_a_killed_orchestrator_leaves_nothing(unsandboxed: bool, start: Callable[[bool], Run]) -> None:
    run = start(unsandboxed)
    run.until(run.hangs)
    run.end()
    run.assert_gone()


@pytest.mark.slow
@pytest.mark.skipif(namespaces.missing() is not None, reason=str(namespaces.missing()))
def test_kills_at_random_moments(start: Callable[[bool], Run]) -> None:
    """Twenty rounds: up to two of its processes, whichever, then the orchestrator, at a random moment each."""
    dice = random.Random(1)
    mounts = Path("/proc/self/mounts").read_text()
    for _ in range(20):
        run = start(False)
        for _ in range(dice.randrange(3)):
            time.sleep(dice.uniform(0.2, 8.0))
            if tree := run.tree():
                os.kill(dice.choice(tree), signal.SIGKILL)
        time.sleep(dice.uniform(0.0, 8.0))
        run.end()
        run.assert_gone()
    assert Path("/proc/self/mounts").read_text() == mounts
