"""The IR of a workload as its page prints it: one line an operation, cut where it is long, and it says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from solar import einsum
from solar.errors import GraphError
from solbench.site import text

MOST_LINES: Final = 300
# A line is cut too: an einsum over many operands can be longer than anyone reads.
LONGEST_LINE: Final = 400


@dataclass(frozen=True)
class Listing:
    """``count``: how much of the program ``lines`` is, in words."""

    lines: text.Lines
    count: str
    cut: bool


def listing(artifact: Mapping[str, Any]) -> Listing:
    """The program of an artifact ``einsum-graph`` (with or without its ``kind``) as text.

    Raises :class:`solar.errors.GraphError` where it is no program, or where a name in it breaks the line.
    """
    program = einsum.from_dict({name: value for name, value in artifact.items() if name != "kind"})
    lines = [text.visible(line) for line in einsum.to_text(program).removesuffix("\n").split("\n")]
    if len(lines) != 1 + sum(map(len, (program.inputs, program.values, program.ops, program.outputs))):
        # Else a name could write lines of its own.
        raise GraphError("einsum-graph: a name in it breaks the line; names of operations and tensors are one line")
    shown = [line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…" for line in lines[:MOST_LINES]]
    clipped = sum(len(line) > LONGEST_LINE for line in lines[:MOST_LINES])
    parts = []
    if len(lines) > MOST_LINES:
        parts.append(f"first {MOST_LINES} of {text.grouped(len(lines))} lines")
    else:
        parts.append(text.plural(len(lines), "line"))
    if clipped:
        parts.append(f"{text.plural(clipped, 'line')} of them cut after {LONGEST_LINE} characters")
    cut = len(lines) > MOST_LINES or clipped > 0
    if cut:
        parts.append("the object holds all")
    return Listing(text.Lines("\n".join(shown) + "\n"), "; ".join(parts), cut)
