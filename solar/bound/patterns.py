"""Tensors with one known value outside (or inside) a block of positions, and what functions and views make of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from solar.bound import axes as ax
from solar.bound.axes import LARGEST_WALK
from solar.bound.pairs import LARGEST_PAIR_MASK, Pair, rows_of, transposed
from solar.bound.regions import Block, combine, everything, intersect, masks_over, opposite, restricted, tabled
from solar.bound.views import groups_of
from solar.einsum import Op, Tensor

Shape = tuple[int, ...]
Number = float | int | bool

# An additive mask this low, or lower, means "not attended to" as well as -inf does.
NEVER = -1e4


@dataclass(frozen=True)
class Pattern:
    """Value ``inside`` a block and ``outside`` it; None: any. ``block`` None: nothing is inside, all is ``outside``."""

    block: Block | None
    inside: Number | None
    outside: Number | None

    @property
    def live(self) -> Block | None:
        """Where the value is not known; None if that is nowhere (:attr:`settled`) or has no form."""
        return self.block if self.inside is None and self.outside is not None else None

    @property
    def settled(self) -> bool:
        """Every element is known."""
        return self.outside is not None and (self.block is None or self.inside is not None)


def scalars_of(op: Op) -> dict[int, Number]:
    """Constant arguments of a map by position."""
    return {int(position): number(value) for position, value in op.attributes.get("scalars", {}).items()}


def number(value: Any) -> Number:
    """A scalar as the IR writes it."""
    return float(value) if isinstance(value, str) else value


def beside(pieces: Sequence[Pattern | None], sizes: Sequence[int], dim: int, shape: Shape) -> Pattern | None:
    """A concatenation: zeros before and after a run of other pieces, or pieces with their own zeros (blocks)."""
    zeros = Pattern(None, None, 0)
    ends = list(itertools.accumulate(sizes, initial=0))
    filled = [i for i, piece in enumerate(pieces) if piece != zeros]
    if not filled:
        return zeros
    first, last = ends[filled[0]], ends[filled[-1] + 1]
    axes = [ax.whole(extent) for extent in shape]
    axes[dim] = ax.run(shape[dim], first, last)
    tie = _staggered(pieces, sizes, dim, shape)
    if tie is None and (first, last) == (0, ends[-1]):
        return None
    return Pattern(Block(tuple(axes), () if tie is None else (tie,)), None, 0)


def _staggered(pieces: Sequence[Pattern | None], sizes: Sequence[int], dim: int, shape: Shape) -> Pair | None:
    """What pieces that are zero outside some positions of one other dimension leave of it, piece by piece."""
    blocks = [None if piece is None or piece.outside != 0 else piece.block for piece in pieces]
    limited = {i for b in blocks if b is not None for i, axis in enumerate(b.axes) if i != dim and not axis.full}
    if len(limited) != 1 or shape[dim] > LARGEST_WALK:
        return None
    other = limited.pop()
    if shape[dim] * shape[other] > LARGEST_PAIR_MASK:
        return None
    rows: list[int] = []
    for piece, block, size in zip(pieces, blocks, sizes, strict=True):
        left = ax.whole(shape[other]) if block is None else block.axes[other]
        mask = 0 if piece == Pattern(None, None, 0) else ax.mask_of(left)
        if mask is None:
            return None
        rows += [mask] * size
    return Pair(dim, other, rows=tuple(rows))


def normal(pattern: Pattern) -> Pattern:
    """Known value outside where only the inside is known."""
    if pattern.block is not None and pattern.outside is None and pattern.inside is not None:
        other = opposite(pattern.block)
        if other is not None:
            return Pattern(other, None, pattern.inside)
    if pattern.block is not None and pattern.inside == pattern.outside and pattern.inside is not None:
        return Pattern(None, None, pattern.outside)
    return pattern


def from_values(values: Sequence[Number] | None, tensor: Tensor) -> Pattern | None:
    """Known contents with two values at most (masks), over the last two dimensions or one."""
    if not values or len(values) != tensor.elements:
        return None
    kinds = set(values)
    if len(kinds) == 1:
        return Pattern(None, None, values[0])
    wide = [i for i, extent in enumerate(tensor.shape) if extent != 1]
    if len(kinds) != 2 or len(wide) > 2:
        return None
    inside = max(kinds)
    axes = list(everything(tensor.shape).axes)
    if len(wide) == 1:
        axes[wide[0]] = ax.of(len(values), (i for i, value in enumerate(values) if value == inside))
        return Pattern(Block(tuple(axes)), inside, min(kinds))
    columns = tensor.shape[wide[1]]
    rows = []
    for start in range(0, len(values), columns):
        bits = 0
        for position, value in enumerate(values[start : start + columns]):
            bits |= (value == inside) << position
        rows.append(bits)
    band = _as_band(rows, columns)
    pair = Pair(wide[0], wide[1], rows=tuple(rows)) if band is None else replace(band, first=wide[0], second=wide[1])
    return Pattern(Block(tuple(axes), (pair,)), inside, min(kinds))


def _as_band(rows: Sequence[int], columns: int) -> Pair | None:
    """The triangle that a list of row masks is, if it is one."""
    if not rows[0]:
        return None
    high = rows[0].bit_length() - 1
    if all(row == (1 << max(0, min(columns, high + i + 1))) - 1 for i, row in enumerate(rows)):
        return Pair(0, 1, high=high)
    low = (rows[0] & -rows[0]).bit_length() - 1
    every = (1 << columns) - 1
    if all(row == every & ~((1 << max(0, min(columns, low + i))) - 1) for i, row in enumerate(rows)):
        return Pair(0, 1, low=low)
    return None


def broadcast(pattern: Pattern, shape: Shape) -> Pattern | None:
    """The same pattern over a shape that its tensor broadcasts to."""
    if pattern.block is None:
        return pattern
    block = pattern.block
    lead = len(shape) - len(block.axes)
    axes = list(everything(shape).axes)
    for i, axis in enumerate(block.axes):
        if axis.extent == shape[i + lead]:
            axes[i + lead] = axis
        elif not axis.full or any(i in (p.first, p.second) for p in block.pairs):
            return None
    pairs = tuple(replace(p, first=p.first + lead, second=p.second + lead) for p in block.pairs)
    return replace(pattern, block=Block(tuple(axes), pairs))


def blend(
    function: str, arguments: Sequence[Pattern | None], scalars: Mapping[int, Number], shape: Shape
) -> Pattern | None:
    """Pattern of a function of up to two structured operands (others count as unknown everywhere)."""
    count = len(arguments) + len(scalars)
    slots: list[Number | Pattern | None] = []
    tensors = iter(arguments)
    for position in range(max([count, *(p + 1 for p in scalars)])):
        if position in scalars:
            slots.append(scalars[position])
        else:
            slots.append(next(tensors, None))
    structured = [i for i, slot in enumerate(slots) if isinstance(slot, Pattern) and slot.block is not None]
    constant: list[Number | None] = [slot.outside if isinstance(slot, Pattern) else slot for slot in slots]
    if len(structured) == 0:
        value = evaluate(function, constant)
        return None if value is None else Pattern(None, None, value)
    if len(structured) > 2:
        return None

    def at(choice: Sequence[bool]) -> Number | None:
        """Value where the structured operands are inside (True) or outside their blocks."""
        here = list(constant)
        for i, inside in zip(structured, choice, strict=True):
            pattern = slots[i]
            assert isinstance(pattern, Pattern)
            here[i] = pattern.inside if inside else pattern.outside
        return evaluate(function, here)

    blocks: list[Block] = []
    for i in structured:
        pattern = slots[i]
        assert isinstance(pattern, Pattern) and pattern.block is not None
        blocks.append(pattern.block)
    if len(structured) == 1:
        inside, outside = at([True]), at([False])
        return None if inside is None and outside is None else Pattern(blocks[0], inside, outside)
    corners = {choice: at(choice) for choice in ((True, True), (True, False), (False, True), (False, False))}
    if blocks[0] == blocks[1]:
        inside, outside = corners[True, True], corners[False, False]
        return None if inside is None and outside is None else Pattern(blocks[0], inside, outside)
    # One value everywhere but in the common part, or everywhere but outside both, or decided by one operand alone.
    elsewhere = {corners[True, False], corners[False, True], corners[False, False]}
    if len(elsewhere) == 1 and None not in elsewhere:
        both = combine(blocks[0], blocks[1])
        if both is not None:
            return Pattern(both, corners[True, True], corners[False, False])
    joined = {corners[True, True], corners[True, False], corners[False, True]}
    if len(joined) == 1 and None not in joined:
        left, right = opposite(blocks[0]), opposite(blocks[1])
        neither = None if left is None or right is None else combine(left, right)
        if neither is not None:
            return Pattern(neither, corners[False, False], corners[True, True])
    if len(set(corners.values())) == 2:
        return _tabled(blocks, corners)
    for i, block in enumerate(blocks):
        outside_pair = {corners[(False, other) if i == 0 else (other, False)] for other in (True, False)}
        if len(outside_pair) == 1 and None not in outside_pair:
            return Pattern(block, None, outside_pair.pop())
        inside_pair = {corners[(True, other) if i == 0 else (other, True)] for other in (True, False)}
        if len(inside_pair) == 1 and None not in inside_pair:
            return Pattern(block, inside_pair.pop(), None)
    return None


def _tabled(blocks: Sequence[Block], corners: Mapping[tuple[bool, bool], Number | None]) -> Pattern | None:
    """Two values (one may be unknown) that two blocks decide together, over two axes at most as bit masks."""
    axes = restricted(*blocks)
    left, right = (masks_over(block, axes) for block in blocks)
    if left is None or right is None:
        return None
    inside, outside = sorted(set(corners.values()), key=lambda value: (value is None, value or 0), reverse=True)
    chosen = [choice for choice, value in corners.items() if value == inside]
    rows = [0] * len(left)
    for first, second in chosen:
        rows = [row | (a if first else ~a) & (b if second else ~b) for row, a, b in zip(rows, left, right, strict=True)]
    return Pattern(tabled([axis.extent for axis in blocks[0].axes], axes, rows), inside, outside)


def evaluate(function: str, arguments: Sequence[Number | None]) -> Number | None:
    """Value of an elementwise function where the known arguments decide it; None where they do not."""
    if function == "where":
        condition = arguments[0]
        return None if condition is None else arguments[1] if condition else arguments[2]
    if function == "tril":
        return None if arguments[0] is None else arguments[1] if arguments[0] else 0
    if None in arguments:
        return _absorbing(function, arguments)
    rule = _RULES.get(function)
    if rule is None:
        return None
    try:
        value = rule(*arguments)
    except (ArithmeticError, ValueError, TypeError):
        return None
    return None if isinstance(value, float) and math.isnan(value) else value


def _absorbing(function: str, arguments: Sequence[Number | None]) -> Number | None:
    """Results that one argument decides whatever the other is."""
    if len(arguments) != 2:
        return None
    left, right = arguments
    if function == "mul" and 0 in (left, right):
        return 0
    if function == "div" and left == 0:
        return 0
    if function in ("add", "sub") and left is not None and left <= NEVER:
        return -math.inf
    if function == "add" and right is not None and right <= NEVER:
        return -math.inf
    if function == "minimum" and -math.inf in (left, right):
        return -math.inf
    if function in ("logical_and", "bitwise_and") and (left in (False, 0) or right in (False, 0)):
        known = left if left is not None else right
        return known
    if function in ("logical_or", "bitwise_or") and (left is True or right is True):
        return True
    return None


def _exp(value: Number) -> Number:
    return 0.0 if value <= NEVER else math.exp(value)


_RULES: Mapping[str, Callable[..., Number]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: 0 if a == 0 or b == 0 else a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "identity": lambda a: a,
    "abs": abs,
    "relu": lambda a: max(a, 0),
    "exp": _exp,
    "exp2": _exp,
    "sigmoid": lambda a: 0.0 if a <= NEVER else 1 / (1 + math.exp(-a)),
    "tanh": math.tanh,
    "erf": math.erf,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "asinh": math.asinh,
    "sqrt": math.sqrt,
    "log": math.log,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "reciprocal": lambda a: 1 / a,
    "rsqrt": lambda a: 1 / math.sqrt(a),
    "sign": lambda a: (a > 0) - (a < 0),
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
    "maximum": max,
    "minimum": min,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "logical_not": lambda a: not a,
    "logical_and": lambda a, b: bool(a) and bool(b),
    "logical_or": lambda a, b: bool(a) or bool(b),
    "logical_xor": lambda a, b: bool(a) != bool(b),
    "bitwise_not": lambda a: not a if isinstance(a, bool) else ~a,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}


def push_view(function: str, attributes: Mapping[str, Any], block: Block, shape: Shape) -> Block | None:
    """A block of an operand as it appears in the view's result; None where it has no such form."""
    axes = list(block.axes)
    pairs = list(block.pairs)

    def renumber(where: Mapping[int, int]) -> tuple[Pair, ...] | None:
        if any(p.first not in where or p.second not in where for p in pairs):
            return None
        return tuple(replace(p, first=where[p.first], second=where[p.second]) for p in pairs)

    if function == "permute":
        dims = attributes["dims"]
        moved = renumber({dim: i for i, dim in enumerate(dims)})
        return None if moved is None else Block(tuple(axes[dim] for dim in dims), moved)
    if function == "expand":
        expanded = broadcast(Pattern(block, None, 0), shape)
        return None if expanded is None else expanded.block
    if function in ("squeeze", "unsqueeze", "reshape"):
        operand = tuple(axis.extent for axis in axes)
        if 0 in operand:
            return None
        result = list(everything(shape).axes)
        where: dict[int, int] = {}
        merged: dict[int, tuple[int, int]] = {}
        for left, right in groups_of(shape, operand):
            if len(left) == len(right) == 1:
                result[left[0]] = axes[right[0]]
                where[right[0]] = left[0]
            elif not all(axes[i].full for i in right):
                return None
            elif len(left) == 1:
                merged |= {i: (left[0], math.prod(operand[j] for j in right if j > i)) for i in right}
        joined = [_merged(pair, merged, where, operand, shape) for pair in pairs]
        return None if None in joined else Block(tuple(result), tuple(pair for pair in joined if pair is not None))
    if function == "slice":
        dim, start, step = attributes["dim"], attributes["start"], attributes["step"]
        axes[dim] = ax.preimage(axes[dim], step, start, shape[dim])
        shifted = []
        for pair in pairs:
            if dim in (pair.first, pair.second):
                if step != 1:
                    return None
                if pair.rows is not None and pair.first == dim:
                    pair = replace(pair, rows=pair.rows[start : start + shape[dim]])
                elif pair.rows is not None:
                    pair = replace(pair, rows=tuple(row >> start for row in pair.rows))
                else:
                    shift = (pair.a if pair.first == dim else pair.b) * start
                    low = None if pair.low is None else pair.low - shift
                    high = None if pair.high is None else pair.high - shift
                    pair = replace(pair, low=low, high=high)
            shifted.append(pair)
        return Block(tuple(axes), tuple(shifted))
    if function == "select":
        dim, index = attributes["dim"], attributes["index"]
        at = intersect(block, _point(block, dim, index))
        kept = [i for i in range(len(axes)) if i != dim]
        axes = [at.position(i) for i in range(len(axes))]
        if axes[dim].count == 0:
            return None
        where = {old: new for new, old in enumerate(kept)}
        pairs = [p for p in pairs if dim not in (p.first, p.second)]
        moved = renumber(where)
        return None if moved is None else Block(tuple(axes[i] for i in kept), moved)
    return None


def _merged(
    pair: Pair, merged: Mapping[int, tuple[int, int]], where: Mapping[int, int], operand: Shape, shape: Shape
) -> Pair | None:
    """A condition after a reshape: one of its axes may be a digit of a longer one, ``merged`` {axis: (new, stride)}."""
    if pair.first in where and pair.second in where:
        return replace(pair, first=where[pair.first], second=where[pair.second])
    x, y = pair.first, pair.second
    rows = rows_of(pair, operand[x], operand[y])
    if x in where and y in merged and rows is not None and operand[x] * operand[y] <= LARGEST_WALK:
        rows = transposed(rows, operand[y])
        x, y = y, x
    if rows is None or x not in merged or y not in where or shape[merged[x][0]] > LARGEST_WALK:
        return None
    new, stride = merged[x]
    longer = tuple(rows[i // stride % operand[x]] for i in range(shape[new]))
    return Pair(new, where[y], rows=longer)


def _point(block: Block, dim: int, index: int) -> Block:
    whole = everything([axis.extent for axis in block.axes])
    return Block((*whole.axes[:dim], ax.run(whole.axes[dim].extent, index, index + 1), *whole.axes[dim + 1 :]))
