"""Index spaces of einsums: which products a part of the result needs, and which operand elements take part in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from solar.bound import axes as ax
from solar.bound import regions as rg
from solar.bound.axes import Axis
from solar.bound.facts import Facts
from solar.bound.pairs import Pair
from solar.bound.regions import Block, Region
from solar.einsum import Op, Program


def einsum_space(
    program: Program, facts: Facts, op: Op, block: Block | None
) -> tuple[dict[str, Axis], list[tuple[str, str, Pair]]]:
    """Positions of every index that a block of the result needs, and conditions between two of them.

    Structural zeros of an operand remove positions: a product with a zero is not formed, and what it would be
    multiplied with is not needed for it.
    """
    sets = {index: ax.whole(extent) for index, extent in op.attributes["indices"].items()}
    output = list(op.attributes["output"])
    conditions: list[tuple[str, str, Pair]] = []
    if block is not None:
        for index, axis in zip(output, block.axes, strict=True):
            sets[index] = axis
        conditions += [(output[p.first], output[p.second], p) for p in block.pairs]
    for name, forms in zip(op.operands, op.attributes["operands"], strict=True):
        plain = [_plain_index(form) for form in forms]
        selected = plain[facts.selectors[name]] if name in facts.selectors else None
        if selected is not None:
            sets[selected] = ax.intersection(sets[selected], ax.unknown(sets[selected].extent, 1))
        pattern = facts.patterns.get(name)
        if pattern is None or pattern.outside != 0 or pattern.block is None:
            continue
        for index, axis in zip(plain, pattern.block.axes, strict=True):
            if index is not None and axis.extent == sets[index].extent:
                sets[index] = ax.intersection(sets[index], axis)
        for pair in pattern.block.pairs:
            x, y = plain[pair.first], plain[pair.second]
            if x is not None and y is not None and x != y:
                conditions.append((x, y, pair))
    return sets, conditions


def _plain_index(form: Mapping[str, Any]) -> str | None:
    """The index that an affine form is, if it is just one."""
    terms = form["terms"]
    if form["offset"] or len(terms) != 1 or terms[0][1] != 1:
        return None
    return str(terms[0][0])


def pull_einsum(program: Program, facts: Facts, op: Op, block: Block) -> list[list[Block]]:
    """Operand elements that take part in a needed product."""
    sets, conditions = einsum_space(program, facts, op, block)
    names = list(sets)
    number = {name: i for i, name in enumerate(names)}
    space = rg.conditioned(
        tuple(sets[name] for name in names),
        (replace(pair, first=number[x], second=number[y]) for x, y, pair in conditions),
    )
    narrowed = list(space.axes)
    for _ in range(len(space.pairs)):
        # What one condition leaves of an axis limits what the next one leaves of its partner.
        narrowed = [space.position(i) for i in range(len(names))]
        if narrowed == list(space.axes):
            break
        space = Block(tuple(narrowed), space.pairs)
    implied = [made for i, p in enumerate(space.pairs) for q in space.pairs[:i] for made in _composed(p, q)]
    pulled: list[list[Block]] = []
    for name, forms in zip(op.operands, op.attributes["operands"], strict=True):
        shape = program.tensors[name].shape
        axes: list[Axis] = []
        where: dict[int, int] = {}
        for dim, form in enumerate(forms):
            plain = _plain_index(form)
            if plain is not None:
                where.setdefault(number[plain], dim)
            axes.append(_form_image(form, {n: narrowed[number[n]] for n, _ in form["terms"]}, shape[dim]))
        pairs = tuple(
            replace(p, first=where[p.first], second=where[p.second])
            for p in (*space.pairs, *implied)
            if p.first in where and p.second in where
        )
        repeated = [n for n, _ in ((t[0], 0) for form in forms for t in form["terms"])]
        if len(set(repeated)) != len(repeated):
            pairs = (*pairs, *_diagonals(forms))
        pulled.append([Block(tuple(axes), pairs)])
    return pulled


def _composed(p: Pair, q: Pair) -> list[Pair]:
    """What two bands that share one index imply for the two others: the shared one is eliminated."""
    common = {p.first, p.second} & {q.first, q.second}
    if len(common) != 1 or p.rows is not None or q.rows is not None:
        return []
    shared = common.pop()
    p = p if p.first == shared else p.swapped()
    q = q if q.first == shared else q.swapped()
    if abs(p.a) != 1 or abs(q.a) != 1:
        return []
    # low <= a*i + b*k <= high for both; a*i drops out of the sum, or of the difference.
    sign = -1 if p.a == q.a else 1
    their_low, their_high = (q.low, q.high) if sign == 1 else (_minus(q.high), _minus(q.low))
    low = None if p.low is None or their_low is None else p.low + their_low
    high = None if p.high is None or their_high is None else p.high + their_high
    return [] if low is None and high is None else [Pair(p.second, q.second, p.b, sign * q.b, low, high)]


def _minus(value: int | None) -> int | None:
    return None if value is None else -value


def _diagonals(forms: Sequence[Mapping[str, Any]]) -> list[Pair]:
    """One index at two dimensions of an operand reads only their diagonal."""
    seen: dict[str, int] = {}
    pairs = []
    for dim, form in enumerate(forms):
        plain = _plain_index(form)
        if plain is None:
            continue
        if plain in seen:
            pairs.append(Pair(seen[plain], dim, low=0, high=0))
        else:
            seen[plain] = dim
    return pairs


def _form_image(form: Mapping[str, Any], sets: Mapping[str, Axis], extent: int) -> Axis:
    """Positions that an affine form takes, inside the operand."""
    terms = [(sets[index], coefficient) for index, coefficient in form["terms"] if coefficient]
    offset = form["offset"]
    if any(axis.count == 0 for axis, _ in terms):
        return Axis(extent)
    if any(coefficient < 0 for _, coefficient in terms):
        return Axis(extent)
    if not terms:
        return ax.run(extent, offset, offset + 1)
    terms.sort(key=lambda term: term[1])
    if len(terms) == 1:
        return ax.image(terms[0][0], terms[0][1], offset, extent)
    # Room for partial sums below zero: a padded window starts before the operand does.
    reach = sum(coefficient * (axis.extent - 1) for axis, coefficient in terms) + 1
    axis, scale = terms[0]
    for other, coefficient in terms[1:-1]:
        axis, scale = ax.spread(axis, scale, other, coefficient, 0, reach), 1
    return ax.spread(axis, scale, terms[-1][0], terms[-1][1], offset, extent)


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
