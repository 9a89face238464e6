"""The evidence behind tolerances: what it is bound to, how a new run is held against it, and what is committed."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from solbench.cli.corpus import corpus
from solbench.corpus.calibrate import calibrate
from solbench.corpus.calibration import (
    Calibration,
    basis,
    calibration_path,
    compare,
    load_calibration,
    tolerant_outputs,
    write_calibration,
)
from solbench.corpus.definitions import Template, load_template, load_templates
from solbench.corpus.load import Problem, load_corpus, load_problem
from solbench.corpus.reduce import reduced
from solbench.corpus.validate import validate
from solbench.corpus.variants import RIGHT
from solbench.errors import InputError
from solbench.model.definition import Definition
from solbench.model.workload import Workload

ROOT = Path(__file__).parents[3] / "problems"
FIELDS: dict[str, Any] = {
    "problem": "CORPUS/tiny/product",
    "basis": "0" * 64,
    "processor": "a processor",
    "torch": "2.13.0",
    "threads": 1,
    "seeds": [0, 1],
    "instances": [{"workload": "w0", "axes": {"M": 8}, "note": "reduced: M 64 -> 8"}],
    "steps": [{"output": "y", "share": 0.01}],
    "used": [
        {"output": "y", "variant": "float64", "required": True, "least": 0.0, "most": 0.2},
        {"output": "y", "variant": "sums in bfloat16", "required": False, "least": 30.0, "most": 1e6},
    ],
}


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    folder = tmp_path / "CORPUS" / "tiny" / "product"
    folder.mkdir(parents=True)
    (folder / "problem.yaml").write_text(
        "schema: solbench.definition.v1\nname: product\nsuite: tiny\naxes:\n  M: {type: var}\n"
        "inputs:\n  a: {shape: [M, M], dtype: float32}\noutputs:\n  y: {shape: [M, M], dtype: float32}\n"
        "  z: {shape: [M, M], dtype: float32}\n"
    )
    (folder / "workloads.yaml").write_text(
        "schema: solbench.workloads.v1\nworkloads:\n  - uuid: w0\n    axes: {M: 16}\n    inputs: {a: {type: normal}}\n"
        "    checks:\n      - {type: numeric, output: y, atol: 1.0e-05, rtol: 1.0e-05}\n"
        "      - {type: exact, output: z}\n"
    )
    (folder / "reference.py").write_text("def run(a):\n    return a @ a, a + a\n")
    return load_problem(folder)


def written(problem: Problem, **fields: Any) -> Path:
    made = Calibration.load({**FIELDS, "basis": basis(problem), **fields}, "c")
    path = calibration_path(problem.path.parent.parent, problem)
    write_calibration(made, path)
    return path


def test_one_entry_a_line(problem: Problem) -> None:
    path = written(problem)
    lines = path.read_text().splitlines()
    assert "  - {output: y, variant: float64, required: true, least: 0.0, most: 0.2}" in lines
    assert "seeds: [0, 1]" in lines
    loaded = load_calibration(problem)
    assert loaded == Calibration.load({**FIELDS, "basis": basis(problem)}, "c")


def test_nothing_is_overwritten(problem: Problem) -> None:
    path = written(problem)
    before = path.read_bytes()
    with pytest.raises(InputError, match="exists already"):
        written(problem)
    assert path.read_bytes() == before


def test_a_corpus_without_calibrations(problem: Problem) -> None:
    assert load_calibration(problem) is None


def test_an_output_with_an_exact_check_needs_none(problem: Problem) -> None:
    assert tolerant_outputs(problem) == ["y"]


def test_a_missing_calibration(problem: Problem) -> None:
    written(problem).unlink()
    with pytest.raises(InputError, match=r"product.yaml: is missing; run `solbench corpus calibrate CORPUS/tiny/prod"):
        load_calibration(problem)


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        ("workloads.yaml", "rtol: 1.0e-05", "rtol: 2.0e-05", True),
        ("workloads.yaml", "type: normal", "type: uniform", True),
        ("workloads.yaml", "M: 16", "M: 32", True),
        ("reference.py", "a @ a", "a @ a.T", True),
        ("workloads.yaml", "checks:", "rejected_formats: [int8]\n    checks:", False),
        ("problem.yaml", "suite: tiny", "suite: tiny\ndescription: A product.", False),
    ],
)
def test_what_a_calibration_is_bound_to(problem: Problem, file: str, old: str, new: str, stale: bool) -> None:
    written(problem)
    path = problem.path / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    changed = load_problem(problem.path)
    if not stale:
        assert load_calibration(changed) is not None
        return
    with pytest.raises(InputError, match="another definition or other checks; delete it and run `solbench corpus cal"):
        load_calibration(changed)


def test_an_output_without_evidence(problem: Problem) -> None:
    written(problem, used=FIELDS["used"][1:])
    with pytest.raises(InputError, match="has not just the outputs y"):
        load_calibration(problem)


@pytest.mark.parametrize(
    ("share", "step", "holds"),
    [
        (0.2, 0.0, True),
        (0.05, 0.0, True),
        (0.8, 0.0, True),
        (0.04, 0.0, True),  # a fifth of what was measured, and both leave room
        (0.9, 0.0, False),
        (0.9, 0.3, True),  # three rounding steps of the output
        (0.0, 0.3, True),
        (1.01, 0.5, False),
    ],
)
def test_a_new_run(share: float, step: float, holds: bool) -> None:
    made = Calibration.load(FIELDS, "c")
    ((what, ok, why),) = compare(made, {("y", "float64"): share}, {"y": step})
    assert (what, ok) == ("y: calibrated share of float64", holds)
    assert bool(why) != holds


def test_a_new_run_of_other_variants() -> None:
    found = compare(Calibration.load(FIELDS, "c"), {("y", "fused"): 0.1}, {"y": 0.0})
    assert [(ok, why) for _, ok, why in found] == [
        (False, "was not run"),
        (False, "is not in the committed calibration"),
    ]


def test_a_generated_workload_is_bound_to_its_defaults() -> None:
    template = load_template(ROOT / "LLM_CORE" / "linear" / "linear_matmul_bias", corpus="LLM_CORE")
    workload = template.workload("w", {"M": 8, "K": 64, "N": 96})
    assert basis(Problem(template.path, template.corpus, template.definition, (workload,), ())) == basis(template)
    assert tolerant_outputs(template) == ["output"]


def product(dtype: str = "float32", reference: str = "return a @ b", **check: Any) -> Problem:
    definition = {
        "name": "product",
        "axes": {"M": {"type": "var"}, "K": {"type": "var"}},
        "inputs": {"a": {"shape": ["M", "K"], "dtype": dtype}, "b": {"shape": ["K", "M"], "dtype": dtype}},
        "outputs": {"y": {"shape": ["M", "M"], "dtype": dtype}},
        "reference": f"import torch\n\ndef run(a, b):\n    {reference}\n",
    }
    workloads = []
    for uuid in ("w0", "w1"):
        fields = {
            "uuid": uuid,
            "axes": {"M": 24, "K": 32},
            "inputs": {"a": {"type": "normal"}, "b": {"type": "normal", "std": "1/sqrt(K)"}},
            "checks": [{"type": "numeric", "output": "y", "atol": 2e-5, "rtol": 2e-5, **check}],
        }
        workloads.append(Workload.load(fields, uuid))
    return Problem(Path("."), "C", Definition.load(definition, "d"), tuple(workloads), ())


def measured(made: Problem) -> Calibration:
    return calibrate(made, [reduced(made.definition, workload) for workload in made.workloads], seeds=(0, 1))


def test_a_measurement_of_single_precision() -> None:
    """A product of 32 terms of order 1/sqrt(32) with a unit roundoff of 6e-8, under a tolerance of 2e-5 and more; a
    bfloat16 operand is off by up to 2^-9."""
    found = measured(product())
    assert (found.problem, found.seeds, found.torch) == ("C/product", (0, 1), torch.__version__)
    assert [instance.workload for instance in found.instances] == ["w0"]  # w1 is the same
    used = {row.variant: row for row in found.used}
    for variant in RIGHT:
        assert used[variant].required and used[variant].most < 0.1
    assert 0 < used["float64"].least <= used["float64"].most
    for name, least in (("float16", 1), ("bfloat16", 10), ("float8_e4m3fn", 100)):
        row = used[f"contraction operands in {name}"]
        assert not row.required and row.least > least
    assert used["sums in bfloat16"].least > 10


def test_a_measurement_of_half_precision() -> None:
    """Operands in the outputs' dtype have to pass; they are what the inputs are, so nothing changes."""
    found = measured(product("bfloat16", "return (a.float() @ b.float()).bfloat16()", atol=0.02, rtol=0.01))
    used = {row.variant: row for row in found.used}
    assert used["contraction operands in bfloat16"].required and used["contraction operands in bfloat16"].most == 0
    assert "contractions in bfloat16" not in used  # the same bits as the reference's
    (step,) = found.steps
    assert step.share == pytest.approx(2**-7 / 0.01, rel=0.5) and used["float64"].most <= step.share


