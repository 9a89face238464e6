"""Attacks and honest candidates on a card. Runs where it is named: ``python3 -m pytest -s tests/gpu/test_attacks.py``.

Those of tests/attacks/gpu and tests/honest/gpu, and of the folders above those that say nothing of the host. What each
got is printed as a table, and written to ``$OUT/gpu_attacks.json`` where that variable is set.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solbench.corpus.load import Problem, load_problem, load_solution
from solbench.device import locks
from solbench.device.card import Card, Driver, drivers, find
from solbench.errors import InputError, UnsupportedError
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.protocols import protocol
from solbench.evaluate.session import Session
from solbench.evaluate.turns import Limits
from solbench.model.solution import Solution
from solbench.model.trace import Status, Trace

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "solbench" / "evaluate"))
from small_problem import WORKLOADS, headers, write_problem  # noqa: E402

pytestmark = pytest.mark.gpu

OF_THE_HOST = (
    "after_warmup.py", "alias_output.py", "batch_and_skip.py", "control_fds.py", "early_reader.py", "half_precision.py",
    "hangs.py", "identity_cache.py", "input_copy.py", "late_thread.py", "lazy_subclass.py", "lower_precision.py",
    "lower_precision_flag.py", "mutates_input.py", "nan_output.py", "patch_clock.py", "pointer_cache.py",
    "prepared_weight.py", "read_expected.py", "shape_cache.py", "stale_output.py", "uninitialised.py",
    "write_expected.py", "wrong_dtype.py", "zeros.py",
)  # fmt: skip
HONEST_OF_THE_HOST = (
    "cleans_up_a_child.py", "full_precision.py", "named_result.py", "prints.py", "temporary_file.py", "try_except.py",
    "workspace.py",
)  # fmt: skip
LIMITS = Limits(compile_s=60.0, load_s=20.0, first_call_s=20.0, call_s=3.0, reference_s=30.0)

LARGE = WORKLOADS.replace("{N: 1000}", "{N: 4194304}").replace("{N: 5000}", "{N: 1000003}")
PRODUCT = {
    "problem": """\
schema: solbench.definition.v1
name: product
suite: tests
axes: {M: {type: const, value: 512}, N: {type: const, value: 512}, K: {type: var}}
inputs: {a: {shape: [M, K], dtype: float32}, b: {shape: [K, N], dtype: float32}}
outputs: {y: {shape: [M, N], dtype: float32}}
""",
    "reference": "def run(a, b):\n    return a @ b\n",
    # Sums of 512 products: float32 errs by some 1e-4 at most, TF32 by some 1e-2.
    "workloads": """\
schema: solbench.workloads.v1
defaults:
  inputs: {a: {type: normal}, b: {type: normal}}
  checks: [{type: numeric, output: y, atol: 1.0e-3, rtol: 1.0e-5}]
workloads:
  - {uuid: small, axes: {K: 512}}
  - {uuid: larger, axes: {K: 1024}}
""",
}
WEIGHTED = {
    "problem": """\
schema: solbench.definition.v1
name: weighted
suite: tests
axes: {N: {type: var}}
inputs: {x: {shape: [N], dtype: float32}, w: {shape: [N], dtype: float32}}
outputs: {y: {shape: [N], dtype: float32}}
persistent: [w]
""",
    "reference": "def run(x, w):\n    return x * w + 1\n",
    "workloads": """\
schema: solbench.workloads.v1
defaults:
  inputs: {x: {type: normal}, w: {type: normal}}
  checks: [{type: numeric, output: y, atol: 1.0e-5, rtol: 1.0e-5}]
workloads:
  - {uuid: large, axes: {N: 4194304}}
  - {uuid: odd, axes: {N: 1000003}}
