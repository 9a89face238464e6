"""The trusted side: draws inputs, runs the reference, checks outputs, flushes the cache. Imports torch.

It answers frames on one channel. A failure of the reference is an answer; a death of this process is one too.
"""

from __future__ import annotations

import mmap
import os
import platform
import socket
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
from solbench.evaluate import frames, sandbox
from solbench.inputs import draw
from solbench.model.definition import Definition
from solbench.model.trace import Status
from solbench.model.workload import Workload

MAX_REASON = 4000
# Rows of the square product of the preamble: long enough for every thread, short against the preamble.
_WARM_ROWS = 512
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
    memory: mmap.mmap
    shared_inputs: Tensors
    shared_outputs: Tensors
    folder: Path | None
    persistent: Tensors = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    expected: Tensors = field(default_factory=dict)


class Referee:
    """State behind the channel: the cache flush buffers, the loaded reference, the current workload."""

    def __init__(self, flush_bytes: int) -> None:
        self._written = torch.zeros(max(flush_bytes, 8), dtype=torch.uint8)
        self._read = torch.zeros(max(flush_bytes, 8) // 8, dtype=torch.int64)
        self._references: dict[str, Callable[..., Any]] = {}
        self._case: _Case | None = None
        # The workload once for each call of a batch: the same reference, slots and values of its own.
        self._copies: list[_Case] = []

    def answer(self, message: Mapping[str, Any], fds: list[int]) -> dict[str, Any]:
        operation = message["op"]
        if operation == "workload":
            return self._open(message, fds[0])
        if operation == "flush":
            self._flush(0)
            return {}
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

    def _open(self, message: Mapping[str, Any], arena: int) -> dict[str, Any]:
        self._case = None
        definition, workload, axes, run = self._parse(message)
        memory = mmap.mmap(arena, message["size"])
        os.close(arena)
        views: dict[str, Tensors] = {"input": {}, "output": {}}
        for slot in message["slots"]:
            views[slot["role"]][slot["name"]] = shared_view(memory, slot)
        self._case = _Case(definition, workload, axes, run, memory, views["input"], views["output"], _folder(message))
        self._copies = [self._case]
        for slots in message["copies"]:
            views = {"input": {}, "output": {}}
            for slot in slots:
                views[slot["role"]][slot["name"]] = shared_view(memory, slot)
            copy = replace(
                self._case, shared_inputs=views["input"], shared_outputs=views["output"], inputs={}, expected={}
            )
            self._copies.append(copy)
        return {}

    def _draw(self, case: _Case, seed: int, stress: int | None) -> dict[str, Any]:
        """Fresh private inputs, and the outputs that the reference gives for a copy of them."""
        case.inputs, case.expected = {}, {}
        overrides = None if stress is None else case.workload.stress_rounds[stress]
        inputs = draw(case.definition, case.workload, case.axes, seed, stress=overrides, folder=case.folder)
        redrawn = overrides.inputs if overrides else {}
        for name in case.definition.persistent:
            if name not in redrawn:
                inputs[name] = case.persistent.setdefault(name, inputs[name])
        case.inputs = inputs
        start = time.perf_counter()
        result = case.run(*(value.clone() if isinstance(value, torch.Tensor) else value for value in inputs.values()))
        seconds = time.perf_counter() - start
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
        if flush:
            self._flush(byte)
        return {}

    def _check(self, case: _Case) -> dict[str, Any]:
        """Compare the very outputs in shared memory; also the inputs, which a candidate must leave as they were."""
        mutated = [
            name
            for name, shared in case.shared_inputs.items()
            if name not in case.definition.in_place and not torch.equal(raw_bytes(shared), raw_bytes(case.inputs[name]))
        ]
        for name, shared in case.shared_outputs.items():
            if shared.dtype is torch.bool and shared.numel() and int(raw_bytes(shared).max()) > 1:
                text = f"{name}: bytes that are neither 0 nor 1 (never written?)"
                return {"status": Status.INCORRECT_NUMERICAL.value, "reason": text, "checks": [], "mutated": mutated}
        status, reason, checks = check_outputs(
            case.definition, case.workload, case.axes, case.inputs, case.expected, dict(case.shared_outputs)
        )
        return {
            "status": status.value, "reason": reason, "checks": [check.as_dict() for check in checks],
            "mutated": mutated,
        }  # fmt: skip

    def _flush(self, byte: int) -> None:
        """Leave the last-level cache full of clean lines that no candidate knows."""
        self._written.fill_(byte)
        self._read.sum()

    def _warm(self, seconds: float) -> dict[str, Any]:
        """Keep the processors busy with products for that long: clocks and temperature as they are under load."""
        left = torch.full((_WARM_ROWS, _WARM_ROWS), 1.0)
        end, products = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            torch.mm(left, left)
            products += 1
        return {"products": products}

    def _estimate(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Seconds of the faster of two reference calls; one call when the first is clearly above ``enough_s``."""
        definition, workload, axes, run = self._parse(message)
        inputs = draw(definition, workload, axes, 0, folder=_folder(message))
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            run(*(value.clone() if isinstance(value, torch.Tensor) else value for value in inputs.values()))
            seconds.append(time.perf_counter() - start)
            if seconds[0] > 4 * message["enough_s"]:
                break
        return {"seconds": min(seconds)}


def _folder(message: Mapping[str, Any]) -> Path | None:
    return Path(message["folder"]) if message["folder"] is not None else None


def shared_view(memory: mmap.mmap, slot: Mapping[str, Any]) -> torch.Tensor:
    """The tensor of one slot over the mapped memory."""
    dtype = getattr(torch, slot["dtype"])
    if slot["nbytes"] == 0:
        return torch.empty(slot["shape"], dtype=dtype)
    part = memoryview(memory)[slot["offset"] : slot["offset"] + slot["nbytes"]]
    return torch.frombuffer(part, dtype=torch.uint8).view(dtype).view(slot["shape"])


def raw_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor as one uint8 vector."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def hello() -> dict[str, Any]:
    """What the referee computes with: recorded as the environment of a measurement set."""
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    for package in ("numpy", "triton"):
        module = sys.modules.get(package)
        if module is not None:
            versions[package] = str(module.__version__)
    return {
        **versions,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": str(torch.get_num_threads()),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def main(channel_fd: int, flush_bytes: int) -> None:
    """Answer frames until the orchestrator closes the channel."""
    sandbox.die_with_parent()
    sandbox.set_dumpable(False)
    channel = socket.socket(fileno=channel_fd)
    torch.set_float32_matmul_precision("highest")
    referee = Referee(flush_bytes)
    frames.send(channel, {"ok": True, **hello()})
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
