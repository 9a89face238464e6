"""Steps that carry the marks of :mod:`solbench.gfx12.defined` along with the values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from solbench.code.assembly import Operation
from solbench.gfx12.access import VCC_OPERAND, mask_reader, vector_reader
from solbench.gfx12.arithmetic import name_of, operands_of
from solbench.gfx12.cross_lane import has_dpp, source_lanes
from solbench.gfx12.defined import SCC, Defined
from solbench.gfx12.integers import Array
from solbench.gfx12.lanes import LANES as CROSS_LANE
from solbench.gfx12.marks import CLEAN
from solbench.gfx12.op import Op
from solbench.gfx12.operands import EXEC, NULL, VCC, Modifiers, Operand, Unreadable, parse, split
from solbench.gfx12.ops import OPS
from solbench.gfx12.program import Instruction
from solbench.gfx12.scalar_marks import COPIES, UPWARDS, Carry, scalar_marks
from solbench.gfx12.state import LANES, State, Step
from solbench.gfx12.uses import uses

_MEMORY = re.compile(r"(?:s_(?:buffer_)?|ds_|buffer_|global_|flat_|scratch_)(load|store|atomic)_")
_NONE = Modifiers()


def marking(held: Instruction, number: int, step: Step) -> Step:
    """The step with its marks; ``number`` is the instruction's in the program."""
    name = name_of(held.operations[0])
    try:
        carry = _carry(held, name, number)
    except (Unreadable, ValueError, IndexError):
        return step  # whose step stops the run for the same reason
    if carry is None:
        return step
    if name.startswith(("s_", "v_")) and not _MEMORY.match(name):

        def arithmetic(m: State) -> None:
            if m.defined is None:
                step(m)
                return
            # Marks of results need what the operands hold before.
            results = carry(m, m.defined)
            step(m)
            for result in results:
                m.defined.put(m, *result)

        return arithmetic

    def memory(m: State) -> None:
        marks = m.defined
        if marks is None:
            step(m)
            return
        marks.number, marks.loaded, marks.storing = number, [], []
        carry(m, marks)
        lanes = None if m.full else m.mask
        step(m)
        for place, (kind, register) in enumerate(uses(held).writes):
            found = marks.loaded[place] if place < len(marks.loaded) else CLEAN
            if kind == "s":
                marks.put(m, kind, register, np.broadcast_to(found[:, :1], (found.shape[0], 1)))
            else:
                marks.put(m, kind, register, found, lanes)

    return memory


def _carry(held: Instruction, name: str, number: int) -> Carry | None:
    if _MEMORY.match(name) or name.startswith("ds_"):
        return _moved_between_lanes(held, name, number) if "permute" in name or "swizzle" in name else _access(
            held, name, number
        )  # fmt: skip
    if name.startswith("v_wmma_"):
        return _matrix(held, number)
    parts = []
    for operation in held.operations:
        entry = OPS.get(name_of(operation))
        if entry is None:
            return _written_only(held)
        try:
            parts.append(_part(entry, operation, number))
        except Unreadable:
            return None
    return lambda m, marks: [result for part in parts for result in part(m, marks)]


def _written_only(held: Instruction) -> Carry | None:
    writes = uses(held).writes
    if not writes or not held.operations[0].mnemonic.startswith(("s_getpc", "s_getreg", "s_swappc")):
        return None
    return lambda m, marks: [(kind, register, CLEAN, None) for kind, register in writes]


def _source(m: State, marks: Defined, operand: Operand, kind: str, words: int = 4) -> Array:
    """Marks of a vector instruction's operand, of its first ``words`` registers."""
    if operand.kind not in ("v", "s") or (operand.kind == "s" and operand.register in (NULL, EXEC)):
        return marks.value(m, "s", SCC) if operand.kind == "scc" else CLEAN
    if kind in ("mask", "vcc"):
        return marks.of(m, "s", operand.register)
    found = CLEAN
    for word in range(min(words, operand.count)):
        found = np.maximum(found, marks.value(m, operand.kind, operand.register + word))
    return found


