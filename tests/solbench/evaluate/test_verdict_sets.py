"""Recorded verdicts: what is run and what is taken over, sets on disk, whether they hold again, and the stage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from small_problem import PROBLEM, write_problem

from solbench import canonical
from solbench.cli import run as cli
from solbench.corpus.load import Problem, load_problem
from solbench.errors import InputError
from solbench.evaluate import identity, verdict_sets, verdicts
from solbench.evaluate.emulated import Plan
from solbench.evaluate.verdict_sets import Judged, Key
from solbench.model.emulation import moved_bytes
from solbench.model.solution import Solution
from solbench.model.trace import Trace
from solbench.model.verdict import VerdictSetHeader
from solbench.model.workload import Workload
from solbench.release.measurements import measurement_sets
from solbench.stages import run_stage
from solbench.workspace import Workspace

ROOT = Path(__file__).resolve().parents[3]
WORKLOADS = """\
schema: solbench.workloads.v1
defaults:
  inputs: {x: {type: normal}, scale: {type: constant, value: 2.5}}
  checks: [{type: numeric, output: y, atol: 1.0e-5, rtol: 1.0e-5}]
workloads:
  - {uuid: a, axes: {N: 100}}
  - {uuid: b, axes: {N: 200}}
"""
SESSION: Any = object()


def solution(name: str, language: str, target: str = "gfx1200") -> Solution:
    suffix = "py" if language in ("triton", "pytorch") else "hip"
    return Solution.load(
        {
            "name": name,
            "definition": "scale_shift",
            "author": "tests",
            "spec": {
                "languages": [language],
                "entry_point": f"main.{suffix}::run",
                "target_hardware": [target],
                "binding": None if suffix == "py" else "c",
            },
            "sources": [{"path": f"main.{suffix}", "content": f"# {name}\n"}],
        },
        name,
    )


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    found = load_problem(write_problem(tmp_path / "problems" / "T" / "tests" / "scale_shift", workloads=WORKLOADS))
    made = (
        solution("hip", "hip_cpp"),
        solution("library", "pytorch"),
        solution("triton", "triton"),
        solution("other", "triton", "gfx942"),
    )
    return Problem(found.path, found.corpus, found.definition, found.workloads, made)


def trace(problem: Problem, solution: Solution, workload: Workload, **fields: Any) -> Trace:
    """One that passed, with five instructions executed; or whatever ``fields`` say."""
    executed = {
        "launches": [], "count": 0, "instructions": 5, "engines": {"valu": 5}, "wmma_operations": {},
        "loaded_bytes": {}, "stored_bytes": {"global": 400},
    }  # fmt: skip
    size = {"axes": dict(workload.axes), "reduced": None, "calls": ["lock-step"], "executed": executed, "ended": None}
    check = {"output": "y", "type": "numeric", "passed": True, "compared": 1, "mismatched": 0}
    value = {
        "definition": problem.definition.name,
        "workload": workload.uuid,
        "workload_digest": identity.workload_digest(problem, workload),
        "solution": solution.name,
        "solution_digest": identity.solution_digest(solution),
        "target": "gfx1200",
        "status": "PASSED",
        "reason": "not timed: emulated",
        "log": "printed\n",
        "correctness": {"rounds": 1, "checks": [check]},
        "emulation": {"limit": 9, "instances": [size]},
    }
    return Trace.load({**value, **fields}, "trace")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What the emulated card was asked for, of which it says that it passed."""
    asked: list[tuple[str, str]] = []

    def judge(
        problem: Problem, solution: Solution, session: Any, *, workloads: Sequence[Workload], plan: Plan
    ) -> Iterator[Trace]:
        assert session is SESSION and plan == Plan(9)
        for workload in workloads:
            asked.append((solution.name, workload.uuid))
            yield trace(problem, solution, workload)

    monkeypatch.setattr(verdicts, "evaluate_emulated", judge)
    monkeypatch.setattr(verdicts, "header_here", lambda instructions: header(instructions=instructions))
    return asked


def header(emulator: str = "e", **fields: Any) -> VerdictSetHeader:
    value = {"target": "gfx1200", "emulator": f"blake3:{emulator * 64}", "tools": {"numpy": "2"}, "instructions": 9}
    return VerdictSetHeader.load({**value, **fields}, "header")


def record(problem: Problem, out: Path, **options: Any) -> str:
    return str(verdicts.record([problem], out, SESSION, instructions=9, **options))


ALL = [("hip", "a"), ("hip", "b"), ("triton", "a"), ("triton", "b")]


