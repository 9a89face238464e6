"""What emulation finds in a program, in words that its author can use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

# Findings kept of one kind at one instruction; the rest is counted.
KEPT: Final = 4
# What each kind says, with the fields of a finding.
KINDS: Final[Mapping[str, str]] = {
    "out-of-bounds load": "reads {bytes} bytes at byte {offset} of {memory}, which has {size}",
    "out-of-bounds store": "writes {bytes} bytes at byte {offset} of {memory}, which has {size}",
    "out-of-bounds atomic": "changes {bytes} bytes at byte {offset} of {memory}, which has {size}",
    "no memory": "accesses address {offset:#x}, where no memory is",
    "read-only store": "writes byte {offset} of {memory}, which is read-only",
    "misaligned": "accesses {bytes} bytes at byte {offset} of {memory}; the card needs multiples of {bytes}",
    "race": "{other} of wave {other_wave} in group {other_group} and this one meet at byte {offset} of {memory},"
            " and nothing orders them",
    "missing wait": "uses {memory} before what was loaded or stored there is waited for",
    "uninitialised register": "uses {memory}, which nothing wrote",
    "uninitialised memory": "uses byte {offset} of {memory}, which nothing wrote",
    "partial EXEC": "needs all 32 lanes, but only lanes of EXEC {offset:#010x} are on",
    "deadlock": "waits at a barrier that other waves never reach",
    "wild branch": "goes to address {offset:#x}, where no instruction is",
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where an instruction is: address in the code object, mnemonic, and source file and line if they are known."""

    address: int
    mnemonic: str
    source: tuple[str, int] | None

    def __str__(self) -> str:
        line = f", {self.source[0]}:{self.source[1]}" if self.source else ""
        return f"{self.mnemonic} at {self.address:#x}{line}"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. ``times``: lanes in which the same instruction did the same, this one included.

    memory  name of the tensor or argument, ``LDS``, ``scratch``, or a register
    offset  byte from the start of it
    size    bytes that it has
    other   for races: the earlier access with its instruction
    """

    kind: str
    place: Place
    group: tuple[int, int, int]
    wave: int
    lane: int
    memory: str = ""
    offset: int = 0
    bytes: int = 0
    size: int = 0
    other: str = ""
    other_wave: int = 0
    other_group: tuple[int, int, int] = (0, 0, 0)
    times: int = 1

    def __str__(self) -> str:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        said = KINDS[self.kind].format(**values)
        who = f"lane {self.lane} of wave {self.wave} in group {self.group}"
        more = f" ({self.times} times)" if self.times > 1 else ""
        return f"{self.kind}: {who} {said}: {self.place}{more}"


@dataclass
class Collector:
    """Findings of one run, the first few of each kind and instruction."""

    kept: dict[tuple[str, int], list[Finding]] = field(default_factory=dict)
    times: Counter[tuple[str, int]] = field(default_factory=Counter)

    def add(self, finding: Finding, times: int) -> None:
        """One finding that ``times`` lanes share."""
        key = (finding.kind, finding.place.address)
        self.times[key] += times
        held = self.kept.setdefault(key, [])
        if len(held) < KEPT and not any((h.memory, h.group, h.wave) == (finding.memory, finding.group, finding.wave)
                                        for h in held):  # fmt: skip
            held.append(finding)

    def all(self) -> tuple[Finding, ...]:
        """By address of the instruction; the first of each kind and instruction tells how often."""
        found: list[Finding] = []
        for key in sorted(self.kept, key=lambda key: (key[1], key[0])):
            first, *rest = self.kept[key]
            found += [_counted(first, self.times[key]), *rest]
        return tuple(found)


def _counted(finding: Finding, times: int) -> Finding:
    values = {name: getattr(finding, name) for name in finding.__dataclass_fields__}
    return Finding(**{**values, "times": times})


def place_of(instruction: Instruction) -> Place:
    """Where an instruction is."""
    return Place(instruction.address, instruction.name, instruction.source)
