"""Whether the assembly text and the machine code of one kernel are the same program.

Findings quote the text, the card runs the code: the two are compared instruction by instruction, by name, encoding, DPP
and the target of every branch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from solbench.code import assembly
from solbench.code.machine_code import Instruction, Unread

# LLVM's suffixes, and what encodings they name.
_SUFFIX = re.compile(r"_(e64_dpp|e32|e64|dpp)$")
_ENCODINGS = {
    "e32": (("VOP1", "VOP2", "VOPC"), False),
    "e64": (("VOP3",), False),
    "e64_dpp": (("VOP3", "VOP3P"), True),
    "dpp": (("VOP1", "VOP2", "VOPC", "VOP3P"), True),
}


@dataclass(frozen=True)
class Agreement:
    """``matched`` instructions in order from the first; ``fault`` says where and how text and code part, else None.

    ``padding``: instructions of the code alone, which the assembler put there where the text aligns.
    """

    matched: int
    padding: int
    fault: str | None


def base_name(mnemonic: str) -> str:
    """The instruction's name without LLVM's suffix for its encoding."""
    return _SUFFIX.sub("", mnemonic)


def compare(text: assembly.Function, code: tuple[Instruction, ...], unread: tuple[Unread, ...]) -> Agreement:
    """Compare a kernel's text with its decoded machine code. Offsets in faults are bytes from the kernel's start."""
    if text.unread:
        return Agreement(0, 0, f"line {text.unread[0]} of the assembly is no instruction that can be read")
    if unread:
        first = unread[0]
        return Agreement(0, 0, f"word {first.word:#010x} at {first.offset} of the code: {first.reason}")
    offsets: list[int] = []
    place = 0
    for number, written in enumerate(text.instructions):
        while number in text.aligned and place < len(code) and code[place].name == "s_nop" != written.mnemonic:
            place += 1
        if place == len(code):
            return Agreement(number, place - number, f"the code ends before line {written.line} of the assembly")
        fault = _differs(written, code[place])
        if fault:
            return Agreement(number, place - number, f"line {written.line}, offset {code[place].offset}: {fault}")
        offsets.append(code[place].offset)
        place += 1
    padding = place - len(offsets)
    rest = [instruction for instruction in code[place:] if instruction.name not in ("s_nop", "s_code_end")]
    if rest:
        return Agreement(len(offsets), padding, f"the code goes on at {rest[0].offset} with {rest[0].name}")
    end = code[-1].offset + code[-1].size if code else 0
    fault = _branches(text, code, [*offsets, end])
    return Agreement(len(offsets), len(code) - len(offsets), fault)


def _differs(written: assembly.Instruction, held: Instruction) -> str | None:
    """How one instruction of the text differs from one of the code; None if it does not."""
    names = tuple(base_name(operation.mnemonic) for operation in written.operations)
    found = (held.name,) if held.paired is None else (held.name, held.paired)
    if names != found:
        return f"{' :: '.join(names)} in the assembly, {' :: '.join(str(name) for name in found)} in the code"
    suffix = _SUFFIX.search(written.mnemonic)
    if suffix and (held.encoding not in _ENCODINGS[suffix[1]][0] or held.dpp != _ENCODINGS[suffix[1]][1]):
        return f"{written.mnemonic} in the assembly, {held.encoding}{' with DPP' if held.dpp else ''} in the code"
    return None


def _branches(text: assembly.Function, code: tuple[Instruction, ...], offsets: list[int]) -> str | None:
    """The first branch that leads elsewhere than its label says; ``offsets`` of the text's instructions and end."""
    branching = [instruction for instruction in code if instruction.branch is not None]
    ends = {instruction.offset: instruction.offset + instruction.size for instruction in code}
    written = [i for i in text.instructions if i.mnemonic.startswith(("s_branch", "s_cbranch"))]
    for text_branch, held in zip(written, branching, strict=True):
        label = text_branch.operands[0] if text_branch.operands else ""
        target = held.offset + held.size + (held.branch or 0)
        if label not in text.labels:
            return f"line {text_branch.line} of the assembly branches to {label!r}, which is no label of the kernel"
        # Padding may lie between a label and the instruction after it.
        number = text.labels[label]
        first = ends[offsets[number - 1]] if number in text.aligned and number else offsets[number]
        if not first <= target <= offsets[number]:
            return f"line {text_branch.line} branches to {target} in the code, but {label} is at {offsets[number]}"
    return None
