"""Control kernels: their limits, what refuses a set, and one of them in the sample path."""

from __future__ import annotations

from typing import Any

import pytest

from solar.hardware import Machine
from solbench.device.calibrate import Probe, machine_model
from solbench.errors import InputError, UndecidedError
from solbench.evaluate import controls
from solbench.evaluate.controls import Kernel, controls_here, kernels, refuse, run_controls
from solbench.evaluate.measure import header, measure
from solbench.evaluate.protocols import protocol
from solbench.evaluate.session import Session
from solbench.model.trace import Control

# 1e11 operations and 2e10 bytes a second, a quarter more with the margin; 32 MiB of cache absorb what is stored.
IDENTITY = {
    "model": "some cpu", "flags": [], "cache_source": "sysfs",
    "caches": [{"level": 3, "type": "Unified", "bytes": 32 << 20, "instances": 1}],
}  # fmt: skip
MODEL = machine_model(Probe(1e11, 2e10, 1e10), IDENTITY)
CACHE = 32 << 20


def named(machine: Machine, *, card: bool = False) -> dict[str, Kernel]:
    return {kernel.name: kernel for kernel in kernels(machine, CACHE, card=card)}


def test_limits_come_from_the_machine_model() -> None:
    found = named(Machine.from_dict(MODEL))
    assert list(found) == ["copy", "sleep", "product", "fill"]
    half = CACHE // 2
    # Half the cache is read; what is written may stay there. Reading and writing it eight times over.
    assert found["copy"].low_s == pytest.approx(half / 2.5e10)
    assert found["copy"].high_s == pytest.approx(8 * 2 * half / 2.5e10)
    assert (found["sleep"].low_s, found["sleep"].high_s) == (0.010, pytest.approx(0.012))
    assert found["product"].low_s == pytest.approx(2 * 1024**3 / 1.25e11)
    assert found["product"].high_s == pytest.approx(5 * 2 * 1024**3 / 1.25e11)
    assert (found["fill"].low_s, found["fill"].high_s) == (0.0, None)


def test_a_fill_must_not_beat_a_model_without_absorbed_stores() -> None:
    model = {**MODEL, "absorbed_store_bytes": {"value": 0, "source": "none", "confidence": "high"}}
    found = named(Machine.from_dict(model))
    assert found["fill"].low_s == pytest.approx(CACHE // 2 / 2.5e10)
    assert found["copy"].low_s == pytest.approx(CACHE / 2.5e10)


def test_on_a_card() -> None:
    sm_90 = named(Machine.from_dict(controls.read("sm_90").to_dict()), card=True)
    # 540,672 operations a clock at 1.98 GHz; a clock that is slower than the highest sleeps longer.
    assert sm_90["product"].low_s == pytest.approx(2 * 8192**3 / (540672 * 1.98e9))
    assert sm_90["product"].dtype == "bfloat16" and sm_90["sleep"].high_s == pytest.approx(0.025)
    engines = {"valu": {name: rate for name, rate in MODEL["engines"]["valu"].items() if name != "bfloat16"}}
    with pytest.raises(InputError, match="no rate of bfloat16"):
        named(Machine.from_dict({**MODEL, "engines": engines}), card=True)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, float] | None]:
    """What controls read; those that are not named here read right."""
    given: dict[str, tuple[float, float] | None] = {}

    def sample(kernel: Kernel, session: Session, target: str) -> tuple[float, float] | None:
        right = kernel.low_s + 1e-4
        return given.get(kernel.name, (right, right + 1e-4))

    monkeypatch.setattr(controls, "_sample", sample)
    return given


def test_controls_that_read_right(session: Session, seen: dict[str, Any]) -> None:
    found = run_controls(session, MODEL)
    assert [control.name for control in found] == ["empty", "copy", "sleep", "product", "fill"]
    assert all(control.ok for control in found[1:])
    refuse([control for control in found if control.ok])
    assert controls_here(session, None) is None


@pytest.mark.parametrize(
    ("name", "reads", "words"),
    [
        ("copy", (1e-4, 2e-4), "control copy reads wrong: 0.0001 s by its event"),  # faster than the bus
        ("copy", (1.0, 1.0), "control copy reads wrong: 1 s"),
        ("sleep", (9e-3, 11e-3), "expected 0.01 s to 0.012 s"),  # the worker's clock runs slow
        ("sleep", (10.1e-3, 30e-3), "0.03 s by the clock"),  # the orchestrator's does not agree
        ("product", (1e-3, 2e-3), "control product"),
        ("fill", None, "no time"),
    ],
)
def test_a_control_that_reads_wrong(
    session: Session, seen: dict[str, Any], name: str, reads: tuple[float, float] | None, words: str
) -> None:
    seen[name] = reads
    found = run_controls(session, MODEL)
    (wrong,) = [control for control in found[1:] if not control.ok]
    assert wrong.name == found[-1].name == name and (wrong.event_s, wrong.clock_s) == (reads or (None, None))
    with pytest.raises(UndecidedError, match="control"):
        refuse(found)
    with pytest.raises(UndecidedError) as caught:
        refuse([wrong])
    assert words in str(caught.value)


def test_a_busy_moment_is_not_the_end(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = iter([None, (1.0, 1.0)])
    monkeypatch.setattr(controls, "_sample", lambda kernel, *_: next(reads, (kernel.low_s + 1e-4, kernel.low_s + 2e-4)))
    assert all(control.ok for control in run_controls(session, MODEL)[1:])


def test_nothing_is_measured_after_a_wrong_control(session: Session, tmp_path: Any) -> None:
    good = Control(name="copy", low_s=0.0, high_s=1.0, slack_s=0.0, event_s=0.5, clock_s=0.6, ok=True)
    bad = good.model_copy(update={"name": "fill", "ok": False})
    out = tmp_path / "set.jsonl"
    with pytest.raises(UndecidedError, match="control fill reads wrong"):
        measure([], out, session=session, controls=[good, bad])
    assert list(tmp_path.iterdir()) == [] and UndecidedError.exit_code == 3
    # One that read right is in the header; a set without controls does not speak of them.
    head = header(session, "cpu", protocol("quick"), None, [good])
    assert head.as_dict()["controls"] == [good.as_dict()]
    assert "controls" not in header(session, "cpu", protocol("quick"), None).as_dict()


def test_a_sleep_in_the_sample_path(session: Session) -> None:
    kernel = named(Machine.from_dict(MODEL))["sleep"]
    reads = controls._sample(kernel, session, "cpu")
    assert reads is None or 0.010 <= reads[0] <= reads[1]


@pytest.mark.slow
def test_every_control_runs(session: Session) -> None:
    """Whatever they read here: a shared machine may be busy. None of them fails its checks."""
    small = Machine.from_dict(MODEL)
    for kernel in kernels(small, 1 << 20, card=False):
        controls._sample(kernel, session, "cpu")
