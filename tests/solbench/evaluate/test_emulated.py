"""Verdicts from the emulated card: what passes, what is found, what is said of sizes and counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from small_problem import write_problem

from solbench.cli import emulated_table
from solbench.cli.evaluate import evaluate as command
from solbench.corpus.load import Problem, load_problem, load_solution
from solbench.errors import UnsupportedError
from solbench.evaluate import compilers
from solbench.evaluate.emulated import LABEL, Plan, evaluate_emulated, instances
from solbench.evaluate.session import Session
from solbench.evaluate.turns import Limits
from solbench.model.solution import Solution
from solbench.model.trace import Status, Trace

pytest.importorskip("triton")

LIMITS = Limits(load_s=60.0, first_call_s=60.0, call_s=60.0)
# 1000 elements are 8 groups of 128; 200,000 are more than are run in every order.
WORKLOADS = """\
schema: solbench.workloads.v1
defaults:
  inputs: {x: {type: normal}, scale: {type: constant, value: 2.5}}
  checks: [{type: numeric, output: y, atol: 1.0e-5, rtol: 1.0e-5}]
  stress_rounds: [{label: large, inputs: {x: {type: normal, mean: 1000}, scale: {type: constant, value: -3}}}]
workloads:
  - {uuid: small, axes: {N: 1000}}
  - {uuid: large, axes: {N: 200000}}
"""
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale_shift(x, y, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    CODE

def run(x, scale):
    y = torch.empty_like(x)
    n = x.shape[0]
    scale_shift[(triton.cdiv(n, 128),)](x, y, scale, n, BLOCK=128, num_warps=1)
    return y
"""
RIGHT = "tl.store(y + at, value * scale + 1, mask=at < n)"


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    folder = tmp_path_factory.mktemp("problems") / "T" / "tests" / "scale_shift"
    return load_problem(write_problem(folder, workloads=WORKLOADS))


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(LIMITS, target="gfx1200", emulated=True) as session:
        yield session


def solution(problem: Problem, folder: Path, code: str = RIGHT, source: str = KERNEL) -> Solution:
    path = folder / "kernel.py"
    path.write_text(source.replace("CODE", code))
    return Solution.load(load_solution(path, problem.definition).as_dict(), "test")


def verdict(problem: Problem, card: Session, candidate: Solution, plan: Plan | None = None, which: int = 0) -> Trace:
    chosen = problem.workloads[which : which + 1]
    (trace,) = evaluate_emulated(problem, candidate, card, workloads=chosen, plan=plan)
    return trace


def test_a_kernel_that_is_right(scaled: Problem, card: Session, tmp_path: Path) -> None:
    trace = verdict(scaled, card, solution(scaled, tmp_path))
    assert (trace.status, trace.reason) == (Status.PASSED, "not timed: emulated"), (trace.reason, trace.log)
    assert trace.timing is None and trace.labels[0] == LABEL and trace.target == "gfx1200"
    # Checked in lock-step and in two other orders, and the stress round.
    assert trace.correctness is not None and trace.correctness.rounds == 4
    assert [check.compared for check in trace.correctness.checks] == [4 * 1000]
    assert trace.emulation is not None
    (whole,) = trace.emulation.instances
    assert whole.axes == {"N": 1000} and whole.reduced is None and whole.ended is None
    assert whole.calls == ("lock-step, checked", "permuted", "permuted")
    assert whole.executed is not None
    (launch,) = whole.executed.launches
    assert (launch.kernel, launch.grid, launch.block) == ("scale_shift", (8, 1, 1), (32, 1, 1))
    assert whole.executed.instructions == sum(whole.executed.engines.values()) == launch.instructions
    assert not whole.executed.wmma_operations


def test_bytes_are_those_that_lanes_moved(scaled: Problem, card: Session, tmp_path: Path) -> None:
    """Each element is loaded and stored once: 4 bytes, whatever the width of an access; scalars come beside."""
    trace = verdict(scaled, card, solution(scaled, tmp_path), Plan(quick=True))
    assert trace.emulation is not None
    executed = trace.emulation.instances[0].executed
    assert executed is not None
    assert executed.stored_bytes == {"global": 4000}
    assert executed.loaded_bytes["global"] == 4000


