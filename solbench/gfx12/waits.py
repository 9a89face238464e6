"""Strict waits: a load's result reaches its registers only when the program waited for it.

Until then the registers hold what they held before, and whoever reads them is told. Counters: "RDNA4 Instruction Set
Architecture Reference Guide", section 5.6. Loads of one counter return in order, so waiting for n leaves the last n
open; scalar loads return in any order, so only waiting for 0 says anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from solbench.gfx12.integers import Array
from solbench.gfx12.operands import SCALARS
from solbench.gfx12.state import State, Step

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

# Counters that a wait instruction waits for; stores and what is not emulated are done at once.
_WAITED: Final = {
    "s_wait_loadcnt": ("load",), "s_wait_dscnt": ("ds",), "s_wait_kmcnt": ("scalar",),
    "s_wait_loadcnt_dscnt": ("load", "ds"), "s_wait_storecnt_dscnt": ("ds",),
}  # fmt: skip
_SCALAR: Final = "scalar"
# Half of a register that an entry writes: all of it, or all of a scalar one.
WHOLE: Final = -1
SCALAR_REGISTER: Final = -2


@dataclass
class Entry:
    """One load: waves, their lanes that are on, its number in each wave's counter, what goes where."""

    waves: Array
    mask: Array
    numbers: Array
    registers: Sequence[tuple[int, int]]
    words: Sequence[Array]
    held: Instruction


@dataclass
class Waits:
    """What loads of a batch have read and their registers do not hold yet.

    ``open``: entries by counter in order; ``issued``: loads of each wave by counter; ``pending``: how many entries
    will write a register of a wave, vector ones first.
    """

    waves: int
    registers: int
    open: dict[str, list[Entry]] = field(default_factory=dict)
    issued: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pending: Array = np.zeros((self.registers + SCALARS, self.waves), np.int16)
        self.any_open = False
        # Of the "ds" counter: number of each wave's last store, and up to which number it waited.
        self.stored: Array = np.zeros(self.waves, np.int64)
        self.waited: Array = np.zeros(self.waves, np.int64)

    def withhold(
        self, m: State, counter: str, registers: Sequence[tuple[int, int]], words: Sequence[Array], held: Instruction
    ) -> None:
        """Keep the words of a load until it is waited for."""
        waves = m.numbers()
        issued = self.issued.setdefault(counter, np.zeros(self.waves, np.int64))
        issued[waves] += 1
        kept = [np.array(word) for word in words]
        entry = Entry(waves, np.array(m.mask), issued[waves], registers, kept, held)
        self.open.setdefault(counter, []).append(entry)
        for place in self._places(registers):
            self.pending[place, waves] += 1
        self.any_open = True

    def count(self, m: State, counter: str) -> None:
        """Something else that the counter counts was issued: it is done at once, but loads before it come first."""
        issued = self.issued.setdefault(counter, np.zeros(self.waves, np.int64))
        waves = m.numbers()
        issued[waves] += 1
        self.stored[waves] = issued[waves]

    def signal(self, m: State, held: Instruction) -> None:
        """The selected waves announce a barrier: others may not see stores to LDS that are still open."""
        waves = m.numbers()
        early = self.stored[waves] > self.waited[waves]
        if early.any():
            m.report.waves(m, held, "missing wait", waves[early], "LDS")

    def _places(self, registers: Sequence[tuple[int, int]]) -> list[int]:
        return [register + (self.registers if half == SCALAR_REGISTER else 0) for register, half in registers]

    def wait(self, m: State, counter: str, most: int) -> None:
        """The selected waves wait until at most ``most`` loads of the counter are open."""
        if counter == "ds" and counter in self.issued:
            waves = m.numbers()
            self.waited[waves] = np.maximum(self.waited[waves], self.issued[counter][waves] - most)
        entries = self.open.get(counter)
        if not entries or (counter == _SCALAR and most):
            return
        limit: Array = np.full(self.waves, -1, np.int64)
        waves = m.numbers()
        limit[waves] = self.issued[counter][waves] - most
        left: list[Entry] = []
        for entry in entries:
            done = entry.numbers <= limit[entry.waves]
            if done.any():
                self._deliver(m, entry, done)
            if not done.all():
                left.append(_part(entry, ~done))
        self.open[counter] = left
        self.any_open = any(self.open.values())
        m.exec_changed()

    def _deliver(self, m: State, entry: Entry, done: Array) -> None:
        waves, mask = entry.waves[done], entry.mask[done]
        for (register, half), word in zip(entry.registers, entry.words, strict=True):
            value = np.broadcast_to(word, (len(entry.waves), *word.shape[1:]))[done]
            if half == SCALAR_REGISTER:
                m.rows[0][register][waves] = value
                continue
            target = m.lanes[0][register] if half == WHOLE else m.halves[0][register][..., half]
            part = target[waves]
            np.copyto(part, value, where=mask)
            target[waves] = part
        for place in self._places(entry.registers):
            self.pending[place, waves] -= 1

    def check(self, m: State, held: Instruction, registers: Sequence[tuple[str, int]], names: Sequence[str]) -> None:
        """Report selected waves that read one of these registers before it was waited for."""
        if not self.any_open:
            return
        waves = m.numbers()
        places = np.array([number + (self.registers if kind == "s" else 0) for kind, number in registers])
        early = self.pending[places[:, None], waves] > 0
        for row in np.flatnonzero(early.any(axis=1)).tolist():
            m.report.waves(m, held, "missing wait", waves[early[row]], names[row])


def _part(entry: Entry, chosen: Array) -> Entry:
    words = [np.broadcast_to(word, (len(entry.waves), *word.shape[1:]))[chosen] for word in entry.words]
    return Entry(entry.waves[chosen], entry.mask[chosen], entry.numbers[chosen], entry.registers, words, entry.held)


def step(name: str, texts: Sequence[str]) -> Step | None:
    """The step of a wait instruction; None where nothing that is emulated is waited for."""
    counters = _WAITED.get(name)
    if counters is None:
        return None
    value = int(texts[0], 0)
    # Two counters in one: loads in bits 13:8, LDS in bits 5:0.
    least = {"load": value >> 8 & 63, "ds": value & 63} if len(counters) == 2 or "storecnt" in name else {}

    def wait(m: State) -> None:
        if m.waits is not None:
            for counter in counters:
                m.waits.wait(m, counter, least.get(counter, value))

    return wait
