"""Where the value of a load goes: the instructions with an effect beyond their wave that it reaches."""

from __future__ import annotations

from collections.abc import Sequence

from solbench.gfx12.program import Instruction
from solbench.gfx12.uses import uses

_EFFECTS = ("_store_", "_atomic_", "s_cbranch", "s_setpc", "s_swappc")


def reached(instructions: Sequence[Instruction], number: int) -> frozenset[int]:
    """Addresses of stores, atomics and jumps that use what load ``number`` read, in the order of the text.

    What a loop carries back is not followed.
    """
    carriers = set(uses(instructions[number]).writes)
    found: set[int] = set()
    for held in instructions[number + 1 :]:
        used = uses(held)
        if carriers.isdisjoint(used.reads):
            carriers.difference_update(used.writes)
        elif any(effect in held.name for effect in _EFFECTS) or (held.name.startswith("ds_") and not used.writes):
            found.add(held.address)
        else:
            carriers.update(used.writes)
        if not carriers:
            break
    return frozenset(found)
