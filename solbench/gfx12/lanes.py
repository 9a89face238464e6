"""Vector instructions that look at other lanes. Operands of a lane each are whole (waves, 32) arrays here.

``v_readfirstlane_b32`` and ``v_readlane_b32`` return (waves, 1). In wave32 ``v_permlane64_b32`` does nothing.
"""

from __future__ import annotations

import numpy as np

from solbench.gfx12.integers import U32, Array, popcount
from solbench.gfx12.op import op, table

_LANES = np.arange(32)


def _whole(x: Array, like: Array) -> Array:
    return np.broadcast_to(x, (*np.shape(like)[:-1], 32))


def _first(x: Array, execute: Array) -> Array:
    return np.take_along_axis(_whole(x, execute), execute.argmax(axis=-1, keepdims=True), axis=-1)


def _read(x: Array, lane: Array) -> Array:
    x = np.asarray(x)
    lane = np.broadcast_to((np.asarray(lane) & U32(31)).astype(np.intp), (*x.shape[:-1], 1))
    return x if x.shape[-1] == 1 else np.take_along_axis(x, lane, axis=-1)


def _write(value: Array, lane: Array, old: Array) -> Array:
    return np.where((np.asarray(lane) & U32(31)) == _LANES, value, old)


def _gather(x: Array, source: Array, execute: Array, old: Array, fi: bool, bc: bool) -> Array:
    """``x`` of lane ``source``; if that is off: what it holds with ``fi``, else 0 with ``bc``, else ``old``."""
    if source.ndim == 1 and (fi or execute.all()):
        return _whole(x, execute)[..., source]
    source = np.broadcast_to(source, execute.shape)
    found = np.take_along_axis(_whole(x, execute), source, axis=-1)
    if fi:
        return found
    active = np.take_along_axis(execute, source, axis=-1)
    return np.where(active, found, U32(0) if bc else old)


def _choice(low: Array, high: Array) -> Array:
    """The four bits of each lane of a row: of the 64 bits that two registers hold, lane 0 in the lowest.

    (32,) where all waves choose the same, else (waves, 32).
    """
    low, high = np.asarray(low), np.asarray(high)
    if (low == low.flat[0]).all() and (high == high.flat[0]).all():
        low, high = low.flat[0], high.flat[0]
    word = np.where((_LANES & 8) != 0, high, low)
    return ((word >> ((_LANES & 7) * 4).astype(U32)) & U32(15)).astype(np.intp)


def _permlane16(
    x: Array, low: Array, high: Array, execute: Array, old: Array, fi: bool = False, bc: bool = False
) -> Array:
    return _gather(x, (_LANES & 16) + _choice(low, high), execute, old, fi, bc)


def _permlanex16(
    x: Array, low: Array, high: Array, execute: Array, old: Array, fi: bool = False, bc: bool = False
) -> Array:
    return _gather(x, ((_LANES & 16) ^ 16) + _choice(low, high), execute, old, fi, bc)


def _permlane16_var(x: Array, lane: Array, execute: Array, old: Array, fi: bool = False, bc: bool = False) -> Array:
    return _gather(x, (_LANES & 16) + (lane & U32(15)).astype(np.intp), execute, old, fi, bc)


def _permlanex16_var(x: Array, lane: Array, execute: Array, old: Array, fi: bool = False, bc: bool = False) -> Array:
    return _gather(x, ((_LANES & 16) ^ 16) + (lane & U32(15)).astype(np.intp), execute, old, fi, bc)


_BELOW = ((1 << _LANES) - 1).astype(U32)


def _mbcnt_lo(x: Array, count: Array) -> Array:
    """Ones of ``x`` at the lanes below each lane, and ``count``."""
    return popcount(x & _BELOW).astype(U32) + count


def _mbcnt_hi(x: Array, count: Array) -> Array:
    """``count``: no lane of wave32 is above 31."""
    return np.broadcast_arrays(count, x & _BELOW)[0]


LANES = table(
    [
        op("v_readfirstlane_b32", "b32 = b32 exec", _first),
        op("v_readlane_b32", "b32 = b32 u32", _read),
        op("v_writelane_b32", "b32 = b32 u32 old", _write, whole=True),
        op("v_permlane16_b32", "b32 = b32 b32 b32 exec old", _permlane16, options=("fi", "bc")),
        op("v_permlanex16_b32", "b32 = b32 b32 b32 exec old", _permlanex16, options=("fi", "bc")),
        op("v_permlane16_var_b32", "b32 = b32 u32 exec old", _permlane16_var, options=("fi", "bc")),
        op("v_permlanex16_var_b32", "b32 = b32 u32 exec old", _permlanex16_var, options=("fi", "bc")),
        op("v_permlane64_b32", "b32 = b32 old", lambda x, old: old),
        op("v_mbcnt_lo_u32_b32", "u32 = u32 u32", _mbcnt_lo),
        op("v_mbcnt_hi_u32_b32", "u32 = u32 u32", _mbcnt_hi),
    ]
)
