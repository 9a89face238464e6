"""Labels of --profile: what they say of given rows, and that nothing that a candidate does there is a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from solbench.corpus.load import Problem, load_solution
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.profiling import Row, described
from solbench.evaluate.protocols import protocol
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.trace import Status, Trace

PRODUCT = [
    Row("aten::mm", False, 0.090, 0.0), Row("aten::empty", False, 0.004, 0.0), Row("[memory]", False, 0.006, 0.0),
]  # fmt: skip
ON_CARD = [
    Row("aten::mm", False, 0.001, 0.094), Row("cudaLaunchKernel", False, 0.5, 0.0),
    Row("sm90_xmma_gemm", True, 0.0, 0.094), Row("decoy_kernel", True, 0.0, 0.006),
]  # fmt: skip
OWN = [Row("matmul_kernel", True, 0.0, 0.09), Row("aten::zero_", False, 1e-3, 0.01), Row("fill", True, 0.0, 0.01)]


def test_the_cpu_counts_against_the_whole_call() -> None:
    assert described(PRODUCT, 0.1, ["pytorch"]) == [
        "profile (the worker's word): operators on the cpu: 90% aten::mm, 4% aten::empty"
    ]
    assert described(PRODUCT, 0.1, ["triton"])[1:] == [
        "language: declared triton, 94% of the profiled time is in aten::mm, aten::empty (the worker's word)"
    ]
    # Most of it in a language of its own.
    assert len(described(PRODUCT, 0.2, ["triton"])) == 1
    assert described([], 0.2, ["triton"]) == ["profile (the worker's word): operators on the cpu: none of PyTorch's"]


def test_a_card_counts_its_kernels() -> None:
    """A wrapper around a library, with a kernel of its own for show; and a kernel that does the work."""
    for languages in (["triton"], ["pytorch", "triton"]):
        assert described(ON_CARD, 1.0, languages) == [
            "profile (the worker's word): kernels on the card: 94% sm90_xmma_gemm, 6% decoy_kernel",
            "language: declared triton, 94% of the profiled time is in aten::mm (the worker's word)",
        ]
    assert described(OWN, 1.0, ["triton"]) == [
        "profile (the worker's word): kernels on the card: 90% matmul_kernel, 10% fill"
    ]


def solve(problem: Problem, session: Session, path: Path, source: str, language: str | None = None) -> Trace:
    path.write_text(source)
    solution = load_solution(path, problem.definition)
    if language is not None:
        spec = {**solution.as_dict()["spec"], "languages": [language]}
        solution = Solution.load({**solution.as_dict(), "spec": spec}, "test")
    counts = protocol("quick", samples=1)
    (trace,) = evaluate(
        problem, solution, workloads=problem.workloads[:1], protocol=counts, session=session, profile=True
    )
    return trace


def test_a_wrapper_is_named(problem: Problem, session: Session, tmp_path: Path) -> None:
    """Declared as triton, and a product of PyTorch's does the work: a warning, not a verdict."""
    source = (
        "import torch\na = torch.ones(700, 700)\ndef run(x, scale):\n    a @ a\n    return (x * scale + 1).float()\n"
    )
    trace = solve(problem, session, tmp_path / "s.py", source, "triton")
    assert trace.status is Status.PASSED
    (label,) = [label for label in trace.labels if label.startswith("language")]
    assert label.startswith("language: declared triton, ") and "of the profiled time is in aten::mm, " in label


PROFILED = "torch.autograd.profiler._is_profiler_enabled"


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("s.py", "import torch\ndef run(x, scale):\n    return x * scale + 1\n", "operators on the cpu: "),
        (
            "s.cpp",
            'extern "C" void run(const float* x, double s, float* y, long n) {\n'
            "  for (long i = 0; i < n; ++i) y[i] = x[i] * s + 1;\n}\n",
            "profile: none: a cpp solution runs without PyTorch",
        ),
        (
            "s.py",
            f"import os, torch\ndef run(x, scale):\n    if {PROFILED}: os._exit(3)\n    return x * scale + 1\n",
            "profile: none: the worker exited with code 3",
        ),
        (
            "s.py",
            f"import torch\ndef run(x, scale):\n    assert not {PROFILED}, 'a\\nb'\n    return x * scale + 1\n",
            "profile: none: ",
        ),
    ],
    ids=["operators", "native", "dies", "raises"],
)
def test_it_is_never_a_verdict(
    problem: Problem, session: Session, tmp_path: Path, name: str, source: str, said: str
) -> None:
    trace = solve(problem, session, tmp_path / name, source)
    assert trace.status is Status.PASSED
    (label,) = [label for label in trace.labels if label.startswith("profile")]
    assert said in label and "\n" not in label
    assert trace.correctness is not None and len(trace.labels) >= 5
