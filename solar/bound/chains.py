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
from dataclasses import dataclass, field, replace
from itertools import combinations

from solar.bound import axes as ax
from solar.bound import regions as rg
from solar.bound.demand import Demand, einsum_space, is_pointwise_linear, is_summing
from solar.bound.facts import Facts, scalars_of
from solar.bound.formats import Prices
from solar.bound.networks import (
    FREE, Cost, Factor, Form, Network, NotALinearMapError, cheapest, reshape_forms,
)  # fmt: skip
from solar.bound.regions import Block, Pair, Region
from solar.einsum import Op, Program

# Alternatives (which addend of a sum inside a product to follow) and shared intermediates that are tried out.
LARGEST_CHOICE = 4
LARGEST_SHARING = 5


@dataclass(frozen=True)
class Priced:
    """Work of one root. ``op``: the operation that makes it; ``reassociated``: not as written."""

    op: str
    cost: Cost
    reassociated: bool


@dataclass
class _Chains:
    program: Program
    facts: Facts
    demand: Demand
    prices: Prices
    sources: Mapping[str, str]
    producers: Mapping[str, Op] = field(init=False)
    readers: Mapping[str, list[Op]] = field(init=False)
    bearing: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.producers = self.program.producers()
        self.readers = self.program.consumers()
        self.bearing = bearing_tensors(self.program)


def price_contractions(
    program: Program, facts: Facts, demand: Demand, prices: Prices, sources: Mapping[str, str]
) -> list[Priced]:
    """Cheapest work of every root that a contraction stands behind, in program order."""
    chains = _Chains(program, facts, demand, prices, sources)
    roots = [
        op.outputs[0]
        for op in program.ops
        if is_summing(op) and op.outputs[0] in chains.bearing and _touched(demand.rooted.get(op.outputs[0], ()))
    ]
    shared = _shared(chains, set(roots))
    grown = {name: _grow_region(chains, name, demand.rooted[name]) for name in roots}
    grown |= {name: _grow_region(chains, name, demand.needed[name]) for name in shared}
    merged = _merging(chains, roots)
    costs = _cheapest_total(chains, roots, shared, grown, merged)
    order = {op.outputs[0]: i for i, op in enumerate(program.ops) if op.outputs}
    result = []
    for name in sorted(costs, key=order.__getitem__):
        cost = costs[name]
        nets = [net for alternatives in grown[name] for net in alternatives]
        crossed = any(len(factor.groups) > 1 for net in nets for factor in net.factors)
        result.append(Priced(chains.producers[name].name, cost, crossed and len(nets[0].factors) > 2))
    return result


def _touched(regions: Region) -> bool:
    return any(not block.empty for block in regions)


def bearing_tensors(program: Program) -> frozenset[str]:
    """Tensors with a contraction of two operands behind them, through linear operations only."""
    found: set[str] = set()
    for op in program.ops:
        linear = op.operands[:1] if op.function == "div" else op.operands
        if (op.kind == "einsum" and len(op.operands) > 1) or (
            (is_summing(op) or is_pointwise_linear(program, op)) and any(name in found for name in linear)
        ):
            found.update(op.outputs)
    return frozenset(found)


def _shared(chains: _Chains, roots: set[str]) -> list[str]:
    """Results of contractions and sums that more than one contraction or sum reads, and that are not roots."""
    found = []
    for op in chains.program.ops:
        name = op.outputs[0] if op.outputs else ""
        if not is_summing(op) or name in roots or name not in chains.bearing:
            continue
        if not _touched(chains.demand.needed.get(name, ())):
            continue
        ends: set[str] = set()
        paths = 0
        queue, seen = [name], {name}
        while queue:
            for reader in chains.readers[queue.pop()]:
                if is_summing(reader):
                    ends.add(reader.name)
                    # One contraction that reads it twice (a Gram matrix) shares it with itself.
                    paths += 1
                elif is_pointwise_linear(chains.program, reader):
                    for output in reader.outputs:
                        if output not in seen:
                            seen.add(output)
                            queue.append(output)
        if len(ends) > 1 or paths > 1:
            found.append(name)
    return found


# --- expansion -----------------------------------------------------------------------------------------------------


