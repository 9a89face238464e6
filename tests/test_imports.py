"""Who may import whom (DESIGN §2), and what starts without PyTorch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("torch", "numpy", "triton", "dvc")


def imports_of(path: Path) -> set[str]:
    """Modules that a file imports anywhere, functions included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
    return found


def test_solar_imports_nothing_of_solbench():
    files = sorted((ROOT / "solar").rglob("*.py"))
    assert len(files) > 5
    for path in files:
        assert not [name for name in imports_of(path) if name.split(".")[0] == "solbench"], path


@pytest.mark.parametrize("package", ["model", "canonical.py", "store.py", "errors.py"])
def test_contracts_know_nobody_above_them(package):
    allowed = ("solbench.model", "solbench.canonical", "solbench.store", "solbench.errors")
    path = ROOT / "solbench" / package
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    for file in files:
        above = [n for n in imports_of(file) if n.startswith(("solbench.", "solar")) and not n.startswith(allowed)]
        assert not above, f"{file}: {above}"


def run_without(modules: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in an interpreter where importing any of ``modules`` raises."""
    block = f"import sys\nfor m in {modules!r}: sys.modules[m] = None\n"
    return subprocess.run(
        [sys.executable, "-c", block + code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )


@pytest.mark.parametrize(
    "modules",
    [
        "solar.einsum",
        "solar.hardware",
        "solar.bound",
        "solar.mapper",
        "solbench.model",
        "solbench.store",
        "solbench.score.release",
        "solbench.release.verify",
        "solbench.release.replay",
        "solbench.release.diff",
        "solbench.release.bundle",
        "solbench.site",
        "solbench.evaluate.recording",
        "solbench.analysis",
        "solbench.explain",
        "solbench.cli",
    ],
)
def test_imports_without_torch_numpy_or_dvc(modules):
    done = run_without(HEAVY, f"import {modules}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["verify", "--help"],
        ["site", "--help"],
        ["score", "--help"],
        ["release", "diff", "--help"],
        ["repro", "--help"],
        ["hardware", "--help"],
        ["analyze", "--help"],
    ],
)
def test_commands_start_without_torch(arguments):
    done = run_without(HEAVY, f"from solbench.cli import run; sys.exit(run({arguments!r}))")
    assert done.returncode == 0, done.stderr
    assert "Usage: solbench" in done.stdout


def test_a_blocked_module_is_noticed():
    """The fixture that fails the check above."""
    assert run_without(HEAVY, "import torch").returncode != 0


def test_start_up_is_fast_enough_to_be_pleasant():
    """Not a timing: the number of modules loaded by `solbench --help` stays small, whatever the machine's speed."""
    code = "import sys; from solbench.cli import run; run(['--help']); print(len(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert int(done.stdout.split()[-1]) < 700


@pytest.mark.parametrize("module", ["gfx12.triton_launch", "gfx12.hip_launch", "evaluate.emulated_card"])
def test_a_worker_runs_the_emulator_without_contracts_or_analysis(module):
    """Its sandbox shows the package solbench alone, and no validating library is to be the candidate's neighbour."""
    pytest.importorskip("triton")
    code = f"import solbench.{module}, sys\nprint(sorted({{'solar', 'pydantic', 'click'}} & set(sys.modules)))"
    done = run_without((), code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
