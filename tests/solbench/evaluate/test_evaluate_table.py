"""The table of `solbench evaluate`: what binds a time, and what is said once or for each workload."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from solbench.cli.evaluate_table import row, table


def a_row(name: str, launch_bound: bool | None, binds: str | None, *labels: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "workload": name,
        "status": "PASSED",
        "reason": None,
        "log": "",
        "labels": ["baseline: eager", *labels],
    }
    fields["timing"] = {"stop_reason": f"fixed count: {name}"}
    time = SimpleNamespace(point_s=2e-4, low_s=1e-4, high_s=3e-4, coverage=0.969)
    score = SimpleNamespace(
        t_k=time, t_b=SimpleNamespace(point_s=4e-4), t_sol_s=1e-4, headroom=4.0, s=0.75, state="scored", reason=None,
        launch_bound=launch_bound,
    )  # fmt: skip
    trace = SimpleNamespace(as_dict=lambda: fields, status="PASSED")
    return row(trace, score, None if binds is None else {"binds": binds})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("launch_bound", "binds", "said", "engine"),
    [(False, "memory", "memory", None), (False, "valu", "compute", "valu"), (True, "memory", "launch", None),
     (None, None, None, None)],
)  # fmt: skip
def test_what_binds(launch_bound: bool | None, binds: str | None, said: str | None, engine: str | None) -> None:
    found = a_row("w", launch_bound, binds)
    assert (found["binds"], found["engine"]) == (said, engine)
    assert (found["t_k_s"], found["t_b_s"], found["t_sol_s"], found["score"]) == (2e-4, 4e-4, 1e-4, 0.75)


def test_labels_of_one_workload_are_said_with_it() -> None:
    rows = [a_row("a", False, "valu", "profile: x", "only a's"), a_row("b", False, "memory", "profile: x")]
    lines = table(SimpleNamespace(key="P/p"), "s", rows)  # type: ignore[arg-type]
    assert lines[0] == "P/p  s" and lines[2].split() == [
        "a", "PASSED", "200", "µs", "100", "µs", "–", "300", "µs", "(97%)", "400", "µs", "2.00x", "100", "µs",
        "compute", "(valu)", "4.0", "0.750",
    ]  # fmt: skip
    assert lines[4:] == [
        "  a: fixed count: a", "  a: profile: x", "  a: only a's", "  b: fixed count: b", "  b: profile: x",
        "2 of 2 workloads passed", "  baseline: eager",
    ]  # fmt: skip
