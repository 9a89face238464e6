"""One kernel's program: its instructions with addresses, branch targets and source lines, and its loaded image.

Instructions come from the compiler's text or from LLVM's disassembler; either is compared with the machine code
(:mod:`solbench.code.agreement`), which gives addresses and branch targets.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final

from blake3 import blake3

from solbench.code import agreement, assembly, kernels, machine_code
from solbench.code.assembly import Operation
from solbench.device import elf
from solbench.errors import InputError, UnsupportedError
from solbench.gfx12 import disassembly

SHT_RELA, SHT_NOBITS = 4, 8
R_ABS64, R_RELATIVE64 = 3, 13
# hipLimitStackSize of the runtime, if nobody changes it.
STACK_BYTES: Final = 1024
MAX_IMAGE_BYTES: Final = 256 << 20
# FLOAT_MODE: all four rounding bits 0, denormals of all sizes kept.
_MODE: Final = 0xF0
_CALL = re.compile(r"@\[ ([^\[\]@]+?):(\d{1,9}):\d+")
# Symbols of kernels' descriptors end so.
_DESCRIPTOR = ".kd"


@dataclass(frozen=True)
class Instruction:
    """One instruction. ``address``: of the loaded file; ``target``: address that a branch leads to, else None."""

    address: int
    size: int
    operations: tuple[Operation, ...]
    target: int | None
    source: tuple[str, int] | None

    @property
    def name(self) -> str:
        """The mnemonic as printed; both halves of a VOPD."""
        return " :: ".join(operation.mnemonic for operation in self.operations)


@dataclass(frozen=True)
class Segment:
    """Loaded bytes of the file: ``address`` as in the file, and whether the program may write them."""

    name: str
    address: int
    content: bytes
    writable: bool


@dataclass(frozen=True)
class Relocation:
    """A 64-bit word of the loaded file that holds an address of it: image base + ``value`` is written at ``place``."""

    place: int
    value: int


@dataclass(frozen=True)
class Program:
    """A kernel and the functions that it may call. ``entry``: number of its first instruction."""

    kernel: kernels.Kernel
    digest: str
    properties: int
    rsrc2: int
    preloaded: int
    instructions: tuple[Instruction, ...]
    entry: int
    segments: tuple[Segment, ...]
    relocations: tuple[Relocation, ...]
    where: str

    @property
    def scratch_bytes(self) -> int:
        """Of a lane: what the code object says, and where the stack may grow no less than the runtime gives."""
        fixed = self.kernel.scratch_bytes
        return max(fixed, STACK_BYTES) if self.kernel.descriptor.dynamic_stack else fixed

    @cached_property
    def numbers(self) -> Mapping[int, int]:
        """Address of an instruction to its number."""
        return MappingProxyType({held.address: number for number, held in enumerate(self.instructions)})

    @cached_property
    def compiled(self) -> dict[Any, Any]:
        """What execution built for this program, kept between launches."""
        return {}


def load(code: bytes, text: str | None, kernel: str, where: str) -> Program:
    """Kernel ``kernel`` of a code object; ``text`` is the compiler's assembly, None where it is not at hand.

    :class:`InputError` where code, note and text are not as their formats say or differ from each other;
    :class:`UnsupportedError` for another wave size than 32, or no disassembler where there is no text.
    """
    held = kernels.read(code, where)
    if kernel not in held.kernels:
        raise InputError(where, f"no kernel {kernel!r} in it; it has {', '.join(sorted(held.kernels)) or 'none'}")
    found = held.kernels[kernel]
    if found.wave_size != 32:
        raise UnsupportedError(
            f"{where}: kernel {kernel!r} runs in waves of {found.wave_size} lanes; gfx12 code here has 32"
        )
    if found.disagreements():
        raise InputError(where, f"kernel {kernel!r}: {found.disagreements()[0]}")
    symbols = elf.symbols(held.sections, where)
    functions = _functions(held, symbols, kernel)
    listing = text if text is not None else disassembly.text(code, functions.keys() | held.kernels.keys(), where)
    instructions: list[Instruction] = []
    for name, (address, size) in sorted(functions.items(), key=lambda item: item[1]):
        if size > kernels.MAX_CODE_BYTES:
            raise InputError(where, f"{size} bytes of code in {name!r}, more than {kernels.MAX_CODE_BYTES}")
        body = elf.loaded(held.sections, address, size, where)
        instructions += _instructions(listing, name, address, body, text is None, where)
    numbers = {step.address: number for number, step in enumerate(instructions)}
    if found.descriptor.entry not in numbers:
        raise InputError(where, f"kernel {kernel!r} starts at {found.descriptor.entry:#x}, where no instruction is")
    place = next(s.address for s in symbols if s.name == kernel + _DESCRIPTOR)
    descriptor = elf.loaded(held.sections, place, kernels.DESCRIPTOR_BYTES, where)
    (rsrc2,) = struct.unpack_from("<I", descriptor, 52)
    properties, preloaded = struct.unpack_from("<HH", descriptor, 56)
    (rsrc1,) = struct.unpack_from("<I", descriptor, 48)
    if rsrc1 >> 12 & 0xFF != _MODE:
        raise UnsupportedError(f"{where}: kernel {kernel!r} rounds otherwise than to nearest, or flushes denormals")
    return Program(
        found, blake3(code).hexdigest(), properties, rsrc2, preloaded, tuple(instructions),
        numbers[found.descriptor.entry], _segments(held, where), tuple(_relocations(held, where)), where,
    )  # fmt: skip


def _functions(held: kernels.CodeObject, symbols: tuple[elf.Symbol, ...], kernel: str) -> dict[str, tuple[int, int]]:
    """The kernel and every function that is no kernel, to its address and size."""
    section = next(s.section for s in symbols if s.name == kernel and s.section != elf.UNDEFINED)
    return {
        s.name: (s.address, s.size)
        for s in symbols
        if s.section == section and s.size and (s.name == kernel or s.name not in held.kernels)
    }


def _instructions(
    listing: str, name: str, address: int, body: bytes, disassembled: bool, where: str
) -> list[Instruction]:
    """Instructions of one function, text and code matched."""
    function = assembly.function(listing, name, where)
    code, unread = machine_code.decode(body)
    if disassembled:
        function = _labelled(function, code)
    outermost = _callers(listing)
    compared = agreement.compare(function, code, unread)
    if compared.fault:
        raise InputError(where, f"function {name!r}: text and machine code differ: {compared.fault}")
    found: list[Instruction] = []
    place = 0
    for number, written in enumerate(function.instructions):
        # The assembler's padding has no line in the text.
        while number in function.aligned and code[place].name == "s_nop" != written.mnemonic:
            place += 1
        at = code[place]
        branch = at.branch
        if at.name == "s_call_b64":
            branch = int.from_bytes(body[at.offset : at.offset + 2], "little", signed=True) * 4
        target = None if branch is None else address + at.offset + at.size + branch
        literal = body[at.offset + at.size - 4 : at.offset + at.size]
        operations = tuple(_resolved(operation, literal) for operation in written.operations)
        source = outermost.get(written.line - 1, written.source) if written.source else None
        found.append(Instruction(address + at.offset, at.size, operations, target, source))
        place += 1
    return found


@lru_cache(maxsize=4)
def _callers(listing: str) -> Mapping[int, tuple[str, int]]:
    """Lines of the text from 0 whose code was inlined, to the place that its author wrote: the outermost call.

    LLVM prints the chain of calls in the comment of a ``.loc``, the outermost last.
    """
    found: dict[int, tuple[str, int]] = {}
    current: tuple[str, int] | None = None
    for number, line in enumerate(listing.split("\n")):
        if line.lstrip().startswith(".loc"):
            chain = _CALL.findall(line.partition(";")[2])
            current = (chain[-1][0].replace("\\", "/").rsplit("/", 1)[-1], int(chain[-1][1])) if chain else None
        elif current is not None:
            found[number] = current
    return found


def _resolved(operation: Operation, literal: bytes) -> Operation:
    """The operation with the linker's number, which is its literal, where the text names a symbol."""
    if not any("@" in operand for operand in operation.operands):
        return operation
    number = f"{int.from_bytes(literal, 'little'):#x}"
    return Operation(operation.mnemonic, tuple(number if "@" in o else o for o in operation.operands))


