"""Matrix instructions: WMMA of whole waves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from solbench.gfx12.access import block_reader, block_writer
from solbench.gfx12.operands import Modifiers, parse
from solbench.gfx12.state import State, Step, Unsupported
from solbench.gfx12.wmma import WMMA

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction


def build(held: Instruction, name: str, texts: Sequence[str], modifiers: Modifiers) -> Step | None:
    """The step of a WMMA; None for another name."""
    if name.startswith("v_swmmac_"):
        raise Unsupported("sparse matrix instructions are not emulated")
    if not name.startswith("v_wmma_"):
        return None
    if name not in WMMA:
        raise Unsupported("a matrix instruction of a format that is not emulated")
    result, *sources = (parse(text) for text in texts)
    readers = [block_reader(source, source.count if source.kind == "v" else result.count) for source in sources]
    write = block_writer(result, result.count)
    named: dict[str, Any] = {
        key: tuple(bool(bit) for bit in modifiers.bits(key, (0, 0, 0))) for key in ("neg_lo", "neg_hi")
    }
    if "clamp" in modifiers.flags:
        named["clamp"] = True
    apply = WMMA[name]
    a, b, c = readers

    def step(m: State) -> None:
        if not m.full:
            m.report.partial_exec(m, held)
        write(m, apply(a(m), b(m), c(m), **named))

    return step
