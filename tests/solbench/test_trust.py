"""Whose word a score is: own sets, imported ones, and what another card said of the same work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solbench import store as stores
from solbench.errors import InputError
from solbench.score.release import score_release
from solbench.store import Store
from tests.bundles import sample_release

W1, W2 = "DEMO/unit/scale/w1", "DEMO/unit/scale/w2"
OTHER = {"name": "Another CPU", "cores": 2}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return sample_release.build_store(tmp_path / "store")


def scores(store: Store) -> dict[str, dict[str, Any]]:
    return {name: value for name, _, value in score_release(store)}


def again(store: Store, times: tuple[float, ...] | None, folder: str = "reproductions", **header: Any) -> str:
    """Another set with a record of w1 by ``fast``; ``times`` in units of T_SOL."""
    index = store.index("timings")
    fields = {**sample_release.header().as_dict(), "device": OTHER, **header}
    objects = store.root / "timings" / "objects"
    index[f"cpu/{folder}/b/header"] = stores.put_json(objects, "measurement-set", fields)
    instance, solution = store.index("workloads")[W1], store.index("corpus")["DEMO/unit/scale/solutions/fast"]
    t_sol_s = scores(store)[f"{W1}@cpu/fast"]["t_sol_s"]
    digests = instance.digest, solution.digest
    trace = sample_release.trace("DEMO/unit/scale", "w1", "fast", digests, times, t_sol_s)
    name = f"cpu/{folder}/b/{W1}/fast"
    index[name] = stores.put_json(objects, "trace", trace.as_dict())
    (store.root / "timings.json").write_bytes(stores.index_bytes(index))
    return index[name].digest


def test_what_the_publisher_measured_is_self_reported(store: Store) -> None:
    found = scores(store)
    assert {found[f"{W1}@cpu/{name}"]["trust"] for name in ("eager", "fast")} == {"self-reported"}
    assert found["DEMO/unit/add/w1@cpu/eager"]["trust"] is None  # an omission is nobody's result
    assert found["cpu/fast"]["trust"] == {"self-reported": 2}


def test_a_set_of_somebody_else_is_imported(store: Store) -> None:
    index = store.index("timings")
    moved = {name.replace("cpu/full/", "cpu/imported/full/"): entry for name, entry in index.items()}
    (store.root / "timings.json").write_bytes(stores.index_bytes(moved))
    assert scores(store)["cpu/fast"]["trust"] == {"imported": 2}


# T_b is 4 T_SOL in both, so S = 3 / (T_k / T_SOL + 2): 0.75 at 2, 0.7317 at 2.1 (0.018 apart), 0.7143 at 2.2 (0.036).
@pytest.mark.parametrize(
    ("t_k", "label"),
    [
        (2.1, "reproduced on another card"),
        (2.2, "not reproduced on another card"),
        (None, "not reproduced on another card"),
    ],
)
def test_another_card_says_the_same_or_not(store: Store, t_k: float | None, label: str) -> None:
    digest = again(store, None if t_k is None else (t_k,) * 6)
    found = scores(store)
    score = found[f"{W1}@cpu/fast"]
    assert (score["trust"], [one["digest"] for one in score["reproductions"]]) == (label, [digest])
    assert found["cpu/fast"]["trust"] == {label: 1, "self-reported": 1}
    assert score["s"] == pytest.approx(0.75, abs=1e-3)  # it is a word about the score, no part of it


def test_two_failures_are_the_same_result(store: Store) -> None:
    index = store.index("timings")
    again(store, None)
    reproduction = store.index("timings")[f"cpu/reproductions/b/{W1}/fast"]
    index[f"cpu/full/{W1}/fast"] = reproduction
    index |= {name: entry for name, entry in store.index("timings").items() if "reproductions" in name}
    (store.root / "timings.json").write_bytes(stores.index_bytes(index))
    assert scores(store)[f"{W1}@cpu/fast"]["trust"] == "reproduced on another card"


def test_the_same_card_or_another_protocol_says_nothing(store: Store) -> None:
    device = sample_release.header().device
    again(store, (2.0,) * 6, device={**device, "floors": {"c": 1}})
    assert scores(store)[f"{W1}@cpu/fast"]["trust"] == "self-reported"
    protocol = {**sample_release.header().protocol.as_dict(), "name": "quick"}
    again(store, (2.0,) * 6, protocol=protocol)
    assert scores(store)[f"{W1}@cpu/fast"]["trust"] == "self-reported"


def test_a_stale_reproduction_says_nothing(store: Store) -> None:
    again(store, (2.0,) * 6)
    index = store.index("workloads")
    index[W1] = index[W2]
    (store.root / "workloads.json").write_bytes(stores.index_bytes(index))
    assert scores(store)[f"{W1}@cpu/fast"]["trust"] is None


@pytest.mark.parametrize(
    "name", ["gfx1200/full/header", "cpu/elsewhere/full/header", "cpu/imported/header", "full/header"]
)
def test_a_set_under_another_name_is_refused(store: Store, name: str) -> None:
    index = store.index("timings")
    header = index.pop("cpu/full/header")
    moved = {key.replace("cpu/full/", name.removesuffix("header")): entry for key, entry in index.items()}
    (store.root / "timings.json").write_bytes(stores.index_bytes({**moved, name: header}))
    with pytest.raises(InputError, match="must be TARGET/NAME"):
        scores(store)
