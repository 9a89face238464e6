"""Triton candidates on a host: a verdict under Triton's interpreter, never a time, never a wrong word on bfloat16."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_problem import write_problem

from solbench.corpus.load import Problem, load_problem, load_solution
from solbench.evaluate import support
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.protocols import protocol
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.trace import Status, Trace

pytest.importorskip("triton")

PROBLEM = """\
schema: solbench.definition.v1
name: product
suite: tests
axes: {M: {type: var}, K: {type: const, value: 64}, N: {type: const, value: 32}}
inputs:
  a: {shape: [M, K], dtype: bfloat16}
  b: {shape: [K, N], dtype: bfloat16}
outputs:
  c: {shape: [M, N], dtype: bfloat16}
"""
REFERENCE = "def run(a, b):\n    return (a.float() @ b.float()).to(a.dtype)\n"
WORKLOADS = """\
schema: solbench.workloads.v1
defaults:
  inputs: {a: {type: normal}, b: {type: normal}}
  checks: [{type: numeric, output: c, atol: 1.0e-2, rtol: 1.0e-2}]
  stress_rounds: [{label: large, inputs: {a: {type: normal, mean: 100}}}]
workloads:
  - {uuid: small, axes: {M: 40}}
  - {uuid: larger, axes: {M: 96}}
"""
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def _kernel(a, b, c, m, K: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]
    k = tl.arange(0, K)
    j = tl.arange(0, N)[None, :]
    x = tl.load(a + i * K + k[None, :], mask=i < m, other=0.0)
    y = tl.load(b + k[:, None] * N + j)
    CODE

def run(a, b):
    c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    _kernel[(triton.cdiv(a.shape[0], 32),)](a, b, c, a.shape[0], K=a.shape[1], N=b.shape[1], BLOCK=32)
    return c
"""
RIGHT = "tl.store(c + i * N + j, tl.dot(x, y).to(tl.bfloat16), mask=i < m)"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    folder = tmp_path_factory.mktemp("problems") / "T" / "tests" / "product"
    return load_problem(write_problem(folder, problem=PROBLEM, reference=REFERENCE, workloads=WORKLOADS))


def solution(problem: Problem, folder: Path, code: str = RIGHT, source: str = KERNEL, **spec: Any) -> Solution:
    path = folder / "product.py"
    path.write_text(source.replace("CODE", code))
    fields = load_solution(path, problem.definition).as_dict()
    assert fields["spec"]["languages"] == ["triton"]
    return Solution.load({**fields, "spec": {**fields["spec"], **spec}}, "test")


def test_a_product_of_bfloat16(product: Problem, session: Session, tmp_path: Path) -> None:
    candidate = solution(product, tmp_path, target_hardware=["gfx1200"])
    traces = list(evaluate(product, candidate, protocol=protocol("full"), session=session))
    assert [trace.status for trace in traces] == [Status.PASSED] * 2, [trace.reason for trace in traces]
    for trace in traces:
        assert trace.timing is None and trace.reason == "not timed: Triton's interpreter"
        # One stress round, three to five draws; one process, whatever the protocol asks for.
        assert trace.correctness is not None and 4 <= trace.correctness.rounds <= 6
        (check,) = trace.correctness.checks
        elements = {"small": 40 * 32, "larger": 96 * 32}[trace.workload]
        assert check.passed and check.compared == trace.correctness.rounds * elements
        assert any(label.startswith("verdict only: Triton's interpreter, Triton ") for label in trace.labels)
        assert not any(label.startswith("baseline") for label in trace.labels)


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        ("tl.store(c + i * N + j, (tl.dot(x, y) * 1.1).to(tl.bfloat16), mask=i < m)", "INCORRECT_NUMERICAL", "c"),
        ("tl.store(c + i * N + j, (tl.dot(x, y) * 1e9).to(tl.float8e5).to(tl.bfloat16), mask=i < m)", "UNSUPPORTED",
         "fp8e5: a value beyond 57344"),
        ("tl.store(c + i * N + j, x.to(tl.float8e5) + x.to(tl.float8e5), mask=i < m)", "UNSUPPORTED", "fadd of fp8e5"),
        ("tl.store(c + i * N + j, nothing)", "RUNTIME_ERROR", "nothing"),
    ],
)  # fmt: skip
def test_what_does_not_pass(
    code: str, status: str, reason: str, product: Problem, session: Session, tmp_path: Path
) -> None:
    (trace,) = evaluate(product, solution(product, tmp_path, code), workloads=product.workloads[:1], session=session)
    assert trace.status == status and reason in (trace.reason or ""), (trace.status, trace.reason, trace.log)
    assert any(label.startswith("verdict only") for label in trace.labels)


def test_host_code_that_asks_for_a_card(product: Problem, session: Session, tmp_path: Path) -> None:
    source = KERNEL.replace(
        "def run(a, b):\n", "def run(a, b):\n    triton.runtime.driver.active.get_current_device()\n"
    )
    (trace,) = evaluate(
        product, solution(product, tmp_path, source=source), workloads=product.workloads[:1], session=session
    )
    assert trace.status is Status.UNSUPPORTED and "there is no card" in (trace.reason or ""), trace.reason


def test_without_triton(product: Problem, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "find_spec", lambda name: None if name == "triton" else name)
    traces: list[Trace] = list(evaluate(product, solution(product, tmp_path), session=session))
    assert [trace.status for trace in traces] == [Status.UNSUPPORTED] * 2
    assert "pip install 'solbench[run]'" in (traces[0].reason or "")


def test_nothing_is_compared_with_an_interpreter(product: Problem, session: Session, tmp_path: Path) -> None:
    path = tmp_path / "eager.py"
    path.write_text(REFERENCE)
    candidate = load_solution(path, product.definition)
    (trace,) = evaluate(
        product, candidate, workloads=product.workloads[:1], session=session, baseline=solution(product, tmp_path)
    )
    assert trace.status is Status.UNSUPPORTED and "cannot be timed" in (trace.reason or "")
