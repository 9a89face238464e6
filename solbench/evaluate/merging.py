"""Which measurement sets are one, and what they say together. No files: see ``recording.py``.

Sets of one target, protocol, harness, environment and kind of device may be put together. What a card has for itself
stands in the header's ``cards``, and each trace that was taken on a card names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from solbench.errors import InputError
from solbench.model.trace import Omission, SetHeader, Trace

Record = Trace | Omission
# The reason of an omission that says nothing about the workload: what a later run does about it stands.
BUDGET = "budget"
# What is a single card's, of all that a header says of the device.
_OF_ONE_CARD = ("uuid", "pci", "floors")
_SAME = ("target", "protocol", "harness", "environment", "device")


@dataclass(frozen=True)
class Key:
    """What a record is about; a set holds each at most once."""

    problem: str
    workload: str
    solution: str

    def __str__(self) -> str:
        return f"{self.problem}/{self.workload}/{self.solution}"


@dataclass(frozen=True)
class Line:
    """One record, the bytes of its line, and where that stands."""

    problem: str
    record: Record
    data: bytes
    where: str

    @property
    def key(self) -> Key:
        return Key(self.problem, self.record.workload, self.record.solution)


def by_card(header: SetHeader) -> SetHeader:
    """``header`` with what is a single card's moved from ``device`` to ``cards``; as it is without a card."""
    if header.cards or "uuid" not in header.device:
        return header
    own = {name: header.device[name] for name in _OF_ONE_CARD if name in header.device}
    shared = {name: value for name, value in header.device.items() if name not in own}
    own["floor_s"] = header.floor_s
    if header.controls is not None:
        own["controls"] = [control.as_dict() for control in header.controls]
    return header.model_copy(update={"device": shared, "cards": (own,), "controls": None})


def require_same(header: SetHeader, other: SetHeader, where: str, do: str = "they cannot be one set") -> None:
    """:class:`InputError` naming ``where`` and what to ``do`` unless both may stand in one set."""
    for name in _SAME:
        if _stable(by_card(header), name) != _stable(by_card(other), name):
            raise InputError(f"{where}: {name}", f"differs; {do}")


def united(headers: Sequence[SetHeader]) -> SetHeader:
    """One header of sets that may stand in one: the first one's, with the cards of all.

    Clocks are locked where they were for every set. The floor is the lowest of the cards'; the machine model is the
    first that there is.
    """
    every = [by_card(header) for header in headers]
    cards: dict[str, dict[str, Any]] = {}
    for header in every:
        for card in header.cards:
            cards.setdefault(card["uuid"], card)
    return every[0].model_copy(update={
        "cards": tuple(cards[uuid] for uuid in sorted(cards)),
        "floor_s": min((card["floor_s"] for card in cards.values()), default=every[0].floor_s),
        "clocks": "locked" if all(header.clocks == "locked" for header in every) else "unlocked",
        "hardware": next((header.hardware for header in every if header.hardware is not None), None),
    })  # fmt: skip


def distinct(lines: Iterable[Line]) -> list[Line]:
    """``lines`` without repetitions; an omission for want of time gives way to what another run found.

    :class:`InputError` naming both places where two records of one workload and solution differ.
    """
    kept: dict[Key, Line] = {}
    for line in lines:
        earlier = kept.get(line.key)
        if earlier is None or (is_left(earlier) and not is_left(line)):
            kept[line.key] = line
        elif not is_left(line) and earlier.record != line.record:
            raise InputError(f"{line.where}, {earlier.where}", f"two different records of {line.key}")
    return list(kept.values())


def is_left(line: Line) -> bool:
    """Whether the record only says that there was no time for the workload."""
    return isinstance(line.record, Omission) and line.record.reason == BUDGET


def _stable(header: SetHeader, name: str) -> Any:
    """A field of the header without what is measured anew at every start."""
    value = header.as_dict()[name]
    return {key: item for key, item in value.items() if key != "floors"} if name == "device" else value
