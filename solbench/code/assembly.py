"""Functions, instructions and labels of AMDGPU assembly text, as LLVM prints it.

Syntax: "User Guide for AMDGPU Backend" of LLVM, and its directives for ELF and DWARF line tables. The text is the
candidate's (inline assembly is copied into it): a line within a function that is neither an instruction, a label nor a
known directive is kept as unread, and never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from solbench.errors import InputError

MAX_BYTES = 64 << 20
MAX_INSTRUCTIONS = 1_000_000
MAX_NAME = 200
# A name with other characters than these is quoted.
_LABEL = re.compile(r'([A-Za-z_.$][\w.$@]*|"[^"]+"):\s*(.*)')
_OPERATION = re.compile(r"([a-z][a-z0-9_]{0,63})(?:\s+(.*))?")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOCATION = re.compile(r"\.loc\s+(\d{1,9})\s+(\d{1,9})\b")
_FUNCTION = re.compile(r'\.type\s+([\w.$@]+|"[^"]+"),\s*@function')
_COMMENT = re.compile(r'((?:[^";/]|"[^"]*"|/(?!/))*)')
_ALIGNED = re.compile(r"\.(?:p2align|p2alignl|balign|align)\b")
# Directives within a function that put no bytes into it.
_SILENT = re.compile(
    r"\.(?:cfi_\w+|globl|weak|hidden|protected|p2align|p2alignl|balign|align|file|loc|set|type|ident)\b"
)
_END = re.compile(r"\.(?:size|section|end_amdhsa_kernel|amdhsa_kernel|data|bss|rodata|amdgpu_metadata|text)\b")


@dataclass(frozen=True)
class Operation:
    """A mnemonic with its operands, as text in order; modifiers stay with the last operand."""

    mnemonic: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Instruction:
    """One instruction: its line in the text from 1, its one operation or the two of a VOPD, and its source line."""

    line: int
    operations: tuple[Operation, ...]
    source: tuple[str, int] | None

    @property
    def mnemonic(self) -> str:
        """The first operation's."""
        return self.operations[0].mnemonic

    @property
    def operands(self) -> tuple[str, ...]:
        """The first operation's."""
        return self.operations[0].operands


@dataclass(frozen=True)
class Function:
    """One function. ``labels`` to the number of the instruction that follows; ``aligned``: instructions that the
    assembler may put padding before. ``unread``: lines that were not understood, bytes written as data among them.
    """

    name: str
    line: int
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    aligned: frozenset[int]
    unread: tuple[int, ...]


def function(text: str, name: str, where: str) -> Function:
    """The function called ``name``. :class:`InputError`, with ``where``, where the text has none or two of it."""
    if len(text) > MAX_BYTES:
        raise InputError(where, f"assembly of more than {MAX_BYTES} characters")
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith((f"{name}:", f'"{name}":'))]
    if len(starts) != 1:
        raise InputError(where, f"{len(starts)} functions {name!r} in the assembly")
    reader = _Reader(_files(lines))
    functions = {match[1].strip('"') for line in lines if (match := _FUNCTION.match(line.strip()))}
    for number in range(starts[0], len(lines)):
        statement = _statement(lines[number])
        label = _LABEL.fullmatch(statement)
        named = label[1].strip('"') if label else ""
        if number > starts[0] and label and (named in functions or named.startswith(".Lfunc_end")):
            break
        if _END.match(statement):
            break
        if label:
            reader.labels[named] = len(reader.instructions)
            statement = label[2]
        if statement:
            reader.statement(number + 1, statement)
        if len(reader.instructions) > MAX_INSTRUCTIONS:
            raise InputError(where, f"more than {MAX_INSTRUCTIONS} instructions in {name!r}")
    return Function(
        name,
        starts[0] + 1,
        tuple(reader.instructions),
        reader.labels,
        frozenset(reader.aligned),
        tuple(reader.unread),
    )


class _Reader:
    """What was read of one function so far."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.aligned: set[int] = set()
        self.unread: list[int] = []
        self.source: tuple[str, int] | None = None

    def statement(self, line: int, statement: str) -> None:
        if statement.startswith("."):
            location = _LOCATION.match(statement)
            if location:
                # Line 0 says that the instruction belongs to no line.
                known = self.files.get(location[1])
                self.source = (known, int(location[2])) if known and int(location[2]) else None
            elif _ALIGNED.match(statement):
                self.aligned.add(len(self.instructions))
            elif not _SILENT.match(statement):
                self.unread.append(line)
            return
        operations = tuple(_operation(half.strip()) for half in statement.split("::"))
        read = tuple(operation for operation in operations if operation)
        if len(read) != len(operations) or len(read) > 2:
            self.unread.append(line)
        else:
            self.instructions.append(Instruction(line, read, self.source))


def _statement(line: str) -> str:
    """A line without its comment; a quoted string, as in ``.file``, may hold what starts one."""
    if '"' in line:
        match = _COMMENT.match(line)
        return match[1].strip() if match else line.strip()
    return line.partition(";")[0].partition("//")[0].strip()


def _operation(text: str) -> Operation | None:
    match = _OPERATION.fullmatch(text)
    if not match:
        return None
    return Operation(match[1], _operands(match[2] or ""))


def _operands(text: str) -> tuple[str, ...]:
    """Operands between commas; those within brackets, as in ``[v1, v2]`` or ``op_sel:[1,0]``, do not separate."""
    found: list[str] = []
    depth, start = 0, 0
    for place, character in enumerate(text):
        if character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif character == "," and depth == 0:
            found.append(text[start:place].strip())
            start = place + 1
    rest = text[start:].strip()
    return (*found, rest) if rest else tuple(found)


def _files(lines: list[str]) -> dict[str, str]:
    """File numbers of the line table to names without folders."""
    found: dict[str, str] = {}
    for line in lines:
        match = _FILE.match(line.strip())
        if match:
            found[match[1]] = (match[3] or match[2]).replace("\\", "/").rsplit("/", 1)[-1][:MAX_NAME]
    return found
