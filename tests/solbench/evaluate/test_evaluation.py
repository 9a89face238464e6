"""What an evaluation says of honest and unlucky solutions; what it leaves behind. Cheats: test_attacks.py."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
from pathlib import Path
from typing import Any

import pytest
from small_problem import write_problem

from solbench.corpus.load import Problem, load_problem, load_solution
from solbench.device import cpu
from solbench.errors import UnsupportedError
from solbench.evaluate import arena, identity
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.protocols import protocol
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.trace import Status, Trace
from solbench.store import Descriptor, encode

ONE_SAMPLE = protocol("quick", samples=1)


def solve(
    problem: Problem, session: Session, source: str, name: str = "s.py", count: int | None = 1, **spec: Any
) -> list[Trace]:
    """Traces of a solution given by its text; ``spec`` changes fields of its specification."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(source)
        solution = load_solution(path, problem.definition)
    if spec:
        solution = Solution.load({**solution.as_dict(), "spec": {**solution.as_dict()["spec"], **spec}}, "test")
    workloads = problem.workloads[:count]
    return list(evaluate(problem, solution, workloads=workloads, protocol=ONE_SAMPLE, session=session))


@pytest.mark.parametrize(
    ("name", "spec", "reason"),
    [
        ("s.cpp", {"languages": ["hip_cpp"]}, "language: hip_cpp"),
        ("s.cpp", {"languages": ["cuda_cpp", "cpp"]}, "language: cuda_cpp does not run on the cpu target"),
        ("s.cpp", {"binding": "torch"}, "binding"),
        ("s.py", {"target_hardware": ["gfx1200"]}, "target"),
    ],
)
def test_unsupported(problem: Problem, session: Session, name: str, spec: dict[str, Any], reason: str) -> None:
    traces = solve(problem, session, "x", name, count=None, **spec)
    assert [trace.status for trace in traces] == [Status.UNSUPPORTED] * 2
    assert reason in (traces[0].reason or "")


def test_another_target_is_an_error(problem: Problem, session: Session) -> None:
    solution = load_solution(Path(__file__).parents[2] / "honest" / "prints.py", problem.definition)
    with pytest.raises(UnsupportedError, match="--target gfx1200"):
        list(evaluate(problem, solution, target="gfx1200", session=session))


def test_a_failure_of_one_workload_does_not_end_the_run(problem: Problem, session: Session) -> None:
    source = "import os\ndef run(x, scale):\n    if len(x) == 1000: os._exit(0)\n    return x * scale + 1\n"
    first, second = solve(problem, session, source, count=None)
    assert (first.status, second.status) == (Status.RUNTIME_ERROR, Status.PASSED)
    assert first.reason == "the worker exited with code 0 before its handshake"
    assert first.timing is None and first.correctness is None


def test_incorrect_keeps_the_checks(problem: Problem, session: Session) -> None:
    (trace,) = solve(problem, session, "def run(x, scale):\n    return x * scale + 1.5\n")
    assert trace.status is Status.INCORRECT_NUMERICAL and trace.correctness is not None
    (check,) = trace.correctness.checks
    assert (check.output, check.passed, check.compared, check.mismatched) == ("y", False, 1000, 1000)
    assert check.max_absolute_error == pytest.approx(0.5, rel=1e-3)


def test_in_place_style(problem: Problem, session: Session) -> None:
    source = "import torch\ndef run(x, scale, y):\n    torch.mul(x, scale, out=y)\n    y.add_(1)\n"
    (trace,) = solve(problem, session, source, destination_passing_style=True)
    assert trace.status is Status.PASSED, trace.reason


def test_digests_are_those_of_the_artifacts(problem: Problem, session: Session) -> None:
    (trace,) = solve(problem, session, "def run(x, scale):\n    raise RuntimeError\n")
    definition = Descriptor.of("definition", encode("definition", problem.definition.as_dict()))
    workload = {
        "schema": "solbench.workload-instance.v1", "problem": "T/tests/scale_shift", "axes": {"N": 1000},
        "definition": definition.as_dict(), "workload": problem.workloads[0].as_dict(),
    }  # fmt: skip
    assert trace.workload_digest == Descriptor.of("workload", encode("workload", workload)).digest
    assert identity.harness_digest() == identity.harness_digest()


def test_several_processes(problem: Problem, session: Session) -> None:
    solution = load_solution(Path(__file__).parents[2] / "honest" / "openmp.cpp", problem.definition)
    counts = protocol("quick", processes=2, samples=1)
    assert counts.name == "custom" and protocol("full").processes == 6
    traces = list(evaluate(problem, solution, protocol=counts, session=session))
    assert [trace.status for trace in traces] == [Status.PASSED] * 2
    for trace in traces:
        if trace.timing is not None:
            assert [samples.process for samples in trace.timing.candidate] == [0, 1]


