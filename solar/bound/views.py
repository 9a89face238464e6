"""Index maps of views, backwards: which elements of an operand a part of the result comes from.

Every function takes one :class:`~solar.bound.regions.Block` of the result and gives blocks of the operand. Where a part
has no exact image it is left out (the bound gets smaller).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from solar.bound import axes as ax
from solar.bound.axes import Axis
from solar.bound.pairs import Pair
from solar.bound.regions import Block, boxes_inside, everything
from solar.errors import GraphError

Shape = tuple[int, ...]


class TiedError(Exception):
    """Two axes of the block are tied by a condition that the operand has no form for."""


def pull_view(
    function: str, attributes: Mapping[str, Any], block: Block, operand: Shape, bits: tuple[int, int]
) -> list[Block]:
    """Operand elements behind ``block`` of a ``view``'s result. ``bits``: storage bits an element (result, operand)."""
    try:
        return _pull_view(function, attributes, block, operand, bits)
    except TiedError:
        return [found for box in boxes_inside(block) for found in _pull_view(function, attributes, box, operand, bits)]


def _pull_view(
    function: str, attributes: Mapping[str, Any], block: Block, operand: Shape, bits: tuple[int, int]
) -> list[Block]:
    if function == "permute":
        dims = attributes["dims"]
        return [_place(block, dims, operand)]
    if function == "reshape":
        return pull_reshape(block, operand)
    if function == "slice":
        return [_affine(block, attributes["dim"], attributes["step"], attributes["start"], operand)]
    if function == "select":
        dim = attributes["dim"]
        kept = [i for i in range(len(operand)) if i != dim]
        point = ax.run(operand[dim], attributes["index"], attributes["index"] + 1)
        return [_place(block, kept, operand, {dim: point})]
    if function == "expand":
        return [align(block, operand)]
    if function == "squeeze":
        kept = [i for i in range(len(operand)) if i not in set(attributes["dims"])]
        return [_place(block, kept, operand)]
    if function == "unsqueeze":
        added = set(attributes["dims"])
        kept = [i for i in range(len(block.axes)) if i not in added]
        return [keep_axes(block, kept)]
    if function == "diagonal":
        return [_diagonal(block, attributes, operand)]
    if function == "unfold":
        dim = attributes["dim"]
        spread = ax.spread(block.axes[dim], attributes["step"], block.axes[-1], attributes["dilation"], 0, operand[dim])
        kept = [*range(dim), -1, *range(dim + 1, len(operand))]
        pairs = tuple(p for p in block.pairs if not {dim, len(operand)} & {p.first, p.second})
        if pairs != block.pairs:
            raise TiedError
        return [Block(tuple(spread if i == -1 else block.axes[i] for i in kept), pairs)]
    if function == "bitcast":
        return _bitcast(block, operand, bits)
    if function == "as_strided":
        return _as_strided(block, attributes, operand)
    raise GraphError(f"view: unknown function {function!r}")


def align(block: Block, operand: Shape) -> Block:
    """Operand elements behind a block of a result that it broadcasts to, right-aligned."""
    lead = len(block.axes) - len(operand)
    if lead < 0:
        raise GraphError(f"an operand of rank {len(operand)} does not broadcast to rank {len(block.axes)}")
    shared = {i for i in range(lead, len(block.axes)) if operand[i - lead] == block.axes[i].extent}
    if not block.pairs and lead == 0 and len(shared) == len(operand):
        return block
    axes = []
    for i in range(lead, len(block.axes)):
        if i in shared:
            axes.append(block.axes[i])
        elif operand[i - lead] == 1:
            axes.append(ax.whole(1))
        else:
            raise GraphError(f"extent {operand[i - lead]} does not broadcast to {block.axes[i].extent}")
    pairs = []
    for pair in block.pairs:
        members = {pair.first, pair.second} & shared
        if len(members) == 2:
            pairs.append(replace(pair, first=pair.first - lead, second=pair.second - lead))
        elif members:
            axis = members.pop()
            axes[axis - lead] = ax.intersection(axes[axis - lead], block.position(axis))
    return Block(tuple(axes), tuple(pairs))


def _place(block: Block, dims: Sequence[int], operand: Shape, fixed: Mapping[int, Axis] | None = None) -> Block:
    """Result axis i is operand axis dims[i]; the other operand axes are ``fixed``, or full."""
    if len(dims) != len(block.axes):
        raise GraphError(f"view: {len(dims)} dimensions kept, the result has {len(block.axes)}")
    axes = list(everything(operand).axes)
    for dim, axis in (fixed or {}).items():
        axes[dim] = axis
    for i, dim in enumerate(dims):
        if axes[dim].extent != block.axes[i].extent:
            raise GraphError(f"view: result dimension {i} has another extent than operand dimension {dim}")
        axes[dim] = block.axes[i]
    return Block(tuple(axes), tuple(replace(p, first=dims[p.first], second=dims[p.second]) for p in block.pairs))


