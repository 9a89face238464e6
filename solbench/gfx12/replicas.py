"""Loads of waves that have no part in a small tensor.

Triton lets such waves load all of it like the others, and store nothing: in place that looks like a race, and nothing
comes of it as long as the wave that loaded stores nothing that it made of it. So these races wait until it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from solbench.gfx12.findings import Collector, Finding
from solbench.gfx12.integers import Array
from solbench.gfx12.reaches import reached
from solbench.gfx12.records import Records

if TYPE_CHECKING:
    from solbench.gfx12.program import Program


@dataclass
class Replicas:
    """Races that wait: by the address of a store that the loaded value reaches, and the wave that loaded it."""

    program: Program
    reached: dict[int, frozenset[int]] = field(default_factory=dict)
    waiting: dict[int, dict[int, tuple[Finding, int]]] = field(default_factory=dict)

    def effects(self, load: int) -> frozenset[int]:
        """Addresses of what the value of the load at this address reaches."""
        if load not in self.reached:
            self.reached[load] = reached(self.program.instructions, self.program.numbers[load])
        return self.reached[load]

    def may_wait(self, records: Records, loads: Array) -> Array:
        """Of records of loads: whether what they read reaches stores to memory alone."""
        which = records.which[loads]
        found: Array = np.zeros(len(which), bool)
        for number in np.unique(which).tolist():
            names = (
                self.program.instructions[self.program.numbers[a]].name
                for a in self.effects(records.held[number].address)
            )
            stores = all("_store_" in name and not name.startswith(("ds_", "scratch_", "flat_")) for name in names)
            found |= (which == number) & stores
        return found

    def wait(self, wave: int, load: int, finding: Finding, times: int) -> None:
        """Report this when the wave stores what it made of the load."""
        for store in self.effects(load):
            self.waiting.setdefault(store, {}).setdefault(wave, (finding, times))

    def stored(self, address: int, waves: Iterable[int], found: Collector) -> None:
        """These waves execute the store with lanes on."""
        waiting = self.waiting.get(address)
        if not waiting:
            return
        for wave in waves:
            if wave in waiting:
                found.add(*waiting.pop(wave))
