"""Sets of elements of one tensor, as unions of boxes with at most pairwise conditions; counted without being listed.

A :class:`Block` is a product of :class:`~solar.bound.axes.Axis` sets, thinned by :class:`Pair` conditions that tie two
axes together (a diagonal, a triangle, a window). A region is a tuple of blocks. Operations that cannot be exact return
a subset, so that demand, and with it the bound, only ever gets smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from solar.bound import axes as ax
from solar.bound.axes import Axis
from solar.bound.pairs import (
    LARGEST_PAIR_MASK,
    Pair,
    between,
    canonical,
    count_pair,
    join,
    limits,
    projection,
    rows_of,
)

Region = tuple["Block", ...]

# Blocks beyond this many are given up (the largest stay).
LARGEST_UNION = 24
# Positions of an axis that several conditions share are walked up to this many.
LARGEST_HUB = 1 << 13


@dataclass(frozen=True, slots=True)
class Block:
    """Elements whose position lies in every axis' set and meets every condition."""

    axes: tuple[Axis, ...]
    pairs: tuple[Pair, ...] = ()

    @property
    def count(self) -> int:
        """Number of elements; with conditions that share an axis, at least this many."""
        return count_box(self.axes, self.pairs)

    @property
    def full(self) -> bool:
        return not self.pairs and all(axis.full for axis in self.axes)

    @property
    def empty(self) -> bool:
        return any(axis.count == 0 for axis in self.axes)

    def position(self, axis: int) -> Axis:
        """Positions along one axis at which the block has an element (a subset where that is not exact)."""
        own = self.axes[axis]
        for pair in self.pairs:
            if axis in (pair.first, pair.second):
                own = ax.intersection(own, projection(pair, self.axes[pair.first], self.axes[pair.second], axis))
        return own


def everything(shape: Iterable[int]) -> Block:
    return Block(tuple(ax.whole(extent) for extent in shape))


def region(*blocks: Block) -> Region:
    """A union, without blocks that others hold."""
    result: Region = ()
    for block in blocks:
        result = add(result, block)
    return result


def add(existing: Region, block: Block) -> Region:
    """existing or block, merged where one box can say it."""
    if block.empty:
        return existing
    if block.pairs:
        block = conditioned(block.axes, block.pairs)
        block = Block(tuple(block.position(i) for i in range(len(block.axes))), block.pairs)
        if count_box(block.axes, block.pairs) == math.prod(axis.count for axis in block.axes):
            block = Block(block.axes)  # the conditions hold everywhere
    kept: list[Block] = []
    for position, other in enumerate(existing):
        if holds(other, block):
            return existing
        if holds(block, other):
            continue
        merged = _merge(other, block)
        if merged is not None:
            return add((*kept, *existing[position + 1 :]), merged)
        kept.append(other)
    kept.append(block)
    if len(kept) > LARGEST_UNION:
        kept.remove(min(kept, key=lambda b: b.count))
    return tuple(kept)


def unite(a: Region, b: Region) -> Region:
    for block in b:
        a = add(a, block)
    return a


def holds(outer: Block, inner: Block) -> bool:
    """Whether ``outer`` surely holds all of ``inner``."""
    if not all(ax.covers(o, i) for o, i in zip(outer.axes, inner.axes, strict=True)):
        return False
    return all(pair in inner.pairs for pair in outer.pairs)


def _merge(a: Block, b: Block) -> Block | None:
    if a.pairs != b.pairs:
        return None
    different = [i for i, (x, y) in enumerate(zip(a.axes, b.axes, strict=True)) if x != y]
    if len(different) != 1:
        return None
    axis = different[0]
    joined = ax.union(a.axes[axis], b.axes[axis])
    if joined.count < max(a.axes[axis].count, b.axes[axis].count):
        return None
    if not (ax.covers(joined, a.axes[axis]) and ax.covers(joined, b.axes[axis])):
        return None
    return Block((*a.axes[:axis], joined, *a.axes[axis + 1 :]), a.pairs)


