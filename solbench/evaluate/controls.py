"""Calls of known cost, sampled before a measurement set: if one of them reads wrong, so would everything after it.

Trusted candidates that take the very path of every other, flush, worker and all witnesses included, beside their
references as baselines. They are written for tensors on any device. What each must show, event time in s:

- ``empty``: a call that does nothing: at most 0.1 ms.
- ``copy``: half as many bytes as the last-level cache holds. At least the bytes that must cross the memory bus (stores
  that the machine model says may stay in the cache are free) over its peak bandwidth; at most 8 times what reading
  and writing them takes at that bandwidth.
- ``sleep``: 10 ms, by the clock on a processor; on a card by a quarter more cycles than its first call counted in that
  time. At least that; at most 2 ms more on a processor, 2.5 times as much on a card.
- ``product``: of square matrices (float32, 1,024 rows; on a card bfloat16, 8,192 rows). At least 2 n^3 operations over
  the peak rate of that format; at most that over 0.2.
- ``fill``: half of the last-level cache with one value that is only known at the call. At least its T_SOL: the bytes
  that the machine model lets no cache absorb, over the peak bandwidth. A faster fill disproves that assumption.

The orchestrator's clock may be 5 ms longer than the upper limit (10 ms for ``empty``, as a floor is a quartile).
A control that reads wrong is sampled again, twice: a machine may be busy for a moment.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar.errors import HardwareError
from solar.hardware import Machine, read
from solbench.corpus.load import Problem
from solbench.errors import InputError, UndecidedError
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.protocols import protocol
from solbench.evaluate.session import Session
from solbench.model.definition import Definition
from solbench.model.solution import TARGETS, Solution
from solbench.model.trace import Control, Trace
from solbench.model.workload import Workload

SAMPLES, TRIES = 5, 3
EMPTY_EVENT_S, EMPTY_SLACK_S, SLACK_S = 1e-4, 10e-3, 5e-3
COPY_FACTOR, PRODUCT_SHARE = 8.0, 0.2
SLEEP_S, SLEEP_SLACK_S, SLEEP_FACTOR, SLEEP_CYCLES = 10e-3, 2e-3, 2.5, 1.25

_COPY = "def run(x, y):\n    y.copy_(x)\n"
_FILL = "def run(x, y):\n    y.copy_(x.expand_as(y))\n"
_PRODUCT = "import torch\n\n\ndef run(x, w, y):\n    torch.mm(x, w, out=y)\n"
_SLEEP = f"""\
import time

import torch

_cycles = 0


def _cycles_of_a_sleep():
    rates = []
    for _ in range(10):
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch.cuda._sleep(1_000_000)
        torch.cuda.synchronize()
        rates.append(1_000_000 / (time.perf_counter() - start))
    return int({SLEEP_CYCLES} * {SLEEP_S} * max(rates))


def run(x, y):
    global _cycles
    if x.is_cuda:
        _cycles = _cycles or _cycles_of_a_sleep()
        torch.cuda._sleep(_cycles)
    else:
        time.sleep({SLEEP_S})
    y.copy_(x)
