"""What atomics store, against the ISA guide's pseudocode of the memory instructions."""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np
import pytest
from operand_samples import operands, pattern
from pseudocode import Lane, texts
from pseudocode_values import Int, bits
from test_pseudocode import equal

from solbench.code.opcodes import MNEMONICS
from solbench.gfx12.atomics import ATOMICS


def kind_of(name: str) -> str:
    """The operand type of an atomic, from its name."""
    found = re.fullmatch(r"(pk_)?\w*?_?([uifb]\d\d|bf16)", name)
    assert found is not None, name
    return f"2x{name.rsplit('_', 1)[1]}" if found[1] else name.rsplit("_", 1)[1]


def guide_name(name: str) -> str:
    """A memory instruction that does this."""
    for prefix in ("global_atomic_", "ds_", "buffer_atomic_"):
        if prefix + name in texts():
            return prefix + name
    operation, _, kind = name.rpartition("_")
    return f"ds_{operation}_rtn_{kind}"


@pytest.mark.parametrize("name", sorted(ATOMICS))
def test_memory_holds_what_the_guide_says(name: str) -> None:
    kind, instruction = kind_of(name), guide_name(name)
    takes_two = name.startswith(("cmp", "mskor"))
    arrays: list[Any] = operands((kind,) * (3 if takes_two else 2), 400, zlib.crc32(name.encode()))
    if name.startswith("cmp"):
        arrays[2] = np.where(np.arange(400) % 2 == 0, arrays[0], arrays[2])
    for x in arrays:
        x.flags.writeable = False
    with np.errstate(all="ignore"):
        result = ATOMICS[name](*arrays)
    size = 32 if kind.startswith("2x") else int(kind[1:])
    assert result.dtype == arrays[0].dtype and result.shape == arrays[0].shape
    for place in range(400):
        old, value, *more = (pattern(x[place]) for x in arrays)
        # Memory instructions hold the second operand above the first one, LDS ones in DATA2.
        data = value | (more[0] << size if more else 0)
        names: dict[str, Any] = {
            "MEM": {0: Int(old, 64)},
            "DATA": Int(data, 128),
            "DATA2": Int(more[0] if more else 0, 64),
        }
        if instruction.startswith("ds_"):
            names["DATA"] = Int(value, 64)
        after = Lane(names).run(instruction)["MEM"][0]
        wanted = bits(after) & ((1 << size) - 1)
        assert equal(kind, pattern(result[place]), wanted), (name, hex(old), hex(value), [hex(x) for x in more])


def test_every_atomic_of_the_instruction_set_is_there() -> None:
    named = set()
    for mnemonic in MNEMONICS:
        if found := re.fullmatch(r"(?:buffer|global|flat)_atomic_(\w+)", mnemonic):
            named.add(found[1])
    # The ordered add is of the geometry pipeline.
    assert named - set(ATOMICS) == {"ordered_add_b64"}
    lds = {re.sub("_rtn", "", name)[3:] for name in MNEMONICS if name.startswith("ds_") and "_rtn_" in name}
    left = {name for name in lds - set(ATOMICS) if "2addr" not in name and "bvh" not in name}
    assert left == {"condxchg32_b64"}