def _labelled(function: assembly.Function, code: tuple[machine_code.Instruction, ...]) -> assembly.Function:
    """The disassembler's text of what the symbol covers, with labels for its branches.

    It goes on to the next symbol; a branch's distance that is not the code's stays as it is printed.
    """
    numbers = {held.offset: number for number, held in enumerate(code)}
    instructions = list(function.instructions[: len(code)])
    labels = dict(function.labels)
    for number, (written, held) in enumerate(zip(function.instructions, code, strict=False)):
        if held.branch is None or not written.mnemonic.startswith(("s_branch", "s_cbranch")):
            continue
        target = held.offset + held.size + held.branch
        distance = int(written.operands[0], 0) if written.operands and written.operands[0].isdigit() else None
        if distance is None or ((distance ^ 0x8000) - 0x8000) * 4 != held.branch or target not in numbers:
            continue  # compare names it
        label = f"at_{target:x}"
        labels[label] = numbers[target]
        instructions[number] = assembly.Instruction(
            written.line, (Operation(written.mnemonic, (label,)),), written.source
        )
    return assembly.Function(
        function.name, function.line, tuple(instructions), labels, function.aligned, function.unread
    )


def _segments(held: kernels.CodeObject, where: str) -> tuple[Segment, ...]:
    """Loaded sections; writable are those of variables (``.data``, ``.bss``), which are the program's own."""
    found: list[Segment] = []
    total = 0
    for part in held.sections:
        if not part.address or not part.size:
            continue
        total += part.size
        if total > MAX_IMAGE_BYTES:
            raise InputError(where, f"more than {MAX_IMAGE_BYTES} bytes to load")
        content = bytes(part.size) if part.kind == SHT_NOBITS else part.content
        if part.name in (".dynamic", ".relro_padding"):
            continue
        found.append(Segment(part.name, part.address, content, part.name.startswith((".data", ".bss"))))
    return tuple(found)


