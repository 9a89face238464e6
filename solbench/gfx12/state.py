"""Registers of many waves at once, and which of them an instruction works on.

Vector registers are ``uint32[registers, waves, 32]``, scalar ones ``uint32[128, waves]`` by their operand number, so
one instruction of all waves is one numpy call. ``selected`` narrows that to the waves that are at this instruction.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from solbench.gfx12.integers import Array
from solbench.gfx12.operands import EXEC, SCALARS

if TYPE_CHECKING:
    from solbench.gfx12.arena import Arena
    from solbench.gfx12.barriers import Barriers
    from solbench.gfx12.defined import Defined
    from solbench.gfx12.memory import Local, Scratch
    from solbench.gfx12.races import Races
    from solbench.gfx12.report import Report
    from solbench.gfx12.waits import Waits

LANES: Final = 32
FULL: Final = np.uint32(0xFFFFFFFF)
# Place of a 32-bit type in State.lanes, State.rows and State.columns.
SLOT: Final = {"b32": 0, "u32": 0, "i32": 1, "f32": 2}
# Place of a 16-bit type in State.halves and State.column_halves.
HALF: Final = {"b16": 0, "u16": 0, "bf16": 0, "i16": 1, "f16": 2}
_DTYPES32 = (np.uint32, np.int32, np.float32)
_DTYPES16 = (np.uint16, np.int16, np.float16)


class Unsupported(Exception):
    """Something that is not emulated: it ends the run, which then is neither a pass nor a fail."""


@dataclass
class State:
    """A batch of waves. All arrays are in order of waves; a group's waves follow each other.

    vectors, scalars   registers; ``scc`` bool a wave
    group              number of a wave's work-group within the batch
    selected           None for all waves, a slice, or ascending numbers: the waves that run now
    count              how many these are
    full               whether all lanes of these are on
    overflow           FP16_OVFL of each wave's mode register: a 16-bit float that overflows becomes the largest one
    image              address of the code object
    moved              bytes of lanes, by ``load`` or ``store`` and memory
    """

    vectors: Array
    scalars: Array
    group: Array
    first_group: int
    waves_per_group: int
    arena: Arena
    lds: Local
    scratch: Scratch
    report: Report
    barriers: Barriers
    image: int
    moved: Counter[str]
    races: Races | None = None
    waits: Waits | None = None
    defined: Defined | None = None
    selected: Any = None
    full: bool = True
    _mask: Array | None = None
    scc: Array = field(init=False)
    overflow: Array = field(init=False)

    def __post_init__(self) -> None:
        registers, waves, _ = self.vectors.shape
        self.waves = self.count = waves
        self.scc = np.zeros(waves, bool)
        # Whether any wave ever set FP16_OVFL.
        self.saturates = False
        self.overflow = np.zeros(waves, bool)
        self.lanes = tuple(list(self.vectors.view(kind)) for kind in _DTYPES32)
        self.halves = tuple(
            list(self.vectors.view(kind).reshape(registers, waves, LANES, 2)) for kind in _DTYPES16
        )  # fmt: skip
        self.rows = tuple(list(self.scalars.view(kind)) for kind in _DTYPES32)
        self.columns = tuple(list(self.scalars.view(kind)[:, :, None]) for kind in _DTYPES32)
        self.floats = self.vectors.view(np.float32)
        # Operands of matrix instructions that a later one of the same block reads again.
        self.tiles: dict[tuple[str, int, str], Array] = {}
        self.row_bytes = list(self.scalars.view(np.uint8).reshape(SCALARS, waves, 4))
        self.column_halves = tuple(
            list(self.scalars.view(kind).reshape(SCALARS, waves, 1, 2)) for kind in _DTYPES16
        )  # fmt: skip

    def select(self, selected: Any, count: int) -> None:
        """Run these waves from now on."""
        self.selected, self.count = selected, count
        self.exec_changed()

    def exec_changed(self) -> None:
        """EXEC of the selected waves was written."""
        self._mask = None
        execs = self.rows[0][EXEC]
        if self.selected is not None:
            execs = execs[self.selected]
        self.full = bool((execs == FULL).all())

    @property
    def mask(self) -> Array:
        """Lanes that are on: bool (selected waves, 32)."""
        if self._mask is None:
            self._mask = self.mask_of(EXEC)
        return self._mask

    @contextlib.contextmanager
    def narrowed(self, lanes: Array) -> Iterator[None]:
        """Write only ``lanes`` (bool, selected waves x 32), a part of those that are on."""
        full, mask = self.full, self._mask
        self.full, self._mask = False, lanes
        try:
            yield
        finally:
            self.full, self._mask = full, mask

    def mask_of(self, register: int) -> Array:
        """A scalar register as one bool a lane of the selected waves."""
        held = self.row_bytes[register]
        if self.selected is not None:
            held = held[self.selected]
        return np.unpackbits(held, axis=1, bitorder="little").view(bool)

    @property
    def saturate(self) -> bool:
        """FP16_OVFL of the selected waves."""
        held = self.overflow if self.selected is None else self.overflow[self.selected]
        if held.any() and not held.all():
            raise Unsupported("waves with different modes at one instruction")
        return bool(held[0])

    def numbers(self) -> Array:
        """Numbers of the selected waves within the batch."""
        if self.selected is None:
            return np.arange(self.waves)
        if isinstance(self.selected, slice):
            return np.arange(self.selected.start, self.selected.stop)
        return np.asarray(self.selected)


def bits_of(mask: Array) -> Array:
    """One uint32 a wave out of bool (waves, 32)."""
    return np.packbits(mask, axis=1, bitorder="little").view(np.uint32)[:, 0]


Step = Callable[[State], None]
