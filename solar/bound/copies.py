"""Copies, backwards: which elements of the operands a part of the result comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from solar.bound import axes as ax
from solar.bound.axes import Axis
from solar.bound.pairs import Pair
from solar.bound.regions import Block, boxes_inside, everything
from solar.bound.views import Shape, TiedError, keep_axes, with_axis
from solar.errors import GraphError


def pull_copy(
    function: str, attributes: Mapping[str, Any], block: Block, operands: Sequence[Shape]
) -> list[list[Block]]:
    """Elements of each operand behind ``block`` of a ``copy``'s result."""
    try:
        return _pull_copy(function, attributes, block, operands)
    except TiedError:
        pulled = [_pull_copy(function, attributes, box, operands) for box in boxes_inside(block)]
        return [[found for part in pulled for found in part[i]] for i in range(len(operands))]


def _pull_copy(
    function: str, attributes: Mapping[str, Any], block: Block, operands: Sequence[Shape]
) -> list[list[Block]]:
    first = operands[0]
    if function == "clone":
        return [[block]]
    if function == "cat":
        return _cat(block, attributes["dim"], operands)
    if function == "pad":
        return [[_window(block, attributes["before"], first)]]
    if function == "flip":
        turned = flip_block(block, attributes["dims"])
        if turned is None:
            raise TiedError
        return [[turned]]
    if function == "roll":
        parts = [block]
        for shift, dim in zip(attributes["shifts"], attributes["dims"], strict=True):
            parts = [piece for part in parts for piece in _rolled(part, dim, shift)]
        return [parts]
    if function == "repeat":
        return [[_repeated(block, first)]]
    if function in ("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"):
        return _replaced(function, attributes, block, operands)
    if function == "dilate":
        if block.pairs:
            raise TiedError
        axes = tuple(
            ax.preimage(axis, step, 0, extent)
            for axis, step, extent in zip(block.axes, attributes["steps"], first, strict=True)
        )
        return [[Block(axes)]]
    raise GraphError(f"copy: unknown function {function!r}")


def _cat(block: Block, dim: int, operands: Sequence[Shape]) -> list[list[Block]]:
    pulled: list[list[Block]] = []
    start = 0
    for shape in operands:
        piece = ax.preimage(block.axes[dim], 1, start, shape[dim])
        pulled.append([_shifted(with_axis(block, dim, piece), dim, start)] if piece.count else [])
        start += shape[dim]
    return pulled


def _shifted(block: Block, dim: int, start: int) -> Block:
    """Conditions of a block whose axis ``dim`` now counts from ``start`` of the old one."""
    if not any(dim in (p.first, p.second) for p in block.pairs):
        return block
    pairs = []
    for pair in block.pairs:
        if dim in (pair.first, pair.second):
            if pair.rows is not None:
                pairs.append(_cut(pair, dim, start, block.axes[dim].extent))
                continue
            shift = (pair.a if pair.first == dim else pair.b) * start
            pair = replace(
                pair,
                low=None if pair.low is None else pair.low - shift,
                high=None if pair.high is None else pair.high - shift,
            )
        pairs.append(pair)
    return Block(block.axes, tuple(pairs))


def _cut(pair: Pair, dim: int, start: int, extent: int) -> Pair:
    """A mask over so many positions of ``dim`` only, from ``start`` on."""
    assert pair.rows is not None
    if start < 0 or (pair.first == dim and len(pair.rows) < start + extent):
        raise TiedError
    if pair.first == dim:
        return replace(pair, rows=pair.rows[start : start + extent])
    return replace(pair, rows=tuple(row >> start & (1 << extent) - 1 for row in pair.rows))


def _window(block: Block, before: Sequence[int], operand: Shape) -> Block:
    for dim, start in enumerate(before):
        if block.axes[dim].extent != operand[dim]:
            block = _shifted(with_axis(block, dim, ax.preimage(block.axes[dim], 1, start, operand[dim])), dim, start)
    return block


def flip_block(block: Block, dims: Sequence[int]) -> Block | None:
    """A block as it appears when dimensions run backwards; None where a condition has no such form."""
    axes, pairs = list(block.axes), list(block.pairs)
    for dim in dims:
        last = axes[dim].extent - 1
        axes[dim] = flipped(axes[dim])
        for position, pair in enumerate(pairs):
            if dim not in (pair.first, pair.second):
                continue
            if pair.rows is not None:
                return None
            # a*x becomes a*(last - x).
            scale = pair.a if pair.first == dim else pair.b
            low = None if pair.low is None else pair.low - scale * last
            high = None if pair.high is None else pair.high - scale * last
            a, b = (-pair.a, pair.b) if pair.first == dim else (pair.a, -pair.b)
            pairs[position] = replace(pair, a=a, b=b, low=low, high=high)
    return Block(tuple(axes), tuple(pairs))


