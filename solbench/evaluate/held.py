"""A card that a session holds: locked, idle, with stable clocks where it has them, and how its processes reach it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from solbench.device import locks
from solbench.device.card import Card, Driver, drivers_for, find, flush_bytes, refuse_override
from solbench.device.clocks import Clocks
from solbench.device.ownership import Ownership, own
from solbench.errors import UndecidedError, UnsupportedError
from solbench.evaluate.workers import CardAccess
from solbench.model.trace import Method

# What the runtimes read of the kernel's view of the hardware; everything in a sandbox is read-only.
_READS = ("/sys/class/kfd", "/sys/class/drm", "/sys/devices", "/sys/dev", "/sys/module", "/sys/bus/pci", "/opt/rocm")


@dataclass(frozen=True)
class HeldCard:
    """``device``: torch's name of the kind of device; ``library``: path of the runtime, None: the one of PyTorch."""

    driver: Driver
    card: Card
    ownership: Ownership
    access: CardAccess
    device: str = "cuda"  # which is what PyTorch for ROCm calls it too
    library: str | None = None

    @property
    def config(self) -> dict[str, Any]:
        """For :func:`solbench.evaluate.compute.compute`."""
        return {
            "platform": self.card.platform, "pci": self.card.pci, "device": self.device, "library": self.library,
        }  # fmt: skip

    @property
    def flush_bytes(self) -> int:
        """What a flush writes, before the runtime has been asked about its caches."""
        return flush_bytes(self.card)

    @property
    def method(self) -> Method:
        """How its times are taken."""
        return "hip_event" if self.card.platform == "rocm" else "cuda_event"

    @property
    def clocks(self) -> Clocks:
        return self.ownership.clocks

    @property
    def labels(self) -> tuple[str, ...]:
        """Which card, and the state of its clocks, for a trace."""
        held = self.clocks
        state = f"locked at {held.set}" if held.locked else f"unlocked ({held.why or 'not read back'})"
        return f"card: {self.card.name}, {self.card.uuid}", f"clocks: {state}"

    def identity(self) -> dict[str, Any]:
        """The card, for the record."""
        return asdict(self.card)

    def observe(self) -> dict[str, Any] | None:
        """Clocks, power, temperature and throttling now; None where the driver does not answer."""
        try:
            seen = asdict(self.driver.observe(self.card))
        except UndecidedError:
            return None
        del seen["processes"]
        return seen


@contextlib.contextmanager
def hold(
    target: str, *, uuid: str | None = None, lock_dir: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Iterator[HeldCard]:
    """Own the card named by ``uuid`` (else GPU_LOCK_UUID, else the only one), which must be a ``target``, both locks.

    :class:`InputError`: no architecture, no lock folder, no such card, an override in force. :class:`UnsupportedError`:
    no card, or one of another architecture. :class:`UndecidedError`: owned, busy, or left unrecovered.
    """
    refuse_override(environment)  # whatever cards it would show
    driver, card = find(drivers_for(target), locks.uuid(uuid, environment))
    if card.arch != target:
        raise UnsupportedError(f"--target {target}: the card here is {card.arch} ({card.name}, {card.uuid})")
    access = CardAccess(driver.device_files(card), _READS)
    folder = locks.directory(lock_dir, environment)
    with own(driver, card, folder, environment=environment) as mine, mine.execution():
        yield HeldCard(driver, card, mine, access)
