"""Records of a measurement: those from before a field was added keep their bytes, and contradictions are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from solbench.errors import InputError
from solbench.evaluate.recording import read_set
from solbench.model.trace import Batch, Control, Observation, Observed, Protocol, SampleSet, SetHeader

COMMITTED = Path(__file__).resolve().parents[3] / "measurements" / "cpu" / "epyc-turin-2-cores.jsonl"
SAMPLES = {"process": 0, "warmups": 3, "event_s": [1.0, 2.0], "clock_s": [1.5, 2.5]}
PROTOCOL = {"name": "quick", "processes": 1, "samples": 6, "max_call_s": 0.25, "isolation": ["rlimits"]}
HEADER = {
    "schema": "solbench.measurement-set.v1", "target": "cpu", "protocol": PROTOCOL, "environment": {}, "device": {},
    "harness": "blake3:" + "0" * 64, "floor_s": 1e-6, "clocks": "unlocked",
}  # fmt: skip


def test_a_set_of_before_is_what_it_was() -> None:
    header, records = read_set(COMMITTED)
    lines = [json.loads(line) for line in COMMITTED.read_text().splitlines()]
    assert {"record": "header", **header.as_dict()} == lines[0]
    written = [{**record.as_dict(), "problem": problem} for problem, record in records]
    assert written == [{name: line[name] for name in line if name != "record"} for line in lines[1:-1]]


def test_what_was_added_is_there_when_it_says_something() -> None:
    batch, look = Batch(calls=4, clock_s=(5e-3,), floor_s=3e-4), Observation(cpu_hz=2e9)
    assert SampleSet.load(SAMPLES, "s").as_dict() == SAMPLES
    full = SampleSet.load({**SAMPLES, "batch": batch, "observed": Observed(before=look, after=look)}, "s")
    assert full.as_dict()["batch"] == {"calls": 4, "clock_s": [5e-3], "floor_s": 3e-4, "limit_s": None}
    # A null stands where the driver does not tell.
    assert (
        full.as_dict()["observed"]["after"]["cpu_hz"] == 2e9 and full.as_dict()["observed"]["after"]["power_w"] is None
    )
    assert SampleSet.load(full.as_dict(), "s") == full
    adaptive = Protocol.load(
        {**PROTOCOL, "max_samples": 18, "precision": 0.02, "preamble_s": 0.2, "batches": True}, "p"
    )
    assert Protocol.load(adaptive.as_dict(), "p") == adaptive != Protocol.load(PROTOCOL, "p")
    assert Protocol.load(PROTOCOL, "p").as_dict() == PROTOCOL
    control = Control(name="copy", low_s=0, high_s=None, slack_s=0, event_s=1.0, clock_s=2.0, ok=True)
    header = SetHeader.load({**HEADER, "controls": [control.as_dict()]}, "h")
    assert SetHeader.load(header.as_dict(), "h").controls == (control,)
    assert "controls" not in SetHeader.load(HEADER, "h").as_dict()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"max_samples": 18}, "both or none"),
        ({"precision": 0.02}, "both or none"),
        ({"max_samples": 5, "precision": 0.02}, "below the least count"),
        ({"max_samples": 18, "precision": 1.0}, "precision"),
        ({"preamble_s": 0.0}, "preamble_s"),
    ],
)
def test_protocols_that_contradict_themselves(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        Protocol.load({**PROTOCOL, **changes}, "p")


@pytest.mark.parametrize("batch", [{"calls": 1}, {"clock_s": []}])
def test_batches_are_of_several_calls(batch: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(batch))):
        Batch.load({"calls": 2, "clock_s": [1.0], "floor_s": 0.0, **batch}, "b")
