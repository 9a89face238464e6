"""Kernels of every kind under the patched interpreter give what PyTorch gives; without the patch they do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
HERE = Path(__file__).parent
KERNELS = HERE / "triton_kernels.py"
NAMES = [
    "bf16_add", "bf16_sub", "bf16_mul", "bf16_div", "bf16_mod", "bf16_max", "bf16_min", "bf16_less",
    "bf16_less_equal", "bf16_greater", "bf16_greater_equal", "bf16_equal", "bf16_not_equal", "bf16_where", "bf16_fma",
    "bf16_clamp", "bf16_constants", "bf16_negative", "bf16_absolute", "bf16_functions_in_float32",
    "random_expressions_of_bf16", "casts_to_bf16", "casts_from_bf16", "casts_of_float8", "refusals_of_float8",
    "dot_of_bf16", "dot_of_float8", "reductions_of_bf16", "scans_of_bf16", "masked_loads_and_moves_of_bf16",
    "bits_of_bf16", "atomic_additions_of_bf16", "scalars_of_bf16", "device_library", "what_the_interpreter_lacks",
    "mistakes_are_no_refusals", "autotuned",
]  # fmt: skip


def run(*arguments: str) -> dict[str, str | None]:
    """What is wrong with each check, None for nothing."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2])}
    command = [sys.executable, str(KERNELS), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, env=environment)
    found = json.loads(result.stdout.splitlines()[-1])["checks"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def patched() -> dict[str, str | None]:
    return run()


@pytest.mark.parametrize("name", NAMES)
def test_kernels(patched: dict[str, str | None], name: str) -> None:
    assert patched[name] is None, patched[name]


def test_every_kernel_is_looked_at(patched: dict[str, str | None]) -> None:
    assert list(patched) == NAMES


@pytest.mark.slow
def test_the_interpreter_itself_is_wrong() -> None:
    """Once it is not, the layer has no purpose any more."""
    wrong = {name for name, text in run("bare").items() if text is not None}
    assert {"bf16_add", "bf16_mul", "bf16_less", "dot_of_bf16", "casts_to_bf16", "casts_of_float8"} <= wrong
