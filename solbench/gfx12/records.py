"""What each memory instruction did, one record a wave: who, when, and by which instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from solbench.gfx12.integers import Array

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

_FIELDS = ("wave", "group", "epoch", "time", "number", "which")


class Records:
    """Growing columns; record 0 stands for nothing.

    wave, group  numbers within the launch
    epoch        barriers that the group had passed
    time         the group's clock
    number       of the access, in the order in which they ran
    atomic       whether it was atomic
    which        place of the instruction in ``held``
    """

    def __init__(self) -> None:
        self._used = 1
        self._accesses = 0
        self.held: list[Instruction] = []
        self._known: dict[int, int] = {}
        for name in _FIELDS:
            setattr(self, name, np.full(1024, -1, np.int64))
        self.atomic: Array = np.zeros(1024, bool)

    wave: Array
    group: Array
    epoch: Array
    time: Array
    number: Array
    which: Array

    def add(self, wave: Array, group: Array, epoch: Array, time: Array, held: Instruction, atomic: bool) -> Array:
        """Records of one instruction; returns their numbers, int32."""
        first, last = self._used, self._used + len(wave)
        if last > len(self.wave):
            for name in (*_FIELDS, "atomic"):
                column = getattr(self, name)
                grown = np.zeros(max(last, 2 * len(column)), column.dtype)
                grown[: len(column)] = column
                setattr(self, name, grown)
        self._accesses += 1
        which = self._known.get(held.address)
        if which is None:
            which = self._known[held.address] = len(self.held)
            self.held.append(held)
        here = slice(first, last)
        self.wave[here], self.group[here], self.epoch[here], self.time[here] = wave, group, epoch, time
        self.number[here], self.which[here], self.atomic[here] = self._accesses, which, atomic
        self._used = last
        return np.arange(first, last, dtype=np.int32)

    @property
    def accesses(self) -> int:
        """Accesses so far."""
        return self._accesses

    def instruction(self, record: int) -> Instruction:
        """The instruction of a record."""
        return self.held[int(self.which[record])]
