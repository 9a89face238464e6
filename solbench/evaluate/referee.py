"""The trusted side: draws inputs, runs the reference, checks outputs, flushes the cache. Imports torch.

It answers frames on one channel. A failure of the reference is an answer; a death of this process is one too.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from solbench.checks import check_outputs
from solbench.corpus.reference import load_reference, named_outputs
from solbench.errors import SolbenchError
from solbench.evaluate import frames, precision, sandbox
from solbench.evaluate.compute import Gpu, Host, compute
from solbench.evaluate.memory import HostMemory, Memory, Views
from solbench.inputs import draw
from solbench.model.definition import Definition
from solbench.model.trace import Status
from solbench.model.workload import Workload

MAX_REASON = 4000
# Longer than a worker just continued takes to launch what it launches first: 0.05 to 0.2 ms for library calls, 0.3 ms
# for a Triton launcher (seen on an H200's host).
HOLD_S = 0.5e-3
# A launch on an idle card takes this many times the median of solo ones at most, and this much more. So many in a row
# say that it is idle; where there are none after so many seconds, it is busy.
SOLO_LAUNCHES, QUIET_FACTOR, QUIET_SLACK_S = 50, 3.0, 30e-6
QUIET_LAUNCHES, BUSY_LIMIT_S = 4, 2.0
_TRIAL_CYCLES = 2_000_000
# Rows of the square product of the preamble: enough for every processor, short against the preamble.
_WARM_ROWS, _WARM_ROWS_OF_A_CARD = 512, 4096
_FLOATS = {
    name
    for name in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
    if hasattr(torch, name)
}

Tensors = dict[str, torch.Tensor]


@dataclass
class _Case:
    """One workload under examination: its shared views and the private values of the current round."""

    definition: Definition
    workload: Workload
    axes: dict[str, int]
    run: Callable[..., Any]
    shared_inputs: Tensors
    shared_outputs: Tensors
    folder: Path | None
    persistent: Tensors = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    expected: Tensors = field(default_factory=dict)


class Referee:
    """State behind the channel: the cache flush buffers, the loaded reference, the current workload.

    ``place``: where calls run, with values, references and checks beside them.
    """

    def __init__(self, flush_bytes: int, place: Host | Gpu) -> None:
        self.place = place
        # On a card twice as much is read as written; on the host the written half is twice the last level already.
        read_bytes = max(flush_bytes, 8) * (2 if isinstance(place, Gpu) else 1)
        self._written = torch.zeros(max(flush_bytes, 8), dtype=torch.uint8, device=place.device)
        self._read = torch.zeros(read_bytes // 8, dtype=torch.int64, device=place.device)
        self._views = Views(torch, "cpu" if isinstance(place, Gpu) and place.staged else place.device)
        self._shared: tuple[Memory, str] | None = None
        self._hold_cycles = 0
        self._quiet_limit_s = 0.0
        self._references: dict[str, Callable[..., Any]] = {}
        self._case: _Case | None = None
        # The workload once for each call of a batch: the same reference, slots and values of its own.
        self._copies: list[_Case] = []

    def answer(self, message: Mapping[str, Any], fds: list[int]) -> dict[str, Any]:
        operation = message["op"]
        if operation == "share":
            return self._share(message["size"])
        if operation == "workload":
            return self._open(message, fds[0])
        if operation == "flush":
            return {"flush_s": [self._flush(0) for _ in range(message["times"])]}
        if operation == "quiet":
            return self._know_quiet()
        if operation == "hold":
            return self._hold()
        if operation == "probe":
            return self._probe()
        if operation == "available":
            return {"bytes": self._available()}
        if operation == "estimate":
            return self._estimate(message)
        if operation == "warm":
            return self._warm(message["seconds"])
        if self._case is None:
            raise SolbenchError("no workload is open")
        case = self._copies[message.get("copy", 0)]
        if operation == "draw":
            return self._draw(case, message["seed"], message["stress"])
        if operation == "arm":
            return self._arm(case, message["byte"], message.get("flush", True))
        if operation == "check":
            return self._check(case)
        if operation == "close":
            self._case, self._copies = None, []
            return {}
        raise SolbenchError(f"unknown operation {operation!r}")

    def _reference(self, definition: Definition) -> Callable[..., Any]:
        key = definition.reference
        if key not in self._references:
            self._references[key] = load_reference(definition)
        return self._references[key]

    def _parse(self, message: Mapping[str, Any]) -> tuple[Definition, Workload, dict[str, int], Callable[..., Any]]:
        definition = Definition.load(message["definition"], "definition")
        workload = Workload.load(message["workload"], "workload")
        axes = workload.validate_against(definition, f"{definition.name}/{workload.uuid}")
        return definition, workload, axes, self._reference(definition)

    def _share(self, size: int) -> dict[str, Any]:
        """Device memory for all tensors of a workload, and the handle by which workers map it; the last is freed."""
        assert isinstance(self.place, Gpu)
        self._case, self._copies = None, []
        if self._shared is not None:
            self.place.free(self._shared[1])
            self._shared = None
        torch.cuda.empty_cache()
        self._shared = self.place.allocate(size)
        return {"handle": self._shared[1]}

    def _available(self) -> int:
        """Bytes of device memory that nobody uses now, with what this process merely keeps for itself given back."""
        assert isinstance(self.place, Gpu)
        torch.cuda.empty_cache()
        return self.place.runtime.available_bytes()

    def _map(self, message: Mapping[str, Any], arena: int) -> Memory:
        return self.place.map(message["size"], arena, message["handle"])

    def _open(self, message: Mapping[str, Any], arena: int) -> dict[str, Any]:
        self._case = None
        definition, workload, axes, run = self._parse(message)
        staged = isinstance(self.place, Gpu) and self.place.staged
        memory: Memory = HostMemory(arena, message["size"]) if staged else self._map(message, arena)
        os.close(arena)
        views: dict[str, Tensors] = {"input": {}, "output": {}}
        for slot in message["slots"]:
            views[slot["role"]][slot["name"]] = self._views.view(memory, slot)
        self._case = _Case(definition, workload, axes, run, views["input"], views["output"], _folder(message))
        self._copies = [self._case]
        for slots in message.get("copies", []):
            views = {"input": {}, "output": {}}
            for slot in slots:
                views[slot["role"]][slot["name"]] = self._views.view(memory, slot)
            copy = replace(
                self._case, shared_inputs=views["input"], shared_outputs=views["output"], inputs={}, expected={}
            )
            self._copies.append(copy)
        return {}

    def _draw(self, case: _Case, seed: int, stress: int | None) -> dict[str, Any]:
        """Fresh private inputs, and the outputs that the reference gives for a copy of them."""
        case.inputs, case.expected = {}, {}
        overrides = None if stress is None else case.workload.stress_rounds[stress]
        inputs = draw(
            case.definition, case.workload, case.axes, seed, stress=overrides, folder=case.folder,
            device=self.place.device,
        )  # fmt: skip
        redrawn = overrides.inputs if overrides else {}
        for name in case.definition.persistent:
            if name not in redrawn:
                inputs[name] = case.persistent.setdefault(name, inputs[name])
        case.inputs = inputs
        result, seconds = self._run(case.run, inputs)
        outputs = named_outputs(case.definition, result)
        for name, shared in case.shared_outputs.items():
            if outputs[name].shape != shared.shape or outputs[name].dtype != shared.dtype:
                raise SolbenchError(
                    f"the reference returned {name} as {outputs[name].dtype}{list(outputs[name].shape)}, "
                    f"declared {shared.dtype}{list(shared.shape)}"
                )
        case.expected = {name: value.detach() for name, value in outputs.items()}
        return {"reference_s": seconds}

    def _arm(self, case: _Case, byte: int, flush: bool) -> dict[str, Any]:
        """Put the inputs of this round into the shared memory, poison the outputs, flush the cache if told to."""
        for name, shared in case.shared_inputs.items():
            shared.copy_(case.inputs[name])
        for shared in case.shared_outputs.values():
            name = str(shared.dtype).removeprefix("torch.")
            # All ones is NaN in every IEEE-like format; elsewhere a byte that changes from sample to sample.
            raw_bytes(shared).fill_(0xFF if name in _FLOATS else byte)
        return {"flush_s": self._flush(byte) if flush else None}

    def _check(self, case: _Case) -> dict[str, Any]:
        """Compare the very outputs in shared memory; also the inputs, which a candidate must leave as they were."""
        device = self.place.device  # where shared memory is, unless it is staged
        mutated = [
            name
            for name, shared in case.shared_inputs.items()
            if name not in case.definition.in_place
            and not torch.equal(raw_bytes(shared).to(device), raw_bytes(case.inputs[name]))
        ]
        for name, shared in case.shared_outputs.items():
            if shared.dtype is torch.bool and shared.numel() and int(raw_bytes(shared).max()) > 1:
                text = f"{name}: bytes that are neither 0 nor 1 (never written?)"
                return {"status": Status.INCORRECT_NUMERICAL.value, "reason": text, "checks": [], "mutated": mutated}
        outputs = {name: shared.to(device) for name, shared in case.shared_outputs.items()}
        status, reason, checks = check_outputs(
            case.definition, case.workload, case.axes, case.inputs, case.expected, outputs
        )
        return {
            "status": status.value, "reason": reason, "checks": [check.as_dict() for check in checks],
            "mutated": mutated,
        }  # fmt: skip

    def _flush(self, byte: int) -> float:
        """Leave the last-level cache full of clean lines that no candidate knows; seconds until the device was idle.

        By the clock, not by events: a kernel of another process takes turns with this work, and between turns events
        see nothing of it.
        """
        self.place.synchronize()
        start = time.perf_counter()
        self._written.fill_(byte)
        self._read.sum()
        self.place.synchronize()
        return time.perf_counter() - start

    def _hold(self) -> dict[str, Any]:
        """Keep the card busy for :data:`HOLD_S` with a kernel that touches no memory, without waiting for it: what the
        worker launches meanwhile waits until it is over. Only on NVIDIA's cards, which give processes turns; where they
        run side by side nothing would wait."""
        if self.place.device.startswith("cuda") and torch.version.hip is None:
            if not self._hold_cycles:
                self._hold_cycles = _cycles(HOLD_S)
            torch.cuda._sleep(self._hold_cycles)
        return {}

    def _probe(self) -> dict[str, Any]:
        """Come back when the card has nothing else to do: after several launches in a row that did not have to wait.

        While another process has work there, each launch waits until its turn is over; one alone may come in between.
        """
        quiet, end = 0, time.monotonic() + BUSY_LIMIT_S
        while quiet < QUIET_LAUNCHES and time.monotonic() < end:
            quiet = quiet + 1 if self._launch_s() <= self._quiet_limit_s else 0
        return {"idle": quiet == QUIET_LAUNCHES}

    def _know_quiet(self) -> dict[str, Any]:
        """Learn what a launch takes while nobody else is on the card."""
        self._flush(0)
        alone = [self._launch_s() for _ in range(SOLO_LAUNCHES)]
        self._quiet_limit_s = QUIET_FACTOR * statistics.median(alone) + QUIET_SLACK_S
        return {"limit_s": self._quiet_limit_s}

    def _launch_s(self) -> float:
        """Seconds of a launch that does next to nothing, until the device was idle."""
        start = time.perf_counter()
        self._read[:1].zero_()
        self.place.synchronize()
        return time.perf_counter() - start

    def _run(self, run: Callable[..., Any], inputs: Mapping[str, Any]) -> tuple[Any, float]:
        """Result of one call of the reference on copies of ``inputs``, and its seconds."""
        copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs.values()]
        self.place.synchronize()
        start = time.perf_counter()
        result = run(*copies)
        self.place.synchronize()
        return result, time.perf_counter() - start

    def _warm(self, seconds: float) -> dict[str, Any]:
        """Keep the device busy with products for that long: clocks and temperature as they are under load."""
        rows = _WARM_ROWS if isinstance(self.place, Host) else _WARM_ROWS_OF_A_CARD
        factor = torch.full((rows, rows), 1.0 / rows, device=self.place.device)
        end, products = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            torch.mm(factor, factor)
            self.place.synchronize()
            products += 1
        return {"products": products}

    def _estimate(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Seconds of the faster of two reference calls; one call when the first is clearly above ``enough_s``."""
        definition, workload, axes, run = self._parse(message)
        inputs = draw(definition, workload, axes, 0, folder=_folder(message), device=self.place.device)
        seconds = []
        for _ in range(2):
            seconds.append(self._run(run, inputs)[1])
            if seconds[0] > 4 * message["enough_s"]:
                break
        return {"seconds": min(seconds)}


