from __future__ import annotations

import mmap
import os

import pytest

from solbench.evaluate import arena
from solbench.model.definition import Definition

DEFINITION = Definition.load(
    {
        "schema": "solbench.definition.v1",
        "name": "x",
        "axes": {"N": {"type": "var"}},
        "inputs": {
            "a": {"shape": ["N", "3"], "dtype": "bfloat16"},
            "s": {"shape": None, "dtype": "float32"},
            "i": {"shape": [], "dtype": "int64"},
        },
        "outputs": {"y": {"shape": ["N"], "dtype": "float32"}},
        "reference": "def run(a, s, i):\n    return a\n",
    },
    "test",
)


def test_layout() -> None:
    plan = arena.layout(DEFINITION, {"N": 1000})
    # 6000 bytes take two pages; a 0-d tensor has 8 bytes; a Python scalar has no slot.
    assert [(s.name, s.role, s.shape, s.offset, s.nbytes) for s in plan.slots] == [
        ("a", "input", (1000, 3), 0, 6000),
        ("i", "input", (), 8192, 8),
        ("y", "output", (1000,), 12288, 4000),
    ]
    assert (plan.size, plan.input_bytes, plan.output_bytes) == (16384, 6008, 4000)
    assert arena.heap_bytes(plan) == 6 * (6008 + 4000) + 2**25
    # Six times inputs, seven times outputs, four float64 copies of the widest output, two heaps.
    assert arena.needed_memory(plan) == 6 * 6008 + 7 * 4000 + 4 * 8000 + 2 * arena.heap_bytes(plan)


def test_layout_of_nothing() -> None:
    plan = arena.layout(DEFINITION, {"N": 0})
    assert [s.nbytes for s in plan.slots] == [0, 8, 0] and plan.size == 3 * 4096


def test_the_memory_file_keeps_its_length() -> None:
    handle = arena.create(10_000)
    try:
        for size in (0, 5_000, 20_000):
            with pytest.raises(PermissionError):
                os.ftruncate(handle, size)
        memory = mmap.mmap(handle, 10_000)
        memory[9_999] = 7
        assert os.pread(handle, 1, 9_999) == b"\7"
        memory.close()
    finally:
        os.close(handle)


def test_available_memory() -> None:
    assert 2**20 < arena.available_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
