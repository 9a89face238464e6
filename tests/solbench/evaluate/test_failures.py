"""What goes wrong around a run: one clear line, the right exit code, nothing half written and nothing left behind.

Commands as a user runs them, in a mount namespace where the disk is full or read-only.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fake_cards  # noqa: F401 (puts device_fakes into the path)
import pytest
from device_fakes import UUIDS, Cards, start
from small_problem import WORKLOADS, write_problem
from test_kill import running

from solbench.cli import run
from solbench.device import locks, rocm
from solbench.evaluate import sandbox
from solbench.evaluate.recording import read_set
from solbench.model.trace import Trace

SOLBENCH = [sys.executable, "-c", "import sys; from solbench.cli import run; sys.exit(run(sys.argv[1:]))"]
RIGHT = "def run(x, scale):\n    return x * scale + 1\n"
NATIVE = (
    'extern "C" void run(const float* x, double s, float* y, long n) { for (long i = 0; i < n; ++i) y[i] = x[i]*s+1; }'
)
HOG = (Path(__file__).parents[2] / "attacks" / "memory_hog.py").read_text()
HUGE = "  - {uuid: huge, axes: {N: 1000000000000}}\n"


@functools.cache
def own_mounts() -> bool:
    """Whether this user may mount, in a namespace that ends with the command."""
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "x", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


mounted = pytest.mark.skipif(not own_mounts(), reason="may not mount here")


class Place:
    """A corpus of one problem with three solutions, and commands that run on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.corpus = folder / "problems"
        self.problem = write_problem(self.corpus / "T" / "tests" / "scale_shift", workloads=WORKLOADS + HUGE)
        self.temporary, self.disk = folder / "tmp", folder / "disk"
        self.temporary.mkdir()
        self.disk.mkdir()
        for name, text, language in (
            ("hog.py", HOG, "pytorch"),
            ("right.py", RIGHT, "pytorch"),
            ("n.cpp", NATIVE, "cpp"),
        ):
            path = self.problem / "solutions" / name.partition(".")[0]
            path.mkdir(parents=True)
            (path / name).write_text(text)
            binding = ", binding: c" if language == "cpp" else ""
            (path / "solution.yaml").write_text(
                f"name: {path.name}\nauthor: test\n"
                f"spec: {{languages: [{language}], entry_point: '{name}::run'{binding}}}\n"
            )
        self.environment = {**os.environ, "TMPDIR": str(self.temporary)}

    def solution(self, name: str) -> str:
        (path,) = (self.problem / "solutions" / name).glob(f"*{'.cpp' if name == 'n' else '.py'}")
        return str(path)

    def run(self, *arguments: str, before: str = "", after: str = "") -> subprocess.CompletedProcess[str]:
        """A command; ``before`` and ``after`` it, in the mount namespace that it runs in. No process of it is left."""
        shell = f'{before}; "$@"; code=$?; {after or ":"}; exit $code'
        command = ["unshare", "-m", "sh", "-ec", f"set +e; {shell}", "sh"] if before else []
        sandbox.become_reaper()
        others = running(os.getpid())
        done = subprocess.run(
            [*command, *SOLBENCH, *arguments], env=self.environment, cwd=self.folder, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        assert running(os.getpid()) <= others and list(self.temporary.iterdir()) == [], done.stderr
        return done

    def measure(self, out: Path, *more: str, **around: str) -> subprocess.CompletedProcess[str]:
        options = ["--corpus", str(self.corpus), "--no-calibrate", "--out", str(out)]
        return self.run("measure", *options, *more, **around)

    def evaluate(self, name: str, *more: str, **around: str) -> subprocess.CompletedProcess[str]:
        options = ["--solution", self.solution(name), "--root", str(self.corpus), "--samples", "1"]
        return self.run("evaluate", "scale_shift", *options, *more, **around)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield Place(tmp_path)


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The last line of stderr, which is the only one that is no progress."""
    *progress, last = done.stderr.splitlines()
    assert all(line.startswith("  ") for line in progress) and last.startswith("solbench: "), done.stderr
    return last.removeprefix("solbench: ")


@mounted
@pytest.mark.slow
def test_a_full_disk(place: Place) -> None:
    """A set has room for some records: they are kept, and the next run goes on. Then traces that do not fit."""
    disk, kept = place.disk, place.folder / "kept"
    full = "mount -t tmpfs -o size={}k,nr_inodes=64 tmpfs " + str(disk)
    done = place.measure(
        disk / "set.jsonl", "--candidates", "eager,right", before=full.format(4), after=f"cp -a {disk} {kept}"
    )
    said = complaint(done)
    assert said.startswith(f"{disk}/set.jsonl.partial: cannot be written: No space left on device; free some space")
    assert done.returncode == 3 and [path.name for path in kept.iterdir()] == ["set.jsonl.partial"]
    lines = (kept / "set.jsonl.partial").read_bytes().splitlines(keepends=True)
    assert len(lines) >= 2 and all(line.endswith(b"\n") for line in lines)
    records = {(value["solution"], value["workload"]) for value in map(json.loads, lines[1:])}
    done = place.measure(kept / "set.jsonl", "--candidates", "eager,right")
    assert done.returncode == 0, done.stderr
    _, found = read_set(kept / "set.jsonl")
    everything = {(name, uuid) for name in ("eager", "right") for uuid in ("small", "larger", "huge")}
    assert {(record.solution, record.workload) for _, record in found} == everything and len(found) == 6
    assert records < everything and [path.name for path in kept.iterdir()] == ["set.jsonl"]
    # One page is left: enough for the look beforehand, not for two traces.
    fill = f"{full.format(16)}; head -c 12288 /dev/zero > {disk}/filler"
    listed = place.folder / "listed"
    done = place.evaluate(
        "right", "--workload", "small", "--workload", "larger", "--samples", "60",
        "--trace-output", str(disk / "t.jsonl"), before=fill,
        after=f"ls -A {disk} > {listed}",
    )  # fmt: skip
    assert complaint(done).startswith(f"--trace-output {disk}/t.jsonl: cannot be written: No space left on device")
    assert done.returncode == 3 and listed.read_text().split() == ["filler"]
    assert "2 of 2 workloads passed" in done.stdout


@mounted
def test_a_read_only_folder_is_refused_before_anything_is_done(place: Place) -> None:
    read_only = f"mount -t tmpfs -o ro tmpfs {place.disk}"
    for done in (
        place.measure(place.disk / "set.jsonl", before=read_only),
        place.measure(place.disk / "new" / "set.jsonl", before=read_only),
        place.evaluate("right", "--trace-output", str(place.disk / "t.jsonl"), before=read_only),
    ):
        assert done.returncode == 3 and complaint(done).endswith("cannot be written: Read-only file system")
        assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


@pytest.mark.slow
def test_no_compiler(place: Place) -> None:
    """Native solutions are UNSUPPORTED, the others are measured; the header says that there was none."""
    programs = place.folder / "bin"
    programs.mkdir()
    for name in ("bwrap", "sh"):
        if program := shutil.which(name):
            (programs / name).symlink_to(program)
    place.environment["PATH"] = str(programs)
    out = place.folder / "set.jsonl"
    done = place.measure(out, "--candidates", "n,right,hog")
    assert done.returncode == 0, done.stderr
    header, records = read_set(out)
    statuses = {(record.solution, record.workload): getattr(record, "status", "omitted") for _, record in records}
    # So is one that takes all memory: its failure is its own.
    assert statuses == {
        ("n", "small"): "UNSUPPORTED", ("n", "larger"): "UNSUPPORTED", ("n", "huge"): "omitted",
        ("right", "small"): "PASSED", ("right", "larger"): "PASSED", ("right", "huge"): "omitted",
        ("hog", "small"): "RUNTIME_ERROR", ("hog", "larger"): "RUNTIME_ERROR", ("hog", "huge"): "omitted",
    }  # fmt: skip
    reasons = {record.solution: record.reason or "" for _, record in records if isinstance(record, Trace)}
    assert "no C++ compiler" in reasons["n"] and "apt-get install g++" in reasons["n"]
    assert "Cannot allocate memory" in reasons["hog"]
    assert "none" in header.environment.values() and list(header.device["floors"]) == ["python"]


@pytest.mark.slow
def test_a_workload_that_no_memory_holds(place: Place) -> None:
    done = place.evaluate("right", "--workload", "huge", "--workload", "small", "--json")
    assert done.returncode == 1
    (huge, small) = json.loads(done.stdout)
    assert huge["status"] == "UNSUPPORTED" and huge["reason"].startswith("memory: needs about 7.8e+04 GiB, ")
    assert (huge["t_k_s"], huge["score"], small["status"]) == (None, None, "PASSED")


@pytest.mark.parametrize("verb", ["evaluate", "measure"])
def test_a_card_that_is_busy_or_taken_for_another(
    verb: str, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Over the fake amdsmi, in this process."""
    (place.folder / "cards").mkdir()
    cards = Cards(place.folder / "cards")
    _, (card,) = start(cards, monkeypatch)
    monkeypatch.setattr(rocm, "existing", lambda paths: paths)
    for name, value in cards.environment.items():
        monkeypatch.setenv(name, value)
    out = place.folder / "sets" / "set.jsonl"
    arguments = {
        "evaluate": ["scale_shift", "--solution", place.solution("right"), "--root", str(place.corpus)],
        "measure": ["--corpus", str(place.corpus), "--out", str(out)],
    }[verb]  # fmt: skip

    def refused() -> tuple[int, str]:
        code = run([verb, *arguments, "--target", "gfx1200"])
        stdout, stderr = capfd.readouterr()
        (line,) = stderr.splitlines()
        assert stdout == "" and not out.parent.exists()
        return code, line.removeprefix("solbench: ")

    handle = locks.attempt(locks.ownership(cards.locks, card.uuid))
    assert handle is not None
    assert refused() == (3, f"{UUIDS[0]}: owned by another process; wait for it, or end it")
    locks.release(handle)
    cards.script(processes=[[1, "train", 5]])
    cards.script_all(computing=[1])
    assert refused() == (3, f"{UUIDS[0]}: busy with train (pid 1); end it, or take another card")
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "12.0.0")
    code, line = refused()
    assert code == 2 and line.startswith("HSA_OVERRIDE_GFX_VERSION: makes ROCm run code of another architecture")
    assert cards.level() == "AUTO" and not list(cards.locks.glob("*recovery*"))
    assert not locks.is_held(locks.ownership(cards.locks, card.uuid))
