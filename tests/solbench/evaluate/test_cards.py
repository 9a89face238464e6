"""Measuring on several cards: real processes and locks, a scripted driver and a scripted evaluation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_cards
import pytest
from device_fakes import UUIDS, Cards, start
from small_problem import write_problem

from solbench.corpus.load import Problem, load_problem
from solbench.device import locks
from solbench.device.ownership import own
from solbench.errors import InputError, SolbenchError, UndecidedError
from solbench.evaluate import freeze
from solbench.evaluate.cards import Seat, measure_on_cards, seats
from solbench.evaluate.protocols import protocol
from solbench.evaluate.recording import read_set
from solbench.model.trace import Omission

NAMES = tuple(f"s{number}" for number in range(6))
EVERY = {(name, uuid) for name in ("eager", *NAMES) for uuid in ("small", "larger")}
PARENT = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1].split(":")
import fake_cards
from solbench.corpus.load import load_problem
from solbench.evaluate.cards import Seat, measure_on_cards
from solbench.evaluate.protocols import protocol
if __name__ == "__main__":
    folder, out, lock_dir = map(Path, sys.argv[2:5])
    problems = [load_problem(folder, corpus="T")]
    cards = [Seat("gfx1200", uuid, lock_dir, False) for uuid in sys.argv[5:]]
    print(measure_on_cards(problems, out, cards, protocol=protocol("quick"), opened=fake_cards.opened))
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A problem with six solutions."""
    folder = write_problem(tmp_path_factory.mktemp("many") / "T" / "tests" / "scale_shift")
    for name in NAMES:
        solution = folder / "solutions" / name
        solution.mkdir(parents=True)
        (solution / "s.py").write_text("def run(x, scale):\n    return x\n")
        (solution / "solution.yaml").write_text(
            f"name: {name}\nauthor: test\nspec: {{languages: [pytorch], entry_point: 's.py::run'}}\n"
        )
    return load_problem(folder, corpus="T")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cards:
    (tmp_path / "cards").mkdir()
    cards = Cards(tmp_path / "cards", 2)
    for name, value in cards.environment.items():
        monkeypatch.setenv(name, value)
    return cards


def both(fake: Cards) -> list[Seat]:
    return [Seat("gfx1200", uuid, fake.locks, False) for uuid in UUIDS]


def run(problem: Problem, out: Path, cards: list[Seat], **options: Any) -> Any:
    return measure_on_cards([problem], out, cards, protocol=protocol("quick"), opened=fake_cards.opened, **options)


def records(out: Path) -> dict[tuple[str, str], str | None]:
    """Card of each trace, None for omissions; each record once."""
    found = [(record.solution, record.workload, getattr(record, "card", None)) for _, record in read_set(out)[1]]
    assert not [key for key, count in Counter(entry[:2] for entry in found).items() if count > 1]
    return {entry[:2]: entry[2] for entry in found}


def assert_free(fake: Cards) -> None:
    """No lock is held, no evidence left, the clocks are as found."""
    for index, uuid in enumerate(UUIDS):
        assert not locks.is_held(locks.ownership(fake.locks, uuid)) and fake.level(index) == "AUTO"
    assert not list(fake.locks.glob("*recovery*"))


def test_two_cards_share_the_jobs(fake: Cards, many: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fake_cards.PAUSE_S, "0.1")
    out, said = tmp_path / "sets" / "two.jsonl", []
    summary = run(many, out, both(fake), progress=said.append)
    assert summary.statuses == {"TIMEOUT": 14} and (summary.done, summary.left, summary.omissions) == (14, 0, 0)
    found = records(out)
    assert set(found) == EVERY and set(found.values()) == set(UUIDS)
    header, _ = read_set(out)
    assert [card["uuid"] for card in header.cards] == sorted(UUIDS)
    assert header.cards[0]["pci"] == "0000:03:00.0" and header.device["arch"] == "gfx1200"
    assert header.clocks == "locked" and header.floor_s == 1e-6 and "uuid" not in header.device
    assert any(text.startswith(f"{UUIDS[1]}: T/tests/scale_shift") for text in said)
    assert [path.name for path in out.parent.iterdir()] == ["two.jsonl"]
    assert_free(fake)
    # A complete set is left as it is, on whatever card.
    before = out.read_bytes()
    assert run(many, out, both(fake)[1:]).statuses == {} and out.read_bytes() == before