def _part(entry: Op, operation: Operation, number: int) -> Carry:
    """Marks of one operation of the table."""
    texts, modifiers = split(operation)
    written, sources = operands_of(entry, texts)
    if entry.name.startswith("s_"):
        return scalar_marks(entry, written, sources, number)
    name = ", ".join(source.text for source in sources if source.text)
    if entry.name in CROSS_LANE and not entry.name.startswith("v_mbcnt"):
        combine = _lanes_moved(entry, written, sources, modifiers)
    elif entry.name == "v_cndmask_b32" or entry.name == "v_cndmask_b16":
        chosen = mask_reader(sources[2])

        def combine(m: State, marks: Defined) -> Array:
            one, other = (_source(m, marks, source, "b32") for source in sources[:2])
            picked = other if one is other else np.where(chosen(m), other, one)
            return np.maximum(picked, _source(m, marks, sources[2], "mask"))

    else:

        def combine(m: State, marks: Defined) -> Array:
            found = CLEAN
            for place, (source, kind) in enumerate(zip(sources, entry.src, strict=True)):
                if kind == "exec":
                    continue
                one = _source(m, marks, source, kind)
                if place == 0 and moved is not None and one.shape[-1] == LANES:
                    one = np.where(moved[1], one[:, moved[0]], np.uint32(0))
                found = np.maximum(found, one)
            if entry.reads_dst:
                found = np.maximum(found, _source(m, marks, written[0], entry.dst[0]))
            return found

    moved = source_lanes(modifiers) if has_dpp(modifiers) else None
    copies, upwards = entry.name in COPIES, UPWARDS.fullmatch(entry.name) is not None

    def lower(m: State, marks: Defined) -> Array:
        found = CLEAN
        for source, kind in zip(sources, entry.src, strict=True):
            found = np.maximum(found, _source(m, marks, source, kind, 1))
        return found

    def carry(m: State, marks: Defined) -> list[tuple[str, int, Array, Any]]:
        found = combine(m, marks)
        if not copies and found.any():
            found = marks.read_by(found, number, name)
        lanes = None if m.full or entry.whole else m.mask
        results: list[tuple[str, int, Array, Any]] = []
        for operand, kind in zip(written, entry.dst, strict=True):
            if kind == "exec":
                marks.matters(m, number, found, None, name)
            elif kind in ("mask", "vcc"):
                if operand.register != NULL:
                    results.append(("s", operand.register, _on(found, lanes), None))
            elif operand.kind == "s":
                if operand.register != NULL:
                    every = found.max(axis=1, keepdims=True)
                    results += [("s", operand.register + n, every, None) for n in range(operand.count)]
            else:
                results += [("v", operand.register + n, found, lanes) for n in range(operand.count)]
                if upwards and found.any():
                    results[0] = ("v", operand.register, marks.read_by(lower(m, marks), number, name), lanes)
        return results

    return carry


def _on(found: Array, lanes: Any) -> Array:
    """Marks of lanes that are on: a comparison gives 0 in the others."""
    return found if lanes is None or not found.any() else np.where(lanes, found, np.uint32(0))


def _lanes_moved(
    entry: Op, written: Sequence[Operand], sources: Sequence[Operand], modifiers: Modifiers
) -> Callable[[State, Defined], Array]:
    """Marks move as the values do: the instruction itself moves them."""
    others = [
        (lambda m: m.mask) if kind == "exec" else vector_reader(source, kind, place, _NONE)
        for place, (source, kind) in enumerate(zip(sources, entry.src, strict=True))
        if place
    ]
    named: dict[str, Any] = {}
    if "fi" in entry.options:
        chosen = modifiers.bits("op_sel", (0, 0, 0, 0))
        named = {"fi": bool(chosen[0]), "bc": bool(chosen[1])}

    def combine(m: State, marks: Defined) -> Array:
        shape = (m.count, LANES)
        values = [np.broadcast_to(_source(m, marks, sources[0], "b32"), shape), *[read(m) for read in others]]
        if entry.reads_dst:
            values.append(np.broadcast_to(_source(m, marks, written[0], "b32"), shape))
        return np.asarray(entry.apply(*values, **named))

    return combine


