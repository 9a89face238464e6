"""Loop orders, reduced to what they do to traffic.

A tensor is read once more for every iteration of a loop that does not index it and that has, somewhere inside, a loop
that does: all irrelevant loops outside the tensor's innermost relevant loop. So an order matters only through which
tensors each loop, counted from the inside, is the first relevant one of. Orders are enumerated by that choice, and
those that do worse for one tensor and better for none are left out; what remains is three for a matrix product.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

Ranks = frozenset[int]


class Visit(NamedTuple):
    """What one order does to one tensor: ``repeats``, the loops that read it again; ``innermost``, its own innermost
    loop, along which overlapping windows keep what they share (None: it has no loop, or none with overlap)."""

    repeats: Ranks
    innermost: int | None


@lru_cache(maxsize=4096)
def outer_orders(
    varying: Ranks, relevant: tuple[Ranks, ...], windows: tuple[Ranks, ...]
) -> tuple[tuple[Visit, ...], ...]:
    """Distinct, undominated effects of all orders of the loops ``varying`` (those with more than one iteration).

    ``relevant``: the ranks of each tensor. ``windows``: those of them that index it through an overlapping window.
    """
    idle = Visit(frozenset(), None)
    found: set[tuple[Visit, ...]] = set()

    def place(loops: Ranks, visits: dict[int, Visit]) -> None:
        open_ = [t for t in range(len(relevant)) if t not in visits and relevant[t] & loops]
        if not open_:
            found.add(tuple(visits.get(t, idle) for t in range(len(relevant))))
            return
        wanted = frozenset[int]().union(*(relevant[t] for t in open_))
        loops = loops & wanted  # the others cost nothing inside of all of these
        for loop in sorted(loops):
            hit = {
                t: Visit(loops - relevant[t], loop if loop in windows[t] else None)
                for t in open_
                if loop in relevant[t]
            }
            place(loops - {loop}, visits | hit)

    place(varying, {})
    return tuple(sorted((a for a in found if not any(b != a and _no_worse(b, a) for b in found)), key=_key))


def _no_worse(a: tuple[Visit, ...], b: tuple[Visit, ...]) -> bool:
    return all(x.repeats <= y.repeats and y.innermost in (None, x.innermost) for x, y in zip(a, b))


def _key(order: tuple[Visit, ...]) -> list[tuple[list[int], int]]:
    return [(sorted(visit.repeats), -1 if visit.innermost is None else visit.innermost) for visit in order]


@lru_cache(maxsize=4096)
def inner_orders(relevant: tuple[Ranks, ...]) -> tuple[tuple[Ranks, ...], ...]:
    """For the loops inside the buffer, outermost first: the ranks that each tensor needs one position of at a time.

    A tensor may be fetched below the leading loops that index it, since no loop above repeats it then. An empty set of
    ranks keeps a tensor whole. Undominated choices only.
    """
    found: set[tuple[Ranks, ...]] = set()

    def place(running: frozenset[int], narrowed: tuple[Ranks, ...], used: Ranks) -> None:
        loops = sorted(frozenset[int]().union(*(relevant[t] for t in running)) - used)
        if not loops:
            found.add(narrowed)
        for loop in loops:
            still = frozenset(t for t in running if loop in relevant[t])
            place(still, tuple(n | {loop} if t in still else n for t, n in enumerate(narrowed)), used | {loop})

    place(frozenset(range(len(relevant))), (frozenset(),) * len(relevant), frozenset())
    best = [a for a in found if not any(b != a and all(x >= y for x, y in zip(b, a)) for b in found)]
    return tuple(sorted(best, key=lambda order: [sorted(ranks) for ranks in order]))