def test_candidates_for_the_card_are_run_and_nothing_else(problem: Problem, run: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "gfx1200.jsonl"
    assert record(problem, out) == "4 verdicts, 4 anew, 4 passed"
    assert run == ALL
    there, records = verdict_sets.read(out)
    assert there == header() and [(one.key.solution, one.key.workload) for one in records] == ALL
    lines = out.read_bytes().splitlines()
    assert len(lines) == 6 and all(canonical.dumps(json.loads(line)) == line for line in lines)
    assert json.loads(lines[-1]) == {"record": "footer", "count": 4}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gfx1200.jsonl", "problems"]


def test_what_is_recorded_is_not_run_again(problem: Problem, run: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "gfx1200.jsonl"
    record(problem, out)
    before = out.read_bytes()
    run.clear()
    assert record(problem, out) == "4 verdicts, 0 anew, 4 passed"
    assert run == [] and out.read_bytes() == before
    changed = Problem(
        problem.path, problem.corpus, problem.definition, problem.workloads, (solution("hip", "hip_cpp", "gfx1200"),)
    )
    edited = changed.solutions[0].model_copy(update={"author": "somebody else"})
    changed = Problem(problem.path, problem.corpus, problem.definition, problem.workloads, (edited,))
    # The solution is another one, and that in Triton is gone.
    assert record(changed, out) == "2 verdicts, 2 anew, 2 passed"
    assert run == [("hip", "a"), ("hip", "b")]


def test_a_killed_run_goes_on(
    problem: Problem, run: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "gfx1200.jsonl"
    judge = verdicts.evaluate_emulated

    def killed(problem: Problem, solution: Solution, *args: Any, **options: Any) -> Iterator[Trace]:
        if solution.name == "triton":
            raise KeyboardInterrupt
        return judge(problem, solution, *args, **options)

    monkeypatch.setattr(verdicts, "evaluate_emulated", killed)
    with pytest.raises(KeyboardInterrupt):
        record(problem, out)
    partial = tmp_path / "gfx1200.jsonl.partial"
    assert not out.exists() and partial.read_bytes().count(b"\n") == 3
    partial.write_bytes(partial.read_bytes() + b'{"record":"verd')  # torn
    run.clear()
    monkeypatch.setattr(verdicts, "evaluate_emulated", judge)
    assert record(problem, out) == "4 verdicts, 2 anew, 4 passed"
    assert run == ALL[2:] and not partial.exists()


def test_another_emulator_runs_all_again(
    problem: Problem, run: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "gfx1200.jsonl"
    record(problem, out)
    run.clear()
    monkeypatch.setattr(verdicts, "header_here", lambda instructions: header("f"))
    with pytest.raises(InputError, match="has another emulator; record all problems again"):
        record(problem, out, whole=False)
    assert run == []
    assert record(problem, out) == "4 verdicts, 4 anew, 4 passed"


def test_some_problems_leave_the_others(problem: Problem, run: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "gfx1200.jsonl"
    record(problem, out)
    folder = write_problem(
        tmp_path / "problems" / "T" / "tests" / "another",
        workloads=WORKLOADS,
        problem=PROBLEM.replace("scale_shift", "another"),
    )
    found = load_problem(folder)
    another = Problem(found.path, found.corpus, found.definition, found.workloads, (solution("triton", "triton"),))
    assert another.key != problem.key
    assert record(another, out, whole=False) == "6 verdicts, 2 anew, 6 passed"
    assert record(another, out) == "2 verdicts, 0 anew, 2 passed"


def test_nothing_to_run_is_no_set(problem: Problem, run: list[Any], tmp_path: Path) -> None:
    none = Problem(problem.path, problem.corpus, problem.definition, problem.workloads, problem.solutions[1:2])
    with pytest.raises(InputError, match="no Triton or HIP solution for gfx1200"):
        record(none, tmp_path / "gfx1200.jsonl")
    assert list(tmp_path.glob("*.jsonl*")) == []


def other(**fields: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda value: {**value, **fields}


@pytest.mark.parametrize(
    ("line", "change", "names"),
    [
        (0, other(record="head"), "line 1: must be the header"),
        (0, other(schema="solbench.verdict-set.v2"), "line 1: schema"),
        (1, other(record="trace"), "line 2: must be a verdict"),
        (1, other(problem=3), "line 2: must be a verdict"),
        (1, other(target="gfx1201"), "line 2: must be an emulated verdict for gfx1200"),
        (1, other(card="GPU-1"), "line 2: must be an emulated verdict for gfx1200"),
        (1, other(status="FINE"), "line 2: status"),
        (2, other(workload="a"), "line 3: a second verdict"),
        (5, other(count=3), "its footer must count 4 verdicts"),
        (5, other(record="verdict", problem="T/tests/scale_shift"), "line 6: definition"),
    ],
)
def test_a_bad_set_is_refused(
    problem: Problem, run: list[Any], tmp_path: Path, line: int, change: Callable[[Any], Any], names: str
) -> None:
    out = tmp_path / "gfx1200.jsonl"
    record(problem, out)
    lines = out.read_bytes().splitlines(keepends=True)
    lines[line] = canonical.dumps(change(json.loads(lines[line]))) + b"\n"
    out.write_bytes(b"".join(lines))
    with pytest.raises(InputError) as caught:
        verdict_sets.read(out)
    assert names in str(caught.value)


def test_a_torn_set_and_one_with_spaces_are_refused(problem: Problem, run: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "gfx1200.jsonl"
    record(problem, out)
    data = out.read_bytes()
    for bad, names in (
        (data[:-1], "torn"),
        (data[: data[:-1].rfind(b"\n") + 1], "footer"),
        (data.replace(b'"count":4', b'"count": 4'), "line 6"),
        (b"", "torn"),
    ):
        out.write_bytes(bad)
        with pytest.raises(InputError, match=names):
            verdict_sets.read(out)


def test_what_holds_again_and_what_does_not(
    problem: Problem, run: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "gfx1200.jsonl"
    record(problem, out)
    keys = [Key(problem.key, *pair) for pair in ALL]
    assert list(verdicts.check(out, [problem], SESSION)) == [(key, None) for key in keys]
    # One solution has changed since, and a new one is there.
    hip, library, _, elsewhere = problem.solutions
    edited = (hip.model_copy(update={"author": "x"}), solution("new", "triton"), library, elsewhere)
    changed = Problem(problem.path, problem.corpus, problem.definition, problem.workloads, edited)
    said = dict(verdicts.check(out, [changed], SESSION))
    assert said[keys[0]] == "stale: the solution or the workload has changed since"
    assert said[Key(problem.key, "new", "a")] == "not recorded"
    assert said[keys[2]] == "recorded, and there is no such candidate or workload any more"


def test_differences_are_named(problem: Problem) -> None:
    triton, workload = problem.solutions[2], problem.workloads[0]
    right = trace(problem, triton, workload)
    assert verdicts.difference(right, right) is None
    failed = trace(
        problem, triton, workload, status="TIMEOUT", reason="slow", correctness=None
    )  # fmt: skip
    assert verdicts.difference(right, failed) == "was PASSED, is TIMEOUT: slow"

    def changed(**fields: Any) -> Trace:
        assert right.emulation is not None
        (size,) = right.emulation.as_dict()["instances"]
        executed = {**size["executed"], **{name: fields.pop(name) for name in list(fields) if name in size["executed"]}}
        instances = [{**size, "executed": executed, **fields}]
        return trace(problem, triton, workload, emulation={"limit": 9, "instances": instances})

    assert verdicts.difference(right, changed(instructions=6)) == "at the whole size: executed instructions 5, now 6"
    stored = verdicts.difference(right, changed(stored_bytes={"global": 404}))
    assert stored == "at the whole size: executed stored_bytes {'global': 400}, now {'global': 404}"
    assert "executed count 0, now 1" in str(verdicts.difference(right, changed(count=1)))
    assert "at other sizes" in str(verdicts.difference(right, changed(ended="too long")))
    assert "at other sizes" in str(verdicts.difference(right, changed(axes={"N": 1})))


def test_the_stage_keeps_what_is_of_the_release(tmp_path: Path) -> None:
    """Of two candidates with four workloads each: a pass, a failure, a stale one, one of no candidate."""
    name = "torch2hip/l1n23_softmax"
    shutil.copytree(ROOT / "problems" / "AMD_AKA" / name, tmp_path / "problems" / "AMD_AKA" / name)
    parameters = (ROOT / "params.yaml").read_text().replace("{gfx1200: 16, gfx942: 192, sm_90: 96}", "{}")
    (tmp_path / "params.yaml").write_text(parameters)
    workspace = Workspace.at(tmp_path)
    for stage in ("corpus", "workloads"):
        run_stage(stage, workspace)
    nothing = "0 of 8 pairs of candidate and workload have a verdict, 0 passed; 0 stale and left out"
    assert run_stage("verdicts", workspace) == nothing
    (found,) = [load_problem(tmp_path / "problems" / "AMD_AKA" / name)]
    by_name = {one.name: one for one in found.solutions}
    first, second = found.workloads[:2]
    failed = {"status": "RUNTIME_ERROR", "reason": "a race", "correctness": None, "log": "race: y"}
    traces = [
        trace(found, by_name["triton"], first),
        trace(found, by_name["hip"], second, **failed),
        trace(found, by_name["hip"], first, workload_digest="blake3:" + "0" * 64),
        trace(found, by_name["openmp"], first),
    ]
    records = [Judged.of(found.key, one) for one in traces]
    path = tmp_path / "measurements" / "verdicts" / "gfx1200.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(verdict_sets.written(header(), records, complete=True))
    assert measurement_sets(tmp_path / "measurements") == []  # it has no times
    said = "2 of 8 pairs of candidate and workload have a verdict, 1 passed; 2 stale and left out"
    assert run_stage("verdicts", workspace) == said
    store = workspace.store
    values = {name: value for name, _, value in store.items("verdicts", "verdict")}
    names = [f"{found.key}/{first.uuid}/triton@gfx1200", f"{found.key}/{second.uuid}/hip@gfx1200"]
    assert list(values) == names
    right, broken = values.values()
    assert right["instance"] == store.index("workloads")[f"{found.key}/{first.uuid}"].as_dict()
    assert right["candidate"] == store.index("corpus")[f"{found.key}/solutions/triton"].as_dict()
    # What a pass printed, and that it has no time, is no part of a release.
    assert (right["status"], right["reason"], right["log"]) == ("PASSED", None, "")
    assert (broken["status"], broken["reason"], broken["log"]) == ("RUNTIME_ERROR", "a race", "race: y")
    assert right["toolchain"] == {"emulator": "blake3:" + "e" * 64, "tools": {"numpy": "2"}, "instructions": 9}
    assert "timing" not in right and "card" not in right
    path.rename(path.with_name("gfx942.jsonl"))
    with pytest.raises(InputError, match="is a set of gfx1200"):
        run_stage("verdicts", workspace)


KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale_shift(x, y, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * scale + 1, mask=at < n)

def run(x, scale):
    y = torch.empty_like(x)
    scale_shift[(triton.cdiv(x.shape[0], 128),)](x, y, scale, x.shape[0], BLOCK=128, num_warps=1)
    return y
"""
SOLUTION = """\
schema: solbench.solution.v1
name: triton
definition: scale_shift
author: tests
spec: {languages: [triton], entry_point: "kernel.py::run", target_hardware: [gfx1200]}
sources: [kernel.py]
"""


def test_the_command_records_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real candidate on the emulated card: what it executed is the same again, and a forged count is found."""
    pytest.importorskip("triton")
    root = tmp_path / "problems"
    folder = write_problem(root / "T" / "tests" / "scale_shift", workloads=WORKLOADS) / "solutions" / "triton"
    folder.mkdir(parents=True)
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "solution.yaml").write_text(SOLUTION)
    out = tmp_path / "gfx1200.jsonl"
    where = ["--root", str(root)]
    assert cli(["verdicts", "record", "--out", str(out), *where]) == 0
    assert "2 verdicts, 2 anew, 2 passed" in capsys.readouterr().out
    _, (first, _) = verdict_sets.read(out)
    assert first.trace.emulation is not None and first.trace.emulation.limit == verdicts.INSTRUCTIONS
    (size,) = first.trace.emulation.instances
    # 100 elements of 4 bytes.
    assert size.executed is not None and moved_bytes(size.executed.stored_bytes) == 400
    assert cli(["verdicts", "check", "--recorded", str(out), *where]) == 0
    assert capsys.readouterr().out == "2 of 2 verdicts are as recorded\n"
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    lines[1]["emulation"]["instances"][0]["executed"]["count"] = 2
    out.write_bytes(b"".join(canonical.dumps(line) + b"\n" for line in lines))
    assert cli(["verdicts", "check", "--recorded", str(out), *where]) == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and said[1] == "1 of 2 verdicts are as recorded" and "scale_shift/a" in said[0]
    assert cli(["verdicts", "check", "--recorded", str(tmp_path / "none.jsonl"), *where]) == 2
    assert cli(["verdicts", "record", "--out", str(tmp_path / "set.json"), *where]) == 2