def _matrix(held: Instruction, number: int) -> Carry:
    """A row or column of an operand that has a mark marks that row or column of the result."""
    texts, _ = split(held.operations[0])
    result, a, b, c = (parse(text) for text in texts)

    def whole(m: State, marks: Defined, operand: Operand) -> Array:
        found = np.zeros((m.count, LANES), np.uint32)
        for n in range(operand.count if operand.kind == "v" else 0):
            found = np.maximum(found, marks.of(m, "v", operand.register + n))
        return found

    def carry(m: State, marks: Defined) -> list[tuple[str, int, Array, Any]]:
        rows, columns = (whole(m, marks, x).reshape(m.count, 2, 16).max(axis=1) for x in (a, b))
        if rows.any() or columns.any():
            rows, columns = (marks.read_by(x, number, f"{a.text}, {b.text}") for x in (rows, columns))
        results: list[tuple[str, int, Array, Any]] = []
        each = 8 // result.count
        for n in range(result.count):
            by_row = np.zeros((m.count, LANES), np.uint32)
            for half in range(2):
                for part in range(each):
                    lane = slice(16 * half, 16 * half + 16)
                    row = rows[:, n * each + part + 8 * half]
                    by_row[:, lane] = np.maximum(by_row[:, lane], row[:, None])
            found = np.maximum(by_row, np.tile(columns, 2))
            if c.kind == "v":
                found = np.maximum(found, marks.of(m, "v", c.register + n))
            results.append(("v", result.register + n, found, None))
        return results

    return carry


def _moved_between_lanes(held: Instruction, name: str, number: int) -> Carry:
    """``ds_bpermute`` and its like: any lane's mark counts for all, where it is not known which lane is read."""
    texts, _ = split(held.operations[0])
    operands = [parse(text) for text in texts[1:]]
    address = vector_reader(operands[0], "u32", 0, _NONE) if "bpermute" in name else None

    def carry(m: State, marks: Defined) -> list[tuple[str, int, Array, Any]]:
        data = np.broadcast_to(marks.of(m, "v", operands[-1].register), (m.count, LANES))
        if not data.any():
            return []
        if address is not None:
            lane = np.broadcast_to(address(m) >> np.uint32(2) & np.uint32(31), data.shape).astype(np.intp)
            data = np.take_along_axis(np.where(m.mask, data, np.uint32(0)), lane, 1)
        marks.loaded = [data]
        return []

    return carry


def _access(held: Instruction, name: str, number: int) -> Carry:
    """Addresses matter in lanes that are on; values of atomics too, and those of stores where they go."""
    texts, _ = split(held.operations[0])
    operands = [parse(text) for text in texts]
    what = _MEMORY.match(name)
    stores = what is not None and what[1] == "store"
    loads = what is not None and what[1] == "load"
    data: list[Operand] = []
    if stores:
        if name.startswith("buffer_"):
            data, operands = operands[:1], operands[1:]
        elif name.startswith("ds_"):
            data, operands = operands[1:], operands[:1]
        else:
            data, operands = [operands[1]], [operands[0], *operands[2:]]
    elif loads or uses(held).writes:
        operands = operands[1:]
    registers = [(o, o.register + n) for o in operands if o.kind in ("v", "s") for n in range(o.count)]

    def carry(m: State, marks: Defined) -> list[tuple[str, int, Array, Any]]:
        for operand, register in registers:
            if operand.kind == "s" and register in (NULL, EXEC, EXEC + 1):
                continue
            found = marks.value(m, operand.kind, register)
            if found.any():
                lanes = np.ones((m.count, LANES), bool) if name.startswith("s_") else None
                marks.matters(m, number, found, lanes, f"{operand.kind}{register}")
        if stores:
            marks.storing = [marks.of(m, "v", o.register + n) for o in data for n in range(o.count)]
        return []

    return carry


def deciding(held: Instruction, number: int, end: Callable[[State], Any]) -> Callable[[State], Any]:
    """The end of a block: what it decides by has to be defined."""
    name = held.operations[0].mnemonic
    if name.endswith(("scc0", "scc1")):
        register = SCC
    elif name.endswith(("vccz", "vccnz")):
        register = VCC
    else:
        return end
    shown = "scc" if register == SCC else VCC_OPERAND.text or "vcc"

    def decide(m: State) -> Any:
        if m.defined is not None:
            marks = m.defined.of(m, "s", register)
            if marks.any():
                m.defined.matters(m, number, marks, m.mask if register == VCC else np.ones((1, 1), bool), shown)
        return end(m)

    return decide
