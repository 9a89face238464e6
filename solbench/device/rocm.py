"""AMD cards through amdsmi. Units are those of amdsmi.h on Linux: MHz, W, degrees Celsius, cache sizes in KiB."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from solbench.device.card import Card, Driver, Observation, Process, existing, process_name
from solbench.errors import UnsupportedError

_LEVEL = "AMDSMI_DEV_PERF_LEVEL_"
# How the C library writes "not told" in 16, 32 and 64 bits; the Python layer turns only some of them into "N/A".
_UNTOLD = (0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF)


def start() -> Rocm:
    """The driver, initialised. :class:`UnsupportedError` without amdsmi, its library or an AMD kernel driver."""
    noise = io.StringIO()  # without its library the package prints to stdout, and then raises KeyError
    try:
        with contextlib.redirect_stdout(noise):
            import amdsmi
    except (ImportError, KeyError, OSError, AttributeError) as error:
        said = " ".join(noise.getvalue().split())
        raise UnsupportedError(f"amdsmi cannot be loaded: {said or error}; `pip install 'solbench[rocm]'`") from None
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException as error:
        raise UnsupportedError(
            f"amdsmi_init: {' '.join(str(error).split())}; is the amdgpu kernel driver loaded?"
        ) from None
    return Rocm(amdsmi, amdsmi.AmdSmiException)


class Rocm(Driver):
    """amdsmi as a driver."""

    platform = "rocm"

    def cards(self) -> tuple[Card, ...]:
        self._keep("amdsmi_get_gpu_device_uuid", self._call("amdsmi_get_processor_handles"))
        return tuple(self._card(uuid, handle) for uuid, handle in self._handles.items())

    def observe(self, card: Card) -> Observation:
        handle, smi = self._handle(card), self._module
        power = self._told("amdsmi_get_power_info", handle) or {}
        watts = (_number(power.get(f"{kind}_socket_power")) for kind in ("average", "current"))
        metrics = self._told("amdsmi_get_gpu_metrics_info", handle) or {}
        throttled = metrics.get("throttle_status")
        temperature = self._told(
            "amdsmi_get_temp_metric", handle, smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
        )
        return Observation(
            graphics_hz=self._clock_hz(handle, smi.AmdSmiClkType.GFX),
            memory_hz=self._clock_hz(handle, smi.AmdSmiClkType.MEM),
            power_w=next((value for value in watts if value), None),
            temperature_c=_number(temperature),
            throttle=None if throttled in (None, "N/A") else (("throttled",) if throttled else ()),
            level=self._told_level(handle),
            processes=self._processes(handle),
        )

    def device_files(self, card: Card) -> tuple[str, ...]:
        number = self._call("amdsmi_get_gpu_enumeration_info", self._handle(card))["drm_render"]
        return existing(("/dev/kfd", f"/dev/dri/renderD{number}"))

    def level(self, card: Card) -> str | None:
        return str(self._call("amdsmi_get_gpu_perf_level", self._handle(card))).removeprefix(_LEVEL)

    def set_level(self, card: Card, level: str) -> None:
        self._call("amdsmi_set_gpu_perf_level", self._handle(card), self._module.AmdSmiDevPerfLevel[level])

    def _card(self, uuid: str, handle: Any) -> Card:
        asic = self._call("amdsmi_get_gpu_asic_info", handle)
        memory = self._told("amdsmi_get_gpu_memory_total", handle, self._module.AmdSmiMemoryType.VRAM)
        caches = (self._told("amdsmi_get_gpu_cache_info", handle) or {}).get("cache", ())
        outer = [cache for cache in caches if cache["cache_level"] >= 2]
        return Card(
            platform=self.platform,
            uuid=uuid,
            name=asic["market_name"],
            arch=asic["target_graphics_version"],
            pci=self._call("amdsmi_get_gpu_device_bdf", handle).lower(),
            memory_bytes=memory or None,
            cache_bytes=sum(cache["cache_size"] * cache["num_cache_instance"] for cache in outer) * 1024 or None,
        )

    def _processes(self, handle: Any) -> tuple[Process, ...] | None:
        listed = self._told("amdsmi_get_gpu_process_list", handle)
        computing = self._told("amdsmi_get_gpu_compute_process_info")
        if listed is None:
            return None
        compute = {process["process_id"] for process in computing or ()}
        return tuple(
            Process(
                pid=process["pid"],
                name=process["name"] if process["name"] != "N/A" else process_name(process["pid"]),
                memory_bytes=process["memory_usage"]["vram_mem"],
                # Who cannot list the computing processes must not take a computing one for a desktop.
                compute=computing is None or process["pid"] in compute,
            )
            for process in listed
        )

    def _clock_hz(self, handle: Any, kind: Any) -> float | None:
        clock = _number((self._told("amdsmi_get_clock_info", handle, kind) or {}).get("clk"))
        return None if clock is None else clock * 1e6

    def _told_level(self, handle: Any) -> str | None:
        level = self._told("amdsmi_get_gpu_perf_level", handle)
        return None if level is None else str(level).removeprefix(_LEVEL)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value not in _UNTOLD else None
