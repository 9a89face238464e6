"""What a wave finds when it starts: arguments, dispatch packet, registers, LDS and scratch.

"User Guide for AMDGPU Backend" of LLVM: Initial Kernel Execution State, Kernarg Segment, code object metadata V5
(hidden arguments); HSA "AQL kernel dispatch packet". Work-group numbers in trap registers: architected work-group IDs
of gfx12.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from solbench.errors import InputError, UnsupportedError
from solbench.gfx12.arena import Arena
from solbench.gfx12.integers import Array
from solbench.gfx12.operands import EXEC, PRIVATE_APERTURE, SHARED_APERTURE, TTMP
from solbench.gfx12.program import Program
from solbench.gfx12.state import LANES

MAX_LDS_BYTES: Final = 65536
MAX_THREADS: Final = 1024
MAX_GROUPS: Final = 1 << 40
# User scalar registers by bit of the descriptor's properties: what they hold, and how many there are.
_USER: Final = (
    ("scratch resource", 4), ("dispatch packet", 2), ("queue", 2), ("arguments", 2), ("dispatch number", 2),
    ("flat scratch", 2), ("scratch bytes", 1),
)  # fmt: skip
_GIVEN: Final = frozenset({"dispatch packet", "arguments", "dispatch number", "scratch bytes", "queue"})


@dataclass(frozen=True)
class Launch:
    """One launch. ``grid`` in work-groups, ``block`` in threads; ``arguments``: the explicit ones at their offsets."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: bytes
    dynamic_lds_bytes: int = 0

    @property
    def groups(self) -> int:
        """Work-groups."""
        x, y, z = self.grid
        return x * y * z

    @property
    def threads(self) -> int:
        """Threads of a work-group."""
        x, y, z = self.block
        return x * y * z

    @property
    def waves(self) -> int:
        """Waves of a work-group."""
        return -(-self.threads // LANES)


def check(program: Program, launch: Launch) -> None:
    """:class:`InputError` for a launch that no card takes; :class:`UnsupportedError` for a kernel that needs more."""
    where = program.where
    if min(launch.grid) < 0 or min(launch.block) < 1 or launch.groups > MAX_GROUPS:
        raise InputError(where, f"a launch of {launch.grid} groups of {launch.block} threads")
    if launch.threads > min(MAX_THREADS, program.kernel.max_threads):
        limit = min(MAX_THREADS, program.kernel.max_threads)
        raise InputError(where, f"groups of {launch.threads} threads; kernel {program.kernel.name!r} takes {limit}")
    lds = program.kernel.lds_bytes + launch.dynamic_lds_bytes
    if launch.dynamic_lds_bytes < 0 or lds > MAX_LDS_BYTES:
        raise InputError(
            where, f"groups of kernel {program.kernel.name!r} need {lds} bytes of LDS; they have {MAX_LDS_BYTES}"
        )
    if len(launch.arguments) > program.kernel.arguments_bytes:
        raise InputError(
            where, f"{len(launch.arguments)} bytes of arguments; they have {program.kernel.arguments_bytes}"
        )
    if program.preloaded:
        raise UnsupportedError(f"{where}: kernel {program.kernel.name!r} has its arguments loaded before it starts")
    for bit, (name, _) in enumerate(_USER):
        if program.properties >> bit & 1 and name not in _GIVEN:
            raise UnsupportedError(f"{where}: kernel {program.kernel.name!r} asks for its {name} in registers")


def arguments(program: Program, launch: Launch) -> Array:
    """The kernel's argument segment, hidden arguments filled in; uint8."""
    # Whole blocks of 64 bytes: the compiler widens scalar loads past the last argument, up to an alignment.
    held = bytearray(-(-max(1, program.kernel.arguments_bytes) // 64) * 64)
    held[: len(launch.arguments)] = launch.arguments
    values = {
        "hidden_grid_dims": 3 if launch.grid[2] > 1 else 2 if launch.grid[1] > 1 else 1,
        "hidden_dynamic_lds_size": launch.dynamic_lds_bytes,
        "hidden_private_base": PRIVATE_APERTURE, "hidden_shared_base": SHARED_APERTURE,
    }  # fmt: skip
    for axis, name in enumerate("xyz"):
        values[f"hidden_block_count_{name}"] = launch.grid[axis]
        values[f"hidden_group_size_{name}"] = launch.block[axis]
    for argument in program.kernel.arguments:
        if argument.kind.startswith("hidden_"):
            value = values.get(argument.kind, 0)  # no queue, heap, host call or remainder: 0 says so
            end = argument.offset + argument.size
            if end <= len(held):
                held[argument.offset : end] = value.to_bytes(argument.size, "little")
    return np.frombuffer(held, np.uint8)


def packet(program: Program, launch: Launch, arguments_at: int) -> Array:
    """The 64 bytes of the dispatch packet; uint8."""
    (gx, gy, gz), (bx, by, bz) = launch.grid, launch.block
    held = struct.pack(
        "<HHHHHHIIIIIQQQQ", 2, 3, bx, by, bz, 0, gx * bx, gy * by, gz * bz, program.scratch_bytes,
        program.kernel.lds_bytes + launch.dynamic_lds_bytes, 0, arguments_at, 0, 0,
    )  # fmt: skip
    return np.frombuffer(bytearray(held), np.uint8)


def user_registers(program: Program, arena: Arena, launch: Launch) -> list[int]:
    """Values of the first scalar registers; puts arguments and packet into the arena."""
    at = arena.transient("kernel arguments", arguments(program, launch))
    found: list[int] = []
    for bit, (name, count) in enumerate(_USER):
        if not program.properties >> bit & 1:
            continue
        value = 0
        if name == "arguments":
            value = at
        elif name == "dispatch packet":
            value = arena.transient("dispatch packet", packet(program, launch, at))
        elif name == "scratch bytes":
            value = program.scratch_bytes
        found += [value >> 32 * word & 0xFFFFFFFF for word in range(count)]
    return found


def start(program: Program, launch: Launch, users: list[int], first: int, vectors: Array, scalars: Array) -> None:
    """Fill the registers of the groups from number ``first`` on, as many as the arrays have waves for."""
    waves = launch.waves
    groups = scalars.shape[1] // waves
    for register, value in enumerate(users):
        scalars[register] = value
    number: Array = first + np.repeat(np.arange(groups, dtype=np.int64), waves)
    x, y, _ = launch.grid
    within = np.tile(np.arange(waves, dtype=np.int64), groups)
    scalars[TTMP + 9] = number % x
    scalars[TTMP + 7] = (number // x % y) | (number // (x * y)) << 16
    scalars[TTMP + 8] = within << 25
    thread = (within[:waves] * LANES)[:, None] + np.arange(LANES)
    bx, by, _ = launch.block
    packed = thread % bx
    ids = program.rsrc2 >> 11 & 3
    if ids >= 1:
        packed = packed | thread // bx % by << 10
    if ids >= 2:
        packed = packed | thread // (bx * by) << 20
    on = thread < launch.threads
    vectors[0] = np.tile(np.where(on, packed, 0), (groups, 1))
    bits = (on.astype(np.uint64) << np.arange(LANES, dtype=np.uint64)).sum(axis=1)
    scalars[EXEC] = np.tile(bits, groups)
    scalars[EXEC + 1] = 0