def intersect(a: Block, b: Block) -> Block:
    """a and b (a subset where an axis has no exact form)."""
    return Block(
        tuple(ax.intersection(x, y) for x, y in zip(a.axes, b.axes, strict=True)),
        (*a.pairs, *(pair for pair in b.pairs if pair not in a.pairs)),
    )


def on_line(block: Block, dim: int, axis: Axis) -> Block:
    """The block with another set along ``dim``; conditions on ``dim`` are replaced by what they leave elsewhere."""
    axes = list(block.axes)
    pairs = []
    for pair in block.pairs:
        if dim in (pair.first, pair.second):
            other = pair.second if pair.first == dim else pair.first
            axes[other] = ax.intersection(axes[other], block.position(other))
        else:
            pairs.append(pair)
    axes[dim] = axis
    return Block(tuple(axes), tuple(pairs))


def projected(block: Block, dims: Sequence[int] | range) -> Block:
    """Projection onto some dimensions."""
    return Block(tuple(block.position(i) for i in dims))


def boxes_inside(block: Block) -> list[Block]:
    """Boxes without conditions that lie in a block: all of it where the tied axes are short, most of it elsewhere."""
    boxes = [Block(block.axes)]
    for pair in block.pairs:
        boxes = [inner for box in boxes for inner in _boxes_of(box, pair)]
    return boxes


