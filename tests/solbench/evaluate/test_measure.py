from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from small_problem import write_problem

from solbench.cli import cli
from solbench.corpus.load import Problem, load_problem
from solbench.device import calibrate, cpu
from solbench.device.calibrate import Probe, machine_model
from solbench.device.card import Absent
from solbench.errors import InputError, UndecidedError, UnsupportedError
from solbench.evaluate.controls import reads_wrong
from solbench.evaluate.evaluation import _in_time, evaluate
from solbench.evaluate.jobs import Work
from solbench.evaluate.measure import measure
from solbench.evaluate.protocols import protocol
from solbench.evaluate.recording import read_set
from solbench.evaluate.session import Session
from solbench.model.trace import Control, Omission, Status, Trace

ONE_SAMPLE = protocol("quick", samples=1)
KEY = "T/tests/scale_shift"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with one problem, its eager baseline, a right solution and a wrong one."""
    root = tmp_path_factory.mktemp("corpus")
    folder = write_problem(root / "T" / "tests" / "scale_shift")
    for name, text in (
        ("right", "def run(x, scale):\n    return x * scale + 1\n"),
        ("wrong", "def run(x, scale):\n    return x\n"),
    ):
        solution = folder / "solutions" / name
        solution.mkdir(parents=True)
        (solution / "s.py").write_text(text)
        (solution / "solution.yaml").write_text(
            f"name: {name}\nauthor: test\nspec: {{languages: [pytorch], entry_point: 's.py::run'}}\n"
        )
    return root


@pytest.fixture
def problems(corpus: Path) -> list[Problem]:
    return [load_problem(corpus / "T" / "tests" / "scale_shift", corpus="T")]


def statuses(path: Path) -> dict[tuple[str, str], str]:
    """Status of each trace, "omitted: reason" of each omission, by solution and workload."""
    found = {}
    for key, record in read_set(path)[1]:
        assert key == KEY
        text = record.status if isinstance(record, Trace) else f"omitted: {record.reason}"
        found[record.solution, record.workload] = str(text)
    return found


def test_measure_all(problems: list[Problem], session: Session, tmp_path: Path) -> None:
    out = tmp_path / "cpu" / "set.jsonl"
    hardware = {"schema": "solar.hardware.v1"}
    summary = measure(problems, out, protocol=ONE_SAMPLE, session=session, hardware=hardware)
    passed = {(name, uuid): "PASSED" for name in ("eager", "right") for uuid in ("small", "larger")}
    assert statuses(out) == {
        **passed,
        ("wrong", "small"): "INCORRECT_NUMERICAL",
        ("wrong", "larger"): "INCORRECT_NUMERICAL",
    }
    assert summary.statuses == {Status.PASSED: 4, Status.INCORRECT_NUMERICAL: 2} and summary.omissions == 0
    header, _ = read_set(out)
    assert header.hardware == hardware and header.clocks == "unlocked" and 0 < header.floor_s < 0.1
    assert header.environment["torch"] and header.device["flush_bytes"] == session.flush_bytes
    assert header.protocol.isolation == session.isolation.names
    # A complete set is left as it is.
    before = out.read_bytes()
    again = measure(problems, out, protocol=ONE_SAMPLE, session=session)
    assert again.statuses == {} and out.read_bytes() == before


def test_what_is_withheld_is_said_for_every_workload(problems: list[Problem], session: Session, tmp_path: Path) -> None:
    """As a local release does where a control reads wrong."""
    out = tmp_path / "set.jsonl"
    wrong = Control(name="sleep", low_s=1.0, high_s=2.0, slack_s=0.1, event_s=5.0, clock_s=5.0, ok=False)
    with pytest.raises(UndecidedError, match="control sleep reads wrong"):
        measure(problems, out, protocol=ONE_SAMPLE, session=session, controls=[wrong])
    assert not list(tmp_path.iterdir())
    reason = reads_wrong([wrong])
    summary = measure(problems, out, protocol=ONE_SAMPLE, session=session, controls=[wrong], withheld=reason)
    assert summary.statuses == {} and (summary.done, summary.omissions) == (6, 6)
    assert set(statuses(out).values()) == {f"omitted: {reason}"} and "5 s by its event" in str(reason)
    assert read_set(out)[0].controls == (wrong,)


def test_slow_workloads_are_omitted(problems: list[Problem], session: Session, tmp_path: Path) -> None:
    out = tmp_path / "set.jsonl"
    estimates = {(KEY, "small"): 1e-4, (KEY, "larger"): 3.0}
    measure(problems, out, protocol=ONE_SAMPLE, session=session, candidates=["right"], estimates=estimates)
    assert statuses(out) == {
        ("right", "small"): "PASSED",
        ("right", "larger"): "omitted: over the cpu budget: estimated 3 s a call, limit 0.25 s",
    }


def test_the_estimate_is_measured_where_nobody_knows_it(
    session: Session, tmp_path: Path, problems: list[Problem]
) -> None:
    slow = (
        "import time\ndef run(x, scale):\n    time.sleep(0.02 if len(x) == 1000 else 0.4)\n    return x * scale + 1\n"
    )
    problem = load_problem(write_problem(tmp_path / "T" / "tests" / "scale_shift", reference=slow), corpus="T")
    quick = protocol("quick", samples=1, max_call_s=0.2)
    measure([problem], tmp_path / "a.jsonl", protocol=quick, session=session)
    found = statuses(tmp_path / "a.jsonl")
    assert found["eager", "small"] == "PASSED"
    assert found["eager", "larger"].startswith("omitted: over the cpu budget: estimated 0.4")
    # A function that knows some.
    measure(problems, tmp_path / "b.jsonl", protocol=quick, session=session, candidates=["right"],
            estimates=lambda problem, workload: 9.0 if workload.uuid == "small" else None)  # fmt: skip
    assert statuses(tmp_path / "b.jsonl")["right", "small"].startswith("omitted: over the cpu budget: estimated 9 s")
    assert statuses(tmp_path / "b.jsonl")["right", "larger"] == "PASSED"


def test_a_spent_budget_leaves_the_rest_for_the_next_run(
    problems: list[Problem], session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the middle of a job: a scripted clock lets one workload a run be measured."""
    out = tmp_path / "set.jsonl"
    for count in range(1, 6):
        left = lambda self, count=count: 1.0 if len(self.records.finished) < count else -1.0  # noqa: E731
        monkeypatch.setattr(Work, "time_left", left)
        summary = measure(problems, out, protocol=ONE_SAMPLE, session=session, budget_s=60)
        assert (summary.done, summary.total) == (count, 6) and sum(summary.statuses.values()) == 1
        assert f"{count} of 6 done, run again to go on" in str(summary) and not out.exists()
    monkeypatch.undo()
    summary = measure(problems, out, protocol=ONE_SAMPLE, session=session, budget_s=1e-6, final=True)
    assert summary.left == 0 and summary.omissions == 1
    assert statuses(out).pop(("wrong", "larger")) == "omitted: budget" and len(statuses(out)) == 6
    # A final set may still be gone on with.
    measure(problems, out, protocol=ONE_SAMPLE, session=session)
    assert statuses(out)["wrong", "larger"] == "INCORRECT_NUMERICAL"
    assert [path.name for path in tmp_path.iterdir()] == ["set.jsonl"]


