"""A hundred kills at random moments of a measurement, which is called again until its set is complete.

Whatever is killed, the orchestrator, the referee, a worker or the interpreter that workers are forked from: no finished
record is lost or doubled, and no process, lock or temporary file is left.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from small_problem import write_problem
from test_failures import own_mounts
from test_kill import names, running

from solbench.evaluate import namespaces, sandbox
from solbench.evaluate.recording import read_set

SOLUTIONS = 24
# How often each is killed; the orchestrator's new start is the dear one.
KILLS = {"orchestrator": 20, "referee": 22, "worker": 44, "zygote": 14}
MEASURE = """
import sys
from pathlib import Path
from solbench.corpus.load import load_corpus
from solbench.errors import SolbenchError
from solbench.evaluate.protocols import protocol
from solbench.evaluate.measure import measure
try:
    measure(load_corpus(Path(sys.argv[1])), Path(sys.argv[2]), protocol=protocol("quick", samples=1))
except SolbenchError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def write_corpus(root: Path) -> set[tuple[str, str]]:
    """A problem with many solutions; solution and workload of every record of its set."""
    folder = write_problem(root / "T" / "tests" / "scale_shift")
    for number in range(SOLUTIONS):
        solution = folder / "solutions" / f"s{number}"
        solution.mkdir(parents=True)
        (solution / "s.py").write_text("def run(x, scale):\n    return x * scale + 1\n")
        (solution / "solution.yaml").write_text(
            f"name: s{number}\nauthor: test\nspec: {{languages: [pytorch], entry_point: 's.py::run'}}\n"
        )
    solutions = ("eager", *(f"s{number}" for number in range(SOLUTIONS)))
    return {(name, uuid) for name in solutions for uuid in ("small", "larger")}


class Machine:
    """What a measurement could leave on a machine, before and after."""

    def __init__(self, folder: Path) -> None:
        sandbox.become_reaper()  # what loses its parent becomes a child of this process, and is found
        self.temporary, self.shared = folder / "tmp", folder / "shm"
        self.temporary.mkdir()
        self.shared.mkdir()
        self.processes = running(os.getpid())

    def command(self, *command: str) -> list[str]:
        """With /dev/shm for itself, where that may be mounted: others write there as well."""
        own = f'mount --bind "{self.shared}" /dev/shm && exec "$@"'
        return ["unshare", "-m", "sh", "-c", own, "sh", *command] if own_mounts() else [*command]

    def remains(self) -> list[str]:
        processes = [f"{pid}: {names(pid)}" for pid in running(os.getpid()) - self.processes]
        return processes + [str(path) for folder in (self.temporary, self.shared) for path in folder.iterdir()]


class Run:
    """One call of the measurement; :meth:`kill` any of its processes."""

    def __init__(self, corpus: Path, out: Path, machine: Machine) -> None:
        self.machine = machine
        self.process = subprocess.Popen(
            machine.command(sys.executable, "-c", MEASURE, str(corpus), str(out)), cwd=corpus.parent,
            env={**os.environ, "TMPDIR": str(machine.temporary)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def over(self) -> bool:
        return self.process.poll() is not None

    def found(self, kind: str) -> list[int]:
        """Processes of one kind. The interpreter that workers are forked from is the parent of what looks like it."""
        if kind == "orchestrator":
            return [self.process.pid]
        lines = {pid: names(pid) for pid in running(self.process.pid)}
        if kind == "referee":
            return [
                pid for pid, line in lines.items() if line.startswith(sys.executable) and "evaluate.referee" in line
            ]
        forks = {
            pid: parent(pid) for pid, line in lines.items() if line.startswith(sys.executable) and "zygote" in line
        }
        return [pid for pid, above in forks.items() if (above in forks) == (kind == "worker")]

    def kill(self, kind: str, dice: random.Random) -> bool:
        """Kill one, a moment after there is one; False when the run was over before."""
        deadline = time.monotonic() + 120
        while not self.found(kind):
            if self.over():
                return False
            assert time.monotonic() < deadline, f"no {kind}"
            time.sleep(0.01)
        time.sleep(dice.uniform(0.0, 3.0 if kind == "orchestrator" else 0.3))
        chosen = self.found(kind)
        if self.over() or not chosen:
            return False
        os.kill(dice.choice(chosen), signal.SIGKILL)
        return True

    def end(self) -> tuple[int, str]:
        output, _ = self.process.communicate(timeout=300)
        until(lambda: not self.machine.remains(), self.machine.remains)
        return self.process.returncode, output.decode()


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def until(condition: Callable[[], bool], say: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, say()
        time.sleep(0.02)


def whole_lines(path: Path) -> list[bytes]:
    """Records of a set that is being written."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1].splitlines(keepends=True)[1:]


@pytest.mark.slow
@pytest.mark.skipif(namespaces.missing() is not None, reason=str(namespaces.missing()))
def test_a_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("SOLBENCH_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    print(f"seed {seed} (SOLBENCH_TEST_SEED)")
    dice = random.Random(seed)
    corpus, out = tmp_path / "corpus", tmp_path / "sets" / "set.jsonl"
    everything = write_corpus(corpus)
    out.parent.mkdir()
    machine = Machine(tmp_path)
    plan = [kind for kind, count in KILLS.items() for _ in range(count)]
    dice.shuffle(plan)
    kept: list[bytes] = []
    killed: Counter[str] = Counter()
    sets = 0
    while plan or kept or not sets:
        run = Run(corpus, out, machine)
        while plan and not run.over():
            if run.kill(plan[-1], dice):
                killed[plan.pop()] += 1
        code, said = run.end()
        assert code in (0, 3, -signal.SIGKILL), said
        written = out if code == 0 else out.with_name("set.jsonl.partial")
        lines = whole_lines(written)
        assert lines[: len(kept)] == kept
        kept = lines
        if written.exists():  # and nobody holds it any more
            with written.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if code == 0:
            found = [(record.solution, record.workload) for _, record in read_set(out)[1]]
            assert len(found) == len(everything) and set(found) == everything
            assert json.loads(lines[-1]) == {"record": "footer", "count": len(everything)}
            assert [path.name for path in out.parent.iterdir()] == ["set.jsonl"]
            out.unlink()
            sets, kept = sets + 1, []
    assert sum(killed.values()) == 100 and killed == KILLS and sets
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
    print(f"{sets} sets, {dict(killed)}")