def test_a_large_workload_is_run_whole_and_small(scaled: Problem, card: Session, tmp_path: Path) -> None:
    trace = verdict(scaled, card, solution(scaled, tmp_path), which=1)
    assert trace.status is Status.PASSED, trace.reason
    assert trace.emulation is not None
    whole, small = trace.emulation.instances
    assert whole.axes == {"N": 200_000} and whole.calls == ("lock-step",)
    assert 2 * small.axes["N"] <= 1 << 16 and small.reduced is not None and "200000" in small.reduced
    assert small.calls == ("lock-step, checked", "permuted", "permuted")


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (55_000, "not at its end within the limit"),
        # 200,000 elements in, as many out, and the scale: it is not tried whole.
        (50_000, "400,001 elements are more than 8 for each instruction of the limit"),
    ],
)
def test_a_workload_over_the_limit_is_run_small_only(
    scaled: Problem, card: Session, tmp_path: Path, limit: int, why: str
) -> None:
    # A sine takes some hundred instructions, and nothing may leave it out.
    code = "tl.store(y + at, value * scale + 1 + tl.sin(value) * 0.0, mask=at < n)"
    trace = verdict(scaled, card, solution(scaled, tmp_path, code), Plan(instructions=limit), which=1)
    assert trace.status is Status.PASSED, trace.reason
    assert trace.emulation is not None and trace.emulation.limit == limit
    whole, small = trace.emulation.instances
    assert whole.executed is None and why in (whole.ended or "")
    assert small.executed is not None and small.executed.instructions <= limit


def test_a_limit_that_nothing_fits_in_is_no_verdict(scaled: Problem, card: Session, tmp_path: Path) -> None:
    trace = verdict(scaled, card, solution(scaled, tmp_path), Plan(instructions=10))
    assert trace.status is Status.UNSUPPORTED
    assert "not at its end within the limit" in (trace.reason or "")


def test_quick_is_one_call(scaled: Problem, card: Session, tmp_path: Path) -> None:
    trace = verdict(scaled, card, solution(scaled, tmp_path), Plan(quick=True), which=1)
    assert trace.emulation is not None
    (whole,) = trace.emulation.instances
    assert whole.calls == ("lock-step",)
    assert trace.correctness is not None and trace.correctness.rounds == 2  # with the stress round


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        ("tl.store(y + at, value * scale + 1.1, mask=at < n)", Status.INCORRECT_NUMERICAL, "y"),
        ("tl.store(y + at, value * scale + 1)", Status.RUNTIME_ERROR, "out-of-bounds store"),
        ("tl.store(y + at * 0, value * scale + 1, mask=at < n)", Status.RUNTIME_ERROR, "race"),
        ("tl.store(x + at, value * scale + 1, mask=at < n)", Status.RUNTIME_ERROR, "read-only"),
        ("tl.store(y + at, nothing)", Status.RUNTIME_ERROR, "nothing"),
    ],
)  # fmt: skip
def test_what_does_not_pass(
    code: str, status: Status, reason: str, scaled: Problem, card: Session, tmp_path: Path
) -> None:
    trace = verdict(scaled, card, solution(scaled, tmp_path, code))
    assert trace.status is status and reason in (trace.reason or ""), (trace.status, trace.reason, trace.log)
    assert trace.timing is None


TUNED = (
    KERNEL.replace(
        "@triton.jit\n",
        "@triton.autotune([triton.Config({'BLOCK': b}, num_warps=1) for b in (64, 128, 256)], key=['n'])\n"
        "@triton.jit\n",
    )
    .replace("[(triton.cdiv(n, 128),)]", "[lambda meta: (triton.cdiv(n, meta['BLOCK']),)]")
    .replace(", BLOCK=128, num_warps=1", "")
)


