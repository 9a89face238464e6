"""Every entry of the instruction table that the ISA guide's pseudocode describes, against that pseudocode."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
import pytest
from exact_floats import FORMATS, decode
from guide_errors import DIFFERENT, ULPS
from operand_samples import operands, pattern
from pseudocode import Lane, texts
from pseudocode_values import Int

from solbench.gfx12.op import Op
from solbench.gfx12.ops import OPS

COUNT = 480
# Results that the table counts as bits and that are floats.
BYTES = {"v_cvt_pk_fp8_f32": "2xfp8", "v_cvt_pk_bf8_f32": "2xbf8", "s_cvt_pk_rtz_f16_f32": "2xf16"}


def guide_name(name: str) -> str:
    """The name the guide has an entry's pseudocode under."""
    return name.replace("v_", "v_dual_", 1) if name.startswith("v_dot2acc") else name


TESTED = sorted(name for name in OPS if guide_name(name) in texts() and name not in DIFFERENT)


def environment(entry: Op, values: list[int], lane: int = 0) -> dict[str, Any]:
    """The guide's names for one lane's operand patterns (in the order of ``apply``)."""
    names: dict[str, Any] = {"SRC0": Int(0), "VDST": Int(10), "OPSEL": Int(0), "OPSEL_HI": Int(0), "NEG": Int(0)}
    names["laneId"] = Int(lane)
    order = ["S0", "S1", "S2"]
    if "fmamk" in entry.name:
        order = ["S0", "SIMM32", "S1"]
    elif "fmaak" in entry.name:
        order = ["S0", "S1", "SIMM32"]
    printed = iter(order)
    kinds = [*entry.src, *(["old"] if entry.reads_dst else [])]
    for kind, value in zip(kinds, values, strict=True):
        if kind == "old":
            names["D0"] = Int(value, 64)
        elif kind in ("scc", "exec"):
            names[kind.upper()] = Int(value, 64)
        elif kind in ("mask", "vcc"):
            names["VCC"] = Int(value << lane, 64)
        else:
            names[next(printed)] = Int(value, 128)
    names["S"] = [names.get(name, Int(0)) for name in order]
    names["VGPR"] = {lane: {0: names.get("S0", Int(0)), 10: names.get("D0", Int(0))}}
    return names


def guide_results(entry: Op, names: dict[str, Any], lane: int) -> list[int]:
    """The patterns of the results, in the order of ``dst``."""
    vgpr = names["VGPR"][lane]
    before = vgpr[10]
    after = Lane(names).run(guide_name(entry.name))
    found = []
    for number, kind in enumerate(entry.dst):
        if kind in ("scc", "exec"):
            found.append(after[kind.upper()].value >> (lane if entry.name.startswith("v_") else 0))
        elif kind == "mask":
            name = "D0" if number == 0 else "D1" if "mad_co" in entry.name else "VCC"
            found.append(after[name].value >> (0 if name == "D1" else lane) & 1)
        else:
            value = after["D0"] if vgpr[10] is before else vgpr[10]
            found.append(value.value >> (16 if entry.name == "v_fma_mixhi_f16" else 0))
    return found


def width_of(kind: str, entry: Op) -> int:
    """How many bits a result of a type has."""
    if kind in ("scc", "mask", "vcc"):
        return 1
    if kind == "exec":
        return int(entry.dst[0][1:]) if len(entry.dst) > 1 else 1
    return 2 * width_of(kind[2:], entry) if kind.startswith("2x") else int(kind.lstrip("uibf"))


def equal(kind: str, got: int, wanted: int, ulps: int = 0) -> bool:
    """Whether two patterns of a type are the same value; any NaN is as good as another."""
    if kind.startswith("2x"):
        size = FORMATS[kind[2:]][3] if kind[2:] in FORMATS else int(kind[2:].lstrip("uib"))
        mask = (1 << size) - 1
        return all(equal(kind[2:], got >> at & mask, wanted >> at & mask, ulps) for at in (0, size))
    if got == wanted or kind not in FORMATS:
        return got == wanted
    a, b = decode(kind, got), decode(kind, wanted)
    if math.isnan(a.value) or math.isnan(b.value):
        return math.isnan(a.value) and math.isnan(b.value)
    return a.negative == b.negative and abs(got - wanted) <= ulps


def check(entry: Op, arrays: list[Any], apply: Any = None, ulps: int = 0) -> None:
    """Compares an entry with its pseudocode at every place of the operands."""
    with np.errstate(all="ignore"):
        vector = entry.name.startswith("v_")
        shaped = [x.reshape(-1, 32, *x.shape[1:]) if vector else x for x in arrays]
        for x in shaped:
            x.flags.writeable = False
        results = (apply or entry.apply)(*shaped)
    results = results if isinstance(results, tuple) else (results,)
    assert len(results) == len(entry.dst)
    flat = [np.asarray(x).reshape(len(arrays[0]), -1) if vector else np.asarray(x) for x in results]
    for place in range(len(arrays[0])):
        values = [pattern(x[place]) for x in arrays]
        lane = place % 32 if vector else 0
        wanted = guide_results(entry, environment(entry, values, lane), lane)
        for kind, got, want in zip(entry.dst, flat, wanted, strict=True):
            width, kind = width_of(kind, entry), BYTES.get(entry.name, kind)
            have, want = pattern(got[place]), want & ((1 << width) - 1)
            assert equal(kind, have, want, ulps), (
                f"{entry.name} of {[hex(value) for value in values]}: {kind} {have:#x}, the guide says {want:#x}"
            )


def operands_of(entry: Op) -> list[Any]:
    """Operands for an entry; EXEC of a scalar instruction is a register."""
    kinds = tuple(entry.dst[0] if kind == "exec" else kind for kind in entry.src)
    kinds += (entry.dst[0],) if entry.reads_dst else ()
    return operands(kinds, COUNT, zlib.crc32(entry.name.encode()))


def test_every_selector_of_perm() -> None:
    high, low = operands(("b32", "b32"), 64, 1)
    numbers = np.arange(64)
    selectors = sum(
        ((numbers * step + at) % 16).astype(np.uint32) << np.uint32(8 * at) for at, step in enumerate((1, 3, 5, 7))
    )
    check(OPS["v_perm_b32"], [high, low, selectors])


@pytest.mark.parametrize("name", TESTED)
def test_the_guide_computes_the_same(name: str) -> None:
    check(OPS[name], operands_of(OPS[name]), ulps=ULPS.get(name, 0))