def _grow_region(chains: _Chains, name: str, wanted: Region) -> list[list[Network]]:
    """Alternatives of the network of each block of a region (blocks without common elements)."""
    blocks = [block for block in wanted if not block.empty]
    if len(blocks) > 1 and not any(block.pairs for block in blocks):
        blocks = rg.disjoint(sorted(blocks, key=lambda b: -b.count))
    elif len(blocks) > 1:
        blocks = [max(blocks, key=lambda b: b.count)]
    grown = [_grow(chains, _start(chains, name, block), name) for block in blocks]
    if len(grown) > 1 and any(len(net.factors) > 2 for nets in grown for net in nets):
        # Parts of a longer chain may share intermediates: only the largest part counts.
        largest = max(range(len(blocks)), key=lambda i: blocks[i].count)
        grown = [grown[largest]]
    return grown


def _start(chains: _Chains, name: str, block: Block) -> Network:
    """The network of one tensor. Columns that a fold of stride 1 adds up are a convolution in other words: windows."""
    net = Network.at(name, block)
    readers = chains.readers[name]
    if len(readers) == 1 and readers[0].function == "fold":
        spatial = readers[0].attributes["spatial"]
        lead = len(block.axes) - 2 * spatial
        for i in range(spatial):
            taps = block.axes[lead + spatial + i].extent
            if readers[0].attributes["stride"][i] == 1 and taps > 1:
                net.windows.append((net.output[lead + i], net.output[lead + spatial + i], taps))
    return net


def _grow(chains: _Chains, net: Network, root: str) -> list[Network]:
    """Expand all factors; each choice inside a product gives an alternative."""
    finished: list[Network] = []
    open_nets: list[tuple[Network, list[Factor]]] = [(net, [net.factors.pop()])]
    while open_nets:
        net, pending = open_nets.pop()
        while pending:
            factor = pending.pop()
            factor = replace(factor, forms=tuple(net.current(form) for form in factor.forms))
            if len(net.factors) + len(pending) > 24:
                net.broken = True
                net.factors.append(factor)
                continue
            try:
                choices = _expand(chains, net, factor, root)
            except NotALinearMapError:
                net.broken = True
                choices = None
            if choices is None:
                _limit(chains, net, factor)
                if not _selects(chains, factor.tensor):
                    net.factors.append(factor)
                continue
            if len(choices) > 1 and len(finished) + len(open_nets) < LARGEST_CHOICE:
                for other in choices[1:]:
                    open_nets.append((net.copy(), [*pending, *other]))
            pending += choices[0]
        net.factors = [replace(f, forms=tuple(net.current(form) for form in f.forms)) for f in net.factors]
        finished.append(net)
    return finished


def _selects(chains: _Chains, name: str) -> bool:
    """Known contents with one value and zeros (a mask, a diagonal of ones): it selects, and multiplies nothing."""
    pattern = chains.facts.patterns.get(name)
    return pattern is not None and name in chains.facts.fixed and pattern.settled and pattern.outside is not None and (
        pattern.block is None or pattern.outside == 0
    )


def _limit(chains: _Chains, net: Network, factor: Factor) -> None:
    """Structural zeros of a factor leave out products."""
    pattern = chains.facts.patterns.get(factor.tensor)
    if pattern is None or pattern.block is None or pattern.outside != 0:
        return
    for form, axis in zip(factor.forms, pattern.block.axes, strict=True):
        net.limit(form, axis)
    for pair in pattern.block.pairs:
        net.condition(factor.forms[pair.first], factor.forms[pair.second], pair)


def _expand(chains: _Chains, net: Network, factor: Factor, root: str) -> list[list[Factor]] | None:
    """What a factor is a product of (one list a choice), or None if it stays."""
    name = factor.tensor
    if name not in chains.bearing:
        return None
    op = chains.producers[name]
    _limit(chains, net, factor)
    factor = replace(factor, forms=tuple(net.current(form) for form in factor.forms))
    if op.kind == "einsum":
        return [_expand_einsum(chains.program, net, factor, op)]
    if op.kind == "reduce":
        return [[_expand_sum(chains.program, net, factor, op)]]
    if op.kind == "view":
        forms = view_forms(net, op, factor.forms, chains.program.tensors[op.operands[0]].shape,
                           chains.program.tensors[name].shape)  # fmt: skip
        return [[replace(factor, tensor=op.operands[0], forms=forms)]]
    if op.kind in ("cast", "copy") or op.function in ("neg", "identity", "tril", "triu"):
        return [[replace(factor, tensor=op.operands[0])]]
    return _expand_map(chains, net, factor, op)


