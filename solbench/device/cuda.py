"""NVIDIA cards through NVML. Clocks are never set: a shared card stays as it is, and traces say unlocked."""

from __future__ import annotations

from typing import Any

from solbench.device.card import Card, Driver, Observation, Process, existing, process_name
from solbench.errors import UnsupportedError

# Reasons that hold clocks below what load would ask for; the others are idleness and settings.
_THROTTLE = {
    "SwPowerCap": "power cap",
    "HwSlowdown": "hardware slowdown",
    "SwThermalSlowdown": "temperature",
    "HwThermalSlowdown": "temperature (hardware)",
    "HwPowerBrakeSlowdown": "power brake",
}


def start() -> Cuda:
    """The driver, initialised. :class:`UnsupportedError` without pynvml, NVML or an NVIDIA kernel driver."""
    try:
        import pynvml
    except ImportError:
        raise UnsupportedError("pynvml cannot be loaded; `pip install 'solbench[cuda]'`") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise UnsupportedError(f"nvmlInit: {error}; is the NVIDIA driver installed?") from None
    return Cuda(pynvml, pynvml.NVMLError)


class Cuda(Driver):
    """NVML as a driver."""

    platform = "cuda"

    def cards(self) -> tuple[Card, ...]:
        count = self._call("nvmlDeviceGetCount")
        self._keep("nvmlDeviceGetUUID", [self._call("nvmlDeviceGetHandleByIndex", index) for index in range(count)])
        return tuple(self._card(uuid, handle) for uuid, handle in self._handles.items())

    def observe(self, card: Card) -> Observation:
        handle, nvml = self._handle(card), self._module
        power = self._told("nvmlDeviceGetPowerUsage", handle)
        temperature = self._told("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU)
        reasons = self._told("nvmlDeviceGetCurrentClocksEventReasons", handle)
        throttle = None
        if reasons is not None:
            masks = {name: getattr(nvml, f"nvmlClocksEventReason{key}") for key, name in _THROTTLE.items()}
            throttle = tuple(name for name, mask in masks.items() if reasons & mask)
        return Observation(
            graphics_hz=self._clock_hz(handle, nvml.NVML_CLOCK_SM),
            memory_hz=self._clock_hz(handle, nvml.NVML_CLOCK_MEM),
            power_w=None if power is None else power / 1e3,
            temperature_c=None if temperature is None else float(temperature),
            throttle=throttle,
            level=None,
            processes=self._processes(handle),
        )

    def device_files(self, card: Card) -> tuple[str, ...]:
        minor = self._call("nvmlDeviceGetMinorNumber", self._handle(card))
        return existing(("/dev/nvidiactl", "/dev/nvidia-uvm", f"/dev/nvidia{minor}"))

    def level(self, card: Card) -> str | None:
        return None

    def set_level(self, card: Card, level: str) -> None:
        raise UnsupportedError(f"{card.uuid}: clocks of an NVIDIA card are left as they are")

    def _card(self, uuid: str, handle: Any) -> Card:
        major, minor = self._call("nvmlDeviceGetCudaComputeCapability", handle)
        place = self._call("nvmlDeviceGetPciInfo", handle)
        memory = self._told("nvmlDeviceGetMemoryInfo", handle)
        return Card(
            platform=self.platform,
            uuid=uuid,
            name=self._call("nvmlDeviceGetName", handle),
            arch=f"sm_{major}{minor}",
            pci=f"{place.domain:04x}:{place.bus:02x}:{place.device:02x}.0",
            memory_bytes=None if memory is None else memory.total,
            cache_bytes=None,  # NVML does not tell; the runtime does (``native``)
        )

    def _processes(self, handle: Any) -> tuple[Process, ...] | None:
        computing = self._told("nvmlDeviceGetComputeRunningProcesses", handle)
        drawing = self._told("nvmlDeviceGetGraphicsRunningProcesses", handle)
        if computing is None:
            return None
        pids = {process.pid for process in computing}
        return tuple(
            Process(process.pid, process_name(process.pid), process.usedGpuMemory, process.pid in pids)
            for process in [*computing, *(process for process in drawing or () if process.pid not in pids)]
        )

    def _clock_hz(self, handle: Any, kind: int) -> float | None:
        clock = self._told("nvmlDeviceGetClockInfo", handle, kind)
        return None if clock is None else clock * 1e6
