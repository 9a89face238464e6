"""The curve of one einsum: every tile size of every rank, under every loop order.

For tensor T and an order of the loops over tiles, the backing store serves |T| * prod(c_j) elements, c_j the iterations
of the loops that :mod:`solar.mapper.orders` finds to read T again; an output that is visited v times is written v times
and read v - 1 times. The buffer holds one tile of each tensor. Both counts are exact, also at ragged tiles: every pass
covers T once.

A rank whose iterations enter no count takes its smallest tile at once: the search is over the others only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

from solar.errors import MappingError
from solar.mapper.curves import Curve, lower, pareto
from solar.mapper.orders import Ranks, Visit, inner_orders, outer_orders
from solar.mapper.space import Access, Space
from solar.mapper.tiles import Cover, Window, candidates, cover

CELLS = 50_000_000  # tilings times orders that one curve may take; beyond it, only divisors
CHUNK = 1_000_000  # of them in memory at a time


def best_curve(space: Space, *, shared: bool = True) -> tuple[Curve, str]:
    """The curve with the finest candidates that the cap on cells allows, and which those were.

    Raises :class:`MappingError` where divisors are too many as well.
    """
    for kind in ("ceilings", "divisors"):
        if cells(space, kind) <= CELLS:
            return curve(space, kind, shared=shared), kind
    raise MappingError(f"more than {CELLS:,} tilings, even with divisors only")


def cells(space: Space, kind: str) -> int:
    """How many tilings times orders :func:`curve` evaluates, windows' tiles included."""
    tiles = [candidates(extent, kind) for extent in space.extents]
    steps = [sum(-(-extent // t) for t in sizes) for extent, sizes in zip(space.extents, tiles)]
    found = sum(steps[w.p] * steps[w.r] for access in space.accesses for w in access.windows)
    for varying, visits in _cases(space):
        counted = _counted(space, varying, visits)
        found += math.prod(len(tiles[rank]) - 1 for rank in counted)
    return found


@lru_cache(maxsize=512)
def curve(space: Space, kind: str, *, shared: bool = True) -> Curve:
    """Capacity and traffic in the unit of the accesses' weights; the last point is the compulsory traffic.

    ``shared``: one set of tile sizes for all tensors, each held as a whole tile (the published mapspace). Otherwise a
    tensor that no loop outside keeps is fetched in smaller pieces while its tile is worked on, and a piece of one
    element goes past the buffer into the multiplier's register.
    """
    if _most(space) >= 1 << 62:
        raise MappingError("traffic at the smallest tiles does not fit 64 bits")
    tiles = [candidates(extent, kind) for extent in space.extents]
    covers = {
        window: cover(window, space.extents[window.p], space.extents[window.r], tiles[window.p], tiles[window.r])
        for access in space.accesses
        for window in access.windows
    }
    points: list[tuple[int, int]] = []
    for varying, visits in _cases(space):
        for grid in _grids(space, tiles, varying, _counted(space, varying, visits)):
            points += _evaluate(space, grid, visits, covers, shared)
    return lower(points).scaled(space.batch)


def compulsory(space: Space) -> int:
    """Every element that is touched, once."""
    found = 0
    for access in space.accesses:
        size = math.prod(space.extents[rank] for rank in access.ranks)
        for window in access.windows:
            p, r = space.extents[window.p], space.extents[window.r]
            size *= int(cover(window, p, r, (p,), (r,)).held[0, 0])
        found += access.weight * size
    return found * space.batch


def _most(space: Space) -> int:
    return 2 * sum(access.weight for access in space.accesses) * math.prod(space.extents) * space.batch


def _cases(space: Space) -> Iterator[tuple[Ranks, tuple[Visit, ...]]]:
    """Which loops have more than one iteration, with every distinct order of them."""
    ranks = [rank for rank, extent in enumerate(space.extents) if extent > 1]
    relevant = tuple(access.relevant for access in space.accesses)
    windows = tuple(access.windowed for access in space.accesses)
    for number in range(len(ranks) + 1):
        for varying in combinations(ranks, number):
            for visits in outer_orders(frozenset(varying), relevant, windows):
                yield frozenset(varying), visits


def _counted(space: Space, varying: Ranks, visits: tuple[Visit, ...]) -> list[int]:
    """Ranks whose tile size changes the traffic."""
    entering = {rank for visit in visits for rank in visit.repeats}
    entering |= {rank for access in space.accesses for rank in access.windowed}
    return sorted(entering & varying)


@dataclass(frozen=True)
class _Grid:
    """Tile size, candidate number and iterations of every rank, as arrays that broadcast against each other."""

    tile: list[Any]
    number: list[Any]
    count: list[Any]


def _grid(space: Space, tiles: list[tuple[int, ...]], varying: Ranks, chosen: dict[int, slice]) -> _Grid:
    """``chosen``: the candidates of the ranks searched over. Other varying ranks take their smallest, the rest all."""
    import numpy as np

    number: list[Any] = [0 if rank in varying else len(sizes) - 1 for rank, sizes in enumerate(tiles)]
    tile: list[Any] = [sizes[position] for sizes, position in zip(tiles, number)]
    for axis, (rank, part) in enumerate(chosen.items()):
        shape = [-1 if other == axis else 1 for other in range(len(chosen))]
        number[rank] = np.arange(len(tiles[rank]) - 1)[part].reshape(shape)
        tile[rank] = np.asarray(tiles[rank], dtype=np.int64)[number[rank]]
    return _Grid(tile, number, [-(-extent // size) for extent, size in zip(space.extents, tile)])


def _grids(space: Space, tiles: list[tuple[int, ...]], varying: Ranks, counted: list[int]) -> Iterator[_Grid]:
    """The tilings of one case, in pieces of at most CHUNK cells along the longest axis."""
    lengths = {rank: len(tiles[rank]) - 1 for rank in counted}
    if not lengths:
        yield _grid(space, tiles, varying, {})
        return
    longest = max(lengths, key=lambda rank: lengths[rank])
    step = max(1, CHUNK * lengths[longest] // math.prod(lengths.values()))
    for begin in range(0, lengths[longest], step):
        chosen = {rank: slice(begin, begin + step) if rank == longest else slice(None) for rank in counted}
        yield _grid(space, tiles, varying, chosen)


def _evaluate(
    space: Space, grid: _Grid, visits: tuple[Visit, ...], covers: dict[Window, Cover], shared: bool
) -> list[tuple[int, int]]:
    import numpy as np

    traffic: Any = 0
    for access, visit in zip(space.accesses, visits):
        size: Any = math.prod(space.extents[rank] for rank in access.ranks)
        for window in access.windows:
            found = covers[window]
            table = found.total if visit.innermost is None else found.along.get(visit.innermost, found.total)
            size = size * table[grid.number[window.p], grid.number[window.r]]
        passes: Any = 1
        for rank in visit.repeats:
            passes = passes * grid.count[rank]
        traffic = traffic + access.weight * size * (2 * passes - 1 if access.output else passes)
    points: list[tuple[int, int]] = []
    for narrowed in [None] if shared else _narrowings(space, visits, grid):
        capacity: Any = 0
        for t, access in enumerate(space.accesses):
            held: Any = 1
            for rank in access.ranks - (narrowed[t] if narrowed else frozenset()):
                held = held * grid.tile[rank]
            for window in access.windows:
                held = held * covers[window].held[grid.number[window.p], grid.number[window.r]]
            capacity = capacity + access.weight * (held if shared else np.where(held == 1, 0, held))
        points += pareto(*np.broadcast_arrays(np.asarray(capacity), np.asarray(traffic)))
    return points


def _narrowings(space: Space, visits: tuple[Visit, ...], grid: _Grid) -> tuple[tuple[Ranks, ...], ...]:
    """What the loops inside the buffer may leave unheld: only of tensors that no outer loop would find there again."""
    looped = frozenset(rank for rank in range(len(space.extents)) if _several(grid.count[rank]))
    inside = frozenset(rank for rank in range(len(space.extents)) if _several(grid.tile[rank]))

    def relevant(access: Access, visit: Visit) -> Ranks:
        kept = bool(looped - access.relevant - visit.repeats)
        return frozenset() if kept or access.windows else access.ranks & inside

    return inner_orders(tuple(relevant(a, v) for a, v in zip(space.accesses, visits)))


def _several(value: Any) -> bool:
    return bool((value > 1).any()) if hasattr(value, "any") else value > 1
