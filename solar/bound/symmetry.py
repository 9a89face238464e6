"""Symmetric results: the product of a tensor with its own transpose (a Gram matrix, a covariance).

Element (j, i) is element (i, j), so a kernel forms one triangle (BLAS: syrk): of n rows, n (n + 1) / 2 dot products.
Both operands have to be one tensor, or the same function of it, up to scales, of rows and columns too (a weighted Gram
matrix); which of its views does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from solar.bound import axes as ax
from solar.bound.demand import is_pointwise_linear
from solar.bound.expansion import Chains
from solar.bound.forms import view_forms
from solar.bound.networks import Factor, Form, Network, NotALinearMapError
from solar.bound.orders import Step
from solar.einsum import Op

# Views whose places in the operand are forms of the same indices.
_PURE_VIEWS = frozenset(("permute", "expand", "slice", "select", "squeeze", "unsqueeze", "reshape"))


# The tensor (and functions of it) that a factor is a view of, and the positions there.
Plain = tuple[Any, tuple[Form, ...]]


def plain(chains: Chains, net: Network, factor: Factor, *, split: bool = False) -> Plain:
    """What a factor is a view of, up to a scale: a tensor, the functions that are not linear of it, and the place.
    ``split``: also through views for which indices of the network have to be split; the factor is out of it."""
    name, forms = factor.tensor, factor.forms
    functions: tuple[Any, ...] = ()
    while name in chains.producers and name not in chains.bearing:
        op = chains.producers[name]
        if op.kind == "view" and op.function in _PURE_VIEWS:
            shapes = [chains.program.tensors[n].shape for n in (op.operands[0], name)]
            tried = net.copy()
            try:
                made = view_forms(tried, op, forms, *shapes)
            except NotALinearMapError:
                break
            if tried.sets != net.sets and not split:
                break
            net.adopt(tried)
            forms = made
        elif (main := _scaled(chains, op)) is not None:
            if functions:
                functions = (*functions, (op.function, *op.operands))
            name = main
            continue
        elif (
            len(op.operands) != 1
            or op.function in ("tril", "triu")
            or not (op.kind in ("map", "cast") or op.function == "clone")
        ):
            break
        elif functions or op.function in ("add", "sub") or not is_pointwise_linear(chains.program, op):
            told = repr(sorted(op.attributes.get("scalars", {}).items()))
            functions = (*functions, (op.function, told, chains.program.tensors[name].dtype))
        name = op.operands[0]
    return (name, functions), forms


def origin(chains: Chains, name: str) -> str:
    """The tensor that a tensor is a view, a function or a scaling of."""
    while name in chains.producers and name not in chains.bearing:
        op = chains.producers[name]
        main = _scaled(chains, op)
        if main is None and (len(op.operands) != 1 or op.kind not in ("view", "map", "cast", "copy")):
            break
        name = op.operands[0] if main is None else main
    return name


def _scaled(chains: Chains, op: Op) -> str | None:
    """The operand that the other one, which repeats itself, scales."""
    if op.kind != "map" or op.function not in ("mul", "div") or len(op.operands) != 2:
        return None
    shape = chains.program.tensors[op.outputs[0]].shape
    main, other = op.operands
    if op.function == "mul" and chains.program.tensors[main].shape != shape:
        main, other = other, main
    tensors = chains.program.tensors
    return main if tensors[main].shape == shape and tensors[other].elements < tensors[main].elements else None


def one_triangle(
    net: Network, plains: Sequence[Plain], alone: bool, step: Step, parts: tuple[int, int],
    opened: tuple[frozenset[str], frozenset[str]],
) -> Step:  # fmt: skip
    """A step whose operands are one tensor with two positions exchanged makes a symmetric result: one triangle of it
    is formed, of each pair of equal elements one.

    ``alone``: no other network makes other parts of the same result, which may be the mirror image of this part.
    """
    left, right = ([f for i, f in enumerate(plains) if part >> i & 1] for part in parts)
    exchanged: dict[str, str] = {}
    if [name for name, _ in left] != [name for name, _ in right]:
        return step
    for (_, mine), (_, theirs) in zip(left, right, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            if [c for _, c in a.terms] != [c for _, c in b.terms]:
                return step
            for (x, _), (y, _) in zip(a.terms, b.terms, strict=True):
                if exchanged.setdefault(x, y) != y:
                    return step
            if a.offset != b.offset:
                if all(exchanged[x] == x for x, _ in a.terms):
                    return step
                alone = False  # two ranges of rows that may overlap
    both = opened[0] & opened[1]
    own = sorted(opened[0] - both)
    if not own or any(exchanged.get(name) != name for name in both):
        return step
    if {exchanged.get(name) for name in own} != opened[1] - both:
        return step
    kept = _unordered(net, [(name, exchanged[name]) for name in own]) if alone else 0.5
    return replace(step, multiply_adds=step.multiply_adds * kept, symmetric=kept < 1)


def _unordered(net: Network, swaps: Sequence[tuple[str, str]]) -> float:
    """Share of the products of two exchanged positions that are left when (i, j) and (j, i) are one (at least)."""
    names = {name for swap in swaps for name in swap}
    tied = [(x, y, pair) for x, y, pair in net.pairs if {x, y} & names]
    for x, y, pair in tied:
        one_side = (pair.low is not None and pair.low >= 0) or (pair.high is not None and pair.high <= 0)
        if len(swaps) == 1 and {x, y} == names and pair.rows is None and pair.a == -pair.b and one_side:
            return 1.0  # a triangle already
    if tied:
        return 0.5
    common = total = 1
    for x, y in swaps:
        a, b = net.sets[x], net.sets[y]
        total *= a.count * b.count
        hidden = a.unplaced is not None or b.unplaced is not None
        common *= min(a.count, b.count) if hidden else ax.intersection(a, b).count
    return 1 - common * (common - 1) / (2 * total) if total else 1.0
