"""A scripted amdsmi, importable under that name: the names, parameters and fields that solbench uses, and no others.

Its state is the JSON file that FAKE_AMDSMI names, so that several processes see one card. test_amdsmi_wheel.py compares
it with the real package.
"""

from __future__ import annotations

import enum
import fcntl
import json
import os
from pathlib import Path
from typing import Any


class AmdSmiException(Exception):
    pass


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code):
        super().__init__(err_code)
        self.err_code = err_code

    def __str__(self):
        return f"Error code:\n\t{self.err_code} | AMDSMI_STATUS_NO_PERM - Permission Denied"


AmdSmiClkType = enum.IntEnum("AmdSmiClkType", "GFX MEM")
AmdSmiTemperatureType = enum.IntEnum("AmdSmiTemperatureType", "HOTSPOT")
AmdSmiTemperatureMetric = enum.IntEnum("AmdSmiTemperatureMetric", "CURRENT")
AmdSmiMemoryType = enum.IntEnum("AmdSmiMemoryType", "VRAM")
AmdSmiDevPerfLevel = enum.IntEnum(
    "AmdSmiDevPerfLevel", "AUTO LOW HIGH MANUAL STABLE_STD STABLE_PEAK STABLE_MIN_MCLK STABLE_MIN_SCLK DETERMINISM"
)


def _state() -> dict[str, Any]:
    return json.loads(Path(os.environ["FAKE_AMDSMI"]).read_text())


def _card(handle) -> dict[str, Any]:
    return _state()["cards"][handle]


def _change(handle, **fields) -> None:
    path = Path(os.environ["FAKE_AMDSMI"])
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two owners may give their cards back at once
        state = _state()
        state["cards"][handle].update(fields)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(state))
        temporary.replace(path)


def amdsmi_init():
    if _state().get("no_driver"):
        raise AmdSmiLibraryException(34)


def amdsmi_get_processor_handles():
    return list(range(len(_state()["cards"])))


def amdsmi_get_gpu_device_uuid(processor_handle):
    return _card(processor_handle)["uuid"]


def amdsmi_get_gpu_device_bdf(processor_handle):
    return _card(processor_handle)["bdf"]


def amdsmi_get_gpu_enumeration_info(processor_handle):
    return {"drm_render": 128 + processor_handle}


def amdsmi_get_gpu_asic_info(processor_handle):
    return {"market_name": "AMD Radeon RX 9060 XT", "target_graphics_version": _card(processor_handle)["arch"]}


def amdsmi_get_gpu_memory_total(processor_handle, mem_type):
    assert isinstance(mem_type, AmdSmiMemoryType)
    return 16 << 30


def amdsmi_get_gpu_cache_info(processor_handle):
    sizes = _card(processor_handle).get("caches_kib", [[1, 32, 32], [2, 4096, 1], [3, 32768, 1]])
    keys = ("cache_level", "cache_size", "num_cache_instance")
    return {"cache": [dict(zip(keys, row, strict=True)) for row in sizes]}


def amdsmi_get_clock_info(processor_handle, clock_type):
    assert isinstance(clock_type, AmdSmiClkType)
    return {"clk": 2780 if clock_type == AmdSmiClkType.GFX else "N/A"}


def amdsmi_get_power_info(processor_handle):
    return {"average_socket_power": 0xFFFFFFFF, "current_socket_power": 141}


def amdsmi_get_temp_metric(processor_handle, sensor_type, metric):
    assert isinstance(sensor_type, AmdSmiTemperatureType) and isinstance(metric, AmdSmiTemperatureMetric)
    return 61


def amdsmi_get_gpu_metrics_info(processor_handle):
    return {"throttle_status": _card(processor_handle).get("throttled", False)}


def amdsmi_get_gpu_process_list(processor_handle):
    return [
        {"pid": pid, "name": name, "memory_usage": {"vram_mem": memory}}
        for pid, name, memory in _card(processor_handle).get("processes", [])
    ]


def amdsmi_get_gpu_compute_process_info():
    if _state().get("compute_untold"):
        raise AmdSmiLibraryException(2)
    return [{"process_id": pid} for pid in _state().get("computing", [])]


def amdsmi_get_gpu_perf_level(processor_handle):
    return f"AMDSMI_DEV_PERF_LEVEL_{_card(processor_handle)['level']}"


def amdsmi_set_gpu_perf_level(processor_handle, perf_level):
    """Script: ``set`` maps a level to refused, ignored, or another level that is set in its place."""
    assert isinstance(perf_level, AmdSmiDevPerfLevel)
    script = _card(processor_handle).get("set", {}).get(perf_level.name, perf_level.name)
    if script == "refused":
        raise AmdSmiLibraryException(10)
    if script != "ignored":
        _change(processor_handle, level=script)