@pytest.mark.parametrize(
    ("at", "left_s", "begun"),
    [
        (2, 1e-9, ["small process 1/2", "larger process 1/2"]),  # neither would get through the second process
        (1, 1e-9, ["small process 1/2"]),  # nor would the first one, and so the other is not begun
        (1, -1.0, ["small process 1/2"]),  # between two samples
    ],
)
def test_a_spent_budget_ends_replicates(
    problems: list[Problem], session: Session, at: int, left_s: float, begun: list[str]
) -> None:
    """``left_s`` is left once so many workloads were begun."""
    several = protocol("quick", processes=2, samples=1)
    (solution,) = (solution for solution in problems[0].solutions if solution.name == "right")
    said: list[str] = []
    traces = evaluate(
        problems[0], solution, protocol=several, session=session, progress=said.append,
        time_left=lambda: 1e9 if len(said) < at else left_s,
    )  # fmt: skip
    assert (list(traces), said) == ([], begun)


def test_which_workloads_fit() -> None:
    cases = [SimpleNamespace(spent_s=seconds) for seconds in (4.0, 1.0, 3.0)]
    assert _in_time(cases, 2.0, 16.0) == cases
    assert _in_time(cases, 2.0, 15.9) == cases[:2]
    assert _in_time(cases, 2.0, 7.9) == cases[1:2]
    assert _in_time(cases, 0.0, -1.0) == []


