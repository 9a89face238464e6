"""What a run executed: instructions by engine, matrix operations by format, bytes by memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from solbench.code import mix
from solbench.gfx12.blocks import Block
from solbench.gfx12.integers import Array
from solbench.gfx12.program import Program

# Floating operations of one WMMA: multiply and add of 16 x 16 results over K.
_RESULTS = 16 * 16


@dataclass(frozen=True)
class Counts:
    """Executed wave-instructions by engine (:func:`solbench.code.mix.engine`) and operations of WMMA by format.

    ``by_instruction``: times that each instruction ran, in order of the program. ``loaded`` and ``stored``: bytes of
    lanes that were on, by memory.
    """

    engines: Mapping[str, int]
    wmma_operations: Mapping[str, int]
    by_instruction: tuple[int, ...]
    loaded: Mapping[str, int]
    stored: Mapping[str, int]


def counted(program: Program, blocks: Sequence[Block], executed: Array, moved: Mapping[str, int]) -> Counts:
    """Counts from how often each block ran."""
    times = [0] * len(program.instructions)
    for block, waves in zip(blocks, executed.tolist(), strict=True):
        times[block.start : block.stop] = [waves] * (block.stop - block.start)
    engines: Counter[str] = Counter()
    operations: Counter[str] = Counter()
    for held, waves in zip(program.instructions, times, strict=True):
        if not waves:
            continue
        mnemonic = held.operations[0].mnemonic
        engines[mix.engine(mnemonic) or "unknown"] += waves
        form = mix.wmma_format(mnemonic)
        if form:
            depth = int(mnemonic.split("16x16x")[1].split("_")[0])
            operations[form] += waves * 2 * _RESULTS * depth

    def of(what: str) -> Mapping[str, int]:
        return MappingProxyType(
            {name.split(" ", 1)[1]: size for name, size in sorted(moved.items()) if name.startswith(what)}
        )

    return Counts(
        MappingProxyType(dict(sorted(engines.items()))),
        MappingProxyType(dict(sorted(operations.items()))),
        tuple(times),
        of("load"),
        of("store"),
    )
