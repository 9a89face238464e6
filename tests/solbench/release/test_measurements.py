"""Measurement sets on their way into a release: each check has a set that passes and one that fails it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solbench.cli import run
from solbench.errors import InputError
from solbench.evaluate.identity import harness_digest
from solbench.evaluate.protocols import protocol
from solbench.evaluate.recording import Writer, read_set
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.release import measurements
from solbench.workspace import Workspace
from tests.bundles import sample_release

SCALE, ADD = "DEMO/unit/scale", "DEMO/unit/add"
PARAMETERS = """\
release: published
path: aten
targets: [gfx1200, cpu]
capacity_gib: {}
protocol: full
max_call_s: 0.25
budget_s: 60.0
"""
CONTROL = {"name": "empty", "low_s": 0.0, "high_s": 1.0, "slack_s": 1.0, "event_s": 0.5, "clock_s": 0.6, "ok": True}
CARD = {"uuid": "card-1", "floor_s": 1e-5, "controls": [CONTROL]}
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "problems").mkdir()
    (tmp_path / "params.yaml").write_text(PARAMETERS)
    sample_release.build_store(tmp_path / "store")
    return Workspace.at(tmp_path)


def header(**changes: Any) -> dict[str, Any]:
    fields = {
        "target": "cpu",
        "protocol": protocol("full").model_copy(update={"isolation": ("rlimits",)}).as_dict(),
        "harness": harness_digest(),
        "environment": {"torch": "2.13.0"},
        "device": {"architecture": "x86_64", "model": "Example CPU"},
        "floor_s": 1e-5,
        "clocks": "unlocked",
        "controls": [CONTROL],
    }
    return {**fields, **changes}


def card_header(**changes: Any) -> dict[str, Any]:
    fields = header(target="gfx1200", device={"arch": "gfx1200", "name": "Example card"})
    return {**fields, "controls": None, "cards": [CARD], **changes}


def record(workspace: Workspace, key: str, uuid: str, solution: str = "eager", target: str = "cpu") -> Trace:
    instances, solutions = workspace.store.index("workloads"), workspace.store.index("corpus")
    name = key.rpartition("/")[2]
    digests = instances[f"{key}/{uuid}"].digest, solutions[f"{key}/solutions/{solution}"].digest
    trace = sample_release.trace(key, uuid, solution, digests, sample_release.BASELINE, 1e-3)
    assert trace.definition == name
    card = None if target == "cpu" else "card-1"
    return trace.model_copy(update={"target": target, "card": card})


def write(folder: Path, head: dict[str, Any], records: list[tuple[str, Trace | Omission]], name: str = "mine") -> Path:
    path = folder / "elsewhere" / f"{name}.jsonl"
    with Writer(path, SetHeader.load(head, "test")) as writer:
        for key, one in records:
            writer.add(key, one)
        writer.complete()
    return path


def both(workspace: Workspace, **options: Any) -> list[tuple[str, Trace | Omission]]:
    return [(SCALE, record(workspace, SCALE, uuid, **options)) for uuid in ("w1", "w2")]


def test_a_set_is_copied_byte_for_byte(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path, header(), both(workspace))
    added = measurements.add(workspace, path)
    assert added.path == workspace.root / "measurements" / "cpu" / "mine.jsonl"
    assert added.path.read_bytes() == path.read_bytes()
    assert (added.records, added.current, added.entries, added.workloads, added.of) == (2, 2, ("eager",), 2, 3)
    assert added.notes == ()
    assert measurements.add(workspace, path) == added  # the same set again is no other
    other = write(tmp_path / "other", header(), [*both(workspace)[:1], (SCALE, omitted(workspace))])
    with pytest.raises(InputError, match="holds another set"):
        measurements.add(workspace, other)


def omitted(workspace: Workspace) -> Omission:
    trace = record(workspace, SCALE, "w2")
    fields = {name: getattr(trace, name) for name in ("definition", "workload", "workload_digest", "solution")}
    return Omission(**fields, reason="budget")


def test_a_set_of_a_card(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path, card_header(), both(workspace, target="gfx1200"))
    assert measurements.add(workspace, path, origin="imported").path.parts[-3:] == ("gfx1200", "imported", "mine.jsonl")


def changed(**fields: Any) -> Change:
    return lambda head: {**head, **fields}


def of_protocol(**fields: Any) -> Change:
    return lambda head: {**head, "protocol": {**head["protocol"], **fields}}


@pytest.mark.parametrize(
    ("card", "change", "words"),
    [
        (False, of_protocol(name="custom"), "protocol: is custom"),
        (False, of_protocol(processes=5), r"protocol\.processes: is 5, full has 6"),
        (False, of_protocol(batches=None), r"protocol\.batches: is None"),
        (False, changed(harness="blake3:" + "2" * 64), "harness: is blake3:2222"),
        (False, changed(device={"architecture": "x86_64"}), "does not say which processor"),
        (False, changed(cards=[CARD]), "cards: a cpu has none"),
        (False, changed(controls=None), "controls: none was run"),
        (False, changed(controls=[{**CONTROL, "ok": False}]), r"controls\.empty: read wrong"),
        (False, changed(target="gfx900", device={"arch": "gfx900", "uuid": "u"}), "gfx900 has no machine model"),
        (True, changed(device={"arch": "gfx1201"}), "device.arch: is gfx1201"),
        (True, changed(cards=[], device={"arch": "gfx1200"}), "cards: is empty"),
        (True, changed(cards=[{**CARD, "controls": None}]), "controls: none was run"),
        (True, changed(cards=[{**CARD, "controls": [{**CONTROL, "ok": False}]}]), "read wrong"),
    ],
)
def test_what_keeps_a_set_out(workspace: Workspace, tmp_path: Path, card: bool, change: Change, words: str) -> None:
    head = change(card_header() if card else header())
    own = {"target": head["target"], "card": "card-1" if head.get("cards") else None}
    records = [(key, one.model_copy(update=own)) for key, one in both(workspace)]
    path = write(tmp_path, head, records)
    with pytest.raises(InputError, match=words):
        measurements.add(workspace, path)
    assert not (workspace.root / "measurements").exists()


def test_a_trace_that_names_no_card(workspace: Workspace, tmp_path: Path) -> None:
    head = card_header(cards=[{**CARD, "uuid": name} for name in ("card-1", "card-2")])
    records = [(key, one.model_copy(update={"card": None})) for key, one in both(workspace, target="gfx1200")]
    with pytest.raises(InputError, match="card: is missing"):
        measurements.add(workspace, write(tmp_path, head, records))


def test_another_harness_is_accepted_by_name_or_by_company(workspace: Workspace, tmp_path: Path) -> None:
    foreign = "blake3:" + "2" * 64
    first = write(tmp_path, header(harness=foreign), both(workspace))
    measurements.add(workspace, first, harness=[foreign])
    second = write(
        tmp_path, header(harness=foreign), [(SCALE, record(workspace, SCALE, u, "fast")) for u in ("w1", "w2")], "b"
    )
    assert measurements.add(workspace, second).notes == ()


def test_a_workload_without_record_or_reason(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="DEMO/unit/scale: eager has no record of w2"):
        measurements.add(workspace, write(tmp_path, header(), both(workspace)[:1]))
    whole = write(tmp_path / "b", header(), [*both(workspace)[:1], (SCALE, omitted(workspace))])
    assert measurements.add(workspace, whole).records == 2


def test_a_set_that_is_not_complete(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path, header(), both(workspace))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match="no footer"):
        measurements.add(workspace, path)


def test_a_result_that_stands_there_already(workspace: Workspace, tmp_path: Path) -> None:
    measurements.add(workspace, write(tmp_path, header(), both(workspace)))
    again = write(tmp_path, header(), both(workspace), "again")
    with pytest.raises(InputError, match=r"DEMO/unit/scale/w1/eager stands in .*mine\.jsonl as well"):
        measurements.add(workspace, again)
    assert measurements.add(workspace, again, origin="reproductions").notes == ()


def test_a_changed_solution_is_measured_again(workspace: Workspace, tmp_path: Path) -> None:
    fast = both(workspace, solution="fast")
    old = [(key, one.model_copy(update={"solution_digest": "blake3:" + "3" * 64})) for key, one in fast]
    measurements.add(workspace, write(tmp_path, header(), [*both(workspace), *old]))
    again = measurements.add(workspace, write(tmp_path, header(), fast, "again"))
    assert (again.current, again.records) == (2, 2)
    with pytest.raises(InputError, match=r"fast stands in .*again\.jsonl as well"):
        measurements.add(workspace, write(tmp_path, header(), fast, "thrice"))


def test_a_set_of_another_release(workspace: Workspace, tmp_path: Path) -> None:
    old = [(key, one.model_copy(update={"workload_digest": "blake3:" + "3" * 64})) for key, one in both(workspace)]
    with pytest.raises(InputError, match="none of its 2 records is of a workload and solution of this release"):
        measurements.add(workspace, write(tmp_path, header(), old))
    stale = [
        (key, one.model_copy(update={"solution_digest": "blake3:" + "3" * 64}))
        for key, one in both(workspace, solution="fast")
    ]
    added = measurements.add(workspace, write(tmp_path / "b", header(), [*both(workspace), *stale]))
    assert (added.current, added.records) == (2, 4)


def test_another_environment_is_taken_and_said(workspace: Workspace, tmp_path: Path) -> None:
    measurements.add(workspace, write(tmp_path, header(), both(workspace)))
    fast = [(SCALE, record(workspace, SCALE, uuid, "fast")) for uuid in ("w1", "w2")]
    added = measurements.add(workspace, write(tmp_path, header(environment={"torch": "3"}), fast, "b"))
    assert "differs in environment" in added.notes[0]


@pytest.mark.parametrize("name", ["../x", "imported", "reproductions", "", "-x", "a/b"])
def test_names(workspace: Workspace, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--name"):
        measurements.add(workspace, write(tmp_path, header(), both(workspace)), name=name)


def test_the_command(workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, header(), both(workspace))
    assert run(["release", "add-measurements", str(path), "--root", str(workspace.root), "--imported"]) == 0
    out = capsys.readouterr().out
    assert "cpu/imported/mine.jsonl: 2 records of eager" in out and "2 of 3 workloads" in out
    assert run(["release", "add-measurements", str(tmp_path / "none"), "--root", str(workspace.root)]) == 2
    assert "no such file" in capsys.readouterr().err
    assert read_set(path)[0].target == "cpu"
