"""The cheapest order to multiply a network out.

Indices that only one factor has are summed first, which costs additions only (rule 4); then every binary order is
compared by dynamic programming over subsets of the factors, the method that opt_einsum calls ``optimal`` (Pfeifer,
Haegeman, Verstraete, Phys. Rev. E 90, 033315 (2014)), with three differences: a step on the way that sums over no index
is free here, so is a subset whose product exists anyway, and a step costs the time of its cheapest format rather than
its number of products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from solar.bound import axes as ax
from solar.bound import regions as rg
from solar.bound.formats import Price, Prices
from solar.bound.networks import Factor, Network
from solar.bound.pairs import projection

# All subsets are enumerated up to this many factors; beyond, those that share summed indices, up to so many of them.
# Where there are more, the largest unavoidable term is priced instead.
LARGEST_NETWORK = 8
LARGEST_TABLE = 600

# Multiplications of Winograd's minimal filtering against the direct form, per stride-1 window axis, by taps: tiles of
# six inputs, F(4, 3) and its like (Lavin and Gray, CVPR 2016). Longer windows are cut into shorter ones.
_WINOGRAD = {2: 0.6}
_WINOGRAD_LONG = 0.5


@dataclass(frozen=True)
class Step:
    """One contraction of the chosen order: multiply-adds after all savings, and their price."""

    multiply_adds: float
    price: Price
    winograd: bool
    symmetric: bool = False


@dataclass(frozen=True)
class Cost:
    """Seconds of the cheapest order, and its contractions."""

    seconds: float
    steps: tuple[Step, ...]
    reduced: bool = False

    def plus(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, (*self.steps, *other.steps), self.reduced or other.reduced)


FREE = Cost(0.0, ())


def _points(net: Network, indices: frozenset[str]) -> int:
    """Positions of some of the indices that take part (at least): conditions on others are projected."""
    names = sorted(indices)
    number = {name: i for i, name in enumerate(names)}
    sets = [net.sets[name] for name in names]
    pairs = []
    for x, y, pair in net.pairs:
        if x in number and y in number:
            pairs.append(replace(pair, first=number[x], second=number[y]))
        elif x in number or y in number:
            mine = x if x in number else y
            here = replace(pair, first=0, second=1)
            shown = projection(here, net.sets[x], net.sets[y], 0 if mine == x else 1)
            sets[number[mine]] = ax.intersection(sets[number[mine]], shown)
    if not pairs:
        return math.prod(axis.count for axis in sets)
    block = rg.conditioned(tuple(sets), pairs)
    return rg.count_box(block.axes, block.pairs)


def cheapest(
    net: Network, prices: Prices, dtype_of: Callable[[str], str], *, free: Callable[[Factor], bool],
    available: Callable[[str], bool], repeats: Callable[[str], bool], alike: Sequence[tuple[int, int]] = (),
    made: frozenset[int] = frozenset(), values: Callable[[str], int | None] = lambda _: None,
    count_scalings: bool = False,
    symmetric: Callable[[Step, tuple[int, int], tuple[frozenset[str], frozenset[str]]], Step] | None = None,
) -> Cost:  # fmt: skip
    """Cheapest order of a network.

    ``free``: factors that need no work to multiply (their contents are known beforehand). ``available``: tensors that
    exist anyway, so that the factors expanded from them need no product. ``repeats``: tensors that may hold one row
    many times, so that a kernel can bring what it is multiplied with together to a matrix. ``alike``: pairs of products
    that may be one; of two parts with one of them each the dearer counts (``a @ a @ a @ a`` by squaring). ``made``:
    products that exist anyway, as sets of factors. ``values``: of a tensor that fewer values than elements decide, how
    many. ``count_scalings``: charge steps without a sum as well. ``symmetric``: a step, its parts and their open
    indices -> the step, less the products that appear twice. A network of too many factors costs its largest
    unavoidable term: every element of a factor, and of the output, takes part in a product.
    """
    factors = net.factors
    n = len(factors)
    outer = frozenset(net.output)
    decided = [values(factor.tensor) for factor in factors]
    if n > 1 and any(count is not None for count in decided):
        return _unavoidable(net, prices, dtype_of, decided)
    if net.broken and n:
        return _unavoidable(net, prices, dtype_of)
    if n < 2:
        return FREE
    where = _holders(net)
    everything = (1 << n) - 1
    masks = _masks(n, where)
    if masks is None:
        return _unavoidable(net, prices, dtype_of)

    def open_indices(mask: int) -> frozenset[str]:
        return frozenset(
            name for name, holders in where.items() if holders & mask and (name in outer or holders & ~mask)
        )

    groups: dict[tuple[str, int], int] = {}
    for i, factor in enumerate(factors):
        for group in factor.groups:
            groups[group] = groups.get(group, 0) | 1 << i
    whole_groups = {mask for (tensor, _), mask in groups.items() if available(tensor)}
    known = 0
    for i, factor in enumerate(factors):
        known |= bool(free(factor)) << i

    opened = {mask: open_indices(mask) for mask in masks}
    mixed = _mixed(net)
    counts: dict[frozenset[str], int] = {}
    best: dict[int, Cost] = {}
    for mask in masks:
        if mask & (mask - 1) == 0 or mask & ~known == 0 or mask in whole_groups or mask in made:
            best[mask] = FREE
            continue
        chosen: Cost | None = None
        for part, rest in _halves(mask, best, n):
            parts = [best[part], best[rest]]
            if any((a & ~part, b & ~rest) == (0, 0) or (a & ~rest, b & ~part) == (0, 0) for a, b in alike):
                parts = [max(parts, key=lambda cost: cost.seconds)]
            below = sum(cost.seconds for cost in parts)
            if chosen is None or below < chosen.seconds:
                step = _step(net, part, rest, opened, mask, mixed, counts, prices, dtype_of, repeats, count_scalings)
                if step is not None and symmetric is not None:
                    step = symmetric(step, (part, rest), (opened[part], opened[rest]))
                seconds = below if step is None else below + step.multiply_adds * step.price.seconds
                if chosen is None or seconds < chosen.seconds:
                    steps = (*(s for cost in parts for s in cost.steps), *(() if step is None else (step,)))
                    chosen = Cost(seconds, steps)
        if chosen is None:
            return _unavoidable(net, prices, dtype_of)
        best[mask] = chosen
    return best[everything]


def _holders(net: Network) -> dict[str, int]:
    """The factors that have an index, as a mask."""
    where: dict[str, int] = {}
    for i, factor in enumerate(net.factors):
        for name in factor.indices:
            where[name] = where.get(name, 0) | 1 << i
    return where


def subsets(net: Network) -> list[int] | None:
    """Sets of factors that an order may multiply, as masks; None where they are too many."""
    return _masks(len(net.factors), _holders(net))


def _masks(n: int, where: Mapping[str, int]) -> list[int] | None:
    """Subsets of n factors to build up, small ones first; None where they are too many."""
    everything = (1 << n) - 1
    if n <= LARGEST_NETWORK:
        return sorted(range(1, everything + 1), key=int.bit_count)
    neighbours = [0] * n
    for holders in where.values():
        for i in range(n):
            if holders >> i & 1:
                neighbours[i] |= holders
    found = {1 << i for i in range(n)}
    layer = set(found)
    while layer:
        grown = set()
        for mask in layer:
            beside = 0
            for i in range(n):
                if mask >> i & 1:
                    beside |= neighbours[i]
            beside &= ~mask
            grown |= {mask | 1 << i for i in range(n) if beside >> i & 1}
        found |= grown
        if len(found) > LARGEST_TABLE:
            return None
        layer = grown
    # Parts that share no index are multiplied last.
    found.add(everything)
    return sorted(found, key=lambda mask: (mask.bit_count(), mask))


def _halves(mask: int, built: Mapping[int, Cost], n: int) -> Iterator[tuple[int, int]]:
    """Ways to put a subset together from two that are built."""
    low = mask & -mask
    if n <= LARGEST_NETWORK:
        part = (mask - 1) & mask
        while part:
            if part & low:
                yield part, mask ^ part
            part = (part - 1) & mask
        return
    for part in built:
        if part & low and part & ~mask == 0 and part != mask and mask ^ part in built:
            yield part, mask ^ part


def _step(
    net: Network, left: int, right: int, opened: Mapping[int, frozenset[str]], mask: int, mixed: _Mixed,
    counts: dict[frozenset[str], int], prices: Prices, dtype_of: Callable[[str], str],
    repeats: Callable[[str], bool], count_scalings: bool,
) -> Step | None:  # fmt: skip
    together = opened[left] | opened[right]
    share = 1.0
    if together == opened[mask] and not count_scalings:
        if mask != (1 << len(net.factors)) - 1:
            return None
        share = 0.5  # the elements of the result are products themselves: a multiplication each, no addition
    points = _distinct(net, mask, together, mixed, counts)
    operands = []
    for part in (left, right):
        single = part & (part - 1) == 0
        operands.append(
            dtype_of(net.factors[part.bit_length() - 1].tensor) if single else _between(net, part, dtype_of)
        )
    ratio = share
    for position, tap, taps in net.windows:
        if position <= together and tap in together:
            ratio *= _WINOGRAD.get(taps, _WINOGRAD_LONG)
    grouped = any(repeats(f.tensor) for i, f in enumerate(net.factors) if mask >> i & 1)
    matrix = grouped or _is_matrix(net, opened[left], opened[right])
    price = prices.of(operands[0], operands[1], elementwise=share < 1 or not matrix)
    return Step(points * ratio, price, ratio < share)


def _is_matrix(net: Network, left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether both operands of a step have a dimension that the other has not."""
    return any(net.sets[name].count > 1 for name in left - right) and any(
        net.sets[name].count > 1 for name in right - left
    )


