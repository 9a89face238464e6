"""One kernel as the evidence sees it: what it declares, how it is launched, and its program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from solbench.code.assembly import Function, Instruction
from solbench.code.gathers import gathering_lines
from solbench.code.kernels import Kernel
from solbench.code.loops import Flow
from solbench.code.mix import Mix
from solbench.code.occupancy import Occupancy


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched: threads of a work-group, and the LDS that the launch adds to what the code fixes.

    ``dots``: types of the matrix products in the kernel's own language, each (first operand, second, accumulator), as
    in ``("f16", "f16", "f32")``; None where that is unknown.
    """

    threads: int
    dynamic_lds_bytes: int
    dots: tuple[tuple[str, str, str], ...] | None


@dataclass(frozen=True)
class Examined:
    """A kernel, its launch and its program; ``trips`` of each loop of ``flow``."""

    kernel: Kernel
    launch: Launch
    function: Function
    flow: Flow
    trips: tuple[int | None, ...]
    mix: Mix
    occupancy: Occupancy

    @property
    def lds_bytes(self) -> int:
        """LDS of a work-group, fixed and dynamic."""
        return self.kernel.lds_bytes + self.launch.dynamic_lds_bytes

    @cached_property
    def gathering(self) -> frozenset[int]:
        """Lines of the loads whose addresses depend on loaded data."""
        return gathering_lines(self.function, self.flow)

    @cached_property
    def looped(self) -> frozenset[int]:
        """Lines of instructions in loops: an outermost loop holds what is in those within it."""
        outermost = (loop for loop in self.flow.loops if loop.parent is None)
        return frozenset(i.line for loop in outermost for i in self.instructions(loop.blocks))

    def instructions(self, blocks: Iterable[int]) -> Iterator[Instruction]:
        """The instructions of some blocks, in the order of the text."""
        for block in sorted(blocks):
            yield from self.function.instructions[self.flow.blocks[block].start : self.flow.blocks[block].end]

    def regions(self) -> list[tuple[int | None, tuple[Instruction, ...]]]:
        """What is outside all loops (None), and what each loop holds without its inner loops, by the loop's number."""
        own = self.flow.innermost()
        found: dict[int | None, list[int]] = {None: []}
        for block in self.flow.order:
            found.setdefault(own.get(block), []).append(block)
        return [(number, tuple(self.instructions(blocks))) for number, blocks in found.items()]

    def place(self, loop: int | None) -> str:
        """Where a region is, in words; lines are of the assembly."""
        if loop is None:
            return "outside any loop"
        first = self.function.instructions[self.flow.blocks[self.flow.loops[loop].header].start]
        return f"in each iteration of the loop at line {first.line}"
