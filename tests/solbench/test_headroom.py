"""Headroom tables: over a release whose candidate takes twice its bound, and over rows made by hand."""

from __future__ import annotations

import pytest

from solbench.cli import run
from solbench.errors import InputError
from solbench.score.headroom import Rate, Row, markdown, rows
from solbench.store import Store
from tests.bundles import sample_release


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return sample_release.build_store(tmp_path_factory.mktemp("release") / "store")


def test_the_quickest_candidate_of_each_workload(store: Store) -> None:
    # fast takes 2 T_SOL on w1 and has no time on w2; eager takes 4, and is no candidate; add was not attempted.
    (row,) = rows(store, "cpu")
    assert (row.problem, row.binds, row.workloads) == ("DEMO/unit/scale", "memory", 1)
    assert dict(row.entries) == {"fast": 1}
    assert row.best == pytest.approx(1 / 2, rel=5e-3) and row.eager == pytest.approx(1 / 4, rel=5e-3)
    # Memory binds: the bytes that the bound counts take T_SOL at the peak, and so half of it goes by.
    bound = next(value for _, _, value in store.items("bounds", "bound") if value["target"] == "cpu")
    peak = bound["result"]["memory"]["bandwidth_bytes_per_s"]
    assert row.bandwidth.per_s == pytest.approx(peak / 2, rel=5e-3)
    assert row.bandwidth.share == pytest.approx(1 / 2, rel=5e-3)


def test_a_least_bound_leaves_out_what_is_shorter(store: Store) -> None:
    t_sol_s = {name: value["result"]["t_sol_s"] for name, _, value in store.items("bounds", "bound")}
    longest = t_sol_s["DEMO/unit/scale/w1@cpu"]
    assert len(rows(store, "cpu", longest)) == 1
    with pytest.raises(InputError, match="no time of a candidate there, or none so long"):
        rows(store, "cpu", longest * 1.01)
    with pytest.raises(InputError, match="--target gfx1200"):
        rows(store, "gfx1200")


def test_the_table_and_what_all_workloads_of_a_kind_reach() -> None:
    one = Row("C/s/one", "memory", (0.2, 0.6), 0.1, 0.4, {"a": 1, "b": 1}, Rate(3e12, 0.6), None)
    other = Row("C/s/two", "memory", (0.8,), 0.05, 0.8, {"a": 1}, Rate(4e12, 0.8), Rate(2e12, 0.04, "valu float32"))
    found = markdown([one, other])
    assert found[2] == "| one | memory | 2 | 0.10 | 0.40 (a, b) | 3 TB/s, 60% | - |"
    assert found[3] == "| two | memory | 1 | 0.05 | 0.80 (a) | 4 TB/s, 80% | 2 T/s valu float32, 4% |"
    assert found[5:] == ["memory: T_SOL / T_k 0.60 at the median of 3 workloads, 2 problems; 0.20 to 0.80"]


def test_the_command(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["score", "headroom", "--store", str(store.root), "--target"]
    assert run([*arguments, "cpu"]) == 0
    assert "| scale | memory | 1 | 0.25 | 0.50 (fast) |" in capsys.readouterr().out
    assert run([*arguments, "sm_90"]) == 2
    assert "no time of a candidate" in capsys.readouterr().err