def _expand_map(chains: _Chains, net: Network, factor: Factor, op: Op) -> list[list[Factor]] | None:
    program = chains.program
    operands = [
        replace(factor, tensor=name, forms=_aligned(factor.forms, program.tensors[name].shape))
        for name in op.operands
    ]
    if scalars_of(op):
        return [operands[:1]]
    if op.function in ("add", "sub"):
        follow = [part for part in operands if part.tensor in chains.bearing]
        rest = [part for part in operands if part.tensor not in chains.bearing]
        if any(_varies_fully(chains, part.tensor, program.tensors[op.outputs[0]].elements) for part in rest):
            # A residual: the sum has a part that no low-rank trick can avoid. It counts as a tensor of its own.
            return None
        return [[part] for part in sorted(follow, key=lambda part: -program.tensors[part.tensor].elements)]
    main, other = operands[0], operands[1]
    if op.function == "mul" and main.tensor not in chains.bearing:
        main, other = other, main
    if op.function == "mul" and other.tensor in chains.bearing:
        return [[main, other]]
    pattern = chains.facts.patterns.get(other.tensor)
    if pattern is not None and pattern.settled:
        return [[main]]
    if _varies_fully(chains, other.tensor, program.tensors[op.outputs[0]].elements):
        net.factors.append(other)
    else:
        net.scales.append((other.tensor, other.indices))
    return [[main]]


def _varies_fully(chains: _Chains, name: str, elements: int) -> bool:
    """As many elements as the result, and none of its dimensions repeats."""
    tensor = chains.program.tensors[name]
    repeated = any(tensor.shape[dim] > 1 for dim in chains.facts.uniform[name])
    return tensor.elements == elements and not repeated


def _aligned(forms: Sequence[Form], shape: Sequence[int]) -> tuple[Form, ...]:
    """Forms of an operand that broadcasts to the result."""
    lead = len(forms) - len(shape)
    return tuple(Form() if extent == 1 else forms[i + lead] for i, extent in enumerate(shape))


def _expand_sum(program: Program, net: Network, factor: Factor, op: Op) -> Factor:
    shape = program.tensors[op.operands[0]].shape
    dims = set(op.attributes["dims"])
    kept = iter(factor.forms)
    forms: list[Form] = []
    for dim, extent in enumerate(shape):
        if dim in dims:
            forms.append(Form(((net.new_index(ax.whole(extent)), 1),)))
            if op.attributes.get("keepdim"):
                next(kept)
        else:
            forms.append(next(kept))
    return Factor(op.operands[0], tuple(forms), (*factor.groups, net.new_group(op.outputs[0])))


def _expand_einsum(program: Program, net: Network, factor: Factor, op: Op) -> list[Factor]:
    output = list(op.attributes["output"])
    given: dict[str, Form] = dict(zip(output, factor.forms, strict=True))
    for index, extent in op.attributes["indices"].items():
        if index not in given:
            given[index] = Form(((net.new_index(ax.whole(extent)), 1),))
    groups = (*factor.groups, net.new_group(op.outputs[0]))
    made = []
    several = len(op.operands) > 1
    for name, maps in zip(op.operands, op.attributes["operands"], strict=True):
        forms = []
        for dim, written in enumerate(maps):
            form = Form((), written["offset"])
            for index, coefficient in written["terms"]:
                form = form.plus(given[index].scaled(coefficient, 0))
            _keep_inside(net, form, program.tensors[name].shape[dim])
            if several:
                _window(net, op, written, given, output)
            forms.append(form)
        made.append(Factor(name, tuple(forms), groups))
    return made


def _keep_inside(net: Network, form: Form, extent: int) -> None:
    """Products with padding are not formed."""
    spans = [(c * (net.sets[n].extent - 1)) for n, c in form.terms]
    low = form.offset + sum(span for span in spans if span < 0)
    high = form.offset + sum(span for span in spans if span > 0)
    if low >= 0 and high < extent:
        return
    if len(form.terms) == 1 and form.terms[0][1] > 0:
        name, c = form.terms[0]
        shown = ax.preimage(ax.whole(extent), c, form.offset, net.sets[name].extent)
        net.sets[name] = ax.intersection(net.sets[name], shown)
    elif len(form.terms) == 2:
        (x, a), (y, b) = form.terms
        net.pairs.append((x, y, Pair(0, 1, a, b, -form.offset, extent - 1 - form.offset)))
    else:
        raise NotALinearMapError