def flipped(axis: Axis) -> Axis:
    """The same positions counted from the other end."""
    if axis.unplaced is not None or axis.full:
        return axis
    if axis.bits is None:
        last = axis.start + axis.step * (axis.length - 1)
        return Axis(axis.extent, axis.extent - 1 - last, axis.length, axis.step)
    return ax.masked(axis.extent, int(format(axis.bits, f"0{axis.extent}b")[::-1], 2))


def _rolled(block: Block, dim: int, shift: int) -> list[Block]:
    axis = block.axes[dim]
    if axis.full and not block.pairs:
        return [block]
    if block.pairs:
        raise TiedError
    shift %= axis.extent
    # Result position p is operand position p - shift, modulo the extent.
    high = ax.image(ax.intersection(axis, ax.run(axis.extent, shift, axis.extent)), 1, -shift, axis.extent)
    low = ax.image(ax.intersection(axis, ax.run(axis.extent, 0, shift)), 1, axis.extent - shift, axis.extent)
    return [with_axis(block, dim, part) for part in (high, low) if part.count]


def _repeated(block: Block, operand: Shape) -> Block:
    if block.pairs:
        raise TiedError
    lead = len(block.axes) - len(operand)
    axes = []
    for axis, extent in zip(block.axes[lead:], operand, strict=True):
        if axis.extent == extent:
            axes.append(axis)
            continue
        folded = Axis(extent)
        for copy in range(min(axis.extent // max(1, extent), 64)):
            if folded.full:
                break
            folded = ax.union(folded, ax.preimage(axis, 1, copy * extent, extent))
        axes.append(folded)
    return Block(tuple(axes))


def _replaced(
    function: str, attributes: Mapping[str, Any], block: Block, operands: Sequence[Shape]
) -> list[list[Block]]:
    """Base and source of a copy whose result is the base with one view of it replaced by the source."""
    base, source = operands[0], operands[1]
    if block.pairs:
        raise TiedError
    if function in ("slice_scatter", "select_scatter"):
        dim = attributes["dim"]
        if function == "slice_scatter":
            start, step = attributes["start"], attributes["step"]
            written = ax.run(base[dim], start, attributes["stop"], step)
            inside = ax.preimage(block.axes[dim], step, start, source[dim])
            from_source = [with_axis(block, dim, inside)]
        else:
            index = attributes["index"]
            written = ax.run(base[dim], index, index + 1)
            kept = [i for i in range(len(base)) if i != dim]
            hit = index in block.axes[dim] if block.axes[dim].unplaced is None else False
            from_source = [keep_axes(block, kept)] if hit else []
        left = ax.intersection(block.axes[dim], ax.complement(written))
        return [[with_axis(block, dim, left)], from_source]
    if function == "diagonal_scatter":
        first, second, offset = attributes["dim1"], attributes["dim2"], attributes["offset"]
        rows, columns = block.axes[first], block.axes[second]
        if not (rows.full and columns.full):
            return [[], []]
        above = Block(block.axes, (Pair(first, second, low=offset + 1),))
        below = Block(block.axes, (Pair(first, second, high=offset - 1),))
        others = [block.axes[i] for i in range(len(base)) if i not in (first, second)]
        return [[above, below], [Block((*others, ax.whole(source[-1])))]]
    return [[], [everything(source)] if block.full else []]


def written_by(function: str, attributes: Mapping[str, Any], base: Shape) -> list[Block] | None:
    """Part of the base that a ``copy`` of the scatter kind replaces; None for other functions."""
    whole = everything(base)
    if function == "slice_scatter":
        dim = attributes["dim"]
        return [with_axis(whole, dim, ax.run(base[dim], attributes["start"], attributes["stop"], attributes["step"]))]
    if function == "select_scatter":
        dim, index = attributes["dim"], attributes["index"]
        return [with_axis(whole, dim, ax.run(base[dim], index, index + 1))]
    if function == "diagonal_scatter":
        pair = Pair(attributes["dim1"], attributes["dim2"], low=attributes["offset"], high=attributes["offset"])
        return [Block(whole.axes, (pair,))]
    return None