def test_unknown_candidate(problems: list[Problem], session: Session, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no solution is named 'left'; there are eager, right, wrong"):
        measure(problems, tmp_path / "set.jsonl", session=session, candidates=["left"])
    assert list(tmp_path.iterdir()) == []


MEASURE = """
import sys
from pathlib import Path
from solbench.corpus.load import load_corpus
from solbench.evaluate.protocols import protocol
from solbench.evaluate.measure import measure
measure(load_corpus(Path(sys.argv[1])), Path(sys.argv[2]), protocol=protocol("quick", samples=1))
"""


def test_a_killed_measurement_goes_on(corpus: Path, tmp_path: Path, session: Session, problems: list[Problem]) -> None:
    out = tmp_path / "set.jsonl"
    partial = tmp_path / "set.jsonl.partial"
    process = subprocess.Popen([sys.executable, "-c", MEASURE, str(corpus), str(out)], cwd=tmp_path)
    deadline = time.monotonic() + 120
    while not partial.exists() or partial.read_bytes().count(b"\n") < 3:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = partial.read_bytes()
    kept = kept[: kept.rfind(b"\n") + 1]
    assert not out.exists()
    measure(problems, out, protocol=ONE_SAMPLE, session=session)
    assert out.read_bytes().startswith(kept) and len(statuses(out)) == 6
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines[-1] == {"record": "footer", "count": 6}


def test_commands(corpus: Path, tmp_path: Path, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = machine_model(Probe(1e12, 1e11, 1e11), cpu.identity())
    monkeypatch.setattr(calibrate, "remembered_cpu", lambda cache: model)
    runner = CliRunner()

    def run(*arguments: str) -> Any:
        return runner.invoke(cli, [str(argument) for argument in arguments], standalone_mode=False)

    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text("def run(x, scale):\n    return x * scale + 1\n")
    wrong.write_text("def run(x, scale):\n    return x * scale if len(x) == 1000 else x * scale + 1\n")
    common = ["--root", str(corpus), "--samples", "1"]
    written = ["--trace-output", "traces.jsonl", "--profile"]
    result = run("evaluate", "scale_shift", "--solution", str(right), *common, *written)
    assert result.exception is None and result.return_value == 0, result.output
    lines = result.stdout.splitlines()
    heads = ["workload", "status", "T_k", "interval", "T_b", "speed-up", "T_SOL", "binds", "headroom", "S"]
    assert lines[1].split() == heads and "  small: profile (the worker's word): operators on the cpu: " in result.stdout
    assert "2 of 2 workloads passed" in result.stdout and f"  {session.isolation.label}" in result.stdout
    lines = (tmp_path / "traces.jsonl").read_text().splitlines()
    assert len(lines) == 2
    # Only beside a time, which a busy machine may not give.
    timed = any(json.loads(line)["timing"] is not None for line in lines)
    beside = ("floor: an empty call takes", "controls: not run", "confirmed to", "fixed count: 1 samples")
    assert [words in result.stdout for words in beside] == [timed] * 4
    # From here on with the session of the tests: starting one takes seconds.
    monkeypatch.setattr("solbench.evaluate.session.Session", lambda *_, **__: contextlib.nullcontext(session))
    result = run("evaluate", "scale_shift", "--solution", str(wrong), *common, "--json")
    assert result.return_value == 1
    rows = json.loads(result.stdout)
    assert [row["status"] for row in rows] == ["INCORRECT_NUMERICAL", "PASSED"]
    fields = {"workload", "status", "t_k_s", "t_b_s", "t_sol_s", "score", "labels", "log", "binds", "engine"}
    assert all(fields <= set(row) for row in rows)
    assert rows[0]["t_k_s"] is None and rows[0]["score"] == 0.0 and rows[0]["reason"]
    for arguments, message in (
        (["scale_shift", "--workload", "none"], "no such workload; T/tests/scale_shift has small, larger"),
        (["nothing"], "no such problem"),
        (["scale_shift", "--trace-output", str(tmp_path)], "is there and no file; name a file"),
        (["scale_shift", "--trace-output", "/dev/full"], "is there and no file; name a file"),
    ):
        result = run("evaluate", *arguments, "--solution", str(right), "--root", str(corpus))
        assert isinstance(result.exception, InputError) and message in str(result.exception)
    out = tmp_path / "cpu" / "set.jsonl"
    result = run("measure", "--corpus", str(corpus), "--candidates", "right", "--out", str(out), "--no-calibrate")
    assert result.exception is None and "2 PASSED; 0 omitted" in result.stdout
    assert statuses(out) == {("right", "small"): "PASSED", ("right", "larger"): "PASSED"}
    assert not any(isinstance(record, Omission) for _, record in read_set(out)[1])
    # Spent before it began: the set is not complete, and can be closed.
    more = ["measure", "--corpus", str(corpus), "--candidates", "right,wrong", "--out", str(out), "--no-calibrate"]
    result = run(*more, "--budget", "0.000001s")
    assert "--budget 0.000001s is spent: what comes before the first workload took 0 s" in result.stderr
    assert result.return_value == 3 and "nothing measured; 0 omitted" in result.stdout
    assert "2 of 4 done, run again with more time to go on" in result.stdout and len(statuses(out)) == 2
    result = run(*more, "--budget", "0.000001s", "--final")
    assert result.return_value == 0 and "2 omitted" in result.stdout and len(statuses(out)) == 4
    # Before anything is started or calibrated.
    monkeypatch.setattr("solbench.evaluate.session.Session", None)
    result = run("measure", "--corpus", str(corpus), "--candidates", "left", "--out", str(out))
    assert str(result.exception) == "--candidates: no solution is named 'left'; there are eager, right, wrong"
    result = run(*more, "--workers", "2")
    assert str(result.exception) == "--workers 2: one cpu is one device; leave it out"
    monkeypatch.setattr("solbench.device.card.drivers", lambda: ((), (Absent("rocm", "no driver"),)))
    result = run(*more, "--target", "gfx1200", "--workers", "2")
    assert isinstance(result.exception, UnsupportedError)
    assert str(result.exception) == "--target gfx1200: no card here (rocm: no driver)"