def test_a_budget_leaves_the_rest_for_the_next_run(
    fake: Cards, many: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "set.jsonl"
    summary = run(many, out, both(fake), budget_s=1e-6)
    assert summary.done == 0 and summary.left == 14 and not out.exists()
    assert "nothing measured" in str(summary) and "0 of 14 done, run again with more time to go on" in str(summary)
    run(many, out, both(fake)[:1], budget_s=1e-6, final=True)
    assert all(isinstance(record, Omission) and record.reason == "budget" for _, record in read_set(out)[1])
    assert run(many, out, both(fake)).left == 0
    assert set(records(out)) == EVERY and None not in records(out).values()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["set.jsonl"]


def test_a_killed_child_takes_its_card_out(
    fake: Cards, many: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(fake_cards.PAUSE_S, "0.1")
    monkeypatch.setenv(fake_cards.DIES_AT, "s2/larger")
    out = tmp_path / "set.jsonl"
    with pytest.raises(SolbenchError, match=r"by SIGKILL in T/tests/scale_shift s2; .* 13 of 14 done") as told:
        run(many, out, both(fake), final=True)
    assert told.value.exit_code == 3 and not out.exists()
    partial = tmp_path / "set.jsonl.partial"
    kept = [json.loads(line) for line in partial.read_text().splitlines()[1:]]
    assert {(line["solution"], line["workload"]) for line in kept} == EVERY - {("s2", "larger")}
    (dead,) = {line["card"] for line in kept if line["solution"] == "s2"}
    monkeypatch.delenv(fake_cards.DIES_AT)
    driver, _ = start(fake, monkeypatch)
    with pytest.raises(UndecidedError, match=f"1 of 2 gfx1200 cards free: {dead} was left unrecovered"):
        seats([driver], "gfx1200", 2, fake.locks, False, {})
    (seat,) = seats([driver], "gfx1200", 1, fake.locks, False, {})
    assert seat.uuid != dead
    assert run(many, out, [seat]).statuses == {"TIMEOUT": 1}
    assert set(records(out)) == EVERY and records(out)["s2", "larger"] == seat.uuid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_parent_loses_nothing(
    number: signal.Signals, fake: Cards, many: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its children restore the clocks and unlock; what they had recorded is gathered by the next run."""
    monkeypatch.setenv(fake_cards.PAUSE_S, "0.2")
    out = tmp_path / "set.jsonl"
    paths = ":".join(str(Path(module.__file__ or "").parent) for module in (fake_cards, sys.modules["device_fakes"]))
    arguments = [sys.executable, "-c", PARENT, paths, str(many.path), str(out), str(fake.locks), *UUIDS]
    parent = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    until(lambda: traces(tmp_path) >= 3)
    children = [pid for pid in freeze.descendants(parent.pid) if not freeze.is_dead(pid)]
    parent.send_signal(number)
    parent.wait()
    until(lambda: all(freeze.is_dead(pid) for pid in children))
    assert_free(fake)
    assert not out.exists()
    # Only who is interrupted has time to gather the parts.
    assert bool(list(tmp_path.glob("set.jsonl.part-*"))) == (number is not signal.SIGINT)
    recorded = traces(tmp_path)
    monkeypatch.setenv(fake_cards.PAUSE_S, "0")
    summary = run(many, out, both(fake))
    assert summary.statuses["TIMEOUT"] == 14 - recorded < 12
    assert set(records(out)) == EVERY
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["set.jsonl"]
    assert_free(fake)


def traces(folder: Path) -> int:
    """Whole traces that are there of a set that is not complete."""
    found = [line for path in folder.glob("set.jsonl.part*") for line in path.read_bytes().splitlines(keepends=True)]
    return sum(b'"record":"trace"' in line and line.endswith(b"\n") for line in found)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_card_that_cannot_be_had_ends_the_run_before_it_begins(
    fake: Cards, many: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "sets" / "set.jsonl"
    driver, cards = start(fake, monkeypatch)
    with own(driver, cards[1], fake.locks):
        with pytest.raises(SolbenchError, match=f"{UUIDS[1]}: owned by pid {os.getpid()}") as told:
            run(many, out, both(fake))
        assert told.value.exit_code == 3
        with pytest.raises(UndecidedError, match=r"--workers 2: 1 of 2 gfx1200 cards free: .* owned by ano"):
            seats([driver], "gfx1200", 2, fake.locks, False, {})
    assert not out.parent.exists()
    assert_free(fake)
    fake.script(1, processes=[[1, "train", 5]])
    fake.script_all(computing=[1])
    with pytest.raises(SolbenchError, match=r"busy with train \(pid 1\)"):
        run(many, out, both(fake))
    with pytest.raises(UndecidedError, match=r"cards free: .* busy with train \(pid 1\)"):
        seats([driver], "gfx1200", 2, fake.locks, False, {})
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "12.0.0")
    with pytest.raises(SolbenchError, match="HSA_OVERRIDE_GFX_VERSION: makes ROCm run code") as told:
        run(many, out, both(fake)[:1])
    assert told.value.exit_code == 2 and not out.parent.exists()
    assert_free(fake)


def test_which_cards(fake: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, _ = start(fake, monkeypatch)
    assert [seat.uuid for seat in seats([driver], "gfx1200", 2, fake.locks, False, {})] == sorted(UUIDS)
    (seat,) = seats([driver], "gfx1200", 1, fake.locks, True, {locks.UUID: UUIDS[1]})
    assert seat == Seat("gfx1200", UUIDS[1], fake.locks, True)
    for target, count, environment, message in (
        ("gfx1200", 3, {}, "--workers 3: only 2 gfx1200 cards here"),
        ("gfx942", 1, {}, "--workers 1: no gfx942 cards here"),
        ("gfx1200", 2, {locks.UUID: UUIDS[1]}, "GPU_LOCK_UUID: names one card; unset it for --workers 2"),
        ("gfx1200", 1, {"GPU_LOCK_INDEX": "0"}, "GPU_LOCK_INDEX"),
    ):
        with pytest.raises(InputError, match=message):
            seats([driver], target, count, fake.locks, False, environment)