_Mixed = Mapping[str, tuple[tuple[int, ...], ...]]


def _mixed(net: Network) -> _Mixed:
    """Coefficients, by factor and form, of the indices that share a form with another one."""
    names = {name for f in net.factors for form in f.forms if len(form.terms) > 1 for name, _ in form.terms}
    rows: dict[str, list[tuple[int, ...]]] = {name: [] for name in sorted(names)}
    for factor in net.factors:
        forms = [dict(form.terms) for form in factor.forms]
        for name, row in rows.items():
            row.append(tuple(form.get(name, 0) for form in forms))
    return {name: tuple(row) for name, row in rows.items()}


def _distinct(
    net: Network, mask: int, indices: frozenset[str], mixed: _Mixed, counts: dict[frozenset[str], int]
) -> int:
    """Products of one step. Indices that every factor of the subset sees in one and the same combination (the position
    of a window inside another window) count as the values of that combination."""
    combined: dict[tuple[int, ...], list[tuple[str, int]]] = {}
    factors = [i for i in range(len(net.factors)) if mask >> i & 1]
    for name, rows in mixed.items():
        if name in indices:
            seen = [c for i in factors for c in rows[i]]
            scale = math.gcd(*seen)
            if scale and min(seen) >= 0:
                combined.setdefault(tuple(c // scale for c in seen), []).append((name, scale))
    alone = indices
    product = 1
    for members in combined.values():
        if len(members) < 2:
            continue
        values = _values(net, members)
        if values < math.prod(net.sets[name].count for name, _ in members):
            alone = alone - {name for name, _ in members}
            product *= _under_conditions(net, members, values)
    if alone not in counts:
        counts[alone] = _points(net, alone)
    return counts[alone] * product


def _values(net: Network, members: Sequence[tuple[str, int]]) -> int:
    """Number of values of a sum of scaled indices."""
    ordered = sorted(members, key=lambda member: member[1])
    name, scale = ordered[0]
    values, scale_of_values = net.sets[name], scale
    for name, scale in ordered[1:]:
        extent = scale * net.sets[name].extent + scale_of_values * values.extent
        values = ax.spread(values, scale_of_values, net.sets[name], scale, 0, extent)
        scale_of_values = 1
    return max(values.count, *(net.sets[name].count for name, _ in members))


def _under_conditions(net: Network, members: Sequence[tuple[str, int]], values: int) -> int:
    """The same where conditions hold on some of the indices: at least as many as one index has alone."""
    if any(name in (x, y) for x, y, _ in net.pairs for name, _ in members):
        return max(net.sets[name].count for name, _ in members)
    return values


def _between(net: Network, part: int, dtype_of: Callable[[str], str]) -> str:
    """Dtype of a product of several factors: an fp32 accumulator, fp64 only where every factor is."""
    dtypes = {dtype_of(f.tensor) for i, f in enumerate(net.factors) if part >> i & 1}
    if dtypes == {"float64"}:
        return "float64"
    if all(dtype.startswith(("int", "uint", "bool")) for dtype in dtypes):
        return "int32"
    return "float32"


def _unavoidable(
    net: Network, prices: Prices, dtype_of: Callable[[str], str], decided: Sequence[int | None] = ()
) -> Cost:  # fmt: skip
    """The largest term that no order avoids. ``decided``: values that decide a factor; each is multiplied with what no
    other factor of two shares."""
    factors = net.factors
    largest: float
    if not any(count is not None for count in decided):
        largest = max([_points(net, factor.indices) for factor in factors] + [_points(net, frozenset(net.output))])
    else:
        terms: list[float] = []
        for factor, count in zip(factors, decided, strict=True):
            points = _points(net, factor.indices)
            others = [i for i, other in enumerate(factors) if other is not factor]
            # A value that decides many elements takes part in a multiplication, with no addition, at least.
            term: float = points if count is None else min(points, count / 2)
            if count is not None and len(others) == 1 and decided[others[0]] is None and not net.broken:
                term *= _points(net, factors[others[0]].indices - factor.indices)
            terms.append(term)
        largest = max(terms)
    dtypes = [dtype_of(factor.tensor) for factor in factors]
    price = min((prices.of(a, b) for a in dtypes for b in dtypes), key=lambda p: p.seconds)
    step = Step(float(largest), price, False)
    return Cost(step.multiply_adds * price.seconds, (step,), reduced=True)
