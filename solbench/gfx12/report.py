"""From lanes at which something is wrong to findings that name tensor, byte, lane, wave and group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from solbench.gfx12.findings import KEPT, Collector, Finding, place_of
from solbench.gfx12.integers import Array
from solbench.gfx12.operands import EXEC
from solbench.gfx12.state import LANES, State

if TYPE_CHECKING:
    from solbench.gfx12.memory import Region
    from solbench.gfx12.program import Instruction


@dataclass
class Report:
    """Findings of one run. ``grid``: work-groups in x, y and z."""

    grid: tuple[int, int, int]
    found: Collector

    def group(self, number: int) -> tuple[int, int, int]:
        """A group's place in the grid."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def bounds(
        self, m: State, held: Instruction, region: Region, offset: Array, bad: Array, size: int, what: str
    ) -> None:
        """Lanes ``bad`` are outside of ``region``."""
        self._lanes(m, held, f"out-of-bounds {what}", bad, region.name, offset, size, region.size)

    def read_only(self, m: State, held: Instruction, region: Region, offset: Array, mask: Any, size: int) -> None:
        """Lanes of ``mask`` write what is read-only."""
        lanes = np.ones((m.count, LANES), bool) if mask is None else mask
        self._lanes(m, held, "read-only store", lanes, region.name, offset, size, region.size)

    def misaligned(self, m: State, held: Instruction, region: Region, offset: Array, wrong: Array, size: int) -> None:
        """Lanes ``wrong`` use an address that the instruction cannot."""
        self._lanes(m, held, "misaligned", wrong, region.name, offset, size, region.size)

    def no_memory(self, m: State, held: Instruction, address: Array, mask: Any, size: int) -> None:
        """Lanes of ``mask`` use addresses that belong to no storage."""
        lanes = np.ones((m.count, LANES), bool) if mask is None else mask
        self._lanes(m, held, "no memory", lanes, "", address, size, 0)

    def partial_exec(self, m: State, held: Instruction) -> None:
        """A matrix instruction runs with lanes off."""
        off = ~m.mask.all(axis=1)
        execs = np.broadcast_to(m.rows[0][EXEC], (m.waves,))
        chosen = execs if m.selected is None else execs[m.selected]
        lanes = np.zeros((m.count, LANES), bool)
        lanes[:, 0] = off
        self._lanes(m, held, "partial EXEC", lanes, "", np.broadcast_to(chosen[:, None], lanes.shape), 4, 0)

    def waves(self, m: State, held: Instruction, kind: str, waves: Array, memory: str = "", offset: int = 0) -> None:
        """Waves (numbers within the batch) at which something is wrong that no lane is to blame for."""
        for wave in waves[:KEPT]:
            group, within = divmod(int(wave), m.waves_per_group)
            self.found.add(
                Finding(kind, place_of(held), self.group(m.first_group + group), within, 0, memory, offset),
                len(waves) if wave == waves[0] else 0,
            )

    def _lanes(
        self, m: State, held: Instruction, kind: str, lanes: Array, memory: str, offset: Array, size: int,
        whole: int,
    ) -> None:  # fmt: skip
        rows, columns = np.nonzero(lanes)
        if not rows.size:
            return
        numbers = m.numbers()
        _, firsts = np.unique(rows, return_index=True)
        for place in firsts[:KEPT]:
            group, within = divmod(int(numbers[rows[place]]), m.waves_per_group)
            at = int(offset[rows[place], columns[place]])
            self.found.add(
                Finding(kind, place_of(held), self.group(m.first_group + group), within, int(columns[place]), memory,
                        at, size, whole),
                rows.size if place == firsts[0] else 0,
            )  # fmt: skip