def test_an_intermediate_in_half_precision() -> None:
    """exp(x) of a product: rounding the product moves y by 2^-9 of itself at most where |x| < 1."""
    made = product("bfloat16", "return torch.tanh(a.float() @ b.float()).bfloat16()", atol=0.02, rtol=0.01)
    used = {row.variant: row for row in measured(made).used}
    assert 0 < used["contractions in bfloat16"].most < 1
    assert used["every step in bfloat16"].most >= used["contractions in bfloat16"].most > used["float64"].most


def test_controls_hold_the_committed_shares(problem: Problem) -> None:
    instances = [reduced(problem.definition, workload) for workload in problem.workloads]
    path = calibration_path(problem.path.parent.parent, problem)
    write_calibration(calibrate(problem, instances), path)
    calibrated = [f for f in validate(problem, instances) if "calibrated share" in f.control]
    assert [finding.control for finding in calibrated] == sorted(f"y: calibrated share of {name}" for name in RIGHT)
    assert {finding.state for finding in calibrated} == {"holds"}

    (row,) = (line for line in path.read_text().splitlines() if "variant: float64" in line)
    path.write_text(
        path.read_text().replace(row, "  - {output: y, variant: float64, required: true, least: 0.0, most: 0.9}")
    )
    (failed,) = (f for f in validate(problem, instances) if "calibrated share" in f.control and f.state == "failed")
    assert "0.9 when calibrated: more than 4-fold apart" in failed.detail


