from __future__ import annotations

import pytest

from solbench.errors import InputError
from solbench.evaluate.batches import Settled
from solbench.evaluate.protocols import QUICK, protocol
from solbench.evaluate.timing import BatchJudge, BatchSample
from solbench.evaluate.witnesses import batch_records, in_one_line, label, observed


def test_batches_become_records() -> None:
    judge = BatchJudge(4, 1e-3, 3e-4, 2e-4, 5e-4)
    taken = (BatchSample(4, 6e-3), BatchSample(4, 7e-3))
    found = batch_records(Settled(judge, (BatchSample(4, 5e-3),), taken, True, 1))
    assert found["candidate"].as_dict() == {"calls": 4, "clock_s": [5e-3], "floor_s": 3e-4, "limit_s": 5e-4}
    # The baseline is not judged.
    assert found["baseline"].as_dict() == {"calls": 4, "clock_s": [6e-3, 7e-3], "floor_s": 2e-4, "limit_s": None}
    assert batch_records(None) == {}


def test_labels_say_how_far_a_time_is_confirmed() -> None:
    start = "clock witness: a call's time is confirmed to 4.1e-05 s"
    assert label(4.1e-5, [16], 16, QUICK) == f"{start} (batches of 16 calls)"
    assert label(4.1e-5, [16, 0, 8], 16, QUICK) == (
        f"{start} (batches of 8 and 16 calls where single calls do not suffice)"
    )
    assert label(4.1e-5, [0], 16, QUICK) == f"{start} (single calls, long enough without batches)"
    assert label(4.1e-5, [0], 1, QUICK) == f"{start} (single calls, a second copy for a batch has no room)"
    without = protocol("quick").model_copy(update={"batches": None})
    assert label(4.1e-5, [0], 1, without) == f"{start} (single calls, no batches in this protocol)"


def test_reasons_of_several_processes() -> None:
    assert in_one_line(["fixed count: 9 samples"] * 6) == "fixed count: 9 samples"
    assert in_one_line(["a", "b"]) == "process 0: a; process 1: b"


def test_looks_at_the_device() -> None:
    found = observed({"power_w": 300.0, "throttle": ["thermal"]}, {"power_w": 310.0})
    assert found is not None and (found.before.power_w, found.after.power_w) == (300.0, 310.0)
    assert found.before.throttle == ("thermal",) and found.after.temperature_c is None
    assert observed(None, {"cpu_hz": 1.0}) is None and observed({}, None) is None
    with pytest.raises(InputError, match="device: fan_hz"):
        observed({"fan_hz": 1.0}, {})
