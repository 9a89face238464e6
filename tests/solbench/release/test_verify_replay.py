"""``solbench verify --replay``: what is made again, what is refused, and what is left open."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import replayed_release
from replayed_release import DOUBLE, SQUARE, Made

from solbench.cli import run
from solbench.errors import InputError
from solbench.evaluate import namespaces, sandbox
from solbench.release import replay
from solbench.release.replay import Request
from solbench.release.verify import Result, verify
from solbench.store import Store

needs_sandbox = pytest.mark.skipif(
    namespaces.missing() is not None or not sandbox.landlock_abi(), reason="no full sandbox here"
)
ONE, TWO = "DEMO/unit/double", "DEMO/unit/square"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two problems, three workloads, all of it honest."""
    folder = tmp_path_factory.mktemp("replay")
    # Two large sizes have one witness.
    sizes = {"w1": 1 << 20, "w2": 1 << 22}
    replayed_release.build(folder, {ONE: Made(DOUBLE, sizes=sizes), TWO: Made(SQUARE)})
    return folder


def level(result: Result) -> tuple[str, str]:
    last = result.levels[-1]
    assert last.name == "replay"
    return last.state, last.note


# -- for real, in the sandbox


@needs_sandbox
def test_what_the_stages_made_is_made_again(built: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--replay", str(built / "bundle")]) == 0
    out, err = capfd.readouterr()
    lines = out.splitlines()
    state, note = lines[-3].split(maxsplit=2)[1:]
    assert (state, note) == ("ok", "3 of 3 graphs, 3 of 3 IRs, 3 of 3 attestations of 2 problems made again")
    assert lines[-2].endswith("(self-consistent; no expected root given; replayed)")
    assert err == ""


@needs_sandbox
def test_a_graph_of_other_work_is_refused(tmp_path: Path) -> None:
    path = replayed_release.build(tmp_path, {ONE: Made(DOUBLE, published=SQUARE)})
    assert verify(path).verdict == "verified", "its hashes, contracts and bounds all agree"
    result = verify(path, replay=Request())
    assert result.exit_code == 1
    assert {(error.code, error.path) for error in result.errors} == {
        ("replay-mismatch", f"graphs: {ONE}/w1"),
        ("replay-mismatch", f"einsums: {ONE}/w1/attestation"),
    }
    # The IR is that of the recorded graph all the same.
    assert level(result) == ("bad", "0 of 1 graphs, 1 of 1 IRs, 0 of 1 attestations of 1 problems made again")


@needs_sandbox
@pytest.mark.slow
def test_a_forged_attestation_and_a_hidden_graph_are_refused(tmp_path: Path) -> None:
    def forged(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "predicate": {**value["predicate"], "seeds": [1]}}

    path = replayed_release.build(tmp_path, {ONE: Made(DOUBLE, attestation=forged), TWO: Made(SQUARE, hidden="graph")})
    result = verify(path, replay=Request())
    assert {(error.code, error.path) for error in result.errors} == {
        ("replay-mismatch", f"einsums: {ONE}/w1/attestation"),
        ("replay-mismatch", f"graphs: {TWO}/w1"),
    }
    assert level(result) == ("bad", "1 of 2 graphs, 1 of 1 IRs, 0 of 1 attestations of 2 problems made again")


# -- with children that answer what a test wants

Answers = list[Any]


@pytest.fixture
def answered(built: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str, Answers], Any]], None]:
    """Children that answer honestly from the store; a test changes (function, answers), and may return a fault."""
    store = Store(built / "store")
    graphs, einsums = store.index("graphs"), store.index("einsums")

    def set_change(change: Callable[[str, Answers], Any]) -> None:
        def ask(function: str, request: Mapping[str, Any], folder: Path, **options: Any) -> tuple[Answers, Any]:
            answers: Answers = []
            for item in request["workloads"]:
                made = {
                    "graph": graphs[item["name"]],
                    "einsum": einsums[f"{item['name']}/graph"],
                    "attestation": einsums[f"{item['name']}/attestation"],
                }
                if function.endswith("converted"):
                    made = {"einsum": made["einsum"]}
                fields = {name: {**descriptor.as_dict(), "reason": None} for name, descriptor in made.items()}
                answers.append({"workload": item["name"], **fields})
            return answers, change(function.rpartition(":")[2], answers)

        monkeypatch.setattr(replay, "ask", ask)
        monkeypatch.setattr(replay, "missing", lambda: None)

    return set_change