""",
}


def fixtures(kind: str, of_the_host: tuple[str, ...]) -> list[Path]:
    own = sorted(path for path in (TESTS / kind / "gpu").iterdir() if path.suffix in (".py", ".cu"))
    return [*own, *(TESTS / kind / name for name in of_the_host)]


ATTACKS = fixtures("attacks", OF_THE_HOST)
HONEST = fixtures("honest", HONEST_OF_THE_HOST)


@dataclasses.dataclass
class Report:
    """One row a candidate, kept on disk while the run goes on."""

    rows: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)

    def add(self, path: Path, expected: str, traces: list[Trace], seconds: float) -> None:
        timing = [trace.timing for trace in traces if trace.timing is not None]
        self.rows.append({
            "name": str(path.relative_to(TESTS)), "expected": expected,
            "got": [str(trace.status) for trace in traces],
            "reason": next((trace.reason for trace in traces if trace.reason), None),
            "seconds": round(seconds, 2),
            "candidate_s": [list(part.event_s) for times in timing for part in times.candidate],
            "baseline_s": [list(part.event_s) for times in timing for part in times.baseline],
            "witness": [label for trace in traces for label in trace.labels if label.startswith("clock witness")],
            "log": traces[-1].log[-800:],
        })  # fmt: skip
        self.write()

    def write(self) -> None:
        if os.environ.get("OUT"):
            text = json.dumps({**self.facts, "rows": self.rows}, indent=2, default=str)
            Path(os.environ["OUT"], "gpu_attacks.json").write_text(text)

    def table(self) -> str:
        lines = []
        for row in self.rows:
            times = [seconds for part in row["candidate_s"] for seconds in part]
            least = f"{min(times) * 1e6:.1f} µs" if times else "-"
            cells = (row["name"], row["expected"], " ".join(sorted(set(row["got"]))), least, f"{row['seconds']:.1f} s")
            widths = (38, 40, 22, 14, 7)
            lines.append(" ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + f" {row['reason'] or ''}")
        return "\n".join(lines)


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    report = Report()
    yield report
    report.write()
    print(f"\n{json.dumps(report.facts, default=str)}\n{report.table()}")


@pytest.fixture(scope="module")
def card() -> tuple[Driver, Card]:
    try:
        return find(drivers()[0], locks.uuid(None, os.environ))
    except (UnsupportedError, InputError) as error:
        pytest.fail(str(error))  # it was named, so it is to run


@pytest.fixture(scope="module")
def session(card: tuple[Driver, Card], report: Report, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    driver, own = card
    lock_dir = None if os.environ.get("GPU_LOCK_DIR") else tmp_path_factory.mktemp("locks")
    with Session(LIMITS, cache=tmp_path_factory.mktemp("build"), target=own.arch, lock_dir=lock_dir) as session:
        report.facts |= {"card": vars(own), "isolation": session.isolation.label, "before": driver.observe(own)}
        yield session
    after = driver.observe(own)
    report.facts["after"] = after
    assert not [process for process in after.processes or () if process.compute], after.processes


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Problem]:
    root = tmp_path_factory.mktemp("problems") / "T" / "tests"
    texts = {"scale_shift": {"workloads": LARGE}, "product": PRODUCT, "weighted": WEIGHTED}
    return {name: load_problem(write_problem(root / name, **files)) for name, files in texts.items()}


def load(path: Path, problem: Problem) -> Solution:
    """The solution that a fixture and the fields at its head make."""
    fields = headers(path)
    record = load_solution(path, problem.definition).model_dump(mode="json", by_alias=True)
    spec = record["spec"]
    spec["languages"] = [fields["language"]] if "language" in fields else spec["languages"]
    spec["destination_passing_style"] = "in place" in fields
    spec["compile_options"]["cuda_cflags"] = fields.get("flags", "").split()
    return Solution.load(record, str(path))


def problem_of(path: Path, problems: dict[str, Problem]) -> Problem:
    return problems[headers(path).get("problem", "scale_shift")]


def cases(paths: list[Path]) -> list[Any]:
    return [pytest.param(path, id=str(path.relative_to(TESTS))) for path in paths]


@pytest.mark.parametrize("path", cases(HONEST))
def test_honest(path: Path, problems: dict[str, Problem], session: Session, report: Report) -> None:
    fields = headers(path)
    problem = problem_of(path, problems)
    start = time.monotonic()
    session.limits = Limits() if "slow" in fields else LIMITS
    try:
        traces = run(load(path, problem), problem, session, 2, len(problem.workloads))
    finally:
        session.limits = LIMITS
    report.add(path, "PASSED", traces, time.monotonic() - start)
    assert [trace.status for trace in traces] == [Status.PASSED] * 2, [(trace.reason, trace.log) for trace in traces]
    for trace in traces:
        assert fields.get("log", "") in trace.log
        assert trace.timing is not None, trace.reason
        for sets in (trace.timing.candidate, trace.timing.baseline):
            assert all(0 < event <= clock for event, clock in zip(sets[0].event_s, sets[0].clock_s, strict=True))


@pytest.mark.parametrize("path", cases(ATTACKS))
def test_attack(path: Path, problems: dict[str, Problem], session: Session, report: Report) -> None:
    fields = headers(path)
    if fields.get("needs", "") and not any(fields["needs"] in name for name in session.isolation.names):
        pytest.skip(f"no {fields['needs']} here")
    problem = problem_of(path, problems)
    solution = load(path, problem)
    start = time.monotonic()
    if fields["expect"] == "TIMEOUT":
        session.limits = dataclasses.replace(LIMITS, first_call_s=LIMITS.call_s)
    try:
        for _ in range(2 if "again" in fields else 1):
            (trace,) = run(solution, problem, session, int(fields.get("samples", 2)), 1)
    finally:
        session.limits = LIMITS
    report.add(path, fields["expect"], [trace], time.monotonic() - start)
    try:
        assert trace.status in fields["expect"].split(" or "), (trace.reason, trace.log)
        assert fields.get("reason", "") in (trace.reason or "")
        assert fields.get("log", "") in trace.log
        assert trace.timing is None or trace.status is Status.PASSED
        if trace.timing is not None:
            assert min(trace.timing.candidate[0].event_s) >= float(fields.get("at least", 0))
            assert max(trace.timing.baseline[0].event_s) <= float(fields.get("baseline at most", "inf"))
    finally:
        if "next" in fields:
            start = time.monotonic()
            path_after, ordinary = TESTS / "honest" / "named_result.py", problems["scale_shift"]
            after = run(load(path_after, ordinary), ordinary, session, 2, 1)
            report.add(path_after, f"PASSED (after {path.name})", after, time.monotonic() - start)
            assert after[0].status is Status.PASSED, f"the next one: {after[0].reason}"


def run(solution: Solution, problem: Problem, session: Session, samples: int, count: int) -> list[Trace]:
    """Traces of the first ``count`` workloads."""
    return list(
        evaluate(
            problem, solution, workloads=problem.workloads[:count], target=session.target, session=session,
            protocol=protocol("quick", samples=samples),
        )
    )  # fmt: skip
