"""Where a call runs: this machine's processor, or one card. Standard library only.

Both say the same things: how the shared memory is mapped, how a call's time is taken, how to wait for the device. They
are made before a candidate is loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.device import native
from solbench.evaluate.memory import DEVICE_TYPES, HOST, DeviceMemory, HostMemory, Memory, open_device_memory
from solbench.evaluate.staging import Staging

_now = time.perf_counter_ns


@dataclass(frozen=True)
class Times:
    """One call, in nanoseconds. On a card also, None on the host, what its host side took until it returned
    (``launch_ns``), and how long after the last event the card was idle (``left_ns``)."""

    event_ns: int
    launch_ns: int | None = None
    left_ns: int | None = None


Deliver = Callable[[Any], None]


class Host:
    """The processor. A call's time is this process's clock around it."""

    device = "cpu"
    emulated = False

    def map(self, size_bytes: int, descriptor: int, handle: str | None) -> Memory:
        """The memory file ``descriptor``."""
        return HostMemory(descriptor, size_bytes)

    def synchronize(self) -> None:
        """Nothing runs on by itself."""

    def fetch(self) -> None:
        """Calls work on the shared memory itself."""

    def delivering(self, deliver: Deliver | None) -> Deliver | None:
        """``deliver`` alone: there is nothing to copy back."""
        return deliver

    def start(self) -> None:
        self._start_ns = _now()

    def stop(self) -> Times:
        """Since :meth:`start`."""
        return Times(_now() - self._start_ns)


class Gpu:
    """One card, by its PCI address. A call's time is that between two events on the default stream.

    ``config``: platform (rocm, cuda), pci, device (torch's name of the kind of device), library (path of the runtime,
    None: the one that this process or its PyTorch uses), transport (ipc, host), flush_bytes.
    """

    emulated = False

    def __init__(self, config: Mapping[str, Any]) -> None:
        platform = config["platform"]
        path = Path(config["library"]) if config["library"] else native.locate(platform)
        self.runtime = native.Runtime(platform, path)
        self.index = self.runtime.device_at(config["pci"])
        self.runtime.use(self.index)
        self.device = "cpu" if config["device"] == "cpu" else f"{config['device']}:{self.index}"
        self._type = HOST if config["device"] == "cpu" else DEVICE_TYPES[platform]
        self._start, self._stop, self._idle = (self.runtime.event() for _ in range(3))
        self._opened: dict[str, int] = {}
        self.staged = config["transport"] == "host"
        self._flush_bytes = config["flush_bytes"]
        self._staging: Staging | None = None

    def map(self, size_bytes: int, descriptor: int, handle: str | None) -> Memory:
        """Device memory that another process exported as ``handle``; None: what mirrors the memory file."""
        if handle is None:
            self._staging = self._staging or Staging(self.runtime, self._flush_bytes)
            pointer = self._staging.map(HostMemory(descriptor, size_bytes), size_bytes)
            return DeviceMemory(pointer, self._type, self.index)
        return open_device_memory(self.runtime, handle, self._opened, self._type, self.index)

    def allocate(self, size_bytes: int) -> tuple[DeviceMemory, str]:
        """New device memory, and the handle by which another process maps it."""
        pointer = self.runtime.allocate(size_bytes)
        self.runtime.fill(pointer, 0, size_bytes)
        self.runtime.synchronize()
        handle = self.runtime.export(pointer).hex()
        self._opened[handle] = pointer
        return DeviceMemory(pointer, self._type, self.index), handle

    def free(self, handle: str) -> None:
        """Give back what :meth:`allocate` gave."""
        self.runtime.free(self._opened.pop(handle))

    def synchronize(self) -> None:
        """Wait for everything that this process has put on the card, on any stream."""
        self.runtime.synchronize()

    def fetch(self) -> None:
        """Copy the shared memory to the card, where it is on the host."""
        if self._staging is not None:
            self._staging.fetch()

    def delivering(self, deliver: Deliver | None) -> Deliver | None:
        """``deliver``, and then copying back, where the shared memory is on the host."""
        staging = self._staging
        if staging is None:
            return deliver

        def both(result: Any) -> None:
            if deliver is not None:
                deliver(result)
            staging.store()

        return both

    def start(self) -> None:
        """The card is idle when the first event is recorded.

        The referee has just given the card a kernel that waits, and only afterwards the card turns to this process,
        whatever the stream (that takes some 0.15 ms on an H200). The call launches its work meanwhile: the time between
        the events is the card's, not that of launching.
        """
        self.runtime.synchronize()
        self._start_ns = _now()
        self.runtime.record(self._start)

    def stop(self) -> Times:
        """Since :meth:`start`; waits until the whole card is idle.

        The last event is for the default stream alone. A third, recorded once everything has ended, shows what other
        streams were left with.
        """
        launched_ns = _now()
        self.runtime.record(self._stop)
        self.runtime.synchronize()
        self.runtime.record(self._idle)
        self.runtime.synchronize()
        event_s = self.runtime.elapsed_s(self._start, self._stop)
        left_s = self.runtime.elapsed_s(self._stop, self._idle)
        return Times(round(event_s * 1e9), launched_ns - self._start_ns, round(left_s * 1e9))


def compute(config: Mapping[str, Any] | None) -> Host | Gpu:
    """What ``config`` names; None is the host. ``{"emulated": True}``: the emulated card, on the host."""
    if config is not None and config.get("emulated"):
        from solbench.evaluate.emulated_card import EmulatedCard

        return EmulatedCard()
    return Host() if config is None else Gpu(config)
