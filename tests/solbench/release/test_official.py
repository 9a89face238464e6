"""Official scores: the release that has one, and each condition broken in turn; what a checkout really has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import official_release
import pytest
import sample_release

from solbench import store as stores
from solbench.cli import run
from solbench.release import bundle, official, pins
from solbench.release.root import STAGES
from solbench.store import Store
from solbench.workspace import Workspace

SCALE, ADD = "DEMO/unit/scale", "DEMO/unit/add"
ROOT = Path(__file__).resolve().parents[3]
Break = Callable[[Store], None]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    found = official_release.build_store(tmp_path / "store")
    monkeypatch.setattr(pins, "PINNED", official_release.pin(found))
    return found


def judged(store: Store, name: str = "fast") -> official.Official:
    sections = {stage: store.index(stage) for stage in STAGES}
    (found,) = official.entries(sections, store.load, "cpu", name)
    return found


def failing(store: Store, name: str = "fast") -> dict[str, str]:
    return {one.name: one.found for one in judged(store, name).conditions if not one.holds}


def test_a_release_that_has_official_scores(store: Store) -> None:
    fast = judged(store)
    assert (fast.official, failing(store), failing(store, "eager")) == (True, {}, {})
    assert (fast.clocks, fast.devices) == ("unlocked", ("Example CPU",))
    found = {one.name: one.found for one in fast.conditions}
    # w1 is scored, w2 failed; `fast` has nothing for the one workload of `add`.
    assert found["full denominators"] == (
        "2 of 3 workloads count, 0 too narrow to score, 1 of problems without a solution, which count 0"
    )
    assert found["observed clocks"] == "baseline and candidate within 0.0% in 1 of 1 timed traces"


def timings(name: str, new: Callable[[dict[str, Any]], dict[str, Any]]) -> Break:
    def apply(store: Store) -> None:
        official_release.change(store, "timings", f"cpu/full/{name}", new)
        sample_release.finish_store(store.root)

    return apply


def header(**fields: Any) -> Break:
    def new(value: dict[str, Any]) -> dict[str, Any]:
        protocol = {**value["protocol"], **fields.pop("protocol", {})}
        return {**value, "protocol": protocol, **fields}

    return timings("header", new)


def another_baseline(store: Store) -> None:
    official_release.change(store, "corpus", f"{ADD}/solutions/eager", lambda value: {**value, "author": "somebody"})
    sample_release.finish_store(store.root)


def without(stage: str, name: str) -> Break:
    def apply(store: Store) -> None:
        index = store.index(stage)
        del index[name]
        (store.root / f"{stage}.json").write_bytes(stores.index_bytes(index))
        if stage != "readiness":
            sample_release.finish_store(store.root)

    return apply


def not_run(store: Store) -> None:
    def new(value: dict[str, Any]) -> dict[str, Any]:
        first = {**value["items"][0], "ready": False, "reason": "not run: budget"}
        return {**value, "items": [first, *value["items"][1:]], "ready": value["ready"] - 1}

    official_release.change(store, "readiness", "cpu/full", new)


def measured_apart(store: Store) -> None:
    index = store.index("timings")
    head = official_release.body(store.load("timings", index["cpu/full/header"]))
    objects = store.root / "timings" / "objects"
    index["cpu/other/header"] = stores.put_json(objects, "measurement-set", {**head, "environment": {"torch": "3"}})
    for uuid in ("w1", "w2"):
        index[f"cpu/other/{SCALE}/{uuid}/fast"] = index.pop(f"cpu/full/{SCALE}/{uuid}/fast")
    (store.root / "timings.json").write_bytes(stores.index_bytes(index))
    sample_release.finish_store(store.root)


FASTER = {"before": {"cpu_hz": 3.2e9}, "after": {"cpu_hz": 3.2e9}}
UNREAD: dict[str, Any] = {"before": {"cpu_hz": None}, "after": {"cpu_hz": 3.0e9}}


@pytest.mark.parametrize(
    ("damage", "condition", "words"),
    [
        (another_baseline, "baseline", "1 of 2 problems have another, as DEMO/unit/add"),
        (without("timings", f"cpu/full/{SCALE}/w1/fast"), "full denominators", "1 not attempted"),
        (timings(f"{SCALE}/w1/fast", lambda v: {**v, "timing": None}), "full denominators", "1 not timed"),
        (without("readiness", "cpu/full"), "full readiness", "none; `solbench qualify full --target cpu`"),
        (without("readiness", "cpu/static"), "static readiness", "none; `solbench qualify static"),
        (not_run, "full readiness", "1 hold it back, as DEMO/unit/add/w1/eager: not run: budget"),
        (measured_apart, "one environment", "measured apart from the baseline entry: differs in environment"),
        (header(protocol={"name": "quick"}), "protocol", "quick; official is full"),
        (header(protocol={"isolation": ["landlock abi 7"]}), "full sandbox", "ran with landlock abi 7"),
        (header(protocol={"isolation": ["unsandboxed"]}), "full sandbox", "ran with unsandboxed"),
        (
            timings(f"{SCALE}/w1/fast", lambda v: official_release.observed(v, FASTER, "candidate")),
            "observed clocks",
            # 3.2 GHz against the mean of 3.00 and 3.02.
            "1 of 1 timed traces differ by more than 3%, DEMO/unit/scale/w1 by 6.3%",
        ),
        (
            timings(f"{SCALE}/w1/fast", lambda v: official_release.observed(v, UNREAD, "baseline")),
            "observed clocks",
            "not read in 1 of 1 timed traces, as DEMO/unit/scale/w1",
        ),
    ],
)
def test_a_condition_that_fails(store: Store, damage: Break, condition: str, words: str) -> None:
    damage(store)
    found = failing(store)
    assert words in found[condition], found


def test_another_corpus_is_not_the_pinned_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "PINNED", {("DEMO", "gfx1200"): "blake3:" + "0" * 64})
    assert failing(store) == {"pinned corpus": "DEMO: not the pinned one for cpu"}


def test_too_many_workloads_without_a_score(store: Store) -> None:
    # Baseline 4 and 400 times T_SOL by turns: no S can be told apart.
    noisy = tuple(4.0 if n % 2 else 400.0 for n in range(6))

    def new(value: dict[str, Any]) -> dict[str, Any]:
        t_sol_s = value["timing"]["baseline"][0]["event_s"][0] / 4
        timing = {**value["timing"], "candidate": sample_release.sample_sets(noisy, t_sol_s)}
        return official_release.observed({**value, "timing": timing})

    timings(f"{SCALE}/w1/fast", new)(store)
    assert "more than 10% too narrow to score" in failing(store)["full denominators"]


def test_the_command(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sample.zip"
    written = bundle.write_bundle(store, path, sample_release.PREDICATE)
    assert run(["score", "official", str(path), "--target", "cpu", "--expect-root", written.root.digest]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"OFFICIAL  fast on cpu \(Example CPU\): S 0\.\d{4} \[.*\], 2 of 3 workloads, .*clocks UNLOCKED", out
    )
    assert "whose word: 2 self-reported" in out
    assert run(["score", "official", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verification"]["root"] == written.root.digest
    assert [(one["name"], one["official"]) for one in document["entries"]] == [("eager", True), ("fast", True)]
    assert run(["score", "official", str(path), "--entry", "slow"]) == 2
    assert "has no entry" in capsys.readouterr().err


def test_a_bundle_that_is_bad_or_another_has_no_score(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sample.zip"
    bundle.write_bundle(store, path, sample_release.PREDICATE)
    assert run(["score", "official", str(path), "--expect-root", "0" * 64]) == 1
    assert "nothing is official" in capsys.readouterr().out
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert run(["score", "official", str(path)]) == 1
    assert "OFFICIAL  " not in capsys.readouterr().out


def test_not_official_says_why(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header(protocol={"isolation": ["unsandboxed"]})(store)
    path = tmp_path / "sample.zip"
    bundle.write_bundle(store, path, sample_release.PREDICATE)
    assert run(["score", "official", str(path), "--entry", "fast"]) == 1
    out = capsys.readouterr().out
    assert "NOT OFFICIAL  fast on cpu" in out and "FAILS  full sandbox: ran with unsandboxed" in out


def test_status_reports_what_is_there(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "problems").mkdir()
    assert run(["score", "status", "--root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "readiness full: 4 of 5" in out  # `fast` fails on w2, which is a result
    assert "measurement set cpu/full: 5 traces, full protocol, clocks unlocked" in out
    assert "entry fast: 11 of 11 conditions hold" in out
    assert "gfx1200\n  corpus: DEMO pinned\n  bounds: 3 of 3" in out
    assert "measurement sets: none; not timed" in out
    assert out.count("emulated verdicts: ") == 1 and "emulated verdicts: 1 of 2 passed; none of them is a time" in out


def test_the_pins_are_those_of_the_corpora_here() -> None:
    """A change of a corpus changes its pin: by a new line, not by itself."""
    from solbench.corpus.configured import release_corpus
    from solbench.evaluate.identity import workload_artifact
    from solbench.store import Descriptor, encode

    workspace = Workspace.at(ROOT)
    parameters = workspace.parameters()
    found = release_corpus(workspace.problems, parameters.capacity_gib)
    objects: dict[str, dict[str, Any]] = {}

    def put(kind: str, value: dict[str, Any]) -> Descriptor:
        descriptor = Descriptor.of(kind, encode(kind, value))
        objects[descriptor.digest] = {**value, "kind": kind}
        return descriptor

    sections: dict[str, dict[str, Descriptor]] = {"corpus": {}, "workloads": {}}
    for problem in found.problems:
        sections["corpus"][problem.key] = put("definition", problem.definition.as_dict())
        for workload in problem.workloads:
            name = f"{problem.key}/{workload.uuid}"
            sections["workloads"][name] = put("workload", workload_artifact(problem, workload))
    for configuration in found.configurations:
        sections["workloads"][configuration.name] = put("configuration", configuration.as_dict())
    for target in ("cpu", *parameters.targets):
        held = pins.pinned(sections, lambda _, entry: objects[entry.digest], target)
        assert held and all(held.values()), (target, held)
