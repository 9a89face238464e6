"""Products that several results have in common under some association, though the program forms them once or never.

``(a @ b) @ c`` beside ``b @ c``; ``a @ b.t()`` beside ``b @ a.t()``; products with two slices that overlap, or with a
sum and its parts. A kernel forms what they share once. So results are walked in an order, and what an earlier one may
have formed on its way is free in later ones: a lower bound in any order, for each product counts where it first occurs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from solar.bound.expansion import Chains
from solar.bound.networks import Factor, Form, Network
from solar.bound.orders import subsets
from solar.bound.symmetry import origin, plain

# Products of a network that may be equal to one of an earlier network, as sets of factors, by the network's identity.
Made = Mapping[int, frozenset[int]]
Grown = Mapping[str, list[list[Network]]]


@dataclass(frozen=True)
class Product:
    """A set of factors multiplied, and how to know it again: their tensors, which of their dimensions share an index,
    and whether it stays open (None: not known), constant places, and what each dimension covers: first, last, stride.
    """

    tensors: tuple[Any, ...]
    ties: Any
    places: Any
    ranges: Mapping[tuple[Any, int], tuple[int, int, int]]

    def may_be(self, other: Product) -> bool:
        """Whether two products of the same tensors may be the same, or have a part in common."""
        if self.ties is None or other.ties is None:
            return True
        if self.ties != other.ties or self.places != other.places:
            return False
        return all(_meet(covered, other.ranges[at]) for at, covered in self.ranges.items())


def _meet(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    stride = math.gcd(a[2], b[2])
    return a[0] <= b[1] and b[0] <= a[1] and ((a[0] - b[0]) % stride == 0 if stride else a[0] == b[0])


def made_before(chains: Chains, order: Sequence[str], grown: Grown, shared: frozenset[str]) -> Made:
    """What earlier networks may have made of later ones; ``shared``: intermediates that are weighed elsewhere."""
    related = _related(chains, order, grown)
    seen: dict[tuple[Any, ...], list[Product]] = defaultdict(list)
    found: dict[int, frozenset[int]] = {}
    for name in order:
        if name not in related:
            continue
        mine: list[Product] = []
        for net in (net for alternatives in grown[name] for net in alternatives):
            apart = _whole_groups(net, shared)
            free = set()
            for mask, product in products(chains, net).items():
                if mask not in apart and _met(product, seen):
                    free.add(mask)
                mine.append(product)
            addends = _by_addend(chains, net)
            for mask in {mask for made in addends for mask in made}:
                parts = [made[mask] for made in addends if mask in made]
                if mask not in apart and all(_met(part, seen) for part in parts):
                    free.add(mask)
                mine += parts
            found[id(net)] = frozenset(free)
        if name not in shared:
            for product in mine:
                seen[product.tensors].append(product)
    return found


def _met(product: Product, seen: Mapping[tuple[Any, ...], list[Product]]) -> bool:
    return any(product.may_be(other) for other in seen.get(product.tensors, ()))


def _addends(chains: Chains, name: str) -> list[str]:
    """The tensors that a factor is the sum or difference of."""
    op = chains.producers.get(name)
    if op is None or op.function not in ("add", "sub") or len(op.operands) < 2 or name in chains.bearing:
        return []
    tensors = chains.program.tensors
    return [part for part in op.operands if tensors[part].shape == tensors[name].shape]


def _by_addend(chains: Chains, net: Network) -> list[dict[int, Product]]:
    """Products of one factor that is a sum, addend by addend: ``a @ (u + v)`` is ``a @ u`` and ``a @ v``; any two of
    them give the third."""
    found = []
    for i, factor in enumerate(net.factors):
        for part in _addends(chains, factor.tensor):
            with_part = net.copy()
            with_part.factors[i] = Factor(part, factor.forms, factor.groups)
            found.append({mask: made for mask, made in products(chains, with_part).items() if mask >> i & 1})
    return found


def repeated(chains: Chains, net: Network) -> list[tuple[int, int]]:
    """Pairs of products of one network, without a common factor, that may be one (``a @ b @ a @ b``)."""
    bases = [origin(chains, factor.tensor) for factor in net.factors]
    twice = [base for base in bases if bases.count(base) > 1]
    if len(twice) < 4:
        return []
    found = products(chains, net)
    return [
        (first, second)
        for (first, one), (second, other) in combinations(found.items(), 2)
        if not first & second and one.tensors == other.tensors and one.may_be(other)
    ]


def _related(chains: Chains, order: Iterable[str], grown: Grown) -> set[str]:
    """Networks with two tensors in common with another one."""
    holders: dict[frozenset[str], set[str]] = defaultdict(set)
    for name in order:
        for net in (net for alternatives in grown[name] for net in alternatives):
            names = [name for f in net.factors for name in (f.tensor, *_addends(chains, f.tensor))]
            for pair in combinations(sorted(origin(chains, name) for name in names), 2):
                holders[frozenset(pair)].add(name)
    return {name for names in holders.values() if len(names) > 1 for name in names}


def _whole_groups(net: Network, shared: frozenset[str]) -> set[int]:
    groups: dict[tuple[str, int], int] = {}
    for i, factor in enumerate(net.factors):
        for group in factor.groups:
            if group[0] in shared:
                groups[group] = groups.get(group, 0) | 1 << i
    return set(groups.values())


def products(chains: Chains, net: Network) -> dict[int, Product]:
    """Every set of two factors or more that a kernel may multiply, by its mask."""
    described, seen_through = _seen_through(chains, net)
    outer = set(seen_through.output)
    holders: dict[str, int] = defaultdict(int)
    for i, (_, forms) in enumerate(described):
        for index in {index for form in forms or () for index, _ in form.terms}:
            holders[index] |= 1 << i
    result = {}
    for mask in subsets(net) or ():
        if mask & (mask - 1) == 0:
            continue
        members = [described[i] for i in range(len(described)) if mask >> i & 1]
        tensors = tuple(sorted(base for base, _ in members))
        if len(set(tensors)) < len(tensors) or any(forms is None for _, forms in members):
            result[mask] = Product(tensors, None, None, {})
            continue
        tied: list[tuple[set[Any], set[bool]]] = []
        constants, ranges = set(), {}
        for base, forms in members:
            for dim, form in enumerate(forms or ()):
                reach = [c * (seen_through.sets[index].extent - 1) for index, c in form.terms]
                ranges[base, dim] = (
                    form.offset + sum(r for r in reach if r < 0),
                    form.offset + sum(r for r in reach if r > 0),
                    math.gcd(*(c for _, c in form.terms)),
                )
                if not form.terms:
                    constants.add((base, dim, form.offset))
                    continue
                indices = {index for index, _ in form.terms}
                group: set[Any] = {(base, dim), *indices}
                states = {index in outer or bool(holders[index] & ~mask) for index in indices}
                for other in [other for other in tied if other[0] & indices]:
                    tied.remove(other)
                    group, states = group | other[0], states | other[1]
                tied.append((group, states))
        ties = frozenset(
            (frozenset(at for at in group if isinstance(at, tuple)), frozenset(states)) for group, states in tied
        )
        result[mask] = Product(tensors, ties, frozenset(constants), ranges)
    return result


def _seen_through(chains: Chains, net: Network) -> tuple[list[tuple[Any, tuple[Form, ...] | None]], Network]:
    """What each factor is a view of, with the places there, and the network whose indices these are."""
    tried = net.copy()
    bases: list[Any] = []
    for i in range(len(net.factors)):
        factor = tried.factors.pop(i)
        (name, functions), forms = plain(chains, tried, factor, split=True)
        tried.factors.insert(i, Factor(name, tuple(tried.current(form) for form in forms)))
        bases.append((origin(chains, factor.tensor), functions))
    return [
        (base, factor.forms if factor.tensor == base[0] else None)
        for base, factor in zip(bases, tried.factors, strict=True)
    ], tried