def test_honest_answers_verify(built: Path, answered: Any) -> None:
    answered(lambda function, answers: None)
    result = verify(built / "bundle", replay=Request())
    assert (result.verdict, level(result)[0]) == ("verified", "verified")
    assert result.as_dict()["replay"] == {
        "partial": False, "problems": [2, 2], "graphs": [3, 3], "irs": [3, 3], "attestations": [3, 3],
    }  # fmt: skip


def in_remade(change: Callable[[Answers], Any]) -> Callable[[str, Answers], Any]:
    return lambda function, answers: change(answers) if function == "remade" else None


def in_converted(change: Callable[[Answers], Any]) -> Callable[[str, Answers], Any]:
    return lambda function, answers: change(answers) if function == "converted" else None


OTHER = {"kind": "operator-graph", "digest": "blake3:" + "0" * 64, "size": 1, "reason": None}
NONE = {**OTHER, "kind": "no-graph", "reason": "cannot be traced"}


def deep() -> Any:
    value: Any = []
    for _ in range(2000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (in_remade(lambda answers: answers[0].update(graph=OTHER)), "replay-mismatch"),
        (in_remade(lambda answers: answers[0]["graph"].update(size=1)), "replay-mismatch"),
        (in_remade(lambda answers: answers[0]["graph"].update(kind="einsum-graph")), "replay-mismatch"),
        (in_remade(lambda answers: answers[0].update(attestation=OTHER)), "replay-mismatch"),
        (in_remade(lambda answers: answers[0].update(einsum=NONE, attestation=None)), "replay-mismatch"),
        (in_converted(lambda answers: answers[0].update(einsum=OTHER)), "replay-mismatch"),
        (in_remade(lambda answers: answers.clear()), "cannot-replay"),
        (in_remade(lambda answers: answers.pop()), "cannot-replay"),
        (in_remade(lambda answers: answers.append(answers[0])), "cannot-replay"),
        (in_remade(lambda answers: answers.reverse() or (answers[0].update(workload="x"))), "cannot-replay"),
        (in_remade(lambda answers: answers[0].update(graph=None)), "cannot-replay"),
        (in_remade(lambda answers: answers[0].pop("einsum")), "cannot-replay"),
        (in_remade(lambda answers: answers[0].pop("attestation")), "cannot-replay"),
        (in_converted(lambda answers: answers[0].pop("einsum")), "cannot-replay"),
        (in_remade(lambda answers: answers[0].update(error="RuntimeError: \x1b[2J")), "cannot-replay"),
        (in_remade(lambda answers: answers[0].update(verdict="verified")), "cannot-replay"),
        (in_remade(lambda answers: answers[0]["graph"].update(digest="blake3:zz")), "cannot-replay"),
        (in_remade(lambda answers: answers[0]["graph"].update(size=float("nan"))), "cannot-replay"),
        (in_remade(lambda answers: answers[0].update(graph=deep())), "cannot-replay"),
        (in_remade(lambda answers: answers.__setitem__(0, "verified")), "cannot-replay"),
        (in_remade(lambda answers: answers.clear() or "timeout"), "cannot-replay"),
        (in_remade(lambda answers: "ended by SIGKILL"), "cannot-replay"),
        (in_converted(lambda answers: "ended with exit code 7"), "cannot-replay"),
    ],
)  # fmt: skip
def test_no_other_answer_verifies(built: Path, answered: Any, change: Any, code: str) -> None:
    answered(change)
    result = verify(built / "bundle", replay=Request())
    assert code in [error.code for error in result.errors], result.errors
    assert (result.verdict, level(result)[0]) == (("bad",) * 2 if code == "replay-mismatch" else ("undecided",) * 2)
    assert all(text.isprintable() for error in result.errors for text in (error.path, error.found or ""))


def test_other_pytorch_leaves_a_difference_open(built: Path, tmp_path: Path, answered: Any) -> None:
    path = replayed_release.build(tmp_path, {TWO: Made(SQUARE)}, torch="1.13.1")
    answered(lambda function, answers: None)
    assert verify(path, replay=Request()).verdict == "verified"
    answered(in_remade(lambda answers: answers[0].update(graph=OTHER)))
    result = verify(path, replay=Request())
    assert [(error.code, error.path) for error in result.errors] == [("cannot-replay", f"graphs: {TWO}/w1")]
    assert "PyTorch 1.13.1 made it" in str(result.errors[0].found)
    # A conversion asks no PyTorch.
    answered(in_converted(lambda answers: answers[0].update(einsum=OTHER)))
    assert verify(path, replay=Request()).verdict == "bad"


