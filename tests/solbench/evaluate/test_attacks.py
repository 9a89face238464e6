"""Every candidate of tests/attacks gets its verdict, every one of tests/honest passes, and the session goes on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from small_problem import headers

from solbench.corpus.load import Problem, load_solution
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.protocols import protocol
from solbench.evaluate.session import Session
from solbench.evaluate.turns import Limits
from solbench.model.trace import Status

FOLDER = Path(__file__).resolve().parents[2]
ATTACKS = sorted(path for path in (FOLDER / "attacks").iterdir() if path.suffix in (".py", ".cpp"))
HONEST = sorted(path for path in (FOLDER / "honest").iterdir() if path.suffix in (".py", ".cpp"))
# Run by tests/gpu/test_attacks.py.
ATTACKS_ON_A_CARD = sorted(path for path in (FOLDER / "attacks" / "gpu").iterdir() if path.suffix in (".py", ".cu"))
HONEST_ON_A_CARD = sorted(path for path in (FOLDER / "honest" / "gpu").iterdir() if path.suffix in (".py", ".cu"))
_GAINLESS = {"at least", "baseline at most", "next", "gains nothing"}
TWO_SAMPLES = protocol("quick", samples=2)


def cases(paths: list[Path]) -> list[ParameterSet]:
    marks = {path: [pytest.mark.slow] if "slow" in headers(path) else [] for path in paths}
    return [pytest.param(path, marks=marks[path], id=path.name) for path in paths]


@pytest.mark.parametrize("path", cases(ATTACKS))
def test_attack(path: Path, problem: Problem, session: Session) -> None:
    fields = headers(path)
    if fields.get("needs", "") and not any(fields["needs"] in name for name in session.isolation.names):
        pytest.skip(f"no {fields['needs']} here")
    solution = load_solution(path, problem.definition)
    limits, before = session.limits, session.limits
    if fields["expect"] == "TIMEOUT":
        limits = dataclasses.replace(limits, load_s=1.0, first_call_s=1.0, call_s=1.0)
    session.limits = limits
    workloads = problem.workloads[:1]
    try:
        for _ in range(2 if "again" in fields else 1):
            (trace,) = evaluate(problem, solution, workloads=workloads, protocol=TWO_SAMPLES, session=session)
    finally:
        session.limits = before
    assert trace.status == fields["expect"], (trace.reason, trace.log)
    assert fields.get("reason", "") in (trace.reason or "")
    assert fields.get("log", "") in trace.log
    assert trace.timing is None or trace.status is Status.PASSED
    if "at least" in fields and trace.timing is not None:
        assert min(trace.timing.candidate[0].event_s) >= float(fields["at least"])


@pytest.mark.slow
def test_what_the_sandbox_stops_works_without_it(problem: Problem, tmp_path: Path) -> None:
    """These fixtures give the right answer once they get what they want: their verdict is the sandbox's doing."""
    with Session(cache=tmp_path, unsandboxed=True) as session:
        for name in ("read_files.py", "new_namespace.py"):
            solution = load_solution(FOLDER / "attacks" / name, problem.definition)
            (trace,) = evaluate(
                problem, solution, workloads=problem.workloads[:1], protocol=TWO_SAMPLES, session=session
            )
            assert trace.status is Status.PASSED, (name, trace.reason)
            assert trace.labels[0].startswith("isolation: unsandboxed")


@pytest.mark.parametrize("path", cases(HONEST))
def test_honest(path: Path, problem: Problem, session: Session) -> None:
    fields = headers(path)
    solution = load_solution(path, problem.definition)
    before = session.limits
    if "slow" in fields:
        session.limits = Limits()
    try:
        traces = list(evaluate(problem, solution, protocol=TWO_SAMPLES, session=session))
    finally:
        session.limits = before
    assert [trace.status for trace in traces] == [Status.PASSED] * 2, [trace.reason for trace in traces]
    for trace in traces:
        assert fields.get("log", "") in trace.log
        # One stress round, two timed samples, one to three warm-ups; more samples on a busy machine.
        assert trace.correctness is not None and trace.correctness.rounds >= 4
        if trace.timing is None:
            assert fields.get("reason", "is the machine busy?") in (trace.reason or "")
            continue
        assert "reason" not in fields
        for sets in (trace.timing.candidate, trace.timing.baseline):
            assert [len(samples.event_s) for samples in sets] == [2]
            assert all(0 < event <= clock for event, clock in zip(sets[0].event_s, sets[0].clock_s, strict=True))


def test_every_fixture_says_what_it_is() -> None:
    assert len(ATTACKS) >= 70 and len(HONEST) >= 10
    assert len(ATTACKS_ON_A_CARD) >= 35 and len(HONEST_ON_A_CARD) >= 12
    for path in (*ATTACKS, *ATTACKS_ON_A_CARD):
        expected = set(headers(path)["expect"].split(" or "))
        assert expected <= set(Status) and "attack" in headers(path), path.name
        # Passing is no success of the attack only where the time says so, or nothing could be gained.
        assert len(expected) == 1 or "PASSED" not in expected or _GAINLESS & set(headers(path)), path.name
    for path in (*HONEST, *HONEST_ON_A_CARD):
        assert "honest" in headers(path), path.name
