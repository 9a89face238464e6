"""Tile sizes to try, and what the tiles of a sliding window cover."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

CANDIDATES = ("divisors", "ceilings")


@lru_cache(maxsize=1024)
def candidates(extent: int, kind: str) -> tuple[int, ...]:
    """Tile sizes of one rank, rising, the whole extent last.

    ``divisors``: perfect factors. ``ceilings``: ceil(extent / q) for every q; for each number of tiles the smallest
    tile dominates, so these stand for every ragged tiling; along an overlapping window only nearly so, since there the
    place where the last tile begins counts. About 2 * sqrt(extent) values.
    """
    if kind not in CANDIDATES:
        raise ValueError(f"{kind!r} is none of {', '.join(CANDIDATES)}")
    root = math.isqrt(extent)
    low = [t for t in range(1, root + 1) if kind == "ceilings" or extent % t == 0]
    if kind == "divisors":
        return tuple(sorted({*low, *(extent // t for t in low)}))
    # A small tile is kept if it is the smallest one with its number of tiles.
    small = {-(-extent // -(-extent // t)) for t in low}
    return tuple(sorted({*small, *(-(-extent // q) for q in range(1, root + 2))}))


@dataclass(frozen=True)
class Window:
    """One dimension of an operand, at ``stride * p + dilation * r + offset`` for ranks ``p`` and ``r``.

    Positions outside of [0, size) read nothing (padding). ``stride`` and ``dilation`` are positive.
    """

    p: int
    stride: int
    r: int
    dilation: int
    offset: int
    size: int


@dataclass(frozen=True)
class Cover:
    """Distinct elements in the tiles of a window; arrays over (tile of p, tile of r), candidates in their order.

    ``held``: of the largest tile. ``total``: summed over all tiles, so that what two share counts twice. ``along``: by
    rank, the same where that rank's loop runs innermost and each tile keeps what it shares with the one before.
    """

    held: Any
    total: Any
    along: dict[int, Any]


def cover(window: Window, p_extent: int, r_extent: int, p_tiles: tuple[int, ...], r_tiles: tuple[int, ...]) -> Cover:
    """Count by closed form per tile, exactly, also at ragged tiles and at the padding."""
    import numpy as np

    counts: Any = np.zeros((4, len(p_tiles), len(r_tiles)), dtype=np.int64)
    held, total, along_p, along_r = counts
    for i, p_tile in enumerate(p_tiles):
        p: Any = np.arange(0, p_extent, p_tile, dtype=np.int64)[:, None]
        a = np.minimum(p_tile, p_extent - p)
        for j, r_tile in enumerate(r_tiles):
            r: Any = np.arange(0, r_extent, r_tile, dtype=np.int64)[None, :]
            b = np.minimum(r_tile, r_extent - r)
            tile = _distinct(window, a, b, p, r)
            held[i, j], total[i, j] = tile.max(), tile.sum()
            # A tile and the next one are one longer tile; what that holds beyond the first is new.
            pairs = _distinct(window, a[:-1] + a[1:], b, p[:-1], r)
            along_p[i, j] = tile[0].sum() + pairs.sum() - tile[:-1].sum()
            pairs = _distinct(window, a, b[:, :-1] + b[:, 1:], p, r[:, :-1])
            along_r[i, j] = tile[:, 0].sum() + pairs.sum() - tile[:, :-1].sum()
    return Cover(held, total, {window.p: along_p, window.r: along_r})


def _distinct(window: Window, a: Any, b: Any, p: Any, r: Any) -> Any:
    """Distinct valid positions of ``a`` values of p from ``p`` on and ``b`` values of r from ``r`` on.

    (p, r) and (p + d, r - s) read the same position, for stride s and dilation d in lowest terms. Of those, the one
    with the largest p is counted: every p for the first s values of r, the last d values of p for the others.
    """
    import numpy as np

    unit = math.gcd(window.stride, window.dilation)
    stride, dilation = window.stride // unit, window.dilation // unit
    if dilation > 1 and (stride == 1 or int(a.max(initial=0)) < int(b.max(initial=0))):
        stride, dilation, a, b, p, r = dilation, stride, b, a, r, p
    low = -(window.offset // unit)  # first and last valid multiple of the unit, from the offset on
    high = (window.size - 1 - window.offset) // unit
    start = p * stride + r * dilation

    def between(first: Any, last: Any) -> Any:
        """Values of p, counted from the tile's first, in [first, last] whose position is valid, at a given base."""
        return np.maximum(
            np.minimum(last, (high - base) // stride) - np.maximum(first, -((base - low) // stride)) + 1, 0
        )

    count = np.zeros(np.broadcast_shapes(a.shape, b.shape), dtype=np.int64)
    most = int(b.max(initial=0))
    for k in range(min(most, stride) if dilation == 1 else most):
        base = start + k * dilation
        first = 0 if k < stride else np.maximum(a - dilation, 0)
        count += np.where(k < b, between(first, a - 1), 0)
    if dilation == 1:  # the values of r beyond the stride, at the last p: one run of positions
        begin = start + a * stride
        end = start + (a - 1) * stride + b - 1
        count += np.maximum(np.minimum(end, high) - np.maximum(begin, low) + 1, 0)
    return count
