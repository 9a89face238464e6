"""Comparisons: scalar (SOPC, result in SCC) and vector (VOPC, result in a mask, or in EXEC for ``v_cmpx``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from solbench.gfx12.floats import classes
from solbench.gfx12.integers import U32, U64, Array
from solbench.gfx12.op import Op, op, table

Compare = Callable[[Array, Array], Array]

# lg is "less or greater" and false for NaN; the forms with n are the opposites and true for NaN.
_FLOATS: dict[str, Compare] = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "lg": lambda a, b: (a < b) | (a > b),
    "ge": lambda a, b: a >= b,
    "o": lambda a, b: (a == a) & (b == b),
    "u": lambda a, b: (a != a) | (b != b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: a != b,
    "nlt": lambda a, b: ~(a < b),
}
_INTEGERS: dict[str, Compare] = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ne": lambda a, b: a != b,
    "ge": lambda a, b: a >= b,
}


def _bit(dtype: type, one: bool) -> Compare:
    top = U32(8 * np.dtype(dtype).itemsize - 1)
    return lambda a, n: (((a >> (n & top).astype(dtype)) & dtype(1)) != 0) == one


def _scalar() -> Iterator[Op]:
    for t in ("i32", "u32"):
        for name, function in _INTEGERS.items():
            yield op(f"s_cmp_{'lg' if name == 'ne' else name}_{t}", f"scc = {t} {t}", function)
    yield op("s_cmp_eq_u64", "scc = u64 u64", _INTEGERS["eq"])
    yield op("s_cmp_lg_u64", "scc = u64 u64", _INTEGERS["ne"])
    for size, dtype in ((32, U32), (64, U64)):
        yield op(f"s_bitcmp0_b{size}", f"scc = b{size} u32", _bit(dtype, False))
        yield op(f"s_bitcmp1_b{size}", f"scc = b{size} u32", _bit(dtype, True))
    for t in ("f32", "f16"):
        for name, function in _FLOATS.items():
            yield op(f"s_cmp_{name}_{t}", f"scc = {t} {t}", function)


def _vector() -> Iterator[Op]:
    for prefix, result in (("v_cmp", "mask"), ("v_cmpx", "exec")):
        for t in ("f16", "f32", "f64"):
            for name, function in _FLOATS.items():
                yield op(f"{prefix}_{name}_{t}", f"{result} = {t} {t}", function)
            yield op(f"{prefix}_class_{t}", f"{result} = {t} {'u16' if t == 'f16' else 'u32'}", classes)
        for t in ("i16", "u16", "i32", "u32", "i64", "u64"):
            for name, function in _INTEGERS.items():
                yield op(f"{prefix}_{name}_{t}", f"{result} = {t} {t}", function)


SOPC = table(_scalar())
VOPC = table(_vector())
