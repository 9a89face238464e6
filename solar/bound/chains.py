"""Contractions of a program at their cheapest association (rule 4).

The program is cut into linear pieces. What something non-linear reads, or an output is, has to exist: a *root*. A root
that a contraction (or a sum over one) makes is expanded backwards, through views, casts, scalings, additions, sums and
further contractions, into a :class:`~solar.bound.networks.Network` of tensors that no contraction stands behind, and
priced at the cheapest order. Three things keep the total a lower bound:

* what another root's work makes anyway is free in an expansion;
* an intermediate that several contractions read (a *shared* one) is either paid once and then free, or not used at all:
  both are tried, for every choice of shared intermediates, and the cheapest total counts;
* of contractions that are only added up, those with a common factor may merge (x w1 + x w2 = x (w1 + w2)): the dearest
  counts in full, of each other the cheaper of itself and of what is private to it.

Re-association does not go through gathers, scatters, scans, concatenations and padding: they end a piece as something
non-linear does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from solar.bound.demand import Demand, is_pointwise_linear, is_summing
from solar.bound.expansion import Chains, grow_region
from solar.bound.facts import Facts
from solar.bound.formats import Prices
from solar.bound.forms import aligned
from solar.bound.networks import Factor, Form, Network
from solar.bound.orders import FREE, Cost, cheapest
from solar.bound.regions import Region
from solar.bound.reuse import Made, made_before, repeated
from solar.bound.structure import Structure
from solar.bound.symmetry import one_triangle, plain
from solar.einsum import Program

# Shared intermediates of one linear piece that are tried out; beyond, all count as made for nothing.
LARGEST_SHARING = 5


@dataclass(frozen=True)
class Priced:
    """Work of one root. ``op``: the operation that makes it; ``reassociated``: not as written."""

    op: str
    cost: Cost
    reassociated: bool


def price_contractions(
    program: Program, facts: Facts, demand: Demand, prices: Prices, sources: Mapping[str, str], structure: Structure
) -> list[Priced]:
    """Cheapest work of every root that a contraction stands behind, in program order."""
    chains = Chains(program, facts, demand, prices, sources, structure)
    roots = [
        op.outputs[0]
        for op in program.ops
        if is_summing(op) and op.outputs[0] in chains.bearing and _touched(demand.rooted.get(op.outputs[0], ()))
    ]
    shared = _shared(chains, set(roots))
    grown = {name: grow_region(chains, name, demand.rooted[name]) for name in roots}
    grown |= {name: grow_region(chains, name, demand.needed[name]) for name in shared}
    merged = _merging(chains, roots)
    order = {op.outputs[0]: i for i, op in enumerate(program.ops) if op.outputs}
    named = sorted(grown, key=order.__getitem__)
    # Each order of what is made before what gives a lower bound: the better one counts.
    tried = [made_before(chains, names, grown, frozenset(shared)) for names in (named, named[::-1])]
    if tried[0] == tried[1]:
        del tried[1]
    found = [_cheapest_total(chains, roots, shared, grown, merged, made) for made in tried]
    costs = max(found, key=lambda costs: sum(costs[name].seconds for name in named if name in costs))
    result = []
    for name in sorted(costs, key=order.__getitem__):
        cost = costs[name]
        nets = [net for alternatives in grown[name] for net in alternatives]
        crossed = any(len(factor.groups) > 1 for net in nets for factor in net.factors)
        result.append(Priced(chains.producers[name].name, cost, crossed and len(nets[0].factors) > 2))
    return result


def _touched(regions: Region) -> bool:
    return any(not block.empty for block in regions)


def _shared(chains: Chains, roots: set[str]) -> list[str]:
    """Results of contractions and sums that are read more than once by others, and that are not roots. One contraction
    that reads a result twice (a Gram matrix) shares it with itself."""
    program = chains.program
    reads: dict[str, int] = dict.fromkeys(program.tensors, 0)
    for op in reversed(program.ops):
        if is_summing(op):
            passed = 1
        elif is_pointwise_linear(program, op) and op.outputs:
            passed = reads[op.outputs[0]]
        else:
            passed = 0
        for name in op.operands:
            reads[name] = min(2, reads[name] + passed)
    return [
        op.outputs[0]
        for op in program.ops
        if is_summing(op)
        and op.outputs[0] not in roots
        and op.outputs[0] in chains.bearing
        and reads[op.outputs[0]] > 1
        and _touched(chains.demand.needed.get(op.outputs[0], ()))
    ]


@dataclass(frozen=True)
class _Addend:
    """A root that is only added to other contractions: the last such sum, and tensors it is multiplied with before."""

    last: str
    scales: tuple[str, ...]


def _merging(chains: Chains, roots: Sequence[str]) -> dict[str, _Addend]:
    """Roots that are only added to other contractions."""
    program = chains.program
    outputs = {name for _, name in program.outputs}
    found: dict[str, _Addend] = {}
    for root in roots:
        name, last = root, ""
        scales: list[str] = []
        viewed = False
        while name not in outputs and len(chains.readers[name]) == 1:
            op = chains.readers[name][0]
            if not is_pointwise_linear(program, op) or len(op.outputs) != 1:
                break
            bearing = [operand for operand in op.operands if operand in chains.bearing]
            if op.function in ("mul", "div"):
                if len(bearing) > 1:
                    break
                scales += [other for other in op.operands if other not in bearing and not viewed]
            viewed = viewed or op.kind == "view"
            name = op.outputs[0]
            if op.function in ("add", "sub") and len(bearing) > 1:
                last = name
        if last:
            found[root] = _Addend(last, tuple(scales))
    return found


def _cheapest_total(
    chains: Chains, roots: Sequence[str], shared: Sequence[str],
    grown: Mapping[str, list[list[Network]]], merged: Mapping[str, _Addend], made: Made,
) -> dict[str, Cost]:  # fmt: skip
    """Cost of every root, and of the shared intermediates that are worth having, at the cheapest choice of these."""
    result: dict[str, Cost] = {}
    memo: dict[tuple[str, frozenset[str]], Cost] = {}

    def cost_of(name: str, existing: frozenset[str]) -> Cost:
        behind = {g for nets in grown[name] for net in nets for f in net.factors for g, _ in f.groups}
        key = (name, existing & behind - {name})
        if key not in memo:
            memo[key] = _cost(chains, grown[name], key[1], made)
        return memo[key]

    for members, candidates in _clusters(roots, shared, grown, merged):
        best: dict[str, Cost] | None = None
        best_seconds = 0.0
        if len(candidates) > LARGEST_SHARING:
            choices: Iterable[tuple[str, ...]] = [tuple(candidates)]
        else:
            # What is written down first, so that a tie leaves the program as it is.
            choices = (c for k in range(len(candidates), -1, -1) for c in combinations(candidates, k))
        for chosen in choices:
            existing = frozenset(roots) | frozenset(chosen)
            costs = {name: cost_of(name, existing) for name in members}
            if len(candidates) <= LARGEST_SHARING:
                costs |= {name: cost_of(name, existing) for name in chosen}
            _merge_sums(chains, costs, grown, merged, existing, made)
            seconds = sum(costs[name].seconds for name in sorted(costs))
            if best is None or seconds < best_seconds:
                best, best_seconds = costs, seconds
        result |= best or {}
    return result


def _clusters(
    roots: Sequence[str], shared: Sequence[str], grown: Mapping[str, list[list[Network]]], merged: Mapping[str, _Addend]
) -> list[tuple[list[str], list[str]]]:
    """Roots and shared intermediates that bear on each other."""
    parent = {name: name for name in (*roots, *shared)}

    def find(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for name in parent:
        for nets in grown[name]:
            for net in nets:
                for factor in net.factors:
                    for group, _ in factor.groups:
                        if group in shared:
                            parent[find(group)] = find(name)
    sums: dict[str, str] = {}
    for name, addend in merged.items():
        parent[find(name)] = find(sums.setdefault(addend.last, name))
    clusters: dict[str, tuple[list[str], list[str]]] = {}
    for name in roots:
        clusters.setdefault(find(name), ([], []))[0].append(name)
    for name in shared:
        clusters.setdefault(find(name), ([], []))[1].append(name)
    return list(clusters.values())


def _cost(chains: Chains, grown: Sequence[Sequence[Network]], existing: frozenset[str], made: Made) -> Cost:
    """All blocks of a root; of several alternatives the dearest, for each leaves something out."""
    total = FREE
    for alternatives in grown:
        prices = (
            _price(chains, net, existing, made.get(id(net), frozenset()), alone=len(grown) == 1) for net in alternatives
        )
        total = total.plus(max(prices, key=lambda c: c.seconds))
    return total


def _price(
    chains: Chains, net: Network, existing: frozenset[str], made: frozenset[int] = frozenset(),
    count_scalings: bool = False, alone: bool = True,
) -> Cost:  # fmt: skip
    structure, facts = chains.structure, chains.facts
    if any(factor.tensor in structure.vanishing for factor in net.factors):
        return FREE
    return cheapest(
        net,
        chains.prices,
        chains.sources.__getitem__,
        free=lambda factor: factor.tensor in facts.fixed,
        available=existing.__contains__,
        repeats=chains.repeating.__contains__,
        alike=repeated(chains, net),
        made=made,
        values=lambda name: structure.own[name] if name in net.thinned or structure.poor(facts, name) else None,
        count_scalings=count_scalings,
        symmetric=partial(one_triangle, net, [plain(chains, net, factor) for factor in net.factors], alone),
    )


def _merge_sums(
    chains: Chains, costs: dict[str, Cost], grown: Mapping[str, list[list[Network]]], merged: Mapping[str, _Addend],
    existing: frozenset[str], made: Made,
) -> None:  # fmt: skip
    groups: dict[str, list[str]] = {}
    for name, addend in merged.items():
        if name in costs:
            groups.setdefault(addend.last, []).append(name)
    for members in groups.values():
        members.sort(key=lambda name: (-costs[name].seconds, name))
        for name in members[1:]:
            others = {
                _place(f)
                for other in members
                if other != name
                for nets in grown[other]
                for n in nets
                for f in n.factors
            }
            private = [_private(chains, net, others, merged[name].scales) for nets in grown[name] for net in nets[:1]]
            if any(net is None for net in private):
                continue
            alone = FREE
            for net in private:
                assert net is not None
                alone = alone.plus(_price(chains, net, existing, count_scalings=True))
            if alone.seconds < costs[name].seconds:
                costs[name] = alone


def _place(factor: Factor) -> tuple[str, tuple[int, ...]]:
    """A tensor and where in it a factor begins: two slices of one stack of weights are two things."""
    return factor.tensor, tuple(form.offset for form in factor.forms)


def _private(
    chains: Chains, net: Network, others: set[tuple[str, tuple[int, ...]]], scales: Sequence[str]
) -> Network | None:
    """The part of a network that its neighbours in a sum do not have; None if they have nothing in common."""
    mine = [f for f in net.factors if _place(f) not in others]
    if len(mine) == len(net.factors):
        return None
    kept = net.copy()
    kept.factors = mine + [f for f in net.scales if _place(f) not in others]
    for name in scales:
        shape = chains.program.tensors[name].shape
        if net.output == [f"o{i}" for i in range(len(net.output))] and len(shape) <= len(net.output):
            forms = tuple(Form(((index, 1),)) for index in net.output)
            kept.factors.append(Factor(name, aligned(forms, shape)))
    common = {index for f in net.factors if _place(f) in others for index in f.indices}
    kept.output = [*net.output, *sorted(common - set(net.output))]
    return kept
