"""In the worker: the emulated gfx1200 card that a candidate's launches run on, with the host's memory as its own.

The candidate shares this process with the emulator, so what is told of its launches is as honest as the candidate; its
outputs are the referee's to check. PyTorch and NumPy are there before a candidate is.
"""

from __future__ import annotations

import ctypes
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from solbench.errors import SolbenchError, UndecidedError, UnsupportedError
from solbench.evaluate.compute import Host, Times
from solbench.evaluate.memory import Memory, Views

# Findings and launches of one call that are told (of launches, as many as solbench.model.emulation takes).
MOST_FINDINGS: Final = 12
MOST_LAUNCHES: Final = 64
# With these a program may be right all the same: the value decides nothing in the end, or is checked before it is used.
# Whatever it holds, the outputs have to be right.
_WARNED: Final = frozenset({"uninitialised register", "uninitialised memory"})
_LONGEST: Final = 600
Fault = list[str]


class Found(Exception):
    """The emulator found something wrong in what the candidate launched: a line each."""


class EmulatedCard(Host):
    """The place of a candidate's calls. ``open`` says how each of a workload's calls is to run."""

    emulated = True

    def __init__(self) -> None:
        from solbench.gfx12.launches import Launches
        from solbench.gfx12.run import Options

        self.launches = Launches(Options())
        self._options = Options
        self._runs: Sequence[Mapping[str, Any]] = ()
        self._given: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
        self._calls = 0
        self._told: dict[str, Any] | None = None
        self._new_memory: Callable[[], None] = lambda: None

    def triton(self) -> None:
        """Let Triton launch here from now on, for as long as this process lives."""
        from solbench.gfx12 import triton_launch
        from solbench.gfx12.arena import Arena
        from solbench.gfx12.storages import Storages

        self._entered = triton_launch.launching(self.launches.options)
        self.launches = self._entered.__enter__()

        def renewed() -> None:
            self.launches.storages = Storages(Arena())

        # What a call made is gone after it, but for what the candidate keeps.
        self._new_memory = renewed

    def native(self, config: Mapping[str, Any], views: Views) -> Callable[..., Any]:
        """``prepare`` of a HIP candidate: its host code over our runtime, its kernels on the emulated card."""
        from solbench.code.hip_code import HipCode, HipUnit
        from solbench.gfx12.hip_launch import HipHost

        folder = Path(config["folder"])
        units = []
        for unit in json.loads((folder / "hip.json").read_text())["units"]:
            code, text = (folder / unit["code"]).read_bytes(), (folder / unit["assembly"]).read_text()
            units.append(HipUnit(unit["source"], code, text, tuple(unit["kernels"])))
        host = HipHost(HipCode("gfx1200", tuple(units), {}, ()), folder / config["entry"], self.launches.options)
        self.launches = host.launches
        scalars = {
            "float32": ctypes.c_float, "float64": ctypes.c_double, "int32": ctypes.c_int32, "int64": ctypes.c_int64,
            "bool": ctypes.c_bool, "int16": ctypes.c_int16, "int8": ctypes.c_int8, "uint8": ctypes.c_uint8,
        }  # fmt: skip

        def prepare(memory: Memory | None, workload: Mapping[str, Any]) -> tuple[Callable[..., Any], None]:
            tensors = {slot["name"]: views.view(memory, slot) for slot in workload["slots"]}
            self.give(workload, tensors)

            def bind(values: Mapping[str, Any]) -> Callable[[], None]:
                arguments: dict[str, Any] = {
                    name: tensors[name] if kind == "tensor" else scalars[kind](values[name])
                    for name, kind in workload["inputs"]
                }
                arguments |= {name: tensors[name] for name in workload["outputs"]}
                arguments |= {f"axis {name}": value for name, value in workload["axes"].items()}
                return lambda: host.call(config["function"], arguments)

            return bind, None

        return prepare

    def open(self, runs: Sequence[Mapping[str, Any]]) -> None:
        """A new workload, whose n-th call runs with the n-th of ``runs``, later ones with the last."""
        self._runs, self._calls, self._told, self._given = runs, 0, None, ((), ())

    def give(self, workload: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        """The workload's tensors: which ones no kernel may write, and which hold nothing yet."""
        inputs = [name for name, kind in workload["inputs"] if kind == "tensor"]
        read = tuple(tensors[name] for name in inputs if name not in workload["in_place"])
        self._given = read, tuple(tensors[name] for name in workload["outputs"] if name not in inputs)

    def start(self) -> None:
        """A call begins."""
        run = dict(self._runs[min(self._calls, len(self._runs) - 1)]) if self._runs else {}
        self._calls += 1
        self.launches.configuration = run.pop("configuration", None)
        self.launches.options = self._options(**run)
        self.launches.runs.clear()
        self._new_memory()
        read, new = self._given
        for tensor in read:
            self.launches.storages.protect(tensor)
        for tensor in new:
            self.launches.storages.unwritten(tensor)
        super().start()

    def stop(self) -> Times:
        """It has returned. Raises what its launches came to, also where the candidate has caught it."""
        times = super().stop()
        self.judge()
        if self._told is None:
            self._told = self._said()
        return times

    def judge(self) -> None:
        """Raise what is wrong with the launches of the current call."""
        findings = [finding for finding in self.launches.findings if finding.kind not in _WARNED]
        if findings:
            more = [f"and {len(findings) - MOST_FINDINGS} more"] if len(findings) > MOST_FINDINGS else []
            raise Found("\n".join([*map(str, findings[:MOST_FINDINGS]), *more]))
        for launched in self.launches.runs:
            if launched.outcome.unsupported is not None:
                mnemonic, address, why = launched.outcome.unsupported
                raise UnsupportedError(f"{launched.kernel}: {mnemonic} at {address:#x}: {why}")
            if launched.outcome.ended is not None:
                raise UndecidedError(f"{launched.kernel}: not at its end within the limit of {launched.outcome.ended}")

    def told(self) -> dict[str, Any] | None:
        """What the first call of this workload executed (:class:`solbench.model.emulation.Executed`), and warnings."""
        return self._told

    def _said(self) -> dict[str, Any]:
        runs = self.launches.runs
        totals: dict[str, Counter[str]] = {
            name: Counter() for name in ("engines", "wmma_operations", "loaded_bytes", "stored_bytes")
        }
        for launched in runs:
            counts = launched.outcome.counts
            for name, found in zip(
                totals, (counts.engines, counts.wmma_operations, counts.loaded, counts.stored), strict=True
            ):
                totals[name].update(found)
        launches = [
            {
                "kernel": launched.kernel[:200], "grid": list(launched.grid), "block": list(launched.block),
                "configuration": launched.config, "instructions": launched.outcome.instructions,
            }
            for launched in runs[:MOST_LAUNCHES]
        ]  # fmt: skip
        instructions = sum(launched.outcome.instructions for launched in runs)
        named = {name: dict(sorted(count.items())) for name, count in totals.items()}
        warned = [str(finding)[:_LONGEST] for finding in self.launches.findings if finding.kind in _WARNED]
        executed = {"launches": launches, "count": len(runs), "instructions": instructions, **named}
        return {"executed": executed, "warnings": warned[:MOST_FINDINGS]}

    def fault(self, error: BaseException) -> Fault | None:
        """What ``error`` is, where it is no ordinary exception of the candidate's."""
        # The candidate may have turned the emulator's word into an exception of its own.
        for one in (error, self._judged()):
            if isinstance(one, Found):
                return ["finding", str(one)]
            if isinstance(one, UndecidedError):
                return ["limit", str(one)]
            if isinstance(one, UnsupportedError):
                return ["unsupported", str(one)]
        return None

    def _judged(self) -> SolbenchError | Found | None:
        try:
            self.judge()
        except (Found, SolbenchError) as error:
            return error
        return None
