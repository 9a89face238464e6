"""Products that feed each other: unfused, fused without tiles, fused by tiles, and where to cut a longer chain.

unfused   the two curves added, at the same capacity.
untiled   the intermediate stays in the buffer whole, and is neither written nor read.
tiled     loops over tiles of the intermediate; the first product completes a tile, the second consumes it. Every other
          tensor either streams through or is kept from some loop on inwards, whole in the ranks that are not looped
          over. Capacity: the tile, what is kept, and the larger of what the two products need for streaming.

Tensors are fetched in pieces of their own (``shared=False`` of :mod:`solar.mapper.search`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations, product
from typing import Any

from solar.errors import MappingError
from solar.mapper.curves import Curve, both, either, lower, pareto
from solar.mapper.orders import Ranks, inner_orders
from solar.mapper.search import CELLS, best_curve, curve
from solar.mapper.space import Access, Indexing, Space, space
from solar.mapper.tiles import candidates

MIDDLE = 2  # position of the intermediate among a pair's accesses


@dataclass(frozen=True)
class Pair:
    """Two products over common ranks. ``accesses``: operands of the first, the intermediate, the other operand of the
    second, its output. ``first`` and ``second``: each product alone."""

    extents: tuple[int, ...]
    accesses: tuple[Access, ...]
    batch: int
    first: Space
    second: Space


def pair(
    first: tuple[Mapping[str, int], Sequence[Indexing]],
    second: tuple[Mapping[str, int], Sequence[Indexing]],
    position: int,
    renamed: Mapping[str, str],
) -> Pair:
    """Join two einsums (see :func:`solar.mapper.space.indexing`) at operand ``position`` of the second.

    ``renamed``: for the ranks of that operand, the name that the first einsum's output has for them. Raises
    :class:`MappingError` for windows, and for products of other than two operands.
    """
    if len(first[1]) != 3 or len(second[1]) != 3:
        raise MappingError("a fused pair has two operands a product")
    if any(access.windows for access in (*first[1], *second[1])):
        raise MappingError("fusion through a sliding window is not searched")
    names = {name: renamed.get(name, f"{name}'") for name in second[0]}
    moved = [replace(access, ranks=frozenset(names[name] for name in access.ranks)) for access in second[1]]
    middle = moved.pop(position)
    if middle.ranks != first[1][2].ranks:
        raise MappingError("the second product does not index the intermediate as the first one writes it")
    if any(name in second[0] and second[0][name] != first[0].get(own) for name, own in renamed.items()):
        raise MappingError("the second product reads a part of the intermediate")
    extents = {**first[0], **{names[name]: extent for name, extent in second[0].items()}}
    joined = space(extents, [*first[1][:2], replace(middle, weight=first[1][2].weight), *moved])
    return Pair(joined.extents, joined.accesses, joined.batch, space(*first), space(*second))


@lru_cache(maxsize=128)
def fused(chain: Pair) -> tuple[Curve, str]:
    """Least traffic of the pair at every capacity, in the unit of the weights, and the coarsest candidates used."""
    first, one = best_curve(chain.first, shared=False)
    second, two = best_curve(chain.second, shared=False)
    kind = "divisors" if "divisors" in (one, two) else "ceilings"
    if _cells(chain, kind) > CELLS:
        kind = "divisors"
    if _cells(chain, kind) > CELLS:
        raise MappingError(f"more than {CELLS:,} tilings of the fused pair, even with divisors only")
    if _most(chain) >= 1 << 62:
        raise MappingError("traffic at the smallest tiles does not fit 64 bits")
    return either(both(first, second), _untiled(chain, kind), _tiled(chain, kind)), kind


def compulsory(chain: Pair) -> int:
    """Everything but the intermediate, once."""
    return chain.batch * sum(_whole(chain, access) for access in _outer(chain))


def segmented(singles: Sequence[Curve], pairs: Sequence[Curve | None]) -> Curve:
    """A chain of n products cut into pieces of one or two: the best over all cuts, by dynamic programming.

    ``pairs[i]`` joins products i and i + 1 (None: they cannot be).
    """
    best: list[Curve] = [singles[0]]
    for last in range(1, len(singles)):
        found = both(best[last - 1], singles[last])
        joined = pairs[last - 1]
        if joined is not None:
            found = either(found, both(best[last - 2], joined) if last > 1 else joined)
        best.append(found)
    return best[-1]


def _outer(chain: Pair) -> list[Access]:
    return [access for t, access in enumerate(chain.accesses) if t != MIDDLE]


def _whole(chain: Pair, access: Access) -> int:
    return access.weight * math.prod(chain.extents[rank] for rank in access.ranks)


def _untiled(chain: Pair, kind: str) -> Curve:
    """Each product with an intermediate that costs nothing, beside all of it in the buffer."""
    middle = chain.accesses[MIDDLE]
    free = replace(middle, weight=0)
    one = Space(chain.extents, (*chain.accesses[:MIDDLE], replace(free, output=True)))
    two = Space(chain.extents, (free, *chain.accesses[MIDDLE + 1 :]))
    searched = [curve(_own(part), kind, shared=False) for part in (one, two)]
    return both(*searched).shifted(_whole(chain, middle)).scaled(chain.batch)


def _most(chain: Pair) -> int:
    """More than any tiled schedule moves."""
    looped = chain.accesses[MIDDLE].ranks
    return 2 * sum(
        _whole(chain, access) * math.prod(chain.extents[rank] for rank in looped - access.ranks)
        for access in _outer(chain)
    )


def _own(part: Space) -> Space:
    """Without the ranks that only the other product has."""
    used = frozenset[int]().union(*(access.ranks for access in part.accesses))
    return replace(part, extents=tuple(e if rank in used else 1 for rank, e in enumerate(part.extents)))


def _kept_levels(chain: Pair, access: Access, order: Sequence[int]) -> list[int | None]:
    """Loops above which a tensor may be kept to good effect: right outside a loop that would read it again."""
    return [None, *(level for level, rank in enumerate(order) if rank not in access.ranks)]


def _cases(chain: Pair) -> Iterator[tuple[tuple[int, ...], tuple[int | None, ...]]]:
    for order in permutations(sorted(chain.accesses[MIDDLE].ranks)):
        for levels in product(*(_kept_levels(chain, access, order) for access in _outer(chain))):
            yield order, levels


def _cells(chain: Pair, kind: str) -> int:
    grid = math.prod(len(candidates(chain.extents[rank], kind)) for rank in chain.accesses[MIDDLE].ranks)
    return grid * sum(1 for _ in _cases(chain))


def _tiled(chain: Pair, kind: str) -> Curve:
    """All tiles of the intermediate, orders of the loops over them, and levels at which the others are kept."""
    import numpy as np

    looped = sorted(chain.accesses[MIDDLE].ranks)
    sizes = np.meshgrid(
        *(np.asarray(candidates(chain.extents[rank], kind), dtype=np.int64) for rank in looped),
        indexing="ij",
        sparse=True,
    )
    tile: dict[int, Any] = {rank: extent for rank, extent in enumerate(chain.extents)}
    tile |= dict(zip(looped, sizes))
    points: list[tuple[int, int]] = []
    for order, levels in _cases(chain):
        capacity, traffic = _schedule(chain, tile, order, levels)
        points += pareto(*np.broadcast_arrays(capacity, traffic, *sizes)[:2])
    return lower(points).scaled(chain.batch)


def _schedule(
    chain: Pair, tile: Mapping[int, Any], order: Sequence[int], levels: Sequence[int | None]
) -> tuple[Any, Any]:
    """Capacity and traffic of one loop order, with each outer tensor kept at its level (None: streamed)."""
    import numpy as np

    traffic: Any = np.int64(0)
    held: Any = chain.accesses[MIDDLE].weight * _passing(_size(chain.accesses[MIDDLE].ranks, tile))
    streamed: list[list[Access]] = [[], []]
    for t, (access, level) in enumerate(zip(_outer(chain), levels)):
        passes: Any = np.int64(1)
        for rank in order[:level]:
            if rank not in access.ranks:
                passes = passes * -(-chain.extents[rank] // tile[rank])
        traffic = traffic + _whole(chain, access) * (2 * passes - 1 if access.output else passes)
        if level is None:
            streamed[t // MIDDLE].append(access)
        else:
            looped = access.ranks.intersection(order[:level])
            rest = math.prod(chain.extents[rank] for rank in access.ranks - looped)
            held = held + access.weight * rest * _size(looped, tile)
    return held + np.maximum(_streaming(streamed[0], tile), _streaming(streamed[1], tile)), traffic


def _streaming(accesses: Sequence[Access], tile: Mapping[int, Any]) -> Any:
    """What one product of a tile needs for the tensors that are not kept, in its best order of inner loops."""
    import numpy as np

    choices = [
        sum((a.weight * _passing(_size(a.ranks - narrowed, tile)) for a, narrowed in zip(accesses, order)), np.int64(0))
        for order in inner_orders(tuple(access.ranks for access in accesses))
    ]
    least = choices[0]
    for choice in choices[1:]:
        least = np.minimum(least, choice)
    return least


def _size(ranks: Ranks, tile: Mapping[int, Any]) -> Any:
    """Elements of a box over some ranks."""
    found: Any = 1
    for rank in sorted(ranks):
        found = found * tile[rank]
    return found


def _passing(elements: Any) -> Any:
    """One element waits in the multiplier's register, not in the buffer."""
    import numpy as np

    return np.where(elements == 1, 0, elements)