@pytest.mark.parametrize(
    ("configuration", "groups"),
    [(None, [16]), ("each", [16, 8, 4])],
)
def test_configurations_of_the_autotuner(
    configuration: str | None, groups: list[int], scaled: Problem, card: Session, tmp_path: Path
) -> None:
    candidate = solution(scaled, tmp_path, source=TUNED)
    trace = verdict(scaled, card, candidate, Plan(quick=True, configuration=configuration))
    assert trace.status is Status.PASSED and trace.emulation is not None, (trace.reason, trace.log)
    executed = trace.emulation.instances[0].executed
    assert executed is not None
    assert [launch.grid[0] for launch in executed.launches] == groups
    named = executed.launches[-1].configuration
    trace = verdict(scaled, card, candidate, Plan(quick=True, configuration=named))
    assert trace.emulation is not None and trace.emulation.instances[0].executed is not None
    assert [launch.grid[0] for launch in trace.emulation.instances[0].executed.launches] == groups[-1:]


def test_a_configuration_that_is_not_there(scaled: Problem, card: Session, tmp_path: Path) -> None:
    trace = verdict(scaled, card, solution(scaled, tmp_path, source=TUNED), Plan(quick=True, configuration="BLOCK: 7"))
    assert trace.status is Status.RUNTIME_ERROR and "no configuration 'BLOCK: 7'" in (trace.reason or "")


def test_what_nothing_wrote_is_a_warning(scaled: Problem, card: Session, tmp_path: Path) -> None:
    """What y holds at first is looked at, and decides nothing: n is never negative."""
    code = (
        "old = tl.load(y + at, mask=at < n)\n"
        "    more = tl.load(x + tl.where(old > 0, 1, 0), mask=at < n)\n"
        "    tl.store(y + at, value * scale + 1 + more * (n < 0).to(tl.float32), mask=at < n)"
    )
    trace = verdict(scaled, card, solution(scaled, tmp_path, code))
    assert trace.status is Status.PASSED and trace.emulation is not None, (trace.reason, trace.log)
    warnings = trace.emulation.instances[0].warnings
    assert any("uninitialised memory" in warning and "of y, which nothing wrote" in warning for warning in warnings)
    row = emulated_table.row(trace.as_dict(), None)
    assert any("warning: uninitialised memory" in line for line in emulated_table.table(scaled, "triton", [row]))


def test_a_finding_says_where(scaled: Problem, card: Session, tmp_path: Path) -> None:
    trace = verdict(scaled, card, solution(scaled, tmp_path, "tl.store(y + at, value * scale + 1)"))
    reason = trace.reason or ""
    line = KERNEL.splitlines().index("    CODE") + 1
    # 8 groups of 128 for 1000 elements: the last group goes on for 24 elements.
    assert "of y, which has 4000" in reason and "group (7, 0, 0)" in reason and f"kernel.py:{line}" in reason


def test_a_fault_that_is_caught_is_a_fault(scaled: Problem, card: Session, tmp_path: Path) -> None:
    source = KERNEL.replace("    scale_shift[", "    try:\n        scale_shift[").replace(
        "num_warps=1)", "num_warps=1)\n    except BaseException:\n        pass\n    y = x * scale + 1"
    )
    trace = verdict(scaled, card, solution(scaled, tmp_path, "tl.store(y + at, value)", source))
    assert trace.status is Status.RUNTIME_ERROR and "out-of-bounds store" in (trace.reason or "")


def test_pytorch_alone_is_not_judged(scaled: Problem, card: Session, tmp_path: Path) -> None:
    candidate = solution(scaled, tmp_path, source="def run(x, scale):\n    return x * scale + 1\n")
    trace = verdict(scaled, card, candidate)
    assert trace.status is Status.UNSUPPORTED and "pytorch" in (trace.reason or "")
    assert trace.emulation is None


def test_another_target_is_not_emulated(scaled: Problem, session: Session, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="only gfx1200 is emulated"):
        list(evaluate_emulated(scaled, solution(scaled, tmp_path), session))


def test_instances_of_a_workload(scaled: Problem) -> None:
    small, large = scaled.workloads
    assert [one.axes for one in instances(scaled, small)] == [{"N": 1000}]
    whole, reduced = instances(scaled, large)
    assert whole.note is None and whole.axes == {"N": 200_000}
    assert reduced.note is not None and reduced.axes["N"] < 1 << 15


