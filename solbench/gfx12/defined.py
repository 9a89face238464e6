"""Which registers and bytes hold something that was never written, and where that comes to matter.

Every lane of a vector register, every bit of a scalar one and every byte of LDS, scratch and tensors that the host has
not written has a mark: 0 where it is defined, else the instruction to blame. Results take the marks of their operands;
selections take those of what is selected. It matters where an address, a branch or a value that is stored to memory
has one; copies and arithmetic alone do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from solbench.gfx12.findings import Finding, place_of
from solbench.gfx12.integers import Array
from solbench.gfx12.marks import CLEAN, UNWRITTEN, memory_mark, register_mark
from solbench.gfx12.memory import Local, Region, Scratch, place
from solbench.gfx12.operands import EXEC, SCALARS
from solbench.gfx12.state import LANES, State

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

SCC: Final = SCALARS


@dataclass
class Defined:
    """Marks of a batch. ``marked``: registers (kind, number) that may have any; ``names``: what a mark is about."""

    instructions: Sequence[Instruction]
    vectors: Array
    lds: Array
    scratch: Array
    marked: set[tuple[str, int]] = field(default_factory=set)
    names: dict[int, tuple[str, int]] = field(default_factory=dict)
    loaded: list[Array] = field(default_factory=list)
    storing: list[Array] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        registers, waves, _ = self.vectors.shape
        self.scalars: Array = np.full((SCALARS + 1, waves, LANES), UNWRITTEN, np.uint32)
        self.scalars[EXEC : EXEC + 2] = 0
        self.marked = {("v", n) for n in range(1, registers)} | {("s", n) for n in range(SCALARS + 1)}

    def given(self, kind: str, registers: Sequence[int]) -> None:
        """Registers that hold something when a wave starts."""
        held = self.vectors if kind == "v" else self.scalars
        for register in registers:
            held[register] = 0
            self.marked.discard((kind, register))

    def of(self, m: State, kind: str, register: int) -> Array:
        """Marks of one register of the selected waves: (waves, 32) lanes or bits."""
        if (kind, register) not in self.marked:
            return CLEAN
        held = (self.vectors if kind == "v" else self.scalars)[register]
        return held if m.selected is None else held[m.selected]

    def value(self, m: State, kind: str, register: int) -> Array:
        """Marks of a register as a value a lane: any bit of a scalar one marks it."""
        held = self.of(m, kind, register)
        return held if kind == "v" or held is CLEAN else held.max(axis=1, keepdims=True)

    def put(self, m: State, kind: str, register: int, marks: Array, lanes: Any = None) -> None:
        """Set the marks of a register; ``lanes``: of a vector one only these, None for all."""
        clean = not marks.any()
        if clean and (kind, register) not in self.marked:
            return
        held = (self.vectors if kind == "v" else self.scalars)[register]
        here = slice(None) if m.selected is None else m.selected
        if lanes is None:
            held[here] = marks
        else:
            held[here] = np.where(lanes, marks, held[here])
        if not clean:
            self.marked.add((kind, register))
        elif m.selected is None and (lanes is None or not held.any()):
            self.marked.discard((kind, register))

    def read_by(self, marks: Array, number: int, name: str) -> Array:
        """Marks of a result: the instruction that first reads what nothing wrote is to blame."""
        if marks is CLEAN:
            return marks
        fresh = marks == UNWRITTEN
        if not fresh.any():
            return marks
        self.names.setdefault(register_mark(number), (name, 0))
        return np.where(fresh, np.uint32(register_mark(number)), marks)

    def matters(self, m: State, number: int, marks: Array, lanes: Any, name: str) -> None:
        """Report marks of (waves, 32) or (waves, 1) that decide something in these lanes (None: those that are on)."""
        if not marks.any():
            return
        on = m.mask if lanes is None else lanes
        shown = np.where(on, marks, np.uint32(0))
        rows, columns = np.nonzero(shown)
        if not rows.size:
            return
        found, firsts, times = np.unique(shown[rows, columns], return_index=True, return_counts=True)
        numbers = m.numbers()
        for mark, first, count in zip(found.tolist(), firsts.tolist(), times.tolist(), strict=True):
            blamed, kind, memory, offset = number, "uninitialised register", name, 0
            if mark != int(UNWRITTEN):
                blamed = (mark - 1) // 2
                memory, offset = self.names.get(mark, (name, 0))
                kind = "uninitialised register" if mark % 2 else "uninitialised memory"
            group, wave = divmod(int(numbers[rows[first]]), m.waves_per_group)
            finding = Finding(
                kind, place_of(self.instructions[blamed]), m.report.group(m.first_group + group), wave,
                int(columns[first]), memory, offset,
            )  # fmt: skip
            m.report.found.add(finding, count)

    # ---- memory

    def _written(self, region: Region) -> Array | None:
        if isinstance(region, Local):
            return self.lds
        if isinstance(region, Scratch):
            return self.scratch
        return getattr(region, "written", None)

    def load(self, m: State, region: Region, offset: Array, mask: Any, size: int) -> list[Array] | None:
        """Marks of what a load reads, one array a word; None where all of it is defined."""
        written = self._written(region)
        if written is None:
            return None
        words: list[Array] = []
        mark = memory_mark(self.number)
        for word in range(max(1, size // 4)):
            at = place(m, region, offset + 4 * word)
            there = np.logical_and.reduce([written[at + byte] for byte in range(min(4, size))])
            if mask is not None:
                there = there | ~mask
            words.append(np.where(there, np.uint32(0), np.uint32(mark)))
            if not there.all() and mark not in self.names:
                bad = tuple(np.argwhere(np.broadcast_to(~there, (m.count, LANES)))[0])
                self.names[mark] = (region.name, int(np.broadcast_to(offset, (m.count, LANES))[bad]) + 4 * word)
        return words if any(word.any() for word in words) else None

    def take(self, words: int) -> list[Array]:
        """Marks of the next words that the instruction stores."""
        taken, self.storing = self.storing[:words], self.storing[words:]
        return taken or [CLEAN] * words

    def store(self, m: State, region: Region, offset: Array, mask: Any, size: int, marks: Sequence[Array]) -> None:
        """What is stored is defined from now on as far as it was; in tensors it has to be."""
        shape = (m.count, LANES)
        lanes = np.broadcast_to(True if mask is None else mask, shape)
        written = self._written(region)
        own = isinstance(region, (Local, Scratch))
        for number, mark in enumerate(marks):
            if not own:
                self.matters(m, self.number, mark, lanes, "a value to store")
            if written is None:
                continue
            at = np.broadcast_to(place(m, region, offset + 4 * number), shape)[lanes]
            good = np.broadcast_to(mark == 0, shape)[lanes] if own else True
            for byte in range(min(4, size)):
                written[at + byte] = good

    def atomic(self, m: State, region: Region, offset: Array, mask: Any, size: int) -> None:
        """An atomic reads what is there, and leaves it defined."""
        for word in self.load(m, region, offset, mask, size) or ():
            self.matters(m, self.number, word, np.ones((m.count, LANES), bool), region.name)
        self.store(m, region, offset, mask, size, [CLEAN] * max(1, size // 4))
