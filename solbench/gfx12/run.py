"""Run a program over a launch: what it does to memory, and what is wrong with it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from solbench.errors import UnsupportedError
from solbench.gfx12 import launch as launching
from solbench.gfx12 import memory
from solbench.gfx12.arena import Arena
from solbench.gfx12.barriers import Barriers
from solbench.gfx12.blocks import Stopped, blocks
from solbench.gfx12.counts import Counts, counted
from solbench.gfx12.defined import Defined
from solbench.gfx12.findings import Collector, Finding, place_of
from solbench.gfx12.integers import Array
from solbench.gfx12.launch import Launch
from solbench.gfx12.marks import UNWRITTEN
from solbench.gfx12.operands import EXEC, TTMP
from solbench.gfx12.program import Program
from solbench.gfx12.races import Races
from solbench.gfx12.report import Report
from solbench.gfx12.schedule import QUANTUM, SPIN_QUANTUM, Budget, Limit, may_spin, run_batch
from solbench.gfx12.state import LANES, State
from solbench.gfx12.uses import named_registers
from solbench.gfx12.waits import Waits

# Waves of a batch, where the caller leaves it open: enough that numpy's cost of a call is small beside the lanes'.
BATCH_WAVES: Final = 192
POISON: Final = {"zero": 0, "nan": 0x7FC00BAD, "ones": 0xFFFFFFFF}
# Of all waves of a batch.
MAX_SCRATCH_BYTES: Final = 1 << 30


@dataclass(frozen=True)
class Options:
    """How to run.

    order             ``lockstep``: waves at the same instruction run as one; ``permuted``: one wave of each group at a
                      time, in an order that ``seed`` draws
    groups            work-groups at once; 0 leaves it open
    poison            what registers, LDS and scratch hold at the start: ``zero``, ``nan`` or ``ones``
    strict_waits      results of loads reach their registers only when they are waited for
    uninitialised     find uses of registers and bytes that nothing wrote
    races             find accesses that nothing orders
    max_instructions  wave-instructions
    deadline_s        seconds from the start of the run
    """

    order: str = "lockstep"
    seed: int = 0
    groups: int = 0
    poison: str = "zero"
    strict_waits: bool = False
    uninitialised: bool = False
    races: bool = False
    max_instructions: int = 1 << 62
    deadline_s: float = 600.0


@dataclass(frozen=True)
class Outcome:
    """How a run went. ``unsupported``: mnemonic, address and reason of an instruction that cannot be emulated;
    ``ended``: the limit that ended it. With either of them, findings and counts are those up to there."""

    findings: tuple[Finding, ...]
    unsupported: tuple[str, int, str] | None
    ended: str | None
    counts: Counts
    instructions: int

    @property
    def clean(self) -> bool:
        """Whether the whole launch ran, and nothing was found."""
        return not self.findings and self.unsupported is None and self.ended is None


def run(program: Program, launch: Launch, arena: Arena, options: Options) -> Outcome:
    """Run all groups of a launch; memory is changed in place.

    :class:`~solbench.errors.InputError` for a launch that does not fit the kernel,
    :class:`~solbench.errors.UnsupportedError` for a kernel that needs what is not emulated.
    """
    launching.check(program, launch)
    collector = Collector()
    held, _ = blocks(program, options.strict_waits, options.uninitialised)
    budget = Budget(
        options.max_instructions,
        time.monotonic() + options.deadline_s,
        np.zeros(len(held), np.int64),
        SPIN_QUANTUM if may_spin(program) else QUANTUM,
    )
    unsupported, ended = None, None
    moved: Counter[str] = Counter()
    try:
        with np.errstate(all="ignore"):
            _batches(program, launch, arena, options, Report(launch.grid, collector), budget, moved)
    except Limit as limit:
        ended = str(limit)
    except Stopped as stopped:
        place = place_of(stopped.held)
        unsupported = (place.mnemonic, place.address, stopped.reason)
    return Outcome(collector.all(), unsupported, ended, counted(program, held, budget.executed, moved), budget.used)


def _batches(
    program: Program,
    launch: Launch,
    arena: Arena,
    options: Options,
    report: Report,
    budget: Budget,
    moved: Counter[str],
) -> None:
    held, entry = blocks(program, options.strict_waits, options.uninitialised)
    image = _image(program, arena)
    users = launching.user_registers(program, arena, launch)
    at_once = _at_once(program, launch, options)
    draws = np.random.default_rng(options.seed) if options.order == "permuted" else None
    races = Races(program, launch.groups, launch.waves, _exchanges(program)) if options.races else None
    m: State | None = None
    for first in range(0, launch.groups, at_once):
        groups = min(at_once, launch.groups - first)
        if m is None or m.waves != groups * launch.waves:
            m = _state(program, launch, arena, groups, report, image, moved)
        m.defined = _marks(program, m, users) if options.uninitialised else None
        m.races = races
        if races is not None:
            races.start_batch()
        m.waits = Waits(m.waves, len(m.vectors)) if options.strict_waits else None
        _fill(m, options.poison)
        m.first_group = first
        m.barriers = Barriers(groups, launch.waves)
        launching.start(program, launch, users, first, m.vectors, m.scalars)
        run_batch(m, program, held, entry, budget, draws, options.seed)


def _at_once(program: Program, launch: Launch, options: Options) -> int:
    """Groups of a batch: as asked, else enough waves, as far as their scratch leaves room."""
    scratch = max(1, program.scratch_bytes * launch.waves * LANES)
    if scratch > MAX_SCRATCH_BYTES:
        raise UnsupportedError(
            f"{program.where}: {scratch} bytes of scratch for one group, more than {MAX_SCRATCH_BYTES}"
        )
    # In a permuted order a wave of each group runs at a time, and half of the groups.
    waves = BATCH_WAVES * (min(8, 2 * launch.waves) if options.order == "permuted" else 1)
    return options.groups or max(1, min(waves // launch.waves, MAX_SCRATCH_BYTES // scratch))


def _marks(program: Program, m: State, users: list[int]) -> Defined:
    """Nothing is written yet but what a wave starts with."""
    marks = Defined(
        program.instructions, np.full_like(m.vectors, UNWRITTEN), np.zeros(m.lds.by_size[1].size, bool),
        np.zeros(m.scratch.by_size[1].size, bool),
    )  # fmt: skip
    marks.given("v", [0])
    marks.given("s", [*range(len(users)), TTMP + 7, TTMP + 8, TTMP + 9, EXEC, EXEC + 1])
    return marks


def _exchanges(program: Program) -> bool:
    return any(
        "_cmpswap_" in operation.mnemonic or "_cmpstore_" in operation.mnemonic
        for held in program.instructions
        for operation in held.operations
    )


def _image(program: Program, arena: Arena) -> int:
    size = max((s.address + len(s.content) for s in program.segments), default=0)
    data: Array = np.zeros(-(-size // 16) * 16, np.uint8)
    for segment in program.segments:
        data[segment.address : segment.address + len(segment.content)] = np.frombuffer(segment.content, np.uint8)
    storage = arena.image(program.digest, data, not any(s.writable for s in program.segments))
    if storage.data is data:
        for relocation in program.relocations:
            data[relocation.place : relocation.place + 8] = np.frombuffer(
                (storage.address + relocation.value).to_bytes(8, "little"), np.uint8
            )
    return storage.address


def _state(
    program: Program, launch: Launch, arena: Arena, groups: int, report: Report, image: int, moved: Counter[str]
) -> State:
    waves = groups * launch.waves
    registers = max(program.kernel.descriptor.vgpr_steps * 8, named_registers(program))
    lds = program.kernel.lds_bytes + launch.dynamic_lds_bytes
    stride = -(-lds // 16) * 16
    words = -(-program.scratch_bytes // 16) * 4
    return State(
        np.empty((registers, waves, LANES), np.uint32),
        np.empty((128, waves), np.uint32),
        np.repeat(np.arange(groups, dtype=np.int64), launch.waves),
        0,
        launch.waves,
        arena,
        memory.Local(memory.views(np.empty(groups * stride, np.uint8)), lds, stride),
        memory.Scratch(
            memory.views(np.empty(words * waves * LANES * 4, np.uint8)), program.scratch_bytes, waves * LANES
        ),
        report,
        Barriers(groups, launch.waves),
        image,
        moved,
    )


def _fill(m: State, poison: str) -> None:
    """What nothing has written yet."""
    value = np.uint32(POISON[poison])
    m.vectors[...] = value
    m.scalars[...] = value
    m.lds.by_size[4][...] = value
    m.scratch.by_size[4][...] = value
    m.scc[:] = False
    m.overflow[:] = False
    m.saturates = False
