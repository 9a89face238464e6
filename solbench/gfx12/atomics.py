"""What atomic memory instructions store: ``new = f(old, operand)``, all of one type.

Names are the part after ``buffer_atomic_``, ``global_atomic_``, ``flat_atomic_`` or ``ds_``, without ``rtn_``; the type
is the last part of the name, ``b`` unsigned, ``pk_`` a pair (last axis of 2, bfloat16 as uint16 patterns). Compare and
swap takes the new value and then the value to compare with, as the data registers hold them, for ``cmpswap`` and for
``cmpstore`` of LDS. ``mskor`` takes the bits to clear and then the bits to set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from solbench.gfx12.floats import bf16_to_f32, f32_to_bf16, max_num, min_num
from solbench.gfx12.integers import Array


def _where_equal(old: Array, value: Array, compare: Array) -> Array:
    return np.where(old == compare, value, old)


def _inc(old: Array, limit: Array) -> Array:
    """One more, from the limit on zero."""
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _dec(old: Array, limit: Array) -> Array:
    """One less; from zero or past the limit, the limit."""
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _sub_clamp(old: Array, value: Array) -> Array:
    return np.where(old < value, old.dtype.type(0), old - value)


def _cond_sub(old: Array, value: Array) -> Array:
    return np.where(old >= value, old - value, old)


def _add_bf16(old: Array, value: Array) -> Array:
    return f32_to_bf16(bf16_to_f32(old) + bf16_to_f32(value))


def _entries() -> Iterator[tuple[str, Callable[..., Array]]]:
    for size in ("32", "64"):
        yield f"add_u{size}", np.add
        yield f"sub_u{size}", np.subtract
        yield f"rsub_u{size}", lambda old, value: value - old
        yield f"inc_u{size}", _inc
        yield f"dec_u{size}", _dec
        for t in (f"i{size}", f"u{size}"):
            yield f"min_{t}", np.minimum
            yield f"max_{t}", np.maximum
        yield f"and_b{size}", np.bitwise_and
        yield f"or_b{size}", np.bitwise_or
        yield f"xor_b{size}", np.bitwise_xor
        yield f"mskor_b{size}", lambda old, clear, ones: (old & ~clear) | ones
        yield f"swap_b{size}", lambda old, value: np.broadcast_arrays(value, old)[0]
        yield f"storexchg_b{size}", lambda old, value: np.broadcast_arrays(value, old)[0]
        yield f"cmpswap_b{size}", _where_equal
        yield f"cmpstore_b{size}", _where_equal
        yield f"min_num_f{size}", min_num
        yield f"max_num_f{size}", max_num
    yield "add_f32", np.add
    yield "sub_clamp_u32", _sub_clamp
    yield "cond_sub_u32", _cond_sub
    yield "pk_add_f16", np.add
    yield "pk_add_bf16", _add_bf16


ATOMICS: Final[Mapping[str, Callable[..., Array]]] = MappingProxyType(dict(_entries()))