def keep_axes(block: Block, kept: Sequence[int]) -> Block:
    """Only the named result axes (the others have extent 1)."""
    where = {old: new for new, old in enumerate(kept)}
    axes = [block.axes[i] for i in kept]
    pairs = []
    for pair in block.pairs:
        if pair.first in where and pair.second in where:
            pairs.append(replace(pair, first=where[pair.first], second=where[pair.second]))
            continue
        for old in {pair.first, pair.second} & set(where):
            axes[where[old]] = ax.intersection(axes[where[old]], block.position(old))
    return Block(tuple(axes), tuple(pairs))


def _affine(block: Block, dim: int, step: int, start: int, operand: Shape) -> Block:
    """Result position p along ``dim`` is operand position start + step*p."""
    moved = ax.image(block.axes[dim], step, start, operand[dim])
    axes = (*block.axes[:dim], moved, *block.axes[dim + 1 :])
    if not any(dim in (p.first, p.second) for p in block.pairs):
        return Block(axes, block.pairs)
    pairs: list[Pair] = []
    for pair in block.pairs:
        if dim not in (pair.first, pair.second):
            pairs.append(pair)
        elif pair.rows is not None or step != 1:
            raise TiedError
        else:
            shift = (pair.a if pair.first == dim else pair.b) * start
            pairs.append(
                replace(
                    pair,
                    low=None if pair.low is None else pair.low + shift,
                    high=None if pair.high is None else pair.high + shift,
                )
            )
    return Block(axes, tuple(pairs))


def _diagonal(block: Block, attributes: Mapping[str, Any], operand: Shape) -> Block:
    first, second, offset = attributes["dim1"], attributes["dim2"], attributes["offset"]
    along = block.axes[-1]
    if any(len(block.axes) - 1 in (p.first, p.second) for p in block.pairs):
        raise TiedError
    others = [i for i in range(len(operand)) if i not in (first, second)]
    axes: list[Axis] = list(everything(operand).axes)
    for i, dim in enumerate(others):
        axes[dim] = block.axes[i]
    axes[first] = ax.image(along, 1, max(0, -offset), operand[first])
    axes[second] = ax.image(along, 1, max(0, offset), operand[second])
    pairs = tuple(replace(p, first=others[p.first], second=others[p.second]) for p in block.pairs)
    return Block(tuple(axes), (*pairs, Pair(first, second, low=offset, high=offset)))


def groups_of(result: Shape, operand: Shape) -> list[tuple[list[int], list[int]]]:
    """Runs of result and operand dimensions (extents of 1 apart) with equal products, as short as possible."""
    wide = [i for i, extent in enumerate(result) if extent != 1]
    deep = [i for i, extent in enumerate(operand) if extent != 1]
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(wide) and j < len(deep):
        left, right = [wide[i]], [deep[j]]
        a, b = result[wide[i]], operand[deep[j]]
        i, j = i + 1, j + 1
        while a != b:
            if a < b and i < len(wide):
                a *= result[wide[i]]
                left.append(wide[i])
                i += 1
            elif b < a and j < len(deep):
                b *= operand[deep[j]]
                right.append(deep[j])
                j += 1
            else:
                raise GraphError(f"reshape: {list(operand)} does not fill {list(result)}")
        found.append((left, right))
    if i < len(wide) or j < len(deep):
        raise GraphError(f"reshape: {list(operand)} does not fill {list(result)}")
    return found


def pull_reshape(block: Block, operand: Shape) -> list[Block]:
    """Row-major reshape: dimension by dimension where extents correspond, through flat positions where they do not."""
    if block.empty or 0 in operand:
        return []
    result = tuple(axis.extent for axis in block.axes)
    parts: list[Block] = [everything(operand)]
    where: dict[int, int] = {}
    for left, right in groups_of(result, operand):
        if len(left) == len(right) == 1:
            where[left[0]] = right[0]
            parts = [with_axis(part, right[0], block.axes[left[0]]) for part in parts]
        elif not all(block.axes[i].full for i in left):
            flat = flatten([block.axes[i] for i in left])
            if flat is None:
                return []
            choices = unflatten(flat, [operand[i] for i in right])
            parts = [_with_all(part, right, choice) for part in parts for choice in choices]
    pairs = []
    for pair in block.pairs:
        if pair.first not in where or pair.second not in where:
            raise TiedError
        pairs.append(replace(pair, first=where[pair.first], second=where[pair.second]))
    return [Block(part.axes, tuple(pairs)) for part in parts]


def with_axis(block: Block, dim: int, axis: Axis) -> Block:
    return Block((*block.axes[:dim], axis, *block.axes[dim + 1 :]), block.pairs)


def _with_all(block: Block, dims: Sequence[int], axes: Sequence[Axis]) -> Block:
    for dim, axis in zip(dims, axes, strict=True):
        block = with_axis(block, dim, axis)
    return block


