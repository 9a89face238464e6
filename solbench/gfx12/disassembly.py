"""Assembly text of a code object's functions, by LLVM's disassembler.

LLVM prints true16 operands (``v0.l``) only with the feature ``real-true16``; compilers emit their encodings without it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from solbench.errors import InputError, UnsupportedError

TOOLS: Final = ("llvm-objdump-22", "llvm-objdump")
VERSION: Final = 22
TIMEOUT_S: Final = 60.0
MAX_TEXT: Final = 256 << 20
_FUNCTION = re.compile(r"[0-9a-f]{16} <([^>]+)>:")
_LINE = re.compile(r"; (\S.*):(\d{1,9})(?: \(discriminator \d+\))?")


def text(code: bytes, functions: Collection[str], where: str) -> str:
    """These functions of ``code`` in the form of a compiler's text: labels, ``.type``, ``.file`` and ``.loc``.

    Branches keep LLVM's distance in words as their operand. :class:`UnsupportedError` where there is no LLVM 22.
    """
    tool = _tool()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "code.hsaco"
        place.write_bytes(code)
        command = [tool, "-d", "-l", "--no-show-raw-insn", "--no-leading-addr", "--mcpu=gfx1200",
                   "--mattr=+real-true16", place.name]  # fmt: skip
        try:
            said = subprocess.run(
                command, cwd=folder, env={"LC_ALL": "C"}, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise InputError(where, f"llvm-objdump did not end within {TIMEOUT_S:.0f} s") from None
    if said.returncode or len(said.stdout) > MAX_TEXT:
        raise InputError(where, "llvm-objdump does not read it")
    return _as_compiled(said.stdout.decode("utf-8", "replace"), functions)


def _tool() -> str:
    for name in TOOLS:
        found = shutil.which(name)
        if found is None:
            continue
        said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if f"version {VERSION}." in said.stdout:
            return found
    raise UnsupportedError(
        f"machine code without a compiler's text needs llvm-objdump of LLVM {VERSION} (llvm-{VERSION})"
    )


def _as_compiled(printed: str, functions: Collection[str]) -> str:
    lines: list[str] = []
    files: dict[str, int] = {}
    for line in printed.split("\n"):
        stripped = line.strip()
        if function := _FUNCTION.fullmatch(stripped) or re.fullmatch(r"<([^>]+)>:", stripped):
            if function[1] not in functions:
                lines.append(f'"{function[1]}":')  # a label within one
                continue
            lines += [f'\t.type\t"{function[1]}",@function', f'"{function[1]}":']
        elif source := _LINE.fullmatch(stripped):
            name = source[1].replace("\\", "/").rsplit("/", 1)[-1].replace('"', "")
            if name not in files:
                files[name] = len(files) + 1
                lines.append(f'\t.file\t{files[name]} "{name}"')
            lines.append(f"\t.loc\t{files[name]} {source[2]}")
        elif line.startswith("\t"):
            lines.append(line)
    return "\n".join(lines)
