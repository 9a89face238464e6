"""Runs snippets of assembly on the emulated card: registers in, registers out.

One wave of 32. A snippet finds random bits in v10 to v17 and v20 to v23 and in s20 to s27, and leaves its results in
v20 to v23. v254 is four times the lane, and s[8:9] the address of 4096 bytes of memory. All snippets of a list become
one kernel, with EXEC full and VCC, SCC and M0 zero before each.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solbench.gfx12.arena import Arena
from solbench.gfx12.launch import Launch
from solbench.gfx12.program import load
from solbench.gfx12.run import Options, Outcome, run

TOOLS = {name: shutil.which(name) for name in ("llvm-mc-22", "ld.lld-22", "llvm-objdump-22")}
VECTORS, SCALARS = (*range(10, 18), *range(20, 24)), tuple(range(20, 28))
_ROWS = len(VECTORS) + 1
_HEADER = """.amdgcn_target "amdgcn-amd-amdhsa--gfx1200"
.text
.globl forms
.p2align 8
.type forms,@function
forms:
s_load_b128 s[4:7], s[0:1], 0x0
s_load_b64 s[8:9], s[0:1], 0x10
v_and_b32_e32 v254, 0x3ff, v0
v_lshlrev_b32_e32 v254, 2, v254
s_wait_kmcnt 0x0
"""
_FOOTER = """s_endpgm
.Lend:
.size forms, .Lend-forms
.section .rodata,"a"
.p2align 6
.amdhsa_kernel forms
.amdhsa_kernarg_size 24
.amdhsa_group_segment_fixed_size 4096
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_next_free_vgpr 256
.amdhsa_next_free_sgpr 100
.amdhsa_wavefront_size32 1
.amdhsa_float_denorm_mode_32 3
.amdhsa_float_denorm_mode_16_64 3
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1200
amdhsa.kernels:
  - .name: forms
    .symbol: forms.kd
    .kernarg_segment_size: 24
    .group_segment_fixed_size: 4096
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 32
    .sgpr_count: 100
    .vgpr_count: 256
    .max_flat_workgroup_size: 256
    .args:
      - {.name: inputs, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: outputs, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: memory, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
...
.end_amdgpu_metadata
"""


def source(snippets: Sequence[str]) -> str:
    """The kernel of all snippets."""
    parts = [_HEADER]
    for number, snippet in enumerate(snippets):
        rows = range(number * _ROWS, (number + 1) * _ROWS)
        parts.append("s_mov_b32 exec_lo, -1\ns_mov_b32 vcc_lo, 0\ns_mov_b32 m0, 0\ns_cmp_lg_u32 0, 0\n")
        for vector, row in zip(VECTORS, rows, strict=False):
            parts.append(f"global_load_b32 v{vector}, v254, s[4:5] offset:{row * 128}\n")
        parts.append(f"s_load_b256 s[20:27], s[4:5], {(rows[-1] * 128):#x}\n")
        parts.append("s_wait_loadcnt 0x0\ns_wait_kmcnt 0x0\n")
        parts.append(snippet.strip() + "\ns_mov_b32 exec_lo, -1\n")
        for at in range(4):
            parts.append(f"global_store_b32 v254, v{20 + at}, s[6:7] offset:{(number * 4 + at) * 128}\n")
    return "".join(parts) + _FOOTER


def assemble(text: str) -> bytes:
    """The code object of an assembly text; AssertionError with the assembler's message."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "a.s").write_text(text)
        commands = (
            [
                "llvm-mc-22",
                "--triple=amdgcn-amd-amdhsa",
                "--mcpu=gfx1200",
                "--mattr=+real-true16",
                "--filetype=obj",
                "a.s",
                "-o",
                "a.o",
            ],
            ["ld.lld-22", "-shared", "a.o", "-o", "a.hsaco"],
        )
        for command in commands:
            done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        return (place / "a.hsaco").read_bytes()


def execute(
    snippets: Sequence[str], rows: Any, options: Options | None = None, memory: Any = None, threads: int = 32
) -> tuple[Any, Outcome]:
    """uint32 (snippets, 4, 32) results of uint32 (snippets, 13, 32) inputs: the vectors, then the scalars in a row.

    ``memory`` (uint32, 1024 of them) is what s[8:9] points to. More than 32 threads are for snippets that end the
    kernel themselves.
    """
    code = assemble(source(snippets))
    outputs = np.zeros((len(snippets), 4, 32), np.uint32)
    arena = Arena()
    storages = {"inputs": rows, "outputs": outputs, "memory": np.zeros(1024, np.uint32) if memory is None else memory}
    addresses = [arena.add(name, array.reshape(-1).view(np.uint8)) for name, array in storages.items()]
    arguments = np.array(addresses, np.uint64).tobytes()
    program = load(code, None, "forms", "test")
    outcome = run(program, Launch((1, 1, 1), (threads, 1, 1), arguments), arena, options or Options())
    return outputs, outcome


class Registers:
    """The registers a snippet finds, by number and type."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def v(self, number: int, dtype: Any = np.uint32) -> Any:
        """A vector register (1, 32); a 64-bit type takes two, a 16-bit type gives a last axis of 2."""
        at = VECTORS.index(number)
        if np.dtype(dtype).itemsize == 8:
            return np.ascontiguousarray(self.rows[at : at + 2].T).view(dtype).reshape(1, 32)
        if np.dtype(dtype).itemsize == 2:
            return self.rows[at].view(dtype).reshape(1, 32, 2)
        return self.rows[at].view(dtype).reshape(1, 32)

    def f(self, number: int) -> Any:
        """A vector register as float32."""
        return self.v(number, np.float32)

    def d(self, number: int) -> Any:
        """Two vector registers as float64."""
        return self.v(number, np.float64)

    def i(self, number: int) -> Any:
        """A vector register as int32."""
        return self.v(number, np.int32)

    def p(self, number: int) -> Any:
        """A vector register as pairs of float16."""
        return self.v(number, np.float16)

    def h(self, number: int, which: int) -> Any:
        """The low (0) or high (1) half of a vector register as float16."""
        return self.v(number, np.float16)[..., which]

    def w(self, number: int, which: int, dtype: Any = np.uint16) -> Any:
        """The low (0) or high (1) half of a vector register as an integer."""
        return self.v(number, dtype)[..., which]

    def s(self, number: int, dtype: Any = np.uint32) -> Any:
        """A scalar register (1, 1); a 64-bit type takes two."""
        at = number - 20
        words = self.rows[len(VECTORS), at : at + max(1, np.dtype(dtype).itemsize // 4)]
        values = np.ascontiguousarray(words).view(dtype)
        return values.reshape(1, -1) if np.dtype(dtype).itemsize >= 4 else values.reshape(1, 1, 2)


def words(*values: Any) -> list[Any]:
    """Results as the registers they fill: 64-bit values two, pairs of 16 bits one, masks one uniform word."""
    found: list[Any] = []
    for value in values:
        value = np.asarray(value)
        if value.dtype == bool:
            bits = int(np.packbits(value.reshape(-1)[:32], bitorder="little").view(np.uint32)[0])
            found.append(np.full(32, bits, np.uint32))
        elif value.dtype.itemsize == 8:
            parts = np.ascontiguousarray(np.broadcast_to(value, (1, 32))).view(np.uint32).reshape(32, 2)
            found += [parts[:, 0].copy(), parts[:, 1].copy()]
        elif value.dtype.itemsize == 2:
            found.append(np.ascontiguousarray(np.broadcast_to(value, (1, 32, 2))).view(np.uint32).reshape(32))
        else:
            found.append(np.ascontiguousarray(np.broadcast_to(value, (1, 32))).view(np.uint32).reshape(32))
    return found


# Snippets by what they show, with what they leave in v20 and the registers after it.
Forms = Mapping[str, tuple[str, Callable[[Registers], list[Any]]]]


def inputs(count: int) -> Any:
    """Random registers (count, 13, 32): a third ordinary float32, a third pairs of float16, a third any bits."""
    random = np.random.default_rng(11)
    shape = (count, _ROWS, 32)
    singles = random.standard_normal(shape).astype(np.float32).view(np.uint32)
    pairs = random.standard_normal((*shape, 2)).astype(np.float16).view(np.uint32).reshape(shape)
    noise = random.integers(0, 2**32, shape, dtype=np.uint32)
    return np.select([random.random(shape) < 1 / 3, random.random(shape) < 0.5], [singles, pairs], noise)


def differences(forms: Forms, options: Options | None = None) -> list[str]:
    """What forms leave that is not expected, a line each."""
    names = list(forms)
    rows = inputs(len(names))
    results, outcome = execute([forms[name][0] for name in names], rows, options)
    wrong = [] if outcome.clean else [str(outcome)]
    for number, name in enumerate(names):
        with np.errstate(all="ignore"):
            values = forms[name][1](Registers(rows[number]))
        at = 0
        for value in values:
            wanted = words(value)
            got = results[number, at : at + len(wanted)]
            if not _equal(np.stack(got, -1), np.stack(wanted, -1), np.asarray(value).dtype):
                lane = int(np.argmax((np.stack(got) != np.stack(wanted)).any(axis=0)))
                texts = [[f"{int(word[lane]):#010x}" for word in group] for group in (got, wanted)]
                wrong.append(f"{name}: v{20 + at} of lane {lane} is {texts[0]}, expected {texts[1]}")
            at += len(wanted)
    return wrong


def _equal(got: Any, wanted: Any, dtype: Any) -> bool:
    """The same bits of registers (32, words), or NaN where a float is NaN."""
    if dtype.kind != "f":
        return bool((got == wanted).all())
    bits = got.view(f"u{dtype.itemsize}"), wanted.view(f"u{dtype.itemsize}")
    return bool(((bits[0] == bits[1]) | (np.isnan(got.view(dtype)) & np.isnan(wanted.view(dtype)))).all())
