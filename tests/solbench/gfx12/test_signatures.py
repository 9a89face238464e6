"""The operand types of the instruction table against LLVM's assembler: it takes registers of exactly these widths."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from solbench.gfx12.op import Op
from solbench.gfx12.ops import OPS

ASSEMBLER = shutil.which("llvm-mc-22")
WIDTHS = {"imm16": 0, "mix": 32, "bf16": 16}
# Vector instructions with scalar operands or results, by place among those printed.
SCALARS = {
    "v_readfirstlane_b32": (0,), "v_readlane_b32": (0, 2), "v_writelane_b32": (1, 2), "v_permlane16_b32": (2, 3),
    "v_permlanex16_b32": (2, 3),
}  # fmt: skip


def width_of(kind: str) -> int:
    """Bits of a register operand."""
    if kind.startswith("2x"):
        return 2 * width_of(kind[2:])
    return WIDTHS[kind] if kind in WIDTHS else int(kind[1:])


def register(number: int, kind: str, scalar: bool) -> str:
    """A register of a type; each place has registers of its own."""
    if kind == "mask":
        return "vcc_lo"
    width, bank, at = width_of(kind), "s" if scalar else "v", 8 * number
    if width == 0:
        return "0x11"
    if width == 16 and not scalar:
        return f"{bank}{at}.l"
    return f"{bank}{at}" if width <= 32 else f"{bank}[{at}:{at + width // 32 - 1}]"


def line(entry: Op, half: int | None = None) -> str:
    """One instruction in assembly, with a register for each operand that is printed; at ``half`` half a register."""
    scalar = entry.name.startswith(("s_", "v_s_"))
    printed = [kind for kind in (*entry.dst, *entry.src) if kind not in ("scc", "exec", "vcc")]
    if entry.name.startswith("v_swap"):
        printed = printed[:2]
    texts = [register(at, kind, scalar or at in SCALARS.get(entry.name, ())) for at, kind in enumerate(printed)]
    if half is not None:
        texts[half] = f"v{8 * half}.h"
    if entry.name.startswith("v_fma_mix"):
        # They write half of a register that is printed as a whole.
        texts[0] = "v0"
    if "fmamk" in entry.name:
        texts[2] = "0x1234"
    if "fmaak" in entry.name:
        texts[3] = "0x1234"
    if entry.name.startswith("v_dot2acc"):
        half = entry.name.replace("v_", "v_dual_", 1)
        return f"{half} {', '.join(texts)} :: v_dual_mov_b32 v41, v50"
    return f"{entry.name} {', '.join(texts)}"


def refused(lines: list[str]) -> set[int]:
    """Numbers of the lines that the assembler does not take."""
    assert ASSEMBLER is not None
    command = [ASSEMBLER, "--arch=amdgcn", "--mcpu=gfx1200", "--mattr=+real-true16", "--filetype=null"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    errors = [row for row in done.stderr.splitlines() if "error:" in row]
    assert bool(errors) == bool(done.returncode)
    return {int(row.split(":")[1]) - 1 for row in errors}


@pytest.mark.skipif(ASSEMBLER is None, reason="llvm-mc-22 is not installed")
def test_the_assembler_takes_the_operands_of_every_entry() -> None:
    lines = [line(OPS[name]) for name in sorted(OPS)]
    assert [lines[number] for number in refused(lines)] == []


@pytest.mark.skipif(ASSEMBLER is None, reason="llvm-mc-22 is not installed")
def test_no_operand_of_a_whole_register_can_be_half_of_one() -> None:
    found = []
    for entry in OPS.values():
        printed = [kind for kind in (*entry.dst, *entry.src) if kind not in ("scc", "exec", "vcc")]
        # A constant takes the place of one operand of these, and swaps print two of their four.
        if entry.name.startswith(("s_", "v_s_", "v_swap", "v_fmamk", "v_fmaak", "v_fma_mix")):
            continue
        found += [line(entry, at) for at, kind in enumerate(printed) if kind != "mask" and width_of(kind) == 32]
    assert len(refused(found)) == len(found) > 700