HIP = """
#include <hip/hip_runtime.h>
#include <cstdint>

__global__ void scale_shift(const float* x, float scale, float* y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i WITHIN n) y[i] = x[i] * scale + 1;
}

extern "C" void run(const float* x, double scale, float* y, int64_t n) {
  scale_shift<<<dim3((n + 127) / 128), dim3(128)>>>(x, float(scale), y, n);
}
"""


def hip_is_here() -> bool:
    try:
        compilers.find("hip_cpp", "gfx1200")
    except compilers.NoCompiler:
        return False
    return True


@pytest.mark.skipif(not hip_is_here(), reason="no compiler for HIP is here")
@pytest.mark.parametrize(("within", "status"), [("<", Status.PASSED), ("<=", Status.RUNTIME_ERROR)])
def test_a_hip_candidate(within: str, status: Status, scaled: Problem, card: Session, tmp_path: Path) -> None:
    path = tmp_path / "kernel.hip"
    path.write_text(HIP.replace("WITHIN", within))
    trace = verdict(scaled, card, load_solution(path, scaled.definition))
    assert trace.status is status, (trace.reason, trace.log)
    assert status is Status.PASSED or "out-of-bounds" in (trace.reason or "")


def test_the_command_takes_the_emulator_where_no_card_is(
    scaled: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another test of this process may have left the binding of a driver that it played.
    monkeypatch.setattr("solbench.device.card.drivers", lambda: ((), ()))
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("CODE", RIGHT))
    arguments = [
        str(scaled.path), "--solution", str(path), "--target", "gfx1200", "--workload", "small", "--quick", "--json",
    ]  # fmt: skip
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    (row,) = json.loads(result.stdout)
    assert row["status"] == "PASSED" and row["timing"] is None
    # The bound wants x once and y once: 4,000 bytes each.
    assert row["written_ratio"] == 1.0 and row["t_sol_s"] > 0


def test_the_emulator_is_for_gfx1200_only(scaled: Problem, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("CODE", RIGHT))
    arguments = [str(scaled.path), "--solution", str(path), "--target", "sm_90", "--device", "emulator"]
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, UnsupportedError)


def trace_of(problem: Problem, **fields: Any) -> dict[str, Any]:
    executed = {
        "launches": [], "count": 1, "instructions": 1_234_567, "engines": {"valu": 1_234_567},
        "wmma_operations": {"f16": 4_000}, "loaded_bytes": {"memory": 3_000_000, "LDS": 9_000_000},
        "stored_bytes": {"memory": 500}, **fields,
    }  # fmt: skip
    whole = {
        "axes": {"N": 1},
        "reduced": None,
        "calls": ["lock-step"],
        "executed": executed,
        "ended": None,
        "warnings": [],
    }
    return {
        "workload": "w0", "status": "PASSED", "reason": "not timed: emulated", "log": "", "labels": [LABEL],
        "emulation": {"limit": 1, "instances": [whole]},
    }  # fmt: skip


def test_the_table_holds_executed_against_required_work(scaled: Problem) -> None:
    bound = {"t_sol_s": 2e-6, "flops": 2_000, "memory": {"live_read_bytes": 1_000_000, "live_write_bytes": 500}}
    row = emulated_table.row(trace_of(scaled), bound)
    assert (row["read_ratio"], row["written_ratio"], row["matrix_ratio"]) == (3.0, 1.0, 2.0)
    text = "\n".join(emulated_table.table(scaled, "triton", [row]))
    assert "3 MB (3x)" in text and "500 B (1x)" in text and "2x" in text and "1,234,567" in text
    assert "1 of 1 workloads passed" in text and LABEL in text
    unknown = emulated_table.row(trace_of(scaled), None)
    assert unknown["read_ratio"] is None and unknown["t_sol_s"] is None
    assert "(" not in "\n".join(emulated_table.table(scaled, "triton", [unknown])).split("\n")[2]


def test_a_trace_of_emulation_has_no_time(scaled: Problem, card: Session, tmp_path: Path) -> None:
    trace = verdict(scaled, card, solution(scaled, tmp_path), Plan(quick=True))
    assert Trace.load(trace.as_dict(), "trace") == trace
    assert trace.emulation is not None
    assert "emulation" not in trace.model_copy(update={"emulation": None}).as_dict()
