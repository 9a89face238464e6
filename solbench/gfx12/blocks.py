"""A program as basic blocks of steps: what runs without a decision, and then where waves go."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from solbench.code.assembly import Operation
from solbench.gfx12 import arithmetic, control, indexed, lds, matrix, scalar_memory, vector_memory, waits
from solbench.gfx12.marking import deciding, marking
from solbench.gfx12.operands import Unreadable, split
from solbench.gfx12.program import Instruction, Program
from solbench.gfx12.state import State, Step, Unsupported
from solbench.gfx12.uses import uses

_MAY_STOP = re.compile(
    r"(buffer|global|scratch|flat|ds)_|s_(load|buffer_load|setreg|getreg|movrel)|v_(cvt|movrel|swaprel)|\w*f16"
)


@dataclass(frozen=True)
class Block:
    """Instructions ``start`` to ``stop`` of the program: their steps, no-ops left out, and the end."""

    start: int
    stop: int
    steps: tuple[Step, ...]
    end: Callable[[State], Any]


class Stopped(Exception):
    """An instruction that cannot be emulated was reached."""

    def __init__(self, held: Instruction, reason: str) -> None:
        super().__init__(reason)
        self.held = held
        self.reason = reason


def blocks(program: Program, strict: bool, marked: bool) -> tuple[tuple[Block, ...], int]:
    """All blocks and the number of the first. ``strict``: with the steps of waits; ``marked``: with marks of what
    nothing wrote."""
    key = ("blocks", strict, marked)
    if key not in program.compiled:
        program.compiled[key] = _build(program, strict, marked)
    return program.compiled[key]


def _build(program: Program, strict: bool, marked: bool) -> tuple[tuple[Block, ...], int]:
    instructions = program.instructions
    names = [arithmetic.name_of(held.operations[0]) for held in instructions]
    leaders = {program.entry, 0}
    for number, held in enumerate(instructions):
        if control.ends_block(names[number]):
            leaders.add(number + 1)
        if held.target is not None and held.target in program.numbers:
            leaders.add(program.numbers[held.target])
        if number and held.address != instructions[number - 1].address + instructions[number - 1].size:
            leaders.add(number)  # after padding: the start of a function, or a loop
    leaders.discard(len(instructions))
    starts = sorted(leaders)
    by_address = {instructions[start].address: place for place, start in enumerate(starts)}
    found = tuple(
        _block(instructions, names, start, stop, by_address, place + 1, strict, marked)
        for place, (start, stop) in enumerate(zip(starts, [*starts[1:], len(instructions)], strict=True))
    )
    return found, starts.index(program.entry)


def _block(
    instructions: Sequence[Instruction], names: Sequence[str], start: int, stop: int, by_address: Mapping[int, int],
    after: int, strict: bool, marked: bool,
) -> Block:  # fmt: skip
    last = stop - 1
    ends = control.ends_block(names[last])
    # A strict wait changes registers in between.
    kept = {} if strict else matrix.kept_tiles(instructions[start:stop])
    steps = [
        _step(instructions[n], names[n], strict, kept.get(n - start, (False, False)))
        for n in range(start, last if ends else stop)
    ]
    if marked:
        steps = [
            marking(instructions[start + place], start + place, step) if step is not None else None
            for place, step in enumerate(steps)
        ]
    if ends:
        try:
            end = control.end(
                instructions[last], names[last], instructions[last].operations[0].operands, by_address, after
            )
        except (Unreadable, Unsupported, KeyError) as error:
            end = _stop(instructions[last], str(error))
        end = _located(instructions[last], deciding(instructions[last], last, end) if marked else end)
    elif after - 1 == len(by_address) - 1:
        end = _stop(instructions[last], "the program goes on after its last instruction")
    else:
        end = lambda m: after  # noqa: E731
    return Block(start, stop, tuple(step for step in steps if step is not None), end)


def _step(held: Instruction, name: str, strict: bool, kept: tuple[bool, bool]) -> Step | None:
    """One step; None where there is nothing to do. What cannot be emulated stops the run when it is reached."""
    if control.WAITS.fullmatch(name):
        return waits.step(name, held.operations[0].operands) if strict else None
    if control.NOTHING.fullmatch(name):
        return None
    try:
        step = _built(held, name, kept)
    except (Unreadable, Unsupported) as error:
        return _stop(held, str(error))
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        return _stop(held, f"operands that are not understood ({error})")
    if step is None:
        return _stop(held, "no semantics for it")
    step = _located(held, step)
    return _awaited(held, step) if strict else step


def _awaited(held: Instruction, step: Step) -> Step:
    """The step of strict waits: registers that it reads must have been waited for, and those that it writes, which
    what is loaded would overwrite later. Loads of one kind write in their order."""
    used = uses(held)
    loads = "_load_" in held.name
    read = used.reads if loads else tuple(dict.fromkeys((*used.reads, *used.writes)))
    if not read:
        return step
    names = tuple(f"{kind}{number}" for kind, number in read)

    def awaited(m: State) -> None:
        if m.waits is not None:
            m.waits.check(m, held, read, names)
        step(m)

    return awaited


def _built(held: Instruction, name: str, kept: tuple[bool, bool]) -> Step | None:
    if len(held.operations) == 1:
        operation: Operation = held.operations[0]
        made = control.step(held, name, operation.operands)
        if made is not None:
            return made
        texts, modifiers = split(operation)
        if name.startswith(("v_wmma_", "v_swmmac_")):
            return matrix.build(held, name, texts, modifiers, kept)
        for family in (scalar_memory, vector_memory, lds):
            made = family.build(held, name, texts, modifiers)
            if made is not None:
                return made
        made = indexed.build(held, name, texts)
        if made is not None:
            return made
    return arithmetic.build(held.operations)


def _located(held: Instruction, step: Callable[[State], Any]) -> Callable[[State], Any]:
    """Steps that can stop for a reason that only their operands tell say where; the others are left as they are."""
    if not any(_MAY_STOP.match(operation.mnemonic) for operation in held.operations):
        return step

    @functools.wraps(step)
    def located(m: State) -> Any:
        try:
            return step(m)
        except Unsupported as error:
            raise Stopped(held, str(error)) from None

    return located


def _stop(held: Instruction, reason: str) -> Step:
    def stop(m: State) -> None:
        raise Stopped(held, reason)

    return stop
