"""Accesses of two waves to the same bytes that nothing orders.

Two accesses meet where at least one of them writes, they are not both atomic, and neither comes before the other: waves
of one group are ordered by its barriers, groups by atomics on one address (what a group did before it changed the
address comes before what another does after it saw that). Loads and stores of device or system scope count as atomic.
A write that leaves the bytes as they are meets nobody: whoever came first, the memory is the same.

Kept is the last write and the last read of each grain of memory (4 bytes, or 1 where accesses are narrower), so one of
several races on the same bytes may go unseen. What is ordered in ways that this does not follow counts as ordered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from solbench.gfx12.clocks import Clocks
from solbench.gfx12.findings import Finding, place_of
from solbench.gfx12.integers import Array
from solbench.gfx12.memory import Local, Region, Scratch, place
from solbench.gfx12.records import Records
from solbench.gfx12.replicas import Replicas
from solbench.gfx12.state import LANES, State

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction, Program

# Who read a grain since it was written: one wave; several of a group between two barriers, by one instruction or by
# different ones; several groups.
_ONE, _SAME, _WAVES, _GROUPS = 0, 1, 2, 3
_REPORTED: Final = 8


@dataclass
class Shadow:
    """Per grain of a region: record of the last write, of the last read, and who read."""

    size: int
    grain: int = 4
    wrote: Array = None
    read: Array = None
    readers: Array = None

    def __post_init__(self) -> None:
        grains = -(-self.size // self.grain)
        self.wrote = np.zeros(grains, np.int32)
        self.read = np.zeros(grains, np.int32)
        self.readers = np.zeros(grains, np.uint8)

    def refine(self) -> None:
        """Single bytes from now on."""
        if self.grain == 4:
            self.wrote, self.read, self.readers = (
                np.repeat(held, 4)[: self.size] for held in (self.wrote, self.read, self.readers)
            )
            self.grain = 1


@dataclass
class Touched:
    """The grains of one access: number of each, the row of its wave among the selected, its lane, and its record."""

    shadow: Shadow
    grains: Array
    rows: Array
    lanes: Array
    records: Array


@dataclass
class Races:
    """What all batches of a run did to memory so far.

    ``exchanges``: the program compares and swaps. Such a loop starts with a load that needs no order, so then loads
    and atomics do not meet.
    """

    program: Program
    groups: int
    waves_per_group: int
    exchanges: bool
    shadows: dict[int, Shadow] = field(default_factory=dict)
    kept_alive: list[Region] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.records = Records()
        self.replicas = Replicas(self.program)
        self.clocks = Clocks(self.groups)

    def start_batch(self) -> None:
        """The LDS of earlier groups is gone."""
        for region in self.kept_alive:
            if isinstance(region, Local):
                self.shadows.pop(id(region), None)
        self.kept_alive = [region for region in self.kept_alive if not isinstance(region, Local)]

    def load(self, m: State, held: Instruction, region: Region, offset: Array, mask: Array, size: int) -> None:
        """The selected waves read."""
        atomic = _scoped(held)
        touched = self._touch(m, held, region, offset, mask, size, atomic)
        if touched is None:
            return
        wrote = touched.shadow.wrote[touched.grains]
        if not isinstance(region, Local) and wrote.any():
            wrote = np.where(self._replicated(m, held, region, touched, wrote), 0, wrote)
        self._meet(m, held, region, touched, wrote, "a write", only_plain=atomic or self.exchanges)
        if atomic:
            self.clocks.acquire(self._synchronising(m, touched))
        else:
            self._note_read(m, touched)

    def before_store(
        self, m: State, held: Instruction, region: Region, offset: Array, mask: Array, size: int
    ) -> tuple[Touched, Array] | None:
        """The selected waves are about to write; returns what :meth:`after_store` needs."""
        touched = self._touch(m, held, region, offset, mask, size, _scoped(held))
        if touched is None:
            return None
        if self.replicas.waiting:
            waves = np.unique(self.records.wave[touched.records]).tolist()
            self.replicas.stored(held.address, waves, m.report.found)
        return touched, region.by_size[touched.shadow.grain][touched.grains]

    def after_store(
        self, m: State, held: Instruction, region: Region, before: tuple[Touched, Array], written: Array
    ) -> None:
        """They wrote ``written``, one value a grain in the order of lanes."""
        touched, old = before
        shadow, grains, atomic = touched.shadow, touched.grains, _scoped(held)
        changed = written != old
        self._meet(m, held, region, touched, np.where(changed, shadow.wrote[grains], 0), "a write", only_plain=atomic)
        self._meet_readers(m, held, region, touched, changed)
        shadow.wrote[grains] = touched.records
        winner = shadow.wrote[grains]
        beside = (winner != touched.records) & (region.by_size[shadow.grain][grains] != written)
        if beside.any() and not atomic:
            self._report(m, held, region, touched, np.flatnonzero(beside), winner, "a write")
        if atomic:
            self.clocks.release(self._synchronising(m, touched))

    def atomic(self, m: State, held: Instruction, region: Region, offset: Array, mask: Array, size: int) -> None:
        """The selected waves change memory atomically."""
        touched = self._touch(m, held, region, offset, mask, size, True)
        if touched is None:
            return
        grains = touched.grains
        self._meet(m, held, region, touched, touched.shadow.wrote[grains], "a write", only_plain=True)
        if not self.exchanges:
            self._meet_readers(m, held, region, touched, np.ones(len(grains), bool))
        touched.shadow.wrote[grains] = touched.records
        for pair in self._synchronising(m, touched):
            # One after the other, as the memory does them: each sees what those before it made known.
            self.clocks.acquire([pair])
            self.clocks.release([pair])

    def fence(self, m: State) -> None:
        """The selected waves drop what their caches hold: what they saw by atomics comes before what they do next."""
        groups = np.unique(m.first_group + m.group[m.numbers()])
        self.clocks.fence([int(group) for group in groups])

    def _touch(
        self, m: State, held: Instruction, region: Region, offset: Array, mask: Array, size: int, atomic: bool
    ) -> Touched | None:
        if region.read_only or isinstance(region, Scratch):
            return None
        shape = (m.count, LANES)
        rows, lanes = np.nonzero(np.broadcast_to(True if mask is None else mask, shape))
        if not rows.size:
            return None
        shadow = self.shadows.get(id(region))
        if shadow is None:
            shadow = self.shadows[id(region)] = Shadow(region.by_size[1].size)
            self.kept_alive.append(region)
        at = np.broadcast_to(place(m, region, offset), shape)[rows, lanes]
        if shadow.grain == 4 and (size < 4 or (at & 3).any()):
            shadow.refine()
        each = max(1, size // shadow.grain)
        first = at // shadow.grain
        grains = first if each == 1 else (first[:, None] + np.arange(each)).reshape(-1)
        waves = m.numbers()
        group = m.first_group + m.group[waves]
        self.clocks.tick(self.records.accesses + 1)
        made = self.records.add(
            m.first_group * self.waves_per_group + waves, group, m.barriers.passed[m.group[waves]],
            self.clocks.now[group], held, atomic,
        )  # fmt: skip
        rows, lanes = np.repeat(rows, each), np.repeat(lanes, each)
        return Touched(shadow, grains, rows, lanes, made[rows])

    def _unordered(self, touched: Touched, others: Array, places: Array) -> Array:
        """Whether the records ``others`` of other waves are not before the accesses at ``places``."""
        records = self.records
        mine = touched.records[places]
        other = others[places]
        apart = records.wave[other] != records.wave[mine]
        same_group = records.group[other] == records.group[mine]
        together = same_group & (records.epoch[other] == records.epoch[mine])
        ordered = self.clocks.ordered(records.group[other], records.time[other], records.group[mine])
        lock = same_group & self.clocks.acquired_since(records.group[mine], records.number[other])
        return apart & ((together & ~lock) | (~same_group & ~ordered))

    def _meet(
        self, m: State, held: Instruction, region: Region, touched: Touched, others: Array, what: str, only_plain: bool
    ) -> None:
        places = np.flatnonzero(others)
        if only_plain and places.size:
            places = places[~self.records.atomic[others[places]]]
        if not places.size:
            return
        bad = self._unordered(touched, others, places)
        if bad.any():
            self._report(m, held, region, touched, places[bad], others, what)

    def _meet_readers(self, m: State, held: Instruction, region: Region, touched: Touched, changed: Array) -> None:
        others = np.where(changed, touched.shadow.read[touched.grains], 0)
        places = np.flatnonzero(others)
        if not places.size:
            return
        records = self.records
        bad = self._unordered(touched, others, places)
        # The last reader may be this wave or an ordered one; others that read may still not be.
        mine, other = touched.records[places], others[places]
        readers = touched.shadow.readers[touched.grains[places]]
        same_group = records.group[other] == records.group[mine]
        alone = same_group & ~self.clocks.acquired_since(records.group[mine], records.number[other])
        bad |= alone & (readers == _GROUPS)
        same_epoch = records.epoch[other] == records.epoch[mine]
        bad |= alone & (readers == _WAVES) & same_epoch
        if isinstance(region, Local):
            bad |= alone & (readers == _SAME) & same_epoch
        else:
            copies = alone & same_epoch & (readers == _SAME)
            later = copies & self.replicas.may_wait(records, other)
            bad = (bad | copies) & ~later
            # Where the writer itself read last, nobody knows the other waves.
            known = later & (records.wave[other] != records.wave[mine])
            self._wait(m, held, region, touched, places[known], others, others, "a read")
        if bad.any():
            self._report(m, held, region, touched, places[bad], others, "a read")

    def _replicated(self, m: State, held: Instruction, region: Region, touched: Touched, wrote: Array) -> Array:
        """Loads of what another wave wrote that are copies of the load by which the writer read it before; they wait
        for what becomes of them."""
        records, shadow = self.records, touched.shadow
        mine, read = touched.records, shadow.read[touched.grains]
        together = (records.group[read] == records.group[mine]) & (records.epoch[read] == records.epoch[mine])
        copies = together & (records.which[read] == records.which[mine]) & (records.group[wrote] == records.group[mine])
        by_writer = records.wave[read] == records.wave[wrote]
        found = (wrote != 0) & (read != 0) & copies & (by_writer | (shadow.readers[touched.grains] == _SAME))
        found &= (records.wave[wrote] != records.wave[mine]) & self.replicas.may_wait(records, mine)
        self._wait(m, held, region, touched, np.flatnonzero(found), wrote, mine, "a write")
        return found

    def _wait(
        self, m: State, held: Instruction, region: Region, touched: Touched, places: Array, others: Array,
        loads: Array, what: str,
    ) -> None:  # fmt: skip
        """Races at ``places`` that count once the waves of ``loads`` (records) store what they read."""
        waves, firsts, times = np.unique(self.records.wave[loads[places]], return_index=True, return_counts=True)
        for wave, first, count in zip(waves.tolist(), firsts.tolist(), times.tolist(), strict=True):
            at = int(places[first])
            load = self.records.instruction(int(loads[at])).address
            self.replicas.wait(wave, load, self._finding(m, held, region, touched, at, others, what), count)

    def _note_read(self, m: State, touched: Touched) -> None:
        shadow, grains, mine = touched.shadow, touched.grains, touched.records
        records = self.records
        before, readers = shadow.read[grains], shadow.readers[grains]
        there = before != 0
        if there.any():
            same_group = records.group[before] == records.group[mine]
            same_epoch = records.epoch[before] == records.epoch[mine]
            same_wave = records.wave[before] == records.wave[mine]
            ordered = self.clocks.ordered(records.group[before], records.time[before], records.group[mine])
            same_instruction = (records.which[before] == records.which[mine]) & (readers <= _SAME)
            others = np.where(same_wave, readers, np.where(same_instruction, _SAME, _WAVES))
            within = np.where(readers == _GROUPS, _GROUPS, np.where(same_epoch, others, _ONE))
            across = np.where(ordered, _ONE, _GROUPS)
            state = np.where(there, np.where(same_group, within, across), _ONE).astype(np.uint8)
            shadow.readers[grains] = state
            np.maximum.at(shadow.readers, grains, state)
        shadow.read[grains] = mine
        last = shadow.read[grains]
        beside = last != mine
        if beside.any():
            other_group = records.group[last[beside]] != records.group[mine[beside]]
            np.maximum.at(shadow.readers, grains[beside], np.where(other_group, _GROUPS, _SAME).astype(np.uint8))

    def _synchronising(self, m: State, touched: Touched) -> list[tuple[int, tuple[int, int]]]:
        """Group and address of the accesses that can order groups: few lanes at few addresses, as locks are."""
        groups = self.records.group[touched.records]
        pairs = np.unique(np.stack((groups, touched.grains)), axis=1)
        if pairs.shape[1] > 4 * m.count:
            return []
        key = id(touched.shadow)
        return [(int(group), (key, int(grain))) for group, grain in pairs.T]

    def _report(
        self, m: State, held: Instruction, region: Region, touched: Touched, places: Array, others: Array, what: str
    ) -> None:
        for turn, at in enumerate(places[:_REPORTED].tolist()):
            m.report.found.add(
                self._finding(m, held, region, touched, at, others, what), len(places) if turn == 0 else 0
            )

    def _finding(
        self, m: State, held: Instruction, region: Region, touched: Touched, at: int, others: Array, what: str
    ) -> Finding:
        records, other = self.records, int(others[at])
        group, wave = divmod(int(m.numbers()[touched.rows[at]]), m.waves_per_group)
        offset = int(touched.grains[at]) * touched.shadow.grain
        if isinstance(region, Local):
            offset -= group * region.stride
        return Finding(
            "race", place_of(held), m.report.group(m.first_group + group), wave, int(touched.lanes[at]),
            region.name, offset, touched.shadow.grain, region.size,
            f"{what} by {place_of(records.instruction(other))}",
            int(records.wave[other]) % m.waves_per_group, m.report.group(int(records.group[other])),
        )  # fmt: skip


def _scoped(held: Instruction) -> bool:
    """Whether an access is visible to other groups at once, as compilers write atomic and volatile ones."""
    return any(
        "SCOPE_DEV" in operand or "SCOPE_SYS" in operand
        for operation in held.operations
        for operand in operation.operands
    )