"""


@dataclass(frozen=True)
class Kernel:
    """A control before it is sampled: ``run`` and ``reference`` as sources; limits of its event in s, None: none."""

    name: str
    source: str
    reference: str
    inputs: Mapping[str, tuple[int, ...]]
    output: tuple[int, ...]
    dtype: str
    low_s: float
    high_s: float | None

    def problem(self) -> Problem:
        """The problem that this control solves, with its one workload."""
        shape = lambda extents: {"shape": [str(extent) for extent in extents], "dtype": self.dtype}  # noqa: E731
        fields = {
            "schema": "solbench.definition.v1", "name": f"control_{self.name}", "suite": "controls", "axes": {},
            "inputs": {name: shape(extents) for name, extents in self.inputs.items()},
            "outputs": {"y": shape(self.output)}, "reference": self.reference,
        }  # fmt: skip
        check: dict[str, Any] = {"type": "exact", "output": "y"}
        if self.name == "product":
            check = {"type": "numeric", "output": "y", "mode": "normalized_max", "atol": 0.0, "rtol": 0.02}
        workload = {
            "schema": "solbench.workload.v1", "uuid": self.name, "axes": {}, "checks": [check],
            "inputs": {name: {"type": "uniform", "low": 0.5, "high": 1.5} for name in self.inputs},
        }  # fmt: skip
        definition = Definition.load(fields, f"control {self.name}")
        return Problem(Path("/"), "controls", definition, (Workload.load(workload, f"control {self.name}"),), ())

    def solution(self) -> Solution:
        """The control as a candidate that writes in place."""
        spec = {"languages": ["pytorch"], "entry_point": "control.py::run", "destination_passing_style": True}
        spec |= {"target_hardware": TARGETS}
        fields = {
            "name": self.name, "definition": f"control_{self.name}", "author": "solbench", "spec": spec,
            "sources": [{"path": "control.py", "content": self.source}],
        }  # fmt: skip
        return Solution.load(fields, f"control {self.name}")


def kernels(machine: Machine, cache_bytes: int, *, card: bool) -> tuple[Kernel, ...]:
    """The controls beside ``empty``, with their limits. ``cache_bytes``: of the last level, half of what is flushed."""
    bandwidth, absorbed = machine.memory.per_s, machine.absorbed_store_bytes.value
    dtype, rows = ("bfloat16", 8192) if card else ("float32", 1024)
    rates = [rates[dtype].per_s for rates in machine.engines.values() if dtype in rates]
    if not rates:
        raise InputError(f"machine model {machine.name}", f"no rate of {dtype}, so the product has no limits")
    product_s = 2 * rows**3 / max(rates)
    filled = copied = max(cache_bytes // 8, 1)
    copy_low_s = (4 * copied + max(4 * copied - absorbed, 0)) / bandwidth
    sleep_high_s = SLEEP_S * SLEEP_FACTOR if card else SLEEP_S + SLEEP_SLACK_S
    clone = "def run(x):\n    return x.clone()\n"
    fill = f"def run(x):\n    return x.expand({filled}).clone()\n"
    product = "def run(x, w):\n    return x @ w\n"
    vector, square = (copied,), (rows, rows)
    copy_high_s = COPY_FACTOR * 8 * copied / bandwidth
    return (
        Kernel("copy", _COPY, clone, {"x": vector}, vector, "float32", copy_low_s, copy_high_s),
        Kernel("sleep", _SLEEP, clone, {"x": (1,)}, (1,), "float32", SLEEP_S, sleep_high_s),
        Kernel("product", _PRODUCT, product, {"x": square, "w": square}, square, dtype, product_s,
               product_s / PRODUCT_SHARE),
        Kernel("fill", _FILL, fill, {"x": (1,)}, (filled,), "float32", max(4 * filled - absorbed, 0) / bandwidth, None),
    )  # fmt: skip


def run_controls(
    session: Session,
    hardware: Mapping[str, Any],
    *,
    target: str = "cpu",
    progress: Callable[[str], None] | None = None,
) -> tuple[Control, ...]:
    """Sample the controls in ``session``, up to the first that reads wrong; ``hardware`` is the machine model."""
    try:
        machine = Machine.from_dict(hardware)
    except HardwareError as error:
        raise InputError("machine model", str(error)) from None
    say = progress or (lambda text: None)
    floor = session.floor(False)
    found = [_control("empty", 0.0, EMPTY_EVENT_S, EMPTY_SLACK_S, (floor.event_s, floor.event_s + floor.gap_s))]
    for kernel in kernels(machine, session.flush_bytes // 2, card=target != "cpu"):
        for _ in range(TRIES):
            say(f"control {kernel.name}")
            control = _control(kernel.name, kernel.low_s, kernel.high_s, SLACK_S, _sample(kernel, session, target))
            if control.ok:
                break
        found.append(control)
        if not control.ok:
            break
    return tuple(found)


def controls_here(
    session: Session, hardware: Mapping[str, Any] | None, *, progress: Callable[[str], None] | None = None
) -> tuple[Control, ...] | None:
    """The controls of a session; None without a machine model: ``hardware``, or a card's packaged one."""
    if hardware is None and session.target != "cpu":
        try:
            hardware = read(session.target).to_dict()
        except HardwareError as error:
            if progress is not None:
                progress(f"controls are not run: {error}")
    if hardware is None:
        return None
    return run_controls(session, hardware, target=session.target, progress=progress)


def refuse(controls: Iterable[Control]) -> None:
    """Raise :class:`UndecidedError` naming the first control that reads wrong: a set after it would be void."""
    if (wrong := reads_wrong(controls)) is not None:
        raise UndecidedError(f"{wrong}; nothing measured now would hold (is the machine busy, or its model wrong?)")


def reads_wrong(controls: Iterable[Control]) -> str | None:
    """What the first control that reads wrong shows, or None."""
    for control in controls:
        if control.ok:
            continue
        high = "no limit" if control.high_s is None else f"{control.high_s:.3g} s"
        seen = "no time (void samples)"
        if control.event_s is not None and control.clock_s is not None:
            seen = f"{control.event_s:.3g} s by its event and {control.clock_s:.3g} s by the clock"
        return f"control {control.name} reads wrong: {seen}, expected {control.low_s:.3g} s to {high}"
    return None


def _sample(kernel: Kernel, session: Session, target: str) -> tuple[float, float] | None:
    """Medians of event and clock (s); None where the samples are void. A control that fails raises."""
    (trace,) = evaluate(
        kernel.problem(), kernel.solution(), target=target, session=session,
        protocol=protocol("quick", samples=SAMPLES),
    )  # fmt: skip
    return _medians(trace)


def _medians(trace: Trace) -> tuple[float, float] | None:
    if trace.status != "PASSED":
        raise UndecidedError(f"{trace.definition} did not run: {trace.status}: {trace.reason}")
    if trace.timing is None:
        return None
    (samples,) = trace.timing.candidate
    return statistics.median(samples.event_s), statistics.median(samples.clock_s)


def _control(
    name: str, low_s: float, high_s: float | None, slack_s: float, seen: tuple[float, float] | None
) -> Control:
    event_s, clock_s = seen or (None, None)
    ok = seen is not None and low_s <= seen[0] and (
        high_s is None or (seen[0] <= high_s and seen[1] <= high_s + slack_s)
    )  # fmt: skip
    return Control(name=name, low_s=low_s, high_s=high_s, slack_s=slack_s, event_s=event_s, clock_s=clock_s, ok=ok)
