"""Traces whose verdict, results and checks do not belong together, in bundles whose hashes all fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sample_release import rewrite

from solbench.release.verify import verify

SCALE = "DEMO/unit/scale"
PASSED, FAILED = f"cpu/full/{SCALE}/w1/eager", f"cpu/full/{SCALE}/w2/fast"


def result(**fields: Any) -> Callable[[Any], Any]:
    """Change the only result of a trace."""

    def change(value: Any) -> Any:
        (one,) = value["correctness"]["checks"]
        return {**value, "correctness": {**value["correctness"], "checks": [{**one, **fields}]}}

    return change


def results(count: int) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        checks = value["correctness"]["checks"] * count
        return {**value, "correctness": {**value["correctness"], "checks": checks}}

    return change


@pytest.mark.parametrize(
    ("name", "change", "path"),
    [
        (FAILED, result(passed=True), "status"),
        (FAILED, results(0), "status"),
        (PASSED, results(0), "checks"),
        (PASSED, results(2), "checks"),
        (PASSED, result(output="z"), "checks"),
        (PASSED, result(type="exact"), "checks"),
        (PASSED, result(type="exact", mismatched=1), "y"),
        (PASSED, result(compared=0), "y"),
        (PASSED, result(mismatched=9), "y"),
        (FAILED, result(mismatched=9), "y"),
    ],
)
def test_a_verdict_that_its_results_do_not_give(
    folder: Path, name: str, change: Callable[[Any], Any], path: str
) -> None:
    rewrite(folder, "timings", name, change)
    found = verify(folder)
    assert found.exit_code == 1
    assert ("cross-ref", f"timings: {name}: {path}") in [(error.code, error.path) for error in found.errors]


@pytest.mark.parametrize("name", [PASSED, FAILED])
def test_results_that_may_be(folder: Path, name: str) -> None:
    rewrite(folder, "timings", name, result(mismatched=8, max_absolute_error=1e-7))
    assert verify(folder).exit_code == 0