def test_the_command(problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solbench.corpus.controls.worker_pool", ThreadPoolExecutor)  # starts at once
    root = tmp_path / "root"
    (root / "CORPUS" / "tiny").mkdir(parents=True)
    shutil.copytree(problem.path, root / "CORPUS" / "tiny" / "product")
    arguments = ["calibrate", "product", "--root", str(root), "--output", str(root), "--jobs", "1"]
    result = CliRunner().invoke(corpus, arguments)
    assert result.exit_code == 0 and "1 of 1 problems have tolerances" in result.output
    file = root / "CORPUS" / "calibration" / "tiny" / "product.yaml"
    before = file.read_bytes()
    result = CliRunner().invoke(corpus, arguments)
    assert isinstance(result.exception, InputError) and "exists already" in str(result.exception)
    assert file.read_bytes() == before
    assert CliRunner().invoke(corpus, ["validate", "--root", str(root)]).exit_code == 0
    reference = root / "CORPUS" / "tiny" / "product" / "reference.py"
    reference.write_text(reference.read_text().replace("a @ a", "a @ a.T"))
    result = CliRunner().invoke(corpus, ["validate", "--root", str(root)])
    assert isinstance(result.exception, InputError) and str(file) in str(result.exception)


@pytest.mark.parametrize("corpus_name", ["AMD_AKA", "LLM_CORE"])
def test_what_is_committed(corpus_name: str) -> None:
    """Every problem with a tolerance has its evidence, made for it as it is, and what must pass is inside."""
    problems: list[Problem | Template] = [*load_corpus(ROOT), *load_templates(ROOT)]
    chosen = [problem for problem in problems if problem.corpus == corpus_name and tolerant_outputs(problem)]
    assert len(chosen) == {"AMD_AKA": 43, "LLM_CORE": 36}[corpus_name]
    for made in chosen:
        found = load_calibration(made)
        assert found is not None
        for output in tolerant_outputs(made):
            rows = [row for row in found.required if row.output == output]
            assert {row.variant for row in rows} >= set(RIGHT)
            assert max(row.most for row in rows) <= 1
    files = sorted((ROOT / corpus_name / "calibration").rglob("*.yaml"))
    assert files == sorted(calibration_path(ROOT / corpus_name, made) for made in chosen)