def _window(
    net: Network, op: Op, written: Mapping[str, object], given: Mapping[str, Form], output: Sequence[str]
) -> None:
    """Note a stride-1 window: its position is an output index, its tap is summed."""
    terms = written["terms"]
    if len(terms) != 2:  # type: ignore[arg-type]
        return
    (x, a), (y, b) = terms  # type: ignore[misc]
    if x not in output:
        (x, a), (y, b) = (y, b), (x, a)
    taps = op.attributes["indices"][y]
    position, tap = given[x].index, given[y].index
    if x in output and y not in output and a == 1 and taps > 1 and position is not None and tap is not None:
        net.windows.append((position, tap, taps))


def view_forms(
    net: Network, op: Op, forms: Sequence[Form], operand: Sequence[int], result: Sequence[int]
) -> tuple[Form, ...]:
    """Forms of a view's operand from those of its result."""
    function, attributes = op.function, op.attributes
    rank = len(operand)
    if function == "permute":
        made = [Form()] * rank
        for i, dim in enumerate(attributes["dims"]):
            made[dim] = forms[i]
        return tuple(made)
    if function == "reshape":
        return tuple(reshape_forms(net, forms, result, operand))
    if function == "expand":
        return _aligned(forms, operand)
    if function == "slice":
        dim = attributes["dim"]
        moved = forms[dim].scaled(attributes["step"], attributes["start"])
        return (*forms[:dim], moved, *forms[dim + 1 :])
    if function == "select":
        dim = attributes["dim"]
        return (*forms[:dim], Form((), attributes["index"]), *forms[dim:])
    if function == "squeeze":
        rest = iter(forms)
        return tuple(Form() if dim in attributes["dims"] else next(rest) for dim in range(rank))
    if function == "unsqueeze":
        return tuple(form for dim, form in enumerate(forms) if dim not in attributes["dims"])
    if function == "diagonal":
        first, second, offset = attributes["dim1"], attributes["dim2"], attributes["offset"]
        rest = iter(forms[:-1])
        made = [Form() if dim in (first, second) else next(rest) for dim in range(rank)]
        made[first] = forms[-1].scaled(1, max(0, -offset))
        made[second] = forms[-1].scaled(1, max(0, offset))
        return tuple(made)
    if function == "unfold":
        dim = attributes["dim"]
        joined = forms[dim].scaled(attributes["step"], 0).plus(forms[-1].scaled(attributes["dilation"], 0))
        return (*forms[:dim], joined, *forms[dim + 1 : -1])
    raise NotALinearMapError


# --- totals --------------------------------------------------------------------------------------------------------


def _merging(chains: _Chains, roots: Sequence[str]) -> dict[str, str]:
    """Roots that are only added to other contractions, by the last such sum."""
    outputs = {name for _, name in chains.program.outputs}
    found: dict[str, str] = {}
    for root in roots:
        name, last = root, ""
        while name not in outputs and len(chains.readers[name]) == 1:
            op = chains.readers[name][0]
            if not is_pointwise_linear(chains.program, op) or len(op.outputs) != 1:
                break
            bearing = [operand for operand in op.operands if operand in chains.bearing]
            if op.function in ("mul", "div") and len(bearing) > 1:
                break
            name = op.outputs[0]
            if op.function in ("add", "sub") and len(bearing) > 1:
                last = name
        if last:
            found[root] = last
    return found


def _cheapest_total(
    chains: _Chains, roots: Sequence[str], shared: Sequence[str],
    grown: Mapping[str, list[list[Network]]], merged: Mapping[str, str],
) -> dict[str, Cost]:  # fmt: skip
    """Cost of every root, and of the shared intermediates that are worth having, at the cheapest choice of these."""
    result: dict[str, Cost] = {}
    memo: dict[tuple[str, frozenset[str]], Cost] = {}

    def cost_of(name: str, existing: frozenset[str]) -> Cost:
        behind = {g for nets in grown[name] for net in nets for f in net.factors for g, _ in f.groups}
        key = (name, existing & behind - {name})
        if key not in memo:
            memo[key] = _cost(chains, grown[name], key[1])
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
            _merge_sums(chains, costs, grown, merged, existing)
            seconds = sum(costs[name].seconds for name in sorted(costs))
            if best is None or seconds < best_seconds:
                best, best_seconds = costs, seconds
        result |= best or {}
    return result