def test_what_a_time_rests_on_is_in_its_record(problem: Problem, session: Session) -> None:
    solution = load_solution(Path(__file__).parents[2] / "honest" / "openmp.cpp", problem.definition)
    counts = protocol("quick").model_copy(update={"max_samples": 8, "preamble_s": 0.01})
    (trace,) = evaluate(problem, solution, workloads=problem.workloads[:1], protocol=counts, session=session)
    assert trace.status is Status.PASSED, trace.reason
    if trace.timing is None:
        assert "is the machine busy?" in (trace.reason or "")
        return
    ((candidate,), (baseline,)) = trace.timing.candidate, trace.timing.baseline
    assert 6 <= len(candidate.event_s) == len(baseline.event_s) <= 8
    assert trace.timing.stop_reason.startswith(("precision: both medians known within 2% after ", "cap: 8 samples"))
    # Calls of microseconds: batches of all sixteen or, disturbed, of four; and they agree with what is reported.
    assert candidate.batch is not None and baseline.batch is not None and candidate.batch.limit_s is not None
    assert candidate.batch.calls == baseline.batch.calls in (4, 16) and len(candidate.batch.clock_s) <= 3
    said = candidate.batch.calls * statistics.median(candidate.event_s) + candidate.batch.limit_s
    assert min(candidate.batch.clock_s) - candidate.batch.floor_s <= said
    assert f"(batches of {candidate.batch.calls} calls)" in trace.labels[-1]
    assert trace.correctness is not None
    # Every call of a batch is checked, beside warm-ups, a stress round and the samples.
    assert trace.correctness.rounds >= candidate.batch.calls + candidate.warmups + 1 + len(candidate.event_s)
    assert (candidate.observed is None) == (cpu.clock_hz() is None)


def test_a_call_finds_its_heap_mapped(problem: Problem, session: Session) -> None:
    # A temporary of 4 MiB is 1,024 pages; each would fault, had the call to get them from the kernel.
    source = """
import resource, torch
def run(x, scale):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(1 << 20)
    print("faults", resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return (x * scale + 1).float()
"""
    (trace,) = solve(problem, session, source)
    assert trace.status is Status.PASSED, trace.reason
    faults = [int(line.split()[1]) for line in trace.log.splitlines()]
    assert len(faults) >= 4 and max(faults[1:]) < 256, faults


def test_memory(problem: Problem, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "heap_bytes", lambda plan: 2**16)
    monkeypatch.setattr(arena, "available_memory", lambda: 2 * 2**16 + 100_000)
    first, second = solve(problem, session, "def run(x, scale):\n    raise RuntimeError\n", count=None)
    # 6 * 4000 + 7 * 4000 + 4 * 8000 bytes and two heaps fit, five times the tensors do not.
    assert (first.status, second.status) == (Status.RUNTIME_ERROR, Status.UNSUPPORTED), first.reason
    assert (second.reason or "").startswith("memory: needs")


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("def run(x, scale):\n    raise ValueError('no reference')\n", "ValueError: no reference"),
        ("import os\ndef run(x, scale):\n    os._exit(3)\n", "exited with code 3"),
        ("def run(x, scale):\n    return x.double()\n", "the reference returned y as torch.float64[1000]"),
        ("import nothing_of_the_kind\ndef run(x, scale):\n    return x\n", "nothing_of_the_kind"),
    ],
    ids=["raises", "dies", "dtype", "import"],
)
def test_invalid_reference(tmp_path: Path, session: Session, problem: Problem, reference: str, reason: str) -> None:
    broken = load_problem(write_problem(tmp_path / "T" / "tests" / "scale_shift", reference=reference))
    (trace,) = solve(broken, session, "def run(x, scale):\n    return x * scale + 1\n")
    assert trace.status is Status.INVALID_REFERENCE
    assert reason in f"{trace.reason} {trace.log}"
    # The next evaluation has a referee again.
    (trace,) = solve(problem, session, "def run(x, scale):\n    return x * scale + 1\n")
    assert trace.status is Status.PASSED


