"""What the emulated gfx1200 card executed: counts of a candidate's machine code, never times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from solbench.model.record import Value

# The card that is emulated.
TARGET: Final = "gfx1200"
# Launches of one call that are listed; the others are counted.
MAX_LAUNCHES: Final = 64
MAX_COUNT: Final = 2**53 - 1
MAX_WARNINGS, MAX_WARNING = 16, 600
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Counts = Annotated[dict[Annotated[str, StringConstraints(min_length=1, max_length=60)], Count], Field(max_length=60)]
Extent = tuple[Count, Count, Count]
_ELSEWHERE: Final = frozenset({"LDS", "scratch", "scalar"})
# How calls ran: see docs/emulator.md.
Way = Literal["lock-step", "lock-step, checked", "permuted"]


class EmulatedLaunch(Value):
    """One launch: work-groups, threads of one, the autotuner's configuration, executed wave-instructions."""

    kernel: str = Field(max_length=200)
    grid: Extent
    block: Extent
    configuration: str | None = Field(None, max_length=400)
    instructions: Count


class Executed(Value):
    """One call: the first ``launches`` of ``count``, wave-instructions of all of them by engine, operations of matrix
    instructions by format (two a multiply and add), and bytes that lanes loaded and stored, by memory."""

    launches: tuple[EmulatedLaunch, ...] = Field(max_length=MAX_LAUNCHES)
    count: Count
    instructions: Count
    engines: Counts
    wmma_operations: Counts
    loaded_bytes: Counts
    stored_bytes: Counts


def moved_bytes(by_memory: Mapping[str, int]) -> int:
    """Bytes of tensors among those that lanes loaded or stored: neither those of local memory, nor what waves load as
    scalars, arguments most of all."""
    return sum(size for memory, size in by_memory.items() if memory not in _ELSEWHERE)


class EmulatedInstance(Value):
    """A workload, or the same at smaller sizes (``reduced``: which axes), and how its calls ran there, in their order.

    ``executed``: of the first call, null where it did not end. ``ended``: why not, else null. ``warnings``: what the
    first call's findings say that do not fail it.
    """

    axes: dict[str, int]
    reduced: str | None
    calls: tuple[Way, ...]
    executed: Executed | None
    ended: str | None
    warnings: tuple[Annotated[str, StringConstraints(max_length=MAX_WARNING)], ...] = Field((), max_length=MAX_WARNINGS)


class Emulation(Value):
    """How a verdict came about without the card. ``limit``: wave-instructions of one call."""

    limit: Count
    instances: tuple[EmulatedInstance, ...] = Field(min_length=1, max_length=4)
