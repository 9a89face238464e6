"""Buffer, global, flat and scratch instructions.

Names and operands: "RDNA4 Instruction Set Architecture Reference Guide", chapters 9 and 10, as LLVM prints them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from solbench.gfx12 import memory
from solbench.gfx12.access import vector_reader
from solbench.gfx12.addresses import Parts, buffer_parts, flat_parts, global_parts, scratch_parts
from solbench.gfx12.atomics import ATOMICS
from solbench.gfx12.integers import Array
from solbench.gfx12.operands import Modifiers, Operand, Unreadable, parse
from solbench.gfx12.results import Writer, vector_writer
from solbench.gfx12.state import State, Step, Unsupported

if TYPE_CHECKING:
    from solbench.gfx12.program import Instruction

_NONE = Modifiers()
_LOAD = re.compile(r"(buffer|global|flat|scratch)_load_(?:(d16)_(hi_)?)?([ubi])(8|16|32|64|96|128)")
_STORE = re.compile(r"(buffer|global|flat|scratch)_store_(d16_hi_)?b(8|16|32|64|96|128)")
_ATOMIC = re.compile(r"(buffer|global|flat)_atomic_(\w+)")
_TYPE = re.compile(r"(?:^|_)(pk_add_)?([biuf]|bf)(16|32|64)$")
_NUMPY: Final[dict[str, Any]] = {
    "b32": np.uint32, "u32": np.uint32, "i32": np.int32, "f32": np.float32, "b64": np.uint64, "u64": np.uint64,
    "i64": np.int64, "f64": np.float64, "f16": np.float16, "bf16": np.uint16,
}  # fmt: skip
# Atomics whose result without return is the sum, whatever the order of integers.
_SUMS: Final = frozenset({"add_u32", "add_u64", "add_f32"})


def build(held: Instruction, name: str, texts: Sequence[str], modifiers: Modifiers) -> Step | None:
    """The step of a vector memory instruction; None for a name that is none of them."""
    if match := _LOAD.fullmatch(name):
        size = int(match[5]) // 8
        data, *where = texts
        parts = _parts(match[1], held, where, modifiers, size)
        return _load(held, parts, size, parse(data), match[2] is not None, bool(match[3]), match[4] == "i")
    if match := _STORE.fullmatch(name):
        size = int(match[3]) // 8
        data, where = _data_first(match[1], texts)
        parts = _parts(match[1], held, where, modifiers, size)
        return _store(held, parts, size, parse(data), bool(match[2]))
    if match := _ATOMIC.fullmatch(name):
        return _atomic(held, match[1], match[2], texts, modifiers)
    return None


def _data_first(space: str, texts: Sequence[str]) -> tuple[str, list[str]]:
    """Data and address operands of a store: buffers print the data first, the others the address."""
    if space == "buffer":
        return texts[0], list(texts[1:])
    if space == "flat":
        return texts[1], [texts[0]]
    return texts[1], [texts[0], texts[2]]


def _parts(space: str, held: Instruction, where: Sequence[str], modifiers: Modifiers, size: int) -> Parts:
    operands = [parse(text) for text in where]
    if space == "buffer":
        if len(operands) == 2:  # no address where neither index nor offset comes from a lane
            operands.insert(0, Operand("off"))
        address, resource, offset = operands
        return buffer_parts(held, address, resource, offset, modifiers, size)
    if space == "global":
        return global_parts(held, operands[0], operands[1], modifiers, size)
    if space == "flat":
        return flat_parts(held, operands[0], modifiers, size)
    return scratch_parts(held, operands[0], operands[1], modifiers, size)


def _load(held: Instruction, parts: Parts, size: int, data: Operand, narrow: bool, high: bool, signed: bool) -> Step:
    if data.kind != "v":
        raise Unreadable(data.text)
    if narrow:
        half = int(high or data.half == 1)
        registers = [(data.register, half)]
        writers = [vector_writer(Operand("v", data.register, half=half), "u16")]
    else:
        registers = [(data.register + word, -1) for word in range(max(1, size // 4))]
        writers = [vector_writer(Operand("v", register), "u32") for register, _ in registers]

    flat = held.operations[0].mnemonic.startswith("flat_")

    def step(m: State) -> None:
        words = memory.load(m, held, parts(m), size, signed)
        if flat and m.waits is not None:
            m.waits.count(m, "ds")
        if narrow:
            words = [words[0].astype(np.uint16)]
        if m.waits is not None:
            m.waits.withhold(m, "load", registers, words, held)
            return
        for write, word in zip(writers, words, strict=True):
            write(m, word)

    return step


def _store(held: Instruction, parts: Parts, size: int, data: Operand, high: bool) -> Step:
    if data.kind != "v" or data.count != max(1, size // 4):
        raise Unreadable(data.text)
    readers = [vector_reader(Operand("v", data.register + n), "u32", 0, _NONE) for n in range(max(1, size // 4))]
    shift = np.uint32(16 if high or data.half == 1 else 0)

    def step(m: State) -> None:
        words = [read(m) for read in readers]
        if shift:
            words = [words[0] >> shift]
        memory.store(m, held, parts(m), size, words)

    return step


def element(operation: str) -> tuple[Any, int, bool]:
    """NumPy type, bytes, and whether two are packed, of an atomic such as ``add_f32`` or ``pk_add_bf16``."""
    match = _TYPE.search(operation)
    if not match or match[2] + match[3] not in _NUMPY:
        raise Unsupported(f"atomic {operation}")
    packed = match[1] is not None
    return np.dtype(_NUMPY[match[2] + match[3]]), 4 if packed else int(match[3]) // 8, packed


def atomic_readers(data: Operand, operation: str) -> list[Any]:
    """Readers of an atomic's data: one value, or the new one and the one to compare with, in that order."""
    kind, size, packed = element(operation)
    count = 2 if operation.startswith(("cmpswap", "cmpstore")) else 1
    words = size // 4
    if data.kind != "v" or data.count != count * words:
        raise Unreadable(data.text)
    name = {"u": "u", "i": "i", "f": "f"}[kind.kind] + str(kind.itemsize * 8)
    return [
        vector_reader(Operand("v", data.register + n * words, words), f"2x{name}" if packed else name, 0, _NONE)
        for n in range(count)
    ]


