"""A GPU: what it is, what it does right now, and what both drivers share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar import hardware
from solar.errors import HardwareError
from solbench.errors import InputError, UndecidedError, UnsupportedError

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"


@dataclass(frozen=True)
class Card:
    """One card. ``uuid``: whole, as the driver writes it. ``arch``: the target's name. ``pci``: 0000:03:00.0.

    ``cache_bytes``: caches from level 2 on together, by the driver's word, None where it does not tell.
    """

    platform: str
    uuid: str
    name: str
    arch: str
    pci: str
    memory_bytes: int | None
    cache_bytes: int | None


@dataclass(frozen=True)
class Process:
    """A process that uses a card. ``compute``: it computes there, rather than draws."""

    pid: int
    name: str
    memory_bytes: int | None
    compute: bool


@dataclass(frozen=True)
class Observation:
    """One look at a card; None is what the driver does not tell. ``throttle``: what holds the clocks down, by name."""

    graphics_hz: float | None
    memory_hz: float | None
    power_w: float | None
    temperature_c: float | None
    throttle: tuple[str, ...] | None
    level: str | None
    processes: tuple[Process, ...] | None


class Driver(ABC):
    """Cards of one platform through its management library, a Python module whose calls raise ``error``.

    A call that the library refuses raises :class:`UndecidedError` here.
    """

    platform: str

    def __init__(self, module: Any, error: type[Exception]) -> None:
        """``module``: the library, initialised."""
        self._module = module
        self._error = error
        self._handles: dict[str, Any] = {}

    @abstractmethod
    def cards(self) -> tuple[Card, ...]:
        """Every card that the library lists."""

    @abstractmethod
    def observe(self, card: Card) -> Observation:
        """One look at a card."""

    @abstractmethod
    def device_files(self, card: Card) -> tuple[str, ...]:
        """Device nodes through which this card, and no other, is used. :class:`UndecidedError` when one is missing."""

    @abstractmethod
    def level(self, card: Card) -> str | None:
        """Name of the performance level in force; None where the platform has none."""

    @abstractmethod
    def set_level(self, card: Card, level: str) -> None:
        """Ask for a performance level."""

    def _keep(self, uuid_of: str, handles: Sequence[Any]) -> None:
        """Remember each card's handle under its UUID, which the call ``uuid_of`` tells."""
        self._handles = {self._call(uuid_of, handle): handle for handle in handles}
        if len(self._handles) < len(handles):
            raise UndecidedError(
                "two cards here answer to one UUID, so no lock could tell them apart; unbind one of them"
            )

    def _handle(self, card: Card) -> Any:
        if card.uuid not in self._handles:
            self.cards()
        if card.uuid not in self._handles:
            raise UndecidedError(f"{card.uuid}: this card is gone")
        return self._handles[card.uuid]

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._module, name)(*arguments)
        except self._error as error:
            raise UndecidedError(f"{name}: {' '.join(str(error).split())}") from None

    def _told(self, name: str, *arguments: Any) -> Any:
        """Like a call, but None where the card or its kernel driver does not tell."""
        try:
            return self._call(name, *arguments)
        except UndecidedError:
            return None


@dataclass(frozen=True)
class Absent:
    """A platform that is not here, and why."""

    platform: str
    why: str


def drivers() -> tuple[tuple[Driver, ...], tuple[Absent, ...]]:
    """Drivers that answer on this machine, and those that do not."""
    from solbench.device import cuda, rocm

    found: list[Driver] = []
    absent: list[Absent] = []
    for platform, start in (("rocm", rocm.start), ("cuda", cuda.start)):
        try:
            found.append(start())
        except UnsupportedError as error:
            absent.append(Absent(platform, str(error)))
    return tuple(found), tuple(absent)


def drivers_for(target: str) -> tuple[Driver, ...]:
    """Drivers that answer on this machine, for the cards of ``target``.

    :class:`InputError` where that names no architecture, :class:`UnsupportedError` where no driver answers.
    """
    if not re.fullmatch(r"gfx[0-9a-f]{3,}|sm_[0-9]{2,}a?", target):
        raise InputError(f"--target {target}", "neither cpu nor an architecture, such as gfx1200 or sm_90")
    found, absent = drivers()
    if not found:
        why = "; ".join(f"{missing.platform}: {missing.why}" for missing in absent)
        raise UnsupportedError(f"--target {target}: no card here ({why})")
    return found


def find(found: Sequence[Driver], uuid: str | None) -> tuple[Driver, Card]:
    """The card with this UUID; without one, the only card there is."""
    cards = [(driver, card) for driver in found for card in driver.cards()]
    if not cards:
        raise UnsupportedError("no GPU that can be measured here; `solbench device doctor` says what is missing")
    if uuid is None:
        if len(cards) > 1:
            raise InputError("GPU_LOCK_UUID", "several cards are here; name one (`solbench device list`)")
        return cards[0]
    for driver, card in cards:
        if card.uuid.lower() == uuid.lower():
            return driver, card
    raise InputError(f"card {uuid}", "no card here has this UUID; `solbench device list` prints them")


def flush_bytes(card: Card, runtime_cache_bytes: int | None = None) -> int:
    """Bytes that a flush writes: twice the caches from level 2 on, by the largest of three words.

    These are the machine model of the architecture, the driver, and what the runtime tells (``native``; it counts only
    level 2). :class:`UnsupportedError` when none of them knows.
    """
    known = [table_cache_bytes(card.arch), card.cache_bytes, runtime_cache_bytes]
    largest = max((size for size in known if size), default=0)
    if not largest:
        raise UnsupportedError(f"{card.arch}: cache sizes unknown, so nothing says how much a flush must write")
    return 2 * largest


def table_cache_bytes(arch: str) -> int | None:
    """Level 2 and, where there is one, the memory-side cache, of the packaged machine model; None without a model."""
    try:
        caches = hardware.read(arch).caches
    except HardwareError:
        return None
    # A card whose level 2 is its last level has both figures, equal.
    return int(sum({figure.value for figure in caches.values()})) or None


def refuse_override(environment: Mapping[str, str]) -> None:
    """Raise :class:`InputError` where ROCm was told to take the card for another one."""
    if environment.get(OVERRIDE):
        raise InputError(OVERRIDE, "makes ROCm run code of another architecture; unset it to measure")


def refuse_busy(card: Card, seen: Observation, ours: Collection[int]) -> None:
    """Raise :class:`UndecidedError` when a process that is not of ``ours`` computes on the card."""
    busy = [process for process in foreign(seen, ours) if process.compute]
    if busy:
        names = ", ".join(f"{process.name} (pid {process.pid})" for process in busy[:3])
        raise UndecidedError(f"{card.uuid}: busy with {names}; end it, or take another card")


def foreign(seen: Observation, ours: Collection[int]) -> Iterator[Process]:
    """Processes on the card that are not of ``ours``, a desktop's included."""
    return (process for process in seen.processes or () if process.pid not in ours)


def existing(paths: Sequence[str]) -> tuple[str, ...]:
    """``paths``, which must all be there."""
    for path in paths:
        if not Path(path).exists():
            raise UndecidedError(f"{path}: is not there; is the kernel driver loaded, and this user let in?")
    return tuple(paths)


def process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "unknown"