def test_part_of_it(built: Path, answered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answered(lambda function, answers: None)
    assert run(["verify", "--replay", "--replay-problem", "square", str(built / "bundle")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "PARTIAL 1 of 2 problems: 1 of 1 graphs, 1 of 1 IRs, 1 of 1 attestations" in lines[-3]
    assert lines[-2].endswith("; replay PARTIAL: 1 of 2 problems)")
    both = ["--replay-problem", ONE, "--replay-problem", TWO]
    assert run(["verify", "--replay", *both, "--json", str(built / "bundle")]) == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["replay"]["partial"], value["replay"]["problems"]) == (False, [2, 2])
    with pytest.raises(InputError, match="no problem of this bundle: DEMO/unit/double, DEMO/unit/square"):
        verify(built / "bundle", replay=Request(("triple",)))
    assert run(["verify", "--replay-problem", "square", str(built / "bundle")]) == 2


def test_progress_on_a_terminal_only(
    built: Path, answered: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(lambda function, answers: None)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    for options in ([], ["--quiet"], ["--json"]):
        assert run(["verify", "--replay", *options, str(built / "bundle")]) == 0
        err = capsys.readouterr().err
        steps = [step.strip() for step in err.split("\r")]
        shown = [step.rpartition("/")[0] for step in steps if step]
        assert shown == ([] if options else ["replay: 1 of 2 problems, DEMO/unit"])


# -- where nothing may run


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*arguments: object, **options: object) -> None:
        raise AssertionError("something was run")

    monkeypatch.setattr(replay, "ask", ask)


@pytest.mark.usefixtures("nothing_runs")
def test_without_the_option_nothing_is_run_and_it_does_not_read_as_passed(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", str(built / "bundle")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3].split(maxsplit=2) == ["replay", "skipped", "not asked for (--replay)"]
    assert "replay" not in lines[-2]
    assert run(["verify", "--json", str(built / "bundle")]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["replay"] is None
    assert value["levels"][-1] == {"level": "replay", "state": "skipped", "note": "not asked for (--replay)"}


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    ("lacks", "words"),
    [
        ("bubblewrap is not installed", "apt-get install bubblewrap"),
        ("no Landlock", "a kernel with Landlock"),
        ("bubblewrap cannot make namespaces: No permissions", "unprivileged user namespaces"),
    ],
)
def test_without_the_full_sandbox_nothing_is_run(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lacks: str, words: str
) -> None:
    monkeypatch.setattr(sandbox, "isolation", lambda: sandbox.Isolation(False, 1, lacks))
    assert run(["verify", "--replay", str(built / "bundle")]) == 3
    out = capsys.readouterr().out
    [line] = [line for line in out.splitlines() if line.startswith("cannot-replay")]
    assert lacks in line and words in line
    assert "CANNOT DECIDE" in out and "0 of 2 problems" in out


@pytest.mark.usefixtures("nothing_runs")
def test_without_pytorch_nothing_is_run(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(replay, "version", version)
    assert run(["verify", "--replay", str(built / "bundle")]) == 3
    assert "PyTorch is not installed; run `pip install" in capsys.readouterr().out


@pytest.mark.usefixtures("nothing_runs")
def test_a_bundle_that_failed_a_level_is_not_run(built: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(built / "bundle", tmp_path / "bundle"))
    (path / "B3SUMS").write_bytes(b"")
    result = verify(path, replay=Request())
    assert (result.exit_code, level(result)[0], result.replay) == (1, "skipped", None)


def test_an_ir_that_was_left_out_is_missed_before_anything_is_run(tmp_path: Path, answered: Any) -> None:
    answered(lambda function, answers: None)
    path = replayed_release.build(tmp_path, {TWO: Made(SQUARE, hidden="ir")})
    result = verify(path, replay=Request())
    assert level(result)[0] == "skipped"
    assert [(error.code, error.path, error.expected) for error in result.errors] == [
        ("cross-ref", f"einsums: {TWO}/w1/graph", "the IR of its operator graph, or why there is none")
    ]
