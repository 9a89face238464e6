"""What decides a result is in its memo key and among its stage's dependencies."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

from solbench.errors import SolbenchError
from solbench.jobs import CONVERSION, EXTRACTION, code_of, mapped

ROOT = Path(__file__).resolve().parents[2]
# Only says what went wrong.
UNCOUNTED = ("solar/errors.py", "solar/__init__.py")


def file_of(module: str) -> Path | None:
    base = ROOT / Path(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def closure(*modules: str) -> set[str]:
    """Files of ``solar`` that these modules import, however far down."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        path = file_of(waiting.pop())
        if path is None or (name := path.relative_to(ROOT).as_posix()) in found:
            continue
        found.add(name)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("solar"):
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def uncovered(files: set[str], covered: tuple[str, ...]) -> set[str]:
    return {name for name in files if name not in UNCOUNTED and not name.startswith(covered)}


@pytest.mark.parametrize(
    ("modules", "covered", "stage"),
    [
        (("solar.extract.aten", "solar.extract.torchview", "solar.extract"), EXTRACTION, "graphs"),
        (("solar.extract.aten", "solar.convert", "solar.attest", "solar.replay"), CONVERSION, "einsums"),
    ],
)
def test_every_module_that_decides_is_counted(modules: tuple[str, ...], covered: tuple[str, ...], stage: str) -> None:
    files = closure(*modules)
    assert len(files) > 8
    assert uncovered(files, covered) == set()
    dependencies = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"][stage]["deps"]
    assert uncovered(files, tuple(dependencies)) == set()
    assert uncovered({"solar/extract/aten.py", "solar/another.py"}, covered) == {"solar/another.py"}


def doubled(value: int) -> dict[str, int]:
    return {"value": 2 * value}


def fatal(value: int) -> dict[str, int]:
    import os

    os._exit(value)


def test_results_come_in_order_and_from_the_memo(tmp_path: Path) -> None:
    jobs = [(3,), (1,), (2,)]
    results = [{"value": 6}, {"value": 2}, {"value": 4}]
    assert mapped(tmp_path, "double", "a", doubled, jobs, workers=1) == (results, 3)
    assert mapped(tmp_path, "double", "a", doubled, [*jobs, (4,)], workers=2) == ([*results, {"value": 8}], 1)
    assert mapped(tmp_path, "double", "b", doubled, jobs)[1] == 3
    assert mapped(tmp_path, "double", "a", doubled, []) == ([], 0)


def test_a_worker_that_dies_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SolbenchError, match="deadly: a worker process died"):
        mapped(tmp_path, "deadly", "a", fatal, [(7,)])


def test_the_code_is_known_by_its_bytes() -> None:
    assert code_of(["solar/graph.py"]) == code_of(["solar/graph.py"]) != code_of(["solar/errors.py"])
