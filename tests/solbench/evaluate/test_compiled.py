"""The reference through torch.compile, as a candidate: what passes, and what is an error rather than an eager call."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest
from small_problem import REFERENCE, write_problem

from solbench.cli import run
from solbench.corpus.compiled import compiled_solution, with_compiled
from solbench.corpus.load import Problem, load_problem
from solbench.errors import InputError
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.protocols import protocol
from solbench.evaluate.recording import read_set
from solbench.evaluate.session import Session
from solbench.evaluate.turns import Limits
from solbench.model.solution import Solution
from solbench.model.trace import Status, Trace

GRAPH_BREAK = "import torch\n\n\ndef run(x, scale):\n    torch._dynamo.graph_break()\n    return x * scale + 1\n"


def on_the_host(problem: Problem) -> Solution:
    """The candidate of ``problem``, as if it were for the cpu as well."""
    solution = compiled_solution(problem.definition)
    return solution.model_copy(update={"spec": solution.spec.model_copy(update={"target_hardware": ("cpu",)})})


def test_it_is_the_reference_and_for_cards(problem: Problem) -> None:
    (compiled,) = (solution for solution in with_compiled([problem])[0].solutions if solution.name == "compile")
    texts = {source.path: source.content for source in compiled.sources}
    assert texts["reference.py"] == REFERENCE
    assert set(texts) == {"reference.py", "compiled.py"}
    assert set(compiled.spec.target_hardware) == {"gfx1200", "gfx942", "sm_90"}


def test_the_name_is_taken(tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "T" / "tests" / "scale_shift")
    solution = folder / "solutions" / "compile"
    solution.mkdir(parents=True)
    (solution / "s.py").write_text(REFERENCE)
    text = "name: compile\nauthor: test\nspec: {languages: [pytorch], entry_point: 's.py::run'}\n"
    (solution / "solution.yaml").write_text(text)
    with pytest.raises(InputError, match="and not 'eager' or 'compile'"):
        load_problem(folder)


@pytest.mark.slow
def test_every_shape_and_scalar_passes(problem: Problem) -> None:
    # Two shapes in one process, and a stress round with another value of the scalar input.
    with Session(Limits()) as session:
        traces = list(evaluate(problem, on_the_host(problem), protocol=protocol("quick", samples=2), session=session))
    assert [(trace.workload, trace.status, trace.reason) for trace in traces] == [
        ("small", Status.PASSED, None), ("larger", Status.PASSED, None),
    ]  # fmt: skip
    assert all(trace.timing is not None for trace in traces)


@pytest.mark.slow
def test_a_graph_break_is_an_error(problem: Problem) -> None:
    broken = replace(problem, definition=problem.definition.model_copy(update={"reference": GRAPH_BREAK}))
    with Session(Limits()) as session:
        traces = evaluate(
            problem, on_the_host(broken), workloads=problem.workloads[:1], protocol=protocol("quick", samples=1),
            session=session,
        )  # fmt: skip
        (trace,) = traces
    assert trace.status is Status.RUNTIME_ERROR
    assert "torch._dynamo.exc.Unsupported" in trace.log, trace.log
    assert trace.timing is None


@pytest.mark.slow
def test_the_limit_of_recompilations_is_an_error(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    reference, compiled = types.ModuleType("reference"), types.ModuleType("compiled")
    exec(REFERENCE, reference.__dict__)  # noqa: S102
    monkeypatch.setitem(sys.modules, "reference", reference)
    texts = {source.path: source.content for source in compiled_solution(problem.definition).sources}
    assert "recompile_limit = 64" in texts["compiled.py"]
    settings = torch._dynamo.config, torch._inductor.config
    with settings[0].patch({}), settings[1].patch({}):
        exec(texts["compiled.py"].replace("recompile_limit = 64", "recompile_limit = 2"), compiled.__dict__)  # noqa: S102
        # Its settings with a backend that compiles nothing.
        call = torch.compile(reference.run, fullgraph=True, dynamic=False, backend="eager")
        for size in (3, 4):
            assert torch.equal(call(torch.ones(size), 2.0), torch.full((size,), 3.0))
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
            call(torch.ones(5), 2.0)
    torch._dynamo.reset()


def measured(tmp_path: Path, *arguments: str) -> dict[tuple[str, str], tuple[str, str | None]]:
    """Status and reason by solution and workload, of `solbench measure` on this cpu."""
    write_problem(tmp_path / "problems" / "T" / "tests" / "scale_shift")
    out = tmp_path / "set.jsonl"
    command = ["measure", "--corpus", str(tmp_path / "problems"), "--out", str(out), "--no-calibrate", *arguments]
    assert run(command) == 0
    traces = [record for _, record in read_set(out)[1] if isinstance(record, Trace)]
    return {(trace.solution, trace.workload): (trace.status, trace.reason) for trace in traces}


def test_measure_takes_it_where_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = measured(tmp_path, "--candidates", "compile")
    assert set(found) == {("compile", "small"), ("compile", "larger")}
    for status, reason in found.values():
        assert status == "UNSUPPORTED"
        assert reason == "target: the solution is written for gfx1200, gfx942, sm_90"
    capsys.readouterr()


def test_all_does_not_mean_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert {solution for solution, _ in measured(tmp_path)} == {"eager"}
    capsys.readouterr()