def flatten(axes: Sequence[Axis]) -> Axis | None:
    """Flat positions of a box of row-major dimensions; None where they have no short form."""
    flat = axes[-1]
    for outer in reversed(axes[:-1]):
        extent = outer.extent * flat.extent
        if outer.unplaced is not None or flat.unplaced is not None:
            flat = ax.unknown(extent, outer.count * flat.count)
        elif flat.full and outer.contiguous:
            flat = ax.run(extent, outer.start * flat.extent, outer.stop * flat.extent)
        elif outer.count == 1:
            flat = ax.image(flat, 1, next(iter(outer)) * flat.extent, extent)
        elif flat.count == 1 and outer.bits is None:
            flat = ax.image(outer, flat.extent, next(iter(flat)), extent)
        else:
            mask = ax.mask_of(flat)
            if extent > ax.LARGEST_MASK or mask is None or outer.count > ax.LARGEST_WALK:
                return None
            bits = 0
            for position in outer:
                bits |= mask << (position * flat.extent)
            flat = ax.masked(extent, bits)
    return flat


def unflatten(flat: Axis, extents: Sequence[int]) -> list[list[Axis]]:
    """A set of flat positions as boxes of row-major dimensions (some are left out where they get too many)."""
    if len(extents) == 1:
        return [[flat]]
    if flat.full:
        return [[ax.whole(extent) for extent in extents]]
    if flat.count == 0 or flat.unplaced is not None:
        return []
    inner = math.prod(extents[1:])
    outer = extents[0]
    if flat.contiguous:
        first, last = flat.start // inner, (flat.stop - 1) // inner
        boxes: list[list[Axis]] = []
        if first == last:
            rest = ax.run(inner, flat.start - first * inner, flat.stop - first * inner)
            return [[ax.run(outer, first, first + 1), *tail] for tail in unflatten(rest, extents[1:])]
        if flat.start % inner:
            rest = ax.run(inner, flat.start - first * inner, inner)
            boxes += [[ax.run(outer, first, first + 1), *tail] for tail in unflatten(rest, extents[1:])]
            first += 1
        if flat.stop % inner:
            rest = ax.run(inner, 0, flat.stop - last * inner)
            boxes += [[ax.run(outer, last, last + 1), *tail] for tail in unflatten(rest, extents[1:])]
            last -= 1
        if first <= last:
            boxes.append([ax.run(outer, first, last + 1), *(ax.whole(extent) for extent in extents[1:])])
        return boxes
    if (
        flat.bits is None
        and inner % flat.step == 0
        and flat.start < flat.step
        and flat.length * flat.step == flat.extent
    ):
        rest = ax.run(inner, flat.start, inner, flat.step)
        return [[ax.whole(outer), *tail] for tail in unflatten(rest, extents[1:])]
    if flat.bits is None and flat.step % inner == 0:
        row, column = divmod(flat.start, inner)
        rows = Axis(outer, row, flat.length, flat.step // inner)
        return [[rows, *tail] for tail in unflatten(ax.run(inner, column, column + 1), extents[1:])]
    mask = ax.mask_of(flat)
    if mask is None or outer > ax.LARGEST_WALK:
        return []
    every = (1 << inner) - 1
    alike: dict[int, list[int]] = {}
    for position in range(outer):
        row_bits = mask >> (position * inner) & every
        if row_bits:
            alike.setdefault(row_bits, []).append(position)
    boxes = []
    for row_bits, positions in list(alike.items())[:64]:
        for tail in unflatten(ax.masked(inner, row_bits), extents[1:]):
            boxes.append([ax.of(outer, positions), *tail])
    return boxes


def _bitcast(block: Block, operand: Shape, bits: tuple[int, int]) -> list[Block]:
    wide, narrow = bits
    if wide == narrow or not operand:
        return [block]
    if any(len(operand) - 1 in (p.first, p.second) for p in block.pairs):
        raise TiedError
    last, extent = block.axes[-1], operand[-1]
    if last.full:
        moved = ax.whole(extent)
    elif wide > narrow:
        k = wide // narrow
        moved = ax.spread(last, k, ax.whole(k), 1, 0, extent)
    elif last.contiguous:
        k = narrow // wide
        moved = ax.run(extent, last.start // k, (last.stop - 1) // k + 1)
    else:
        return []
    return [Block((*block.axes[:-1], moved), block.pairs)]


def _as_strided(block: Block, attributes: Mapping[str, Any], operand: Shape) -> list[Block]:
    """Storage positions of a strided box over the operand laid out row-major."""
    if block.pairs:
        raise TiedError
    if block.empty:
        return []
    strides = list(attributes["stride"])
    size = math.prod(operand)
    flat = ax.run(size, attributes["offset"], attributes["offset"] + 1)
    for axis, stride in sorted(zip(block.axes, strides, strict=True), key=lambda pair: pair[1]):
        if axis.extent == 1 or stride == 0:
            continue
        flat = ax.spread(axis, stride, flat, 1, 0, size)
    return [Block(tuple(choice)) for choice in unflatten(flat, list(operand))] if operand else [block]