def _folder(message: Mapping[str, Any]) -> Path | None:
    return Path(message["folder"]) if message["folder"] is not None else None


def _cycles(seconds: float) -> int:
    """Cycles that a waiting kernel makes in ``seconds``, by the quickest of a few."""
    rates = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch.cuda._sleep(_TRIAL_CYCLES)
        torch.cuda.synchronize()
        rates.append(_TRIAL_CYCLES / (time.perf_counter() - start))
    return int(seconds * max(rates))


def raw_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor as one uint8 vector."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def environment(place: Host | Gpu) -> dict[str, Any]:
    """What the referee computes with: recorded as the environment of a measurement set."""
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    for package in ("numpy", "triton"):
        module = sys.modules.get(package)
        if module is not None:
            versions[package] = str(module.__version__)
    if isinstance(place, Gpu):
        versions |= {
            name: str(value) for name, value in vars(torch.version).items() if name in ("cuda", "hip") and value
        }
        versions["runtime"] = place.runtime.version()
        if torch.backends.cudnn.is_available():
            versions["cudnn" if torch.version.hip is None else "miopen"] = str(torch.backends.cudnn.version())
    return {
        **versions,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": str(torch.get_num_threads()),
        **precision.settings(torch),
    }


def main(channel_fd: int, flush_bytes: int, device: str) -> None:
    """Answer frames until the orchestrator closes the channel.

    ``flush_bytes``: to write at each flush, more where the runtime knows of a larger cache. ``device``: JSON, see
    :func:`solbench.evaluate.compute.compute`.
    """
    sandbox.die_with_parent()
    sandbox.set_dumpable(False)
    channel = socket.socket(fileno=channel_fd)
    precision.set_full(torch)
    place = compute(json.loads(device))
    if place.device.startswith("cuda"):
        torch.cuda.set_device(place.device)
    if isinstance(place, Gpu):
        flush_bytes = max(flush_bytes, 2 * (place.runtime.cache_bytes(place.index) or 0))
    referee = Referee(flush_bytes, place)
    frames.send(channel, {"ok": True, "flush_bytes": flush_bytes, "environment": environment(place)})
    while (received := frames.receive(channel)) is not None:
        message, fds = received
        if message["op"] == "end":
            break
        reply: dict[str, Any]
        try:
            reply = {"ok": True, **referee.answer(message, fds)}
        except SolbenchError as error:
            reply = {"ok": False, "reason": str(error)[-MAX_REASON:]}
        except Exception:  # noqa: BLE001 (a process boundary: the reference's failure is the answer)
            reply = {"ok": False, "reason": traceback.format_exc(limit=-6)[-MAX_REASON:]}
        frames.send(channel, reply)
    os._exit(0)  # nothing is left to tidy; unloading torch takes a second
