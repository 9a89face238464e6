"""Growing a network backwards through the linear operations that made a tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from solar.bound import axes as ax
from solar.bound import regions as rg
from solar.bound.axes import Axis
from solar.bound.demand import Demand, is_pointwise_linear, is_summing
from solar.bound.facts import Facts
from solar.bound.formats import Prices
from solar.bound.forms import aligned, view_forms
from solar.bound.networks import Factor, Form, Network, NotALinearMapError
from solar.bound.pairs import Pair
from solar.bound.patterns import scalars_of
from solar.bound.regions import Block, Region
from solar.bound.structure import Structure
from solar.einsum import Op, Program

# Alternatives (which addend of a sum inside a product to follow) that are tried out.
LARGEST_CHOICE = 4


@dataclass
class Chains:
    """A program with what was found out about it."""

    program: Program
    facts: Facts
    demand: Demand
    prices: Prices
    sources: Mapping[str, str]
    structure: Structure
    producers: Mapping[str, Op] = field(init=False)
    readers: Mapping[str, list[Op]] = field(init=False)
    bearing: frozenset[str] = field(init=False)
    settled: frozenset[str] = field(init=False)
    repeating: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.producers = self.program.producers()
        self.readers = self.program.consumers()
        self.bearing = bearing_tensors(self.program)
        self.settled = _settled(self)
        self.repeating = _repeating(self.program)


def _repeating(program: Program) -> frozenset[str]:
    """Tensors made by a gather whose indices may name one row several times."""
    found: set[str] = set()
    for op in program.ops:
        if op.kind == "index" and op.function in ("gather", "index_select", "embedding", "index"):
            known = program.values.get(op.operands[1]) if len(op.operands) == 2 else None
            dim = op.attributes.get("dim", op.attributes.get("dims", [0]))
            extent = program.tensors[op.operands[0]].shape[dim if isinstance(dim, int) else dim[0]]
            once = known is not None and len({int(place) % extent for place in known}) == len(known)
            if not once or op.operands[0] in found:
                found.update(op.outputs)
        elif op.kind in ("view", "cast", "map", "copy") and any(name in found for name in op.operands):
            found.update(op.outputs)
    return frozenset(found)


def _settled(chains: Chains) -> frozenset[str]:
    """Tensors that exist anyway and that no expansion makes cheaper to multiply with.

    A product y = x w over K positions, of M rows and J columns, is worth going around only if its rank is low: with
    K >= J (or K >= M) every order of x, w and others has one of y and others, in which J takes the place of K, that
    costs no more. A sum inherits this from any of its parts, for the others can only add to the work.
    """
    program, demand = chains.program, chains.demand
    found: set[str] = set()
    for op in program.ops:
        if not op.outputs or op.outputs[0] not in chains.bearing:
            continue
        output = op.outputs[0]
        if op.kind == "einsum":
            exists = rg.count(demand.rooted.get(output, ())) >= rg.count(demand.needed.get(output, ()))
            if exists and len(op.operands) == 2 and has_full_rank(op):
                found.add(output)
        elif is_pointwise_linear(program, op):
            parts = [name for name in op.operands if name in found]
            whole = op.function in ("add", "sub") and any(
                name not in chains.bearing and _varies_fully(chains, name, program.tensors[output].elements)
                for name in op.operands
            )
            # A product of two is as free as its freest part.
            several = op.function == "mul" and sum(name in chains.bearing for name in op.operands) > 1
            if whole or (parts and not several) or len(parts) == len(op.operands):
                found.add(output)
    return frozenset(found)


def has_full_rank(op: Op) -> bool:
    """Whether the summed extents are no smaller than what one of two operands alone brings to the result."""
    sizes, output = op.attributes["indices"], set(op.attributes["output"])
    own = [{index for form in forms for index, _ in form["terms"]} for forms in op.attributes["operands"]]
    summed = math.prod(extent for index, extent in sizes.items() if index not in output)
    return any(summed >= math.prod(sizes[index] for index in (own[i] - own[1 - i]) & output) for i in (0, 1))


def bearing_tensors(program: Program) -> frozenset[str]:
    """Tensors with a contraction of two operands behind them, through linear operations only."""
    found: set[str] = set()
    for op in program.ops:
        linear = op.operands[:1] if op.function == "div" else op.operands
        if (op.kind == "einsum" and len(op.operands) > 1) or (
            (is_summing(op) or op.function == "fold" or is_pointwise_linear(program, op))
            and any(name in found for name in linear)
        ):
            found.update(op.outputs)
    return frozenset(found)


def grow_region(chains: Chains, name: str, wanted: Region) -> list[list[Network]]:
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


def _start(chains: Chains, name: str, block: Block) -> Network:
    """The network of one tensor. Columns that a fold of stride 1 adds up are a convolution in other words: windows."""
    net = Network.at(name, block)
    readers = chains.readers[name]
    if len(readers) == 1 and readers[0].function == "fold":
        spatial = readers[0].attributes["spatial"]
        lead = len(block.axes) - 2 * spatial
        for i in range(spatial):
            taps = block.axes[lead + spatial + i].extent
            if readers[0].attributes["stride"][i] == 1 and taps > 1:
                net.windows.append((frozenset((net.output[lead + i],)), net.output[lead + spatial + i], taps))
    return net


def _grow(chains: Chains, net: Network, root: str) -> list[Network]:
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
                if not _thin(chains, net, factor):
                    net.thinned |= {factor.tensor}
                if not _selects(chains, factor.tensor):
                    net.factors.append(_without_repetition(chains, factor))
                continue
            if len(choices) > 1 and len(finished) + len(open_nets) < LARGEST_CHOICE:
                for other in choices[1:]:
                    open_nets.append((net.copy(), [*pending, *other]))
            pending += choices[0]
        net.factors = [replace(f, forms=tuple(net.current(form) for form in f.forms)) for f in net.factors]
        net.scales = [replace(f, forms=tuple(net.current(form) for form in f.forms)) for f in net.scales]
        _once(chains, net)
        finished.append(net)
    return finished


def _once(chains: Chains, net: Network) -> None:
    """Equal slices, of copies, broadcasts or a gather by known indices, are multiplied once: along an index as many
    count as the factor with the most different ones has; along one that is summed, where what equal slices are
    multiplied with is added up first, as the factor with the fewest."""
    most: dict[str, int] = {}
    choose = {True: max, False: min}
    for factor in net.factors:
        shape = chains.program.tensors[factor.tensor].shape
        for form, count, extent in zip(factor.forms, chains.structure.different[factor.tensor], shape, strict=True):
            for name, _ in form.terms:
                whole = form.index is not None and net.sets[name].extent == extent
                here = count if whole else net.sets[name].extent
                most[name] = choose[name in net.output](most.get(name, here), here)
    for name, count in most.items():
        if count < net.sets[name].extent:
            net.limit(Form(((name, 1),)), ax.unknown(net.sets[name].extent, count))


def _without_repetition(chains: Chains, factor: Factor) -> Factor:
    """A factor is the same at every position of a dimension along which its tensor repeats itself."""
    repeated = chains.facts.uniform[factor.tensor]
    return replace(factor, forms=tuple(Form() if i in repeated else form for i, form in enumerate(factor.forms)))


def _selects(chains: Chains, name: str) -> bool:
    """One value and zeros (a known mask, a diagonal of ones, a one-hot matrix): it selects, and multiplies nothing."""
    if name in chains.facts.selectors:
        return True
    pattern = chains.facts.patterns.get(name)
    return (
        pattern is not None
        and name in chains.facts.fixed
        and pattern.settled
        and pattern.outside is not None
        and (pattern.block is None or pattern.outside == 0)
    )


def _thin(chains: Chains, net: Network, factor: Factor) -> bool:
    try:
        return _limit(chains, net, factor)
    except NotALinearMapError:
        return False


def _limit(chains: Chains, net: Network, factor: Factor) -> bool:
    """Structural zeros of a factor leave out products. Whether all of them could."""
    if factor.tensor in chains.facts.selectors:
        form = factor.forms[chains.facts.selectors[factor.tensor]]
        if form.index is not None:
            net.limit(form, ax.unknown(net.sets[form.index].extent, 1))
    pattern = chains.facts.patterns.get(factor.tensor)
    if pattern is None or pattern.block is None or pattern.outside != 0:
        return True
    exact = True
    for form, axis in zip(factor.forms, pattern.block.axes, strict=True):
        if axis.full or form.index is not None:
            net.limit(form, axis)
        elif axis.contiguous and form.terms:
            _keep_inside(net, replace(form, offset=form.offset - axis.start), axis.length)
        else:
            exact = exact and not form.terms and axis.unplaced is None and form.offset in axis
    for pair in pattern.block.pairs:
        exact = net.condition(factor.forms[pair.first], factor.forms[pair.second], pair) and exact
    return exact


def _expand(chains: Chains, net: Network, factor: Factor, root: str) -> list[list[Factor]] | None:
    """What a factor is a product of (one list a choice), or None if it stays."""
    name = factor.tensor
    if name not in chains.bearing:
        return _take_apart(chains, net, factor)
    if name != root and name in chains.settled:
        return None
    op = chains.producers[name]
    net.broken = not _limit(chains, net, factor) or net.broken
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


def _take_apart(chains: Chains, net: Network, factor: Factor) -> list[list[Factor]] | None:
    """What a tensor is made of that fewer values than elements decide: an outer or a Kronecker product, a sum of such,
    windows of something smaller. None where it stays."""
    op, tensors = chains.producers.get(factor.tensor), chains.program.tensors
    if op is None:
        return None
    shapes = [tensors[name].shape for name in op.operands]
    outer = (
        op.function == "mul"
        and len(shapes) == 2
        and all(tensors[name].elements < tensors[factor.tensor].elements for name in op.operands)
    )
    if not outer and not chains.structure.poor(chains.facts, factor.tensor):
        return None
    if op.kind == "view":
        tried = net.copy()
        try:
            forms = view_forms(tried, op, factor.forms, shapes[0], tensors[factor.tensor].shape)
        except NotALinearMapError:
            return None
        net.adopt(tried)
        if op.function == "unfold" and op.attributes["step"] == 1:
            position, tap = factor.forms[op.attributes["dim"]], factor.forms[-1].index
            if position.terms and tap is not None and tap not in net.output:
                taps = tensors[factor.tensor].shape[-1]
                net.windows.append((frozenset(name for name, _ in position.terms), tap, taps))
        return [[replace(factor, tensor=op.operands[0], forms=forms)]]
    if not is_pointwise_linear(chains.program, op) or op.function in ("tril", "triu"):
        return None
    parts = [
        replace(factor, tensor=name, forms=aligned(factor.forms, shape))
        for name, shape in zip(op.operands, shapes, strict=True)
    ]
    return [[part] for part in parts] if op.function in ("add", "sub") else [parts]


def _expand_map(chains: Chains, net: Network, factor: Factor, op: Op) -> list[list[Factor]] | None:
    program = chains.program
    operands = [
        replace(factor, tensor=name, forms=aligned(factor.forms, program.tensors[name].shape)) for name in op.operands
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
        net.scales.append(other)
    return [[main]]


def _varies_fully(chains: Chains, name: str, elements: int) -> bool:
    """As many values of its own as the result has elements."""
    return chains.structure.own[name] >= elements


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
            given[index] = Form(((net.new_index(ax.whole(extent)), 1),)) if extent != 1 else Form()
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
        _keep_middle(net, form, extent, low, high)


def _keep_middle(net: Network, form: Form, extent: int, low: int, high: int) -> None:
    """Keep every value of a form of many indices inside by giving up the outer positions of one of them: the one that
    loses the smallest share. Fewer products are counted than there are, never more."""
    best: tuple[float, str, Axis] | None = None
    for name, c in form.terms:
        if c < 0:
            continue
        size = net.sets[name].extent
        span = c * (size - 1)
        # The others reach from low_rest to high_rest.
        low_rest, high_rest = low, high - span
        first = max(0, -(low_rest // c))
        last = min(size - 1, (extent - 1 - high_rest) // c)
        kept = ax.intersection(net.sets[name], ax.run(size, first, last + 1)) if last >= first else Axis(size)
        if kept.count:
            share = kept.count / net.sets[name].count
            if best is None or share > best[0]:
                best = (share, name, kept)
    if best is None:
        raise NotALinearMapError
    net.sets[best[1]] = best[2]


def _window(net: Network, op: Op, written: Mapping[str, Any], given: Mapping[str, Form], output: Sequence[str]) -> None:
    """Note a stride-1 window: its position is an output index, its tap is summed."""
    terms = list(written["terms"])
    if len(terms) != 2:
        return
    if terms[0][0] not in output:
        terms.reverse()
    (x, a), (y, _) = terms
    taps = op.attributes["indices"][y]
    position, tap = given[x], given[y].index
    if x in output and y not in output and a == 1 and taps > 1 and position.terms and tap is not None:
        net.windows.append((frozenset(name for name, _ in position.terms), tap, taps))