def _relocations(held: kernels.CodeObject, where: str) -> list[Relocation]:
    """What a loader writes before the program runs: LLVM's AMDGPU backend guide, Relocation Records."""
    found: list[Relocation] = []
    for part in held.sections:
        if part.kind != SHT_RELA or not part.address:
            continue
        for place, info, addend in struct.iter_unpack("<QQq", part.content[: len(part.content) // 24 * 24]):
            kind, number = info & 0xFFFFFFFF, info >> 32
            if kind == R_RELATIVE64:
                found.append(Relocation(place, addend))
            elif kind == R_ABS64 and number:
                symbol = _symbol(held, part.link, number, where)
                found.append(Relocation(place, symbol.address + addend))
            else:
                raise UnsupportedError(f"{where}: relocation type {kind}, which no loader here knows")
    return found


def _symbol(held: kernels.CodeObject, table: int, number: int, where: str) -> elf.Symbol:
    """Symbol ``number`` of the symbol table that is section ``table``."""
    parts = tuple(part if place in (table, held.sections[table].link) or part.kind not in (2, 11) else
                  elf.Section(part.name, 0, 0, 0, 0, b"") for place, part in enumerate(held.sections))  # fmt: skip
    listed = elf.symbols(parts, where)
    if number >= len(listed) or listed[number].section == elf.UNDEFINED:
        raise InputError(where, f"a relocation needs symbol {number}, which the code object does not define")
    return listed[number]
