"""``solbench corpus report``: steps, agreement, causes, exit codes, and the memo behind it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from solbench.cli import corpus as cli
from solbench.corpus import report as module
from solbench.corpus.load import load_problem
from solbench.corpus.report import compared, examined, report
from solbench.evaluate.identity import workload_artifact

ROOT = Path(__file__).resolve().parents[3] / "problems"
SOFTMAX = "AMD_AKA/torch2hip/l1n23_softmax"
BOUND = {"t_sol_s": 1.0, "binds": "memory", "macs": 3, "live_bytes": 8, "coverage": "complete", "uncounted": []}
GRADIENT = """import torch


def run(x):
    x = x.requires_grad_()
    return torch.autograd.grad(torch.softmax(x, dim=1).square().sum(), x)[0]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One problem with its first workload only."""
    folder = tmp_path / "problems" / SOFTMAX
    shutil.copytree(ROOT / SOFTMAX, folder, ignore=shutil.ignore_patterns("solutions"))
    path = folder / "workloads.yaml"
    lines = path.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.startswith("  - {uuid"))
    path.write_text("".join(lines[: first + 1]))
    return tmp_path / "problems"


def here(*arguments: Any, **_: Any) -> tuple[list[dict[str, Any]], int]:
    """:func:`solbench.jobs.mapped` in this process, without a memo."""
    jobs = arguments[4]
    return [arguments[3](*job) for job in jobs], len(jobs)


def call(root: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.corpus, ["report", "--root", str(root), *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def result(**fields: Any) -> dict[str, Any]:
    return {"recorded": True, "converted": True, "attested": True, "bound": BOUND, "reason": None, **fields}


REFUSED = result(recorded=False, converted=False, attested=False, bound=None, reason="cannot record a backward pass")
UNATTESTED = result(attested=False, bound=None, reason="values differ")


@pytest.mark.parametrize(
    ("first", "second", "difference", "cause"),
    [
        (result(), result(), None, None),
        (result(), REFUSED, "no bound by torchview", "cannot record a backward pass"),
        (REFUSED, result(), "no bound by aten", "cannot record a backward pass"),
        (result(), UNATTESTED, "no bound by torchview", None),
        (UNATTESTED, REFUSED, None, None),
        (result(), result(bound=BOUND | {"t_sol_s": 2.0}), "t_sol_s: 1.0 by aten, 2.0 by torchview", None),
        (result(), result(bound=BOUND | {"macs": 4}), "macs: 3 by aten, 4 by torchview", None),
        (result(), result(bound=BOUND | {"live_bytes": 4}), "live_bytes: 8 by aten, 4 by torchview", None),
        (result(), result(bound=BOUND | {"binds": "matrix"}), None, None),
    ],
)
def test_what_two_paths_say_of_one_workload(first: Any, second: Any, difference: Any, cause: Any) -> None:
    assert compared({"aten": first, "torchview": second}) == (difference, cause)


@pytest.mark.parametrize(
    ("first", "second", "causes", "failures"),
    [
        (result(), result(), {}, 0),
        (result(), REFUSED, {}, 0),
        (REFUSED, REFUSED, {}, 1),
        (REFUSED, result(), {}, 1),
        (result(), UNATTESTED, {}, 1),
        (result(), result(bound=BOUND | {"macs": 4}), {}, 1),
        (result(), result(bound=BOUND | {"macs": 4}), {SOFTMAX: "counted with padding"}, 0),
        (result(), result(bound=BOUND | {"macs": 4}), {"another": "counted with padding"}, 1),
    ],
)
def test_failures(
    root: Path, monkeypatch: pytest.MonkeyPatch, first: Any, second: Any, causes: dict[str, str], failures: int
) -> None:
    monkeypatch.setattr(module, "mapped", lambda *_, **__: ([first, second], 2))
    found = report([load_problem(root / SOFTMAX)], "gfx1200", ("aten", "torchview"), root, causes=causes)
    assert len(found.failures) == found.totals()["failures"] == failures
    assert found.rows[0]["cause"] in (None, *causes.values(), "cannot record a backward pass")


def test_a_problem_by_both_paths(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "mapped", here)
    code, output = call(root, "--json")
    assert code == 0
    value = json.loads(output)
    counts = {"recorded": 1, "converted": 1, "attested": 1, "bound": 1, "complete": 1}
    assert value["totals"] == {
        "workloads": 1, "paths": {"aten": counts, "torchview": counts}, "agree": 1, "failures": 0,
    }  # fmt: skip
    (row,) = value["workloads"]
    assert (row["problem"], row["disagreement"], row["cause"]) == (SOFTMAX, None, None)
    problem = load_problem(root / SOFTMAX)
    axes = problem.workloads[0].validate_against(problem.definition, problem.key)
    # Read once, written once, both in fp32.
    assert row["paths"]["torchview"]["bound"]["live_bytes"] == 2 * 4 * axes["M"] * axes["N"]
    code, output = call(root)
    assert code == 0 and "aten and torchview agree on 1 of 1 workloads on gfx1200" in output


def test_a_backward_pass_is_a_disagreement_with_its_cause(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "mapped", here)
    (root / SOFTMAX / "reference.py").write_text(GRADIENT)
    code, output = call(root)
    assert code == 0, output
    assert "torchview: no bound: grad: path torchview cannot record a backward pass; use path aten" in output
    assert "no bound by torchview; cause: grad: path torchview cannot record a backward pass" in output
    assert "agree on 0 of 1 workloads" in output
    code, output = call(root, "--path", "torchview")
    assert code == 1 and "0 recorded" in output
    assert call(root, "--path", "aten")[0] == 0


def test_a_workload_without_a_bound_on_aten_fails(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "mapped", here)
    (root / SOFTMAX / "reference.py").write_text("import torch\n\n\ndef run(x):\n    return torch.lobpcg(x)[0]\n")
    code, output = call(root, "--json")
    assert code == 1
    (row,) = json.loads(output)["workloads"]
    assert row["disagreement"] is None and row["paths"]["aten"]["reason"]


def test_a_difference_without_a_cause_fails(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def skewed(instance: Any, definition: Any, machine: Any) -> dict[str, Any]:
        found = examined(instance, definition, machine)
        if definition["path"] == "torchview":
            found["bound"]["macs"] += 1
        return found

    monkeypatch.setattr(module, "mapped", here)
    monkeypatch.setattr(module, "examined", skewed)
    code, output = call(root)
    assert code == 1
    assert "macs: 0 by aten, 1 by torchview; cause: UNKNOWN" in output


@pytest.mark.parametrize(
    ("module_name", "name", "expected"),
    [
        ("solar.convert", "convert", {"recorded": True, "converted": False, "attested": False}),
        ("solar.attest", "examine", {"recorded": True, "converted": True, "attested": False}),
        ("solar.bound", "bound", {"recorded": True, "converted": True, "attested": True}),
    ],
)
def test_the_step_that_failed_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, module_name: str, name: str, expected: dict[str, bool]
) -> None:
    from importlib import import_module

    from solar.errors import SolarError
    from solbench import bounds

    # No replay of another test, and none for another.
    monkeypatch.setattr(bounds, "_examined_once", lambda text: bounds.examined(json.loads(text)))

    def fails(*_: Any, **__: Any) -> Any:
        raise SolarError("no reason in particular")

    problem = load_problem(root / SOFTMAX)
    arguments = (
        workload_artifact(problem, problem.workloads[0]),
        {**problem.definition.as_dict(), "path": "torchview"},
        bounds.machine_for("gfx1200").to_dict(),
    )
    assert examined(*arguments)["bound"] is not None
    monkeypatch.setattr(import_module(module_name), name, fails)
    found = examined(*arguments)
    assert found == {**expected, "bound": None, "reason": "no reason in particular"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--path", "fx"), "'fx' is not one of 'aten', 'torchview'"),
        (("--jobs", "0"), "is not in the range"),
        (("--problem", "nothing"), "no such problem"),
        (("--target", "nothing"), "nothing"),
    ],
)
def test_bad_arguments(root: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], reason: str) -> None:
    from solbench.cli import run

    assert run(["corpus", "report", "--root", str(root), *arguments]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.slow
def test_the_second_time_nothing_is_computed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(computed: int) -> dict[str, Any]:
        found = report([load_problem(root / SOFTMAX)], "gfx1200", ("aten", "torchview"), root / "memo", workers=2)
        assert found.computed == computed
        return found.as_dict()

    monkeypatch.setattr(module, "code_of", lambda paths: "this code")
    first = again(2)
    assert again(0) == first
    path = root / SOFTMAX / "reference.py"
    path.write_text(path.read_text() + "\n# changed\n")
    again(2)
    monkeypatch.setattr(module, "code_of", lambda paths: "other code")
    assert again(2)["totals"] == first["totals"]