def _clusters(
    roots: Sequence[str], shared: Sequence[str], grown: Mapping[str, list[list[Network]]], merged: Mapping[str, str]
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
    for name, last in merged.items():
        parent[find(name)] = find(sums.setdefault(last, name))
    clusters: dict[str, tuple[list[str], list[str]]] = {}
    for name in roots:
        clusters.setdefault(find(name), ([], []))[0].append(name)
    for name in shared:
        clusters.setdefault(find(name), ([], []))[1].append(name)
    return list(clusters.values())


def _cost(chains: _Chains, grown: Sequence[Sequence[Network]], existing: frozenset[str]) -> Cost:
    """All blocks of a root; of several alternatives the dearest, for each leaves something out."""
    total = FREE
    for alternatives in grown:
        total = total.plus(max((_price(chains, net, existing) for net in alternatives), key=lambda c: c.seconds))
    return total


def _price(chains: _Chains, net: Network, existing: frozenset[str], count_scalings: bool = False) -> Cost:
    return cheapest(
        net,
        chains.prices,
        chains.sources.__getitem__,
        free=lambda factor: factor.tensor in chains.facts.fixed,
        available=existing.__contains__,
        count_scalings=count_scalings,
    )


def _merge_sums(
    chains: _Chains, costs: dict[str, Cost], grown: Mapping[str, list[list[Network]]], merged: Mapping[str, str],
    existing: frozenset[str],
) -> None:  # fmt: skip
    groups: dict[str, list[str]] = {}
    for name, last in merged.items():
        if name in costs:
            groups.setdefault(last, []).append(name)
    for members in groups.values():
        members.sort(key=lambda name: (-costs[name].seconds, name))
        for name in members[1:]:
            others = {
                f.tensor for other in members if other != name for nets in grown[other] for n in nets for f in n.factors
            }
            private = [_private(net, others) for nets in grown[name] for net in nets[:1]]
            if any(net is None for net in private):
                continue
            alone = FREE
            for net in private:
                assert net is not None
                alone = alone.plus(_price(chains, net, existing, count_scalings=True))
            if alone.seconds < costs[name].seconds:
                costs[name] = alone


def _private(net: Network, others: set[str]) -> Network | None:
    """The part of a network that its neighbours in a sum do not have; None if they have nothing in common."""
    mine = [f for f in net.factors if f.tensor not in others]
    if len(mine) == len(net.factors):
        return None
    kept = net.copy()
    kept.factors = mine + [
        Factor(name, tuple(Form(((index, 1),)) for index in sorted(indices)))
        for name, indices in net.scales
        if name not in others
    ]
    common = {index for f in net.factors if f.tensor in others for index in f.indices}
    kept.output = [*net.output, *sorted(common - set(net.output))]
    return kept


# --- counts as written ---------------------------------------------------------------------------------------------


def products_as_written(program: Program, facts: Facts, op: Op, wanted: Region | None) -> int:
    """Multiply-adds of one einsum for the wanted part of its result; zeros of its own padding are counted in, as is
    the custom. ``wanted`` None: all of it, and no structural zero left out."""
    if len(op.operands) < 2:
        return 0
    if wanted is None:
        total = 1
        for extent in op.attributes["indices"].values():
            total *= extent
        return total
    blocks: Sequence[Block] = [block for block in wanted if not block.empty]
    if len(blocks) > 1:
        if any(block.pairs for block in blocks):
            blocks = [max(blocks, key=lambda b: b.count)]
        else:
            blocks = rg.disjoint(sorted(blocks, key=lambda b: -b.count))
    total = 0
    for block in blocks:
        sets, conditions = einsum_space(program, facts, op, block)
        names = list(sets)
        number = {name: i for i, name in enumerate(names)}
        space = rg.conditioned(
            tuple(sets[name] for name in names),
            (replace(pair, first=number[x], second=number[y]) for x, y, pair in conditions),
        )
        total += space.count
    return total