MANY_TYPES = """\
schema: solbench.definition.v1
name: scale_shift
suite: tests
axes: {N: {type: var}, M: {type: const, value: 3}, L: {type: expr, expression: N * M}}
inputs:
  h: {shape: [N, M], dtype: bfloat16}
  i: {shape: [L], dtype: int8}
  a: {shape: null, dtype: float32}
  b: {shape: null, dtype: int64}
  c: {shape: null, dtype: bool}
  nothing: {shape: [0, N], dtype: float32}
  scalar: {shape: [], dtype: float32}
outputs:
  h2: {shape: [N, M], dtype: bfloat16}
  i2: {shape: [L], dtype: int8}
  m: {shape: [N], dtype: bool}
  s: {shape: [], dtype: float32}
in_place: [i]
"""
MANY_REFERENCE = """\
def run(h, i, a, b, c, nothing, scalar):
    return h, i + b, (h > 0).any(1), scalar * a + c
"""
MANY_WORKLOADS = """\
schema: solbench.workloads.v1
workloads:
  - uuid: one
    axes: {N: 5}
    inputs:
      h: {type: normal}
      i: {type: integer, low: 0, high: 100}
      a: {type: constant, value: 0.5}
      b: {type: constant, value: 7}
      c: {type: constant, value: true}
      nothing: {type: normal}
      scalar: {type: normal}
    checks:
      - {type: exact, output: h2}
      - {type: exact, output: i2}
      - {type: exact, output: m}
      - {type: numeric, output: s, atol: 1.0e-6, rtol: 0}
"""
MANY_CPP = """\
#include <cstdint>
// In place as declared: i changes. The axes follow in declared order: N, M, L.
extern "C" void run(const uint16_t* h, int8_t* i, float a, int64_t b, bool c, const float* nothing, const float* scalar,
                    uint16_t* h2, int8_t* i2, bool* m, float* s, int64_t N, int64_t M, int64_t L) {
  if (L != N * M || M != 3) return;
  for (int64_t k = 0; k < L; ++k) { h2[k] = h[k]; i2[k] = i[k] + b; i[k] = 0; }
  for (int64_t n = 0; n < N; ++n) {
    m[n] = false;
    for (int64_t k = 0; k < M; ++k) m[n] |= !(h[n * M + k] & 0x8000) && (h[n * M + k] & 0x7fff);
  }
  *s = *scalar * a + c;
}
"""


def test_every_kind_of_argument(tmp_path: Path, session: Session) -> None:
    folder = tmp_path / "T" / "tests" / "scale_shift"
    write_problem(folder, problem=MANY_TYPES, reference=MANY_REFERENCE, workloads=MANY_WORKLOADS)
    problem = load_problem(folder)
    for source, name in ((MANY_CPP, "s.cpp"), (MANY_REFERENCE, "s.py")):
        (trace,) = solve(problem, session, source, name)
        assert trace.status is Status.PASSED, (trace.reason, trace.log)
    # A bool that was never written is no bool, whatever the poison looks like.
    (trace,) = solve(problem, session, MANY_CPP.replace("m[n] = false;", "if (n == 4) return;"), "s.cpp")
    assert trace.status is Status.INCORRECT_NUMERICAL and (trace.reason or "").startswith("m:")
    # One returned value too few.
    (trace,) = solve(problem, session, MANY_REFERENCE.replace("h, i + b", "i + b"))
    assert trace.status is Status.INCORRECT_SHAPE


def test_persistent_inputs_stay(tmp_path: Path, session: Session) -> None:
    from small_problem import PROBLEM

    source = "_kept = {}\ndef run(x, scale):\n    y = _kept.setdefault(len(x), x * scale + 1)\n    return y.clone()\n"
    text = PROBLEM + "persistent: [x]\n"
    workloads = """\
schema: solbench.workloads.v1
workloads:
  - uuid: one
    axes: {N: 10}
    inputs: {x: {type: normal}, scale: {type: constant, value: 2}}
    checks: [{type: exact, output: y}]
"""
    kept = load_problem(write_problem(tmp_path / "a" / "tests" / "scale_shift", problem=text, workloads=workloads))
    drawn = load_problem(write_problem(tmp_path / "b" / "tests" / "scale_shift", workloads=workloads))
    assert solve(kept, session, source)[0].status is Status.PASSED
    assert solve(drawn, session, source)[0].status is Status.INCORRECT_NUMERICAL


def test_limits_are_the_sessions(problem: Problem, session: Session) -> None:
    assert dataclasses.replace(session.limits, call_s=1.0).call_s == 1.0
    assert session.floors()["python"]["event_s"] > 0


def test_a_new_process_a_replicate_leaves_the_session_its_folder(problem: Problem, tmp_path: Path) -> None:
    """An interpreter that is renewed before it was spoken to ends in order, and takes only its own folder with it."""
    with Session(cache=tmp_path, unsandboxed=True) as session:
        folder = Path(session.zygote(torch=False).folder).parent
        session.renew()
        assert [path.name for path in folder.iterdir()] == []
