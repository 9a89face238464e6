"""Matrix instructions with float32 results: against a product of numbers in float64, for every format and selection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from solbench.code.assembly import Operation
from solbench.gfx12.matrix import build, kept_tiles
from solbench.gfx12.memory import Local, Scratch, views
from solbench.gfx12.operands import EXEC, split
from solbench.gfx12.program import Instruction
from solbench.gfx12.state import State

FORMATS = ("f16", "bf16", "fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8")
WAVES = 5
# Bits, of the exponent, of the fraction, and what the exponent is biased by.
LAYOUT = {"f16": (16, 5, 10, 15), "bf16": (16, 8, 7, 127), "fp8": (8, 4, 3, 7), "bf8": (8, 5, 2, 15)}


def instruction(text: str) -> Instruction:
    name, _, rest = text.partition(" ")
    depth, operands, start = 0, [], 0
    for place, letter in enumerate(rest):
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            operands.append(rest[start:place].strip())
            start = place + 1
    return Instruction(0, 8, (Operation(name, (*operands, rest[start:].strip())),), None, None)


def state() -> State:
    empty = np.zeros(0, np.uint8)
    none: Any = None
    found = State(
        np.zeros((64, WAVES, 32), np.uint32), np.zeros((128, WAVES), np.uint32), np.arange(WAVES), 0, 1, none,
        Local(views(empty), 0, 0), Scratch(views(empty), 0, 0), none, none, 0, none,
    )  # fmt: skip
    found.scalars[EXEC] = 0xFFFFFFFF
    return found


def number(pattern: int, form: str) -> float:
    """A pattern's value, from its fields."""
    bits, exponent, fraction, bias = LAYOUT[form]
    field, rest = pattern >> fraction & (1 << exponent) - 1, pattern & (1 << fraction) - 1
    size = 2.0 ** (1 - bias) * rest / 2**fraction if not field else 2.0 ** (field - bias) * (1 + rest / 2**fraction)
    return -size if pattern >> bits - 1 else size


def patterns(draw: np.random.Generator, form: str, shape: tuple[int, ...]) -> Any:
    """Finite numbers near 1, zeros, and the smallest ones."""
    bits, _, fraction, bias = LAYOUT[form]
    fields = draw.choice([0, bias - 2, bias - 1, bias, bias + 1], shape)
    rest = draw.integers(0, 1 << fraction, shape) * (draw.random(shape) < 0.9)
    return (draw.integers(0, 2, shape) << bits - 1 | fields << fraction | rest).astype(
        np.uint16 if bits == 16 else np.uint8
    )


def packed(values: Any) -> Any:
    """(waves, 16 rows, 16 k) patterns as registers (n, waves, 32): a lane holds 8 k of its row, lowest first."""
    by_lane = values.reshape(WAVES, 16, 2, 8).transpose(0, 2, 1, 3).reshape(WAVES, 32, 8)
    return np.ascontiguousarray(by_lane).view(np.uint32).transpose(2, 0, 1)


@pytest.mark.parametrize("selected", [None, slice(1, 3), np.array([0, 2, 4])], ids=["all", "slice", "some"])
@pytest.mark.parametrize("formats", FORMATS)
def test_product(formats: str, selected: Any) -> None:
    first, _, second = formats.partition("_")
    second = second or first
    draw = np.random.default_rng(len(formats))
    a, b = patterns(draw, first, (WAVES, 16, 16)), patterns(draw, second, (WAVES, 16, 16))
    c = draw.standard_normal((8, WAVES, 32)).astype(np.float32)
    m = state()
    words = 4 if len(formats) < 5 else 2
    m.vectors[8 : 8 + words], m.vectors[16 : 16 + words] = packed(a), packed(b)
    m.vectors[24:32] = c.view(np.uint32)
    m.select(selected, len(np.arange(WAVES)[selected]) if selected is not None else WAVES)
    held = instruction(f"v_wmma_f32_16x16x16_{formats} v[24:31], v[8:{7 + words}], v[16:{15 + words}], v[24:31]")
    texts, modifiers = split(held.operations[0])
    step = build(held, held.operations[0].mnemonic, texts, modifiers)
    assert step is not None
    step(m)
    left = np.vectorize(lambda p: number(int(p), first))(a)
    right = np.vectorize(lambda p: number(int(p), second))(b)
    chosen = set(np.arange(WAVES)[selected].tolist()) if selected is not None else set(range(WAVES))
    found = m.vectors[24:32].view(np.float32)
    for wave in range(WAVES):
        total = left[wave] @ right[wave].T  # rows of A by columns of B
        for register in range(8):
            for lane in range(32):
                old = c[register, wave, lane]
                exact = total[register + 8 * (lane // 16), lane % 16] + np.float64(old)
                assert found[register, wave, lane] == (np.float32(exact) if wave in chosen else old)


def test_a_constant_for_c() -> None:
    m = state()
    one = np.float16(1).view(np.uint16)
    m.vectors[0:4], m.vectors[4:8] = (packed(np.full((WAVES, 16, 16), one, np.uint16)) for _ in range(2))
    held = instruction("v_wmma_f32_16x16x16_f16 v[8:15], v[0:3], v[4:7], 1.0")
    texts, modifiers = split(held.operations[0])
    step = build(held, held.operations[0].mnemonic, texts, modifiers)
    assert step is not None
    step(m)
    assert (m.vectors[8:16].view(np.float32) == 17).all()


def test_tiles_are_kept_until_their_registers_change() -> None:
    wmma = "v_wmma_f32_16x16x16_f16 v[{}:{}], v[32:35], v[{}:{}], 0"
    block = [
        instruction(wmma.format(0, 7, 40, 43)),
        instruction(wmma.format(8, 15, 44, 47)),
        instruction("v_mov_b32_e32 v33, v1"),
        instruction(wmma.format(16, 23, 40, 43)),
        instruction(wmma.format(40, 47, 40, 43)),  # its result is on top of its operand
        instruction(wmma.format(24, 31, 40, 43)),
        instruction("ds_load_b128 v[42:45], v1"),
        instruction(wmma.format(24, 31, 40, 43)),
    ]
    assert kept_tiles(block) == {
        0: (False, False), 1: (True, False), 3: (False, True), 4: (True, True), 5: (True, False), 7: (True, False),
    }  # fmt: skip
