"""The saturating forms of integer instructions, against the exact result in Python integers limited to its type."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from operand_samples import operands

from solbench.gfx12.ops import OPS


def _u24(x: int) -> int:
    return x & 0xFFFFFF


def _i24(x: int) -> int:
    low = x & 0xFFFFFF
    return low - (1 << 24) if low >> 23 else low


def _bytes(x: int, bits: int = 8, signed: bool = False) -> list[int]:
    parts = [(x >> at) & ((1 << bits) - 1) for at in range(0, 32, bits)]
    return [part - (1 << bits) if signed and part >> (bits - 1) else part for part in parts]


def _sad(a: int, b: int, masked: bool = False) -> int:
    pairs = zip(_bytes(a), _bytes(b), strict=True)
    return sum(0 if masked and y == 0 else abs(x - y) for x, y in pairs)


def _dot(bits: int) -> Callable[[int, int, int], int]:
    return lambda a, b, c: c + sum(x * y for x, y in zip(_bytes(a, bits), _bytes(b, bits), strict=True))


def _mad(a: int, b: int, c: int) -> int:
    return a * b + c


def _add(a: int, b: int) -> int:
    return a + b


def _sub(a: int, b: int) -> int:
    return a - b


# What the result would be without limits, of the operands as integers of their types.
EXACT: dict[str, Callable[..., int]] = {
    "v_mul_i32_i24": lambda a, b: _i24(a) * _i24(b),
    "v_mul_u32_u24": lambda a, b: _u24(a) * _u24(b),
    "v_mad_i32_i24": lambda a, b, c: _i24(a) * _i24(b) + c,
    "v_mad_u32_u24": lambda a, b, c: _u24(a) * _u24(b) + c,
    "v_add_nc_u32": _add, "v_sub_nc_u32": _sub, "v_subrev_nc_u32": lambda a, b: b - a,
    "v_add_nc_i32": _add, "v_sub_nc_i32": _sub,
    "v_add_nc_u16": _add, "v_sub_nc_u16": _sub, "v_add_nc_i16": _add, "v_sub_nc_i16": _sub,
    "v_add_co_u32": _add, "v_sub_co_u32": _sub, "v_subrev_co_u32": lambda a, b: b - a,
    "v_add_co_ci_u32": lambda a, b, c: a + b + c, "v_sub_co_ci_u32": lambda a, b, c: a - b - c,
    "v_subrev_co_ci_u32": lambda a, b, c: b - a - c,
    "v_mad_u16": _mad, "v_mad_i16": _mad, "v_mad_u32_u16": _mad, "v_mad_i32_i16": _mad,
    "v_mad_co_u64_u32": _mad, "v_mad_co_i64_i32": _mad,
    "v_sad_u8": lambda a, b, c: _sad(a, b) + c,
    "v_sad_hi_u8": lambda a, b, c: (_sad(a, b) << 16) + c,
    "v_sad_u16": lambda a, b, c: sum(abs(x - y) for x, y in zip(_bytes(a, 16), _bytes(b, 16), strict=True)) + c,
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_msad_u8": lambda a, b, c: _sad(a, b, True) + c,
    "v_dot4_i32_iu8": _dot(8), "v_dot8_i32_iu4": _dot(4), "v_dot4_u32_u8": _dot(8), "v_dot8_u32_u4": _dot(4),
}  # fmt: skip
PACKED: dict[str, Callable[..., int]] = {
    "v_pk_add_i16": _add, "v_pk_sub_i16": _sub, "v_pk_add_u16": _add, "v_pk_sub_u16": _sub,
    "v_pk_mad_i16": _mad, "v_pk_mad_u16": _mad,
}  # fmt: skip
QUADS = {"v_qsad_pk_u16_u8": (False, 16), "v_mqsad_pk_u16_u8": (True, 16), "v_mqsad_u32_u8": (True, 32)}


def _limited(value: int, dtype: Any) -> int:
    limits = np.iinfo(dtype)
    return min(max(value, int(limits.min)), int(limits.max))


def _run(name: str, count: int = 500) -> tuple[list[Any], Any]:
    entry = OPS[name]
    arrays = operands(entry.src, count, zlib.crc32(name.encode()))
    assert entry.clamped is not None
    with np.errstate(all="ignore"):
        result = entry.clamped(*arrays)
    return arrays, result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", sorted(EXACT | PACKED))
def test_the_result_is_limited_to_its_type(name: str) -> None:
    arrays, result = _run(name)
    function = (EXACT | PACKED)[name]
    flat = [x.reshape(-1) for x in arrays]
    limits = 0
    for place, got in enumerate(result.reshape(-1)):
        exact = function(*(int(x[place]) for x in flat))
        wanted = _limited(exact, result.dtype)
        limits += wanted != exact
        assert int(got) == wanted, [int(x[place]) for x in flat]
    assert limits, "operands that never leave the range prove nothing"


@pytest.mark.parametrize("name", sorted(QUADS))
def test_each_of_four_sums_is_limited(name: str) -> None:
    masked, size = QUADS[name]
    (a, b, c), result = _run(name)
    for place in range(len(a)):
        for number in range(4):
            window = int(a[place]) >> (8 * number) & 0xFFFFFFFF
            addend = int(c[place, number]) if size == 32 else int(c[place]) >> (16 * number) & 0xFFFF
            wanted = min(_sad(window, int(b[place]), masked) + addend, (1 << size) - 1)
            got = int(result[place, number]) if size == 32 else int(result[place]) >> (16 * number) & 0xFFFF
            assert got == wanted


@pytest.mark.parametrize("name", ["v_dot4_i32_iu8", "v_dot8_i32_iu4"])
@pytest.mark.parametrize("signed", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("clamp", [False, True])
def test_factors_are_signed_where_told(name: str, signed: tuple[bool, bool], clamp: bool) -> None:
    entry, bits = OPS[name], 8 if "iu8" in name else 4
    a, b, c = operands(entry.src, 400, 3)
    function = entry.clamped if clamp else entry.apply
    assert function is not None and "signed" in entry.options
    result = function(a, b, c, signed=signed)
    for x, y, z, got in zip(a, b, c, result, strict=True):
        pairs = zip(_bytes(int(x), bits, signed[0]), _bytes(int(y), bits, signed[1]), strict=True)
        exact = int(z) + sum(p * q for p, q in pairs)
        wrapped = (exact + 2**31) % 2**32 - 2**31
        assert int(got) == (_limited(exact, np.int32) if clamp else wrapped)


CHECKED = {*EXACT, *PACKED, *QUADS}
