"""Matrix instructions: WMMA of whole waves.

Those with float32 results are multiplied here, all waves in one stacked product. Products are exact in float64 and so,
nearly always, are their sums with C, which are rounded once: a result does not depend on where in the tile it is. The
other formats are :mod:`solbench.gfx12.wmma`'s, which has the layouts.

The same operand often serves several instructions of a block; its float64 tile is kept until its registers change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from solbench.gfx12.access import Reader, block_reader
from solbench.gfx12.integers import Array
from solbench.gfx12.narrow import BF8, FP8
from solbench.gfx12.operands import Modifiers, Operand, Unreadable, parse, split
from solbench.gfx12.results import block_writer
from solbench.gfx12.state import State, Step, Unsupported
from solbench.gfx12.uses import uses
from solbench.gfx12.wmma import WMMA

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

_PATTERNS: Final[Array] = np.arange(1 << 16, dtype=np.uint16)
with np.errstate(all="ignore"):
    _VALUES: Final[dict[str, Array]] = {
        "f16": _PATTERNS.view(np.float16).astype(np.float64),
        "bf16": (_PATTERNS.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64),
        "fp8": FP8.astype(np.float64),
        "bf8": BF8.astype(np.float64),
    }
_PREFIX: Final = "v_wmma_f32_16x16x16_"
# Bytes of an element.
_SIZE: Final = {"f16": 2, "bf16": 2, "fp8": 1, "bf8": 1}
Key = tuple[str, int, str]


def _formats(name: str) -> tuple[str, str] | None:
    """Formats of A and B of an instruction with float32 results; None for another."""
    if not name.startswith(_PREFIX) or name not in WMMA:
        return None
    first, _, second = name.removeprefix(_PREFIX).partition("_")
    return first, second or first


def kept_tiles(held: Sequence[Instruction]) -> dict[int, tuple[bool, bool]]:
    """For each matrix instruction (by its place in a block) whether an earlier one left its tiles of A and of B."""
    alive: set[Key] = set()
    found: dict[int, tuple[bool, bool]] = {}
    for place, one in enumerate(held):
        keys = _keys(one)
        if keys is not None:
            found[place] = (keys[0] in alive, keys[1] in alive)
            alive.update(keys)
        written = {number for kind, number in uses(one).writes if kind == "v"}
        if written:
            alive = {key for key in alive if written.isdisjoint(range(key[1], key[1] + 2 * _SIZE[key[2]]))}
    return found


def _keys(held: Instruction) -> tuple[Key, Key] | None:
    operation = held.operations[0]
    formats = _formats(operation.mnemonic)
    if formats is None:
        return None
    texts, _ = split(operation)
    try:
        a, b = parse(texts[1]), parse(texts[2])
    except (Unreadable, IndexError):
        return None
    return ("a", a.register, formats[0]), ("b", b.register, formats[1])


def build(
    held: Instruction, name: str, texts: Sequence[str], modifiers: Modifiers, kept: tuple[bool, bool] = (False, False)
) -> Step | None:
    """The step of a WMMA; None for another name."""
    if name.startswith("v_swmmac_"):
        raise Unsupported("sparse matrix instructions are not emulated")
    if not name.startswith("v_wmma_"):
        return None
    if name not in WMMA:
        raise Unsupported("a matrix instruction of a format that is not emulated")
    result, *sources = (parse(text) for text in texts)
    formats = _formats(name)
    if formats is not None and not (modifiers.values.keys() & {"neg_lo", "neg_hi"}):
        return _product(held, result, sources, formats, kept)
    named: dict[str, Any] = {
        key: tuple(bool(bit) for bit in modifiers.bits(key, (0, 0, 0))) for key in ("neg_lo", "neg_hi")
    }
    if "clamp" in modifiers.flags:
        named["clamp"] = True
    a, b, c = (block_reader(source, source.count if source.kind == "v" else result.count) for source in sources)
    write = block_writer(result, result.count)
    apply = WMMA[name]

    def step(m: State) -> None:
        if not m.full:
            m.report.partial_exec(m, held)
        write(m, apply(a(m), b(m), c(m), **named))

    return step


def _product(
    held: Instruction, result: Operand, sources: Sequence[Operand], formats: tuple[str, str], kept: tuple[bool, bool]
) -> Step:
    first, second, addend = sources
    if result.kind != "v" or result.count != 8:
        raise Unreadable(result.text)
    left = _tile(first, "a", formats[0], kept[0])
    right = _tile(second, "b", formats[1], kept[1])
    to = result.register
    if addend.kind == "v" and addend.count != 8:
        raise Unreadable(addend.text)
    constant = None if addend.kind == "v" else block_reader(addend, 1)
    start = addend.register

    def step(m: State) -> None:
        if not m.full:
            m.report.partial_exec(m, held)
        # Row h * 8 + i, column c of a wave's tile is register i of lane h * 16 + c.
        total = np.matmul(left(m), right(m)).reshape(m.count, 2, 8, 16).transpose(2, 0, 1, 3)
        shape = (8, m.count, 2, 16)
        floats = m.floats
        if constant is not None:
            total = total + constant(m).view(np.float32)[0, 0, 0]
        elif m.selected is None:
            total = total + floats[start : start + 8].reshape(shape)
        else:
            total = total + floats[start : start + 8, m.selected].reshape(shape)
        if m.selected is None:
            floats[to : to + 8].reshape(shape)[...] = total
        else:
            floats[to : to + 8, m.selected] = total.reshape(8, m.count, 32)

    return step


def _tile(operand: Operand, role: str, form: str, kept: bool) -> Reader:
    """float64 (waves, 16, 16): rows and k of A, k and columns of B."""
    size = _SIZE[form]
    words, each = 2 * size, 4 // size
    if operand.kind != "v" or operand.count != words:
        raise Unreadable(operand.text)
    first, values = operand.register, _VALUES[form]
    key = (role, first, form)
    kind = np.uint16 if size == 2 else np.uint8
    # From register, wave, half of K, row or column, element; k is half, register, element.
    axes = (1, 3, 2, 0, 4) if role == "a" else (1, 2, 0, 4, 3)

    def tile(m: State) -> Array:
        if kept:
            return m.tiles[key]
        held = m.vectors[first : first + words] if m.selected is None else m.vectors[first : first + words, m.selected]
        split_up = held.view(kind).reshape(words, m.count, 2, 16, each)
        found = values.take(split_up.transpose(axes)).reshape(m.count, 16, 16)
        m.tiles[key] = found
        return found

    return tile
