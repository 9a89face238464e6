"""The release object: counts, and what it says of each target."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import sample_release

from solbench import store as stores
from solbench.errors import InputError
from solbench.release.root import STAGES, build_release
from solbench.score.release import score_release
from solbench.store import Store
from solbench.workspace import StageOutput


def release_of(store: Store) -> dict[str, object]:
    return store.load("release", store.index("release")["release"])


def test_counts_and_sections(sample: Path) -> None:
    store = Store(sample / "store")
    release = release_of(store)
    assert (release["name"], release["corpora"], release["problems"], release["workloads"]) == (
        "sample",
        ["DEMO"],
        2,
        3,
    )
    assert sorted(release["sections"]) == sorted(STAGES)
    for stage in STAGES:
        section = store.load("release", store.index("release")[f"sections/{stage}"])
        assert section["entries"] == {name: entry.as_dict() for name, entry in store.index(stage).items()}


def test_what_each_target_says(sample: Path) -> None:
    timed, untimed = release_of(Store(sample / "store"))["targets"]
    assert timed == {
        "target": "cpu",
        "bounds": 3,
        "timed": 2,
        "workloads": 3,
        "state": "timed",
        "device": "Example CPU",
        "note": "2 of 3 workloads timed, full protocol, clocks unlocked",
    }
    assert (untimed["target"], untimed["state"], untimed["timed"], untimed["device"]) == (
        "gfx1200",
        "not timed",
        0,
        None,
    )
    assert untimed["bounds"] == 3
    assert untimed["note"] == (
        "no card was measured; bounds, code evidence and emulated verdicts only, no time is borrowed from another card"
    )


def test_entries_of_the_sample(sample: Path) -> None:
    """By hand: T_b = 4 T_SOL; eager runs in 4 T_SOL (S = 1/2), fast in 2 T_SOL (S = 3/4) on w1 and fails on w2."""
    store = Store(sample / "store")
    values = {name: value for name, _, value in store.items("scores")}
    assert sorted(values) == [
        "DEMO/unit/add/w1@cpu/eager",
        "DEMO/unit/scale/w1@cpu/eager",
        "DEMO/unit/scale/w1@cpu/fast",
        "DEMO/unit/scale/w2@cpu/eager",
        "DEMO/unit/scale/w2@cpu/fast",
        "cpu/eager",
        "cpu/fast",
    ]
    assert values["DEMO/unit/scale/w1@cpu/eager"]["s"] == pytest.approx(0.5, abs=1e-3)
    assert values["DEMO/unit/scale/w1@cpu/fast"]["s"] == pytest.approx(0.75, abs=1e-3)
    assert values["DEMO/unit/scale/w2@cpu/fast"]["state"] == "failed"
    assert values["DEMO/unit/add/w1@cpu/eager"]["reason"] == "over the cpu budget"
    eager, fast = values["cpu/eager"], values["cpu/fast"]
    assert eager["s"] == pytest.approx(0.5, abs=1e-3)
    assert (eager["problem_n"], eager["problem_total"], eager["scored"], eager["not_attempted"]) == (1, 2, 2, 1)
    # Mean of 3/4 and 0 on scale, and 0 for add, which it has no solution for.
    assert fast["s"] == pytest.approx((0.75 / 2 + 0) / 2, abs=1e-3)
    assert (fast["scored"], fast["failed"], fast["not_attempted"], fast["workloads"]) == (1, 1, 1, 3)
    assert fast["geometric_mean_speedup"] == pytest.approx(2, abs=1e-2)


@pytest.fixture
def store(sample: Path, tmp_path: Path) -> Store:
    return Store(Path(shutil.copytree(sample / "store", tmp_path / "store")))


def edit(store: Store, stage: str, names: dict[str, str | None]) -> None:
    """Rename entries of a stage; None drops them."""
    index = store.index(stage)
    for old, new in names.items():
        entry = index.pop(old)
        if new is not None:
            index[new] = entry
    (store.root / f"{stage}.json").write_bytes(stores.index_bytes(index))


def test_the_same_store_gives_the_same_root(sample: Path, store: Store, tmp_path: Path) -> None:
    before = Store(sample / "store").index("release")["release"]
    output = StageOutput(tmp_path / "objects")
    output.objects.mkdir()
    root = build_release(store, "sample", output)
    assert root.descriptor == before
    assert stores.check(root.data, root.descriptor) is None


def test_nothing_to_release(store: Store, tmp_path: Path) -> None:
    for stage in ("workloads", "bounds", "timings", "scores", "graphs", "einsums"):
        (store.root / f"{stage}.json").write_bytes(stores.index_bytes({}))
    with pytest.raises(InputError, match="nothing to release"):
        build_release(store, "sample", StageOutput(tmp_path / "objects"))


def test_a_missing_stage(store: Store, tmp_path: Path) -> None:
    (store.root / "graphs.json").unlink()
    with pytest.raises(InputError, match="solbench repro"):
        build_release(store, "sample", StageOutput(tmp_path / "objects"))


def test_a_target_without_times_after_all(store: Store) -> None:
    scale = "cpu/full/DEMO/unit/scale"
    edit(store, "timings", {f"{scale}/{uuid}/{name}": None for uuid in ("w1", "w2") for name in ("eager", "fast")})
    sample_release.finish_store(store.root)
    target = release_of(store)["targets"][0]
    assert (target["state"], target["timed"]) == ("not timed", 0)
    assert target["note"].startswith("attempted")


def test_a_workload_without_a_record_is_not_attempted(store: Store) -> None:
    edit(store, "timings", {"cpu/full/DEMO/unit/scale/w2/eager": None})
    scores = {name: value for name, _, value in score_release(store)}
    score = scores["DEMO/unit/scale/w2@cpu/eager"]
    assert (score["state"], score["reason"]) == ("not_attempted", "no record of it in the measurement sets")
    assert score["t_sol_s"] > 0


def test_a_stale_record_is_not_attempted(store: Store) -> None:
    index = store.index("workloads")
    index["DEMO/unit/scale/w1"] = index["DEMO/unit/add/w1"]
    (store.root / "workloads.json").write_bytes(stores.index_bytes(index))
    scores = {name: value for name, _, value in score_release(store)}
    score = scores["DEMO/unit/scale/w1@cpu/eager"]
    assert (score["state"], score["s"]) == ("not_attempted", None)
    assert score["reason"].startswith("stale: measured on another version of this workload")


def test_another_version_of_a_solution_is_stale(store: Store) -> None:
    index = store.index("corpus")
    index["DEMO/unit/scale/solutions/fast"] = index["DEMO/unit/scale/solutions/eager"]
    (store.root / "corpus.json").write_bytes(stores.index_bytes(index))
    scores = {name: value for name, _, value in score_release(store)}
    assert "another version of this solution" in scores["DEMO/unit/scale/w1@cpu/fast"]["reason"]


def test_a_solution_that_the_corpus_no_longer_has(store: Store) -> None:
    edit(store, "corpus", {"DEMO/unit/scale/solutions/fast": None})
    assert [name for name, _, _ in score_release(store) if "fast" in name] == []


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"cpu/full/header": None}, "belongs to no measurement set"),
        ({"cpu/full/DEMO/unit/scale/w1/eager": "cpu/full/DEMO/unit/scale/w2/slow"}, "of another workload"),
        ({"cpu/full/DEMO/unit/scale/w1/eager": "cpu/full/DEMO/unit/add/w1/fast"}, "of another workload"),
    ],
)
def test_records_that_contradict_their_names(store: Store, names: dict[str, str | None], words: str) -> None:
    edit(store, "timings", names)
    with pytest.raises(InputError, match=words):
        score_release(store)


def test_one_workload_measured_twice(store: Store) -> None:
    index = store.index("timings")
    index["cpu/again/header"] = index["cpu/full/header"]
    index["cpu/again/DEMO/unit/scale/w1/eager"] = index["cpu/full/DEMO/unit/scale/w1/eager"]
    (store.root / "timings.json").write_bytes(stores.index_bytes(index))
    with pytest.raises(InputError, match="measured twice, also in cpu/again"):
        score_release(store)


def test_sets_of_two_protocols_are_not_added_up(store: Store) -> None:
    header = {**sample_release.header().as_dict()}
    header["protocol"] = {**header["protocol"], "name": "quick", "processes": 1}
    index = store.index("timings")
    index["cpu/quick/header"] = stores.put_json(store.root / "timings" / "objects", "measurement-set", header)
    index["cpu/quick/DEMO/unit/scale/w1/eager"] = index.pop("cpu/full/DEMO/unit/scale/w1/eager")
    (store.root / "timings.json").write_bytes(stores.index_bytes(index))
    entries = {name: value for name, kind, value in score_release(store) if kind == "entry"}
    assert (entries["cpu/eager"]["s"], entries["cpu/eager"]["protocol"]) == (None, "full+quick")
    assert entries["cpu/eager"]["withheld"] == "its measurement sets differ in protocol"
    assert entries["cpu/fast"]["withheld"] == "measured apart from the baseline entry: differs in protocol"


def test_a_sentinel_has_scores_but_no_part_in_the_mean(store: Store) -> None:
    index = store.index("corpus")
    definition = store.load("corpus", index["DEMO/unit/scale"])
    body = {name: value for name, value in definition.items() if name != "kind"}
    changed = stores.put_json(store.root / "corpus" / "objects", "definition", {**body, "role": "sentinel"})
    index["DEMO/unit/scale"] = changed
    (store.root / "corpus.json").write_bytes(stores.index_bytes(index))
    values = {name: value for name, _, value in score_release(store)}
    assert values["DEMO/unit/scale/w1@cpu/eager"]["state"] == "scored"
    entry = values["cpu/eager"]
    assert (entry["problem_total"], entry["workloads"], entry["s"]) == (1, 1, None)
