"""One or two scripted cards for the tests of this folder."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from solbench.device import rocm
from solbench.device.card import Card, Driver

ROOT = Path(__file__).resolve().parents[3]
FAKE = Path(__file__).resolve().parent / "fake_amdsmi"
UUIDS = ("d3ff7590-0000-1000-80a1-b2c3d4e5f601", "d3ff7590-0000-1000-80a1-b2c3d4e5f602")


class Cards:
    """State of the fake amdsmi, shared by every process that ``environment`` reaches."""

    def __init__(self, folder: Path, count: int = 1) -> None:
        self.path = folder / "amdsmi.json"
        self.locks = folder / "locks"
        self.locks.mkdir()
        cards = [
            {"uuid": uuid, "bdf": f"0000:0{3 + index}:00.0", "arch": "gfx1200", "level": "AUTO"}
            for index, uuid in enumerate(UUIDS[:count])
        ]
        self.path.write_text(json.dumps({"cards": cards}))

    def script(self, index: int = 0, **fields: Any) -> None:
        state = json.loads(self.path.read_text())
        state["cards"][index].update(fields)
        self.path.write_text(json.dumps(state))

    def script_all(self, **fields: Any) -> None:
        self.path.write_text(json.dumps({**json.loads(self.path.read_text()), **fields}))

    def level(self, index: int = 0) -> str:
        return str(json.loads(self.path.read_text())["cards"][index]["level"])

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPU_LOCK", "SOLBENCH_GPU"))}
        path = os.pathsep.join((str(FAKE), str(ROOT)))
        return {**kept, "PYTHONPATH": path, "FAKE_AMDSMI": str(self.path), "GPU_LOCK_DIR": str(self.locks)}


def start(cards: Cards, monkeypatch: pytest.MonkeyPatch) -> tuple[Driver, tuple[Card, ...]]:
    """The ROCm driver over the fake, in this process."""
    monkeypatch.setenv("FAKE_AMDSMI", str(cards.path))
    monkeypatch.syspath_prepend(str(FAKE))
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    monkeypatch.setitem(sys.modules, "amdsmi", importlib.import_module("amdsmi"))
    driver = rocm.start()
    return driver, driver.cards()


class FakeNvml:
    """The pynvml names that solbench uses; test_pynvml_names.py compares them with the real module."""

    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_CLOCK_MEM = 0, 1, 2
    nvmlClocksEventReasonSwPowerCap = 4
    nvmlClocksEventReasonHwSlowdown = 8
    nvmlClocksEventReasonSwThermalSlowdown = 0x20
    nvmlClocksEventReasonHwThermalSlowdown = 0x40
    nvmlClocksEventReasonHwPowerBrakeSlowdown = 0x80

    class NVMLError(Exception):
        pass

    def __init__(self, reasons: int = 1, processes: bool = True) -> None:
        self.reasons, self.processes = reasons, processes

    def nvmlDeviceGetCount(self):
        return 1

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetUUID(self, handle):
        return "GPU-8f9a2c10-1111-2222-3333-444455556666"

    def nvmlDeviceGetMinorNumber(self, handle):
        return 3

    def nvmlDeviceGetName(self, handle):
        return "NVIDIA H200"

    def nvmlDeviceGetCudaComputeCapability(self, handle):
        return (9, 0)

    def nvmlDeviceGetPciInfo(self, handle):
        return SimpleNamespace(domain=0, bus=0x3B, device=0)

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(total=141 << 30)

    def nvmlDeviceGetClockInfo(self, handle, type):
        return {1: 1980, 2: 3201}[type]

    def nvmlDeviceGetPowerUsage(self, handle):
        return 120_500

    def nvmlDeviceGetTemperature(self, handle, sensor):
        raise self.NVMLError("Not Supported")

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return self.reasons

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        if not self.processes:
            raise self.NVMLError("Not Supported")
        return [SimpleNamespace(pid=os.getpid(), usedGpuMemory=1 << 30)]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle):
        return [SimpleNamespace(pid=os.getpid(), usedGpuMemory=None), SimpleNamespace(pid=1, usedGpuMemory=None)]
