"""Basic blocks and natural loops of one function's assembly.

A loop is the set of blocks from which its header is reached again without leaving it; its header dominates them all.
Dominators: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001). A backward branch into a region
with a second entry makes no natural loop; such regions are counted as irreducible, and nothing is said of how often
they run.
"""

from __future__ import annotations

from dataclasses import dataclass

from solbench.code.assembly import Function, Instruction
from solbench.errors import InputError

# Beyond them a function is refused rather than examined for hours.
MAX_BLOCKS = 20_000
MAX_LOOPS = 500
MAX_STEPS = 2_000_000
# Instructions of all loops together, each as often as there are loops around it.
MAX_LOOPED = 8_000_000
_RETURNS = ("s_endpgm", "s_endpgm_saved", "s_setpc_b64", "s_rfe_b64")


@dataclass(frozen=True)
class Block:
    """Instructions ``start`` to ``end`` (exclusive) of the function, and the blocks that may run next."""

    start: int
    end: int
    successors: tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    """One loop. ``header``, ``latches`` and ``blocks`` are numbers of blocks, ``parent`` that of the loop around it.

    ``latches``: the blocks that branch back to the header. ``depth``: 1 for an outermost loop.
    """

    header: int
    latches: tuple[int, ...]
    blocks: frozenset[int]
    parent: int | None
    depth: int


@dataclass(frozen=True)
class Flow:
    """Control flow of a function: its blocks, its loops in the order of their headers, outer before inner.

    ``predecessors`` and ``order`` (reverse postorder) are of the blocks that the entry reaches. ``irreducible``:
    backward branches that make no natural loop.
    """

    blocks: tuple[Block, ...]
    predecessors: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    loops: tuple[Loop, ...]
    irreducible: int

    def innermost(self) -> dict[int, int]:
        """Block to the number of the innermost loop that holds it; blocks outside any loop are left out."""
        found: dict[int, int] = {}
        for number, loop in enumerate(self.loops):
            found.update(dict.fromkeys(loop.blocks, number))
        return found


def flow(function: Function, where: str) -> Flow:
    """Control flow of a function. :class:`InputError`, with ``where``, for a branch to no label, or no instruction."""
    blocks = _blocks(function, where)
    order = _reverse_postorder(blocks)
    position = {block: place for place, block in enumerate(order)}
    predecessors: list[list[int]] = [[] for _ in blocks]
    for block in order:
        for successor in blocks[block].successors:
            predecessors[successor].append(block)
    spans = _spans(_dominators(order, position, predecessors, where), order)
    latches: dict[int, list[int]] = {}
    irreducible = 0
    for block in order:
        for successor in blocks[block].successors:
            if position[successor] <= position[block]:
                first, last = spans[successor]
                if first <= spans[block][0] <= last:
                    latches.setdefault(successor, []).append(block)
                else:
                    irreducible += 1
    if len(latches) > MAX_LOOPS:
        raise InputError(where, f"more than {MAX_LOOPS} loops in {function.name!r}")
    bodies: dict[int, frozenset[int]] = {}
    steps = held = 0
    for header, tails in latches.items():
        bodies[header] = _body(header, tails, predecessors)
        steps += len(bodies[header])
        held += sum(blocks[block].end - blocks[block].start for block in bodies[header])
        if steps > MAX_STEPS or held > MAX_LOOPED:
            most = f"{MAX_STEPS} blocks or {MAX_LOOPED} instructions"
            raise InputError(where, f"loops within loops of more than {most} in {function.name!r}")
    loops: list[Loop] = []
    for header in sorted(bodies, key=lambda header: (position[header], -len(bodies[header]))):
        around = [number for number, loop in enumerate(loops) if header in loop.blocks]
        parent = around[-1] if around else None
        depth = len(around) + 1
        loops.append(Loop(header, tuple(sorted(latches[header])), bodies[header], parent, depth))
    return Flow(tuple(blocks), tuple(map(tuple, predecessors)), tuple(order), tuple(loops), irreducible)


def branch_target(instruction: Instruction) -> str | None:
    """The label that an instruction may branch to, else None."""
    if instruction.mnemonic.startswith(("s_branch", "s_cbranch")):
        return instruction.operands[0] if instruction.operands else ""
    return None


def _blocks(function: Function, where: str) -> list[Block]:
    count = len(function.instructions)
    if not count:
        raise InputError(where, f"{function.name!r} has no instruction in the assembly")
    leaders = {0}
    for number, instruction in enumerate(function.instructions):
        target = branch_target(instruction)
        if target is not None:
            if function.labels.get(target, count) >= count:
                raise InputError(where, f"line {instruction.line} of the assembly branches to no instruction")
            leaders.add(function.labels[target])
        if target is not None or instruction.mnemonic in _RETURNS:
            leaders.add(number + 1)
    starts = sorted(leader for leader in leaders if leader < count)
    if len(starts) > MAX_BLOCKS:
        raise InputError(where, f"more than {MAX_BLOCKS} basic blocks in {function.name!r}")
    numbers = {start: number for number, start in enumerate(starts)}
    blocks: list[Block] = []
    for start, end in zip(starts, [*starts[1:], count], strict=True):
        last = function.instructions[end - 1]
        target = branch_target(last)
        following = [] if last.mnemonic in (*_RETURNS, "s_branch") or end == count else [numbers[end]]
        if target is not None:
            following.append(numbers[function.labels[target]])
        blocks.append(Block(start, end, tuple(dict.fromkeys(following))))
    return blocks


def _reverse_postorder(blocks: list[Block]) -> list[int]:
    found: list[int] = []
    seen = {0}
    stack = [(0, iter(blocks[0].successors))]
    while stack:
        block, rest = stack[-1]
        successor = next(rest, None)
        if successor is None:
            found.append(block)
            stack.pop()
        elif successor not in seen:
            seen.add(successor)
            stack.append((successor, iter(blocks[successor].successors)))
    return found[::-1]


def _dominators(
    order: list[int], position: dict[int, int], predecessors: list[list[int]], where: str
) -> dict[int, int]:
    """Immediate dominators of the blocks that the entry reaches; the entry's is itself."""
    found = {0: 0}
    changed, steps = True, 0
    while changed:
        changed = False
        for block in order[1:]:
            common: int | None = None
            for predecessor in predecessors[block]:
                if predecessor not in found:
                    continue
                other = predecessor
                common = other if common is None else common
                while common != other:
                    steps += 1
                    if steps > MAX_STEPS:
                        raise InputError(where, f"control flow that takes more than {MAX_STEPS} steps to follow")
                    if position[common] > position[other]:
                        common = found[common]
                    else:
                        other = found[other]
            steps += 1
            if common is not None and found.get(block) != common:
                found[block] = common
                changed = True
    return found


def _spans(dominators: dict[int, int], order: list[int]) -> dict[int, tuple[int, int]]:
    """Block to the first and last preorder number of its branch of the dominator tree; it dominates what lies there."""
    children: dict[int, list[int]] = {}
    for block in order[1:]:
        children.setdefault(dominators[block], []).append(block)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    stack = [(0, False)]
    while stack:
        block, left = stack.pop()
        if left:
            last[block] = len(first) - 1
            continue
        first[block] = len(first)
        stack.append((block, True))
        stack.extend((child, False) for child in children.get(block, ()))
    return {block: (first[block], last[block]) for block in first}


def _body(header: int, latches: list[int], predecessors: list[list[int]]) -> frozenset[int]:
    body = {header}
    stack = list(latches)
    while stack:
        block = stack.pop()
        if block not in body:
            body.add(block)
            stack.extend(predecessors[block])
    return frozenset(body)