def _atomic(held: Instruction, space: str, operation: str, texts: Sequence[str], modifiers: Modifiers) -> Step:
    if operation not in ATOMICS:
        raise Unsupported(f"{space}_atomic_{operation}")
    kind, size, _ = element(operation)
    returns = "RETURN" in modifiers.values.get("th", "")
    listed = list(texts)
    result: Operand | None = None
    if space == "buffer":
        data, where = parse(listed[0]), listed[1:]
        if returns:
            result = Operand("v", data.register, size // 4)
    else:
        if returns:
            result = parse(listed.pop(0))
        data = parse(listed[1])
        where = [listed[0], *listed[2:]]
    parts = _parts(space, held, where, modifiers, size)
    readers = atomic_readers(data, operation)
    change = ATOMICS[operation]
    adds = result is None and operation in _SUMS
    words = [(result.register + n, -1) for n in range(size // 4)] if result else []
    writers: list[Writer] = [vector_writer(Operand("v", register), "u32") for register, _ in words]

    def step(m: State) -> None:
        values = [read(m) for read in readers]
        before = memory.atomic(m, held, parts(m), size, change, values, kind, adds)
        deliver_atomic(m, held, before, size, words, writers, "load")

    return step


def deliver_atomic(
    m: State,
    held: Instruction,
    before: Array,
    size: int,
    registers: Sequence[tuple[int, int]],
    writers: Sequence[Writer],
    counter: str,
) -> None:
    """Write what an atomic read into its result registers, if it has any."""
    if not registers:
        return
    split = np.ascontiguousarray(before).view(np.uint32).reshape(*before.shape[:2], size // 4)
    found = [split[..., n] for n in range(size // 4)]
    if m.waits is not None:
        m.waits.withhold(m, counter, registers, found, held)
        return
    for write, word in zip(writers, found, strict=True):
        write(m, word)