def _boxes_of(box: Block, pair: Pair) -> list[Block]:
    x, y = box.axes[pair.first], box.axes[pair.second]
    if x.unplaced is not None or y.unplaced is not None or not x.count:
        return []
    last = x.stop - 1
    first = next(iter(x))
    pieces = min(LARGEST_UNION, last - first + 1)
    chunks = [
        (first + (last - first + 1) * i // pieces, first + (last - first + 1) * (i + 1) // pieces)
        for i in range(pieces)
    ]
    result = []
    for start, stop in chunks:
        rows = ax.intersection(x, ax.run(x.extent, start, stop))
        columns = ax.intersection(y, _columns_of_all(pair, start, stop, y.extent)) if rows.count else Axis(y.extent)
        if columns.count:
            axes = list(box.axes)
            axes[pair.first], axes[pair.second] = rows, columns
            result.append(Block(tuple(axes)))
    return result


def _columns_of_all(pair: Pair, start: int, stop: int, extent: int) -> Axis:
    """Positions of the second axis that meet the condition with every position start .. stop-1 of the first."""
    if pair.rows is not None:
        common = (1 << extent) - 1
        for row in pair.rows[start:stop]:
            common &= row
        return ax.masked(extent, common)
    ends = [limits(pair, start), limits(pair, stop - 1)]
    low = max((low for low, _ in ends if low is not None), default=0)
    high = min((high for _, high in ends if high is not None), default=extent - 1)
    return ax.run(extent, max(0, low), high + 1)


def count(blocks: Region) -> int:
    """Elements in the union; where blocks overlap in a way that has no exact form, at least this many."""
    if len(blocks) == 1:
        return blocks[0].count
    boxes = sorted((b for b in blocks if not b.pairs), key=lambda b: -b.count)
    pieces = disjoint(boxes)
    total = sum(piece.count for piece in pieces)
    # Blocks with conditions: apart from everything else they add up, else only the larger side counts.
    for block in blocks:
        if block.pairs:
            apart = all(_apart(block, other) for other in blocks if other is not block)
            total = total + block.count if apart else max(total, block.count)
    return total


def _apart(a: Block, b: Block) -> bool:
    for x, y in zip(a.axes, b.axes, strict=True):
        if x.unplaced is not None or y.unplaced is not None or x.count + y.count > x.extent:
            continue
        if x.contiguous and y.contiguous and (x.stop <= y.start or y.stop <= x.start):
            return True
        first, second = ax.mask_of(x), ax.mask_of(y)
        if first is not None and second is not None and first & second == 0:
            return True
    return False


def disjoint(boxes: Iterable[Block]) -> list[Block]:
    """Boxes without common elements whose union is that of the given ones (or a subset, where it gets involved)."""
    result: list[Block] = []
    for box in boxes:
        pieces = [box]
        for taken in result:
            pieces = [rest for piece in pieces for rest in _minus(piece, taken)]
            if len(pieces) > LARGEST_UNION:
                pieces = []
        result.extend(pieces)
        if len(result) > 8 * LARGEST_UNION:
            break
    return result


def _minus(piece: Block, taken: Block) -> list[Block]:
    """piece without taken (no conditions), as disjoint boxes."""
    if taken.pairs or piece.pairs:
        return [piece] if _apart(piece, taken) else []
    rest: list[Block] = []
    inside: list[Axis] = []
    for i, (own, other) in enumerate(zip(piece.axes, taken.axes, strict=True)):
        if own.unplaced is not None or other.unplaced is not None:
            common = own if own.count <= other.count else other
            outside = ax.unknown(own.extent, own.count - other.count)
        else:
            common = ax.intersection(own, other)
            outside = ax.intersection(own, ax.complement(other))
        if common.count == 0 and own.unplaced is None and other.unplaced is None:
            return [piece]
        if outside.count:
            rest.append(Block((*inside, outside, *piece.axes[i + 1 :])))
        inside.append(common)
    return rest


# --- counting under conditions -------------------------------------------------------------------------------------


def count_box(axes: tuple[Axis, ...], pairs: tuple[Pair, ...]) -> int:
    """Elements of a box that meet all conditions: exact where conditions share no axis, or all of a group share one;
    else a lower bound."""
    total = math.prod(axis.count for axis in axes)
    if not pairs or not total:
        return total
    product, free = 1, set(range(len(axes)))
    for group in _connected(pairs):
        members = {axis for pair in group for axis in (pair.first, pair.second)}
        product *= _count_group(axes, group, members)
        free -= members
    return product * math.prod(axes[i].count for i in free)


def _connected(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Conditions in groups without a common axis."""
    groups: list[list[Pair]] = []
    for pair in pairs:
        members = {pair.first, pair.second}
        touching = [g for g in groups if any(members & {other.first, other.second} for other in g)]
        groups = [g for g in groups if g not in touching]
        groups.append([*(other for g in touching for other in g), pair])
    return groups


def _count_group(axes: tuple[Axis, ...], group: list[Pair], members: set[int]) -> int:
    if len(group) == 1:
        return count_pair(group[0], axes[group[0].first], axes[group[0].second])
    hubs = set.intersection(*({pair.first, pair.second} for pair in group))
    if len(hubs) == 1 and len(members) == len(group) + 1 and all(pair.rows is None for pair in group):
        centre = hubs.pop()
        hub = axes[centre]
        known = all(axes[i].unplaced is None for i in members)
        if known and hub.count <= LARGEST_HUB:
            turned = [pair if pair.first == centre else pair.swapped() for pair in group]
            return sum(math.prod(between(axes[p.second], *limits(p, x)) for p in turned) for x in hub)
    # |A and B| >= |A| + |B| - |everything|
    space = math.prod(axes[i].count for i in members)
    found = space
    for pair in group:
        rest = math.prod(axes[i].count for i in members - {pair.first, pair.second})
        found += count_pair(pair, axes[pair.first], axes[pair.second]) * rest - space
    return max(0, found)


def opposite(block: Block) -> Block | None:
    """Everything outside a block whose restrictions lie on two axes at most; None where one box cannot say it."""
    limited = [i for i, axis in enumerate(block.axes) if not axis.full]
    shape = [axis.extent for axis in block.axes]
    if not block.pairs:
        if len(limited) > 1:
            return _opposite_rows(block)
        if not limited:
            return Block(tuple(Axis(extent) for extent in shape)) if shape else None
        axis = limited[0]
        other = ax.complement(block.axes[axis])
        if other.count + block.axes[axis].count != shape[axis]:
            return None
        whole = everything(shape)
        return Block((*whole.axes[:axis], other, *whole.axes[axis + 1 :]))
    if limited or len(block.pairs) > 1:
        return _opposite_rows(block)
    pair = block.pairs[0]
    if pair.rows is None and pair.low is None and pair.high is not None:
        flipped = replace(pair, low=pair.high + 1, high=None)
    elif pair.rows is None and pair.high is None and pair.low is not None:
        flipped = replace(pair, high=pair.low - 1, low=None)
    else:
        rows = rows_of(pair, shape[pair.first], shape[pair.second])
        if rows is None:
            return None
        every = (1 << shape[pair.second]) - 1
        flipped = Pair(pair.first, pair.second, rows=tuple(every & ~row for row in rows))
    return Block(everything(shape).axes, (flipped,))


def _opposite_rows(block: Block) -> Block | None:
    """The same for several restrictions on two axes, as bit masks of one by the other."""
    axes = restricted(block)
    inside = masks_over(block, axes)
    return None if inside is None else tabled([axis.extent for axis in block.axes], axes, [~row for row in inside])


def restricted(*blocks: Block) -> list[int]:
    """The axes that one of the blocks does not leave free."""
    limited = {i for block in blocks for i, axis in enumerate(block.axes) if not axis.full}
    return sorted(limited.union(*((pair.first, pair.second) for block in blocks for pair in block.pairs)))


def masks_over(block: Block, axes: Sequence[int]) -> list[int] | None:
    """Positions of the second of two axes in a block for each of the first, as bit masks; all other axes are free.
    None where that would be large, or for another number of axes."""
    if len(axes) != 2:
        return None
    first, second = axes
    x, y = block.axes[first].extent, block.axes[second].extent
    columns = ax.mask_of(block.axes[second])
    if x * y > LARGEST_PAIR_MASK or columns is None or block.axes[first].unplaced is not None:
        return None
    inside = [columns if position in block.axes[first] else 0 for position in range(x)]
    for pair in block.pairs:
        rows = rows_of(pair.led_by(first, x), x, y)
        if rows is None:
            return None
        inside = [kept & row for kept, row in zip(inside, rows, strict=True)]
    return inside


def tabled(shape: Sequence[int], axes: Sequence[int], rows: Iterable[int]) -> Block:
    """Elements at the set bits of ``rows``: a mask of positions of the second of two axes for each of the first."""
    first, second = axes
    every = (1 << shape[second]) - 1
    return Block(everything(shape).axes, (Pair(first, second, rows=tuple(every & row for row in rows)),))


def conditioned(axes: tuple[Axis, ...], pairs: Iterable[Pair]) -> Block:
    """A box under conditions; those on the same two axes become one where they can."""
    kept: list[Pair] = []
    for pair in pairs:
        pair = canonical(pair)
        for position, other in enumerate(kept):
            if (pair.first, pair.second) == (other.first, other.second):
                joined = pair if pair == other else join(other, pair, axes)
                if joined is not None:
                    kept[position] = joined
                    break
        else:
            kept.append(pair)
    return Block(axes, tuple(kept))


def combine(a: Block, b: Block) -> Block | None:
    """a and b exactly, conditions on the same two axes joined into one; None where it has no such form."""
    joined = intersect(a, b)
    pairs: list[Pair] = []
    for pair in joined.pairs:
        for position, other in enumerate(pairs):
            if {pair.first, pair.second} == {other.first, other.second}:
                both = join(other, pair, joined.axes)
                if both is None:
                    return None
                pairs[position] = both
                break
        else:
            pairs.append(pair)
    return Block(joined.axes, tuple(pairs))
