"""What is known of tensors before any input is drawn, forwards: zeros by structure, masks, constants, repetition.

A :class:`Pattern` says that a tensor has one known value outside (or inside) a block of positions: the zeros of ``tril``,
``diag``, ``eye`` and ``pad``, the ``-inf`` of a causal mask, the zeros that ``exp`` makes of them, and the booleans that
comparisons of ``arange`` make. Elements of known value are never computed and never read. A :class:`Ramp` is an affine
function of the position. Whatever is not recognised is simply not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from solar.bound import axes as ax
from solar.bound.axes import Axis
from solar.bound.regions import Block, Pair, combine, everything, intersect, opposite
from solar.bound.views import groups_of
from solar.einsum import Op, Program, Tensor

Shape = tuple[int, ...]
Number = float | int | bool

# An additive mask this low, or lower, means "not attended to" as well as -inf does.
NEVER = -1e4

# PyTorch's mark of a target that does not count. An input without declared values is taken to have none.
IGNORED = -100


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


@dataclass(frozen=True)
class Ramp:
    """value = start + sum of steps[d] * position[d]."""

    start: Number
    steps: tuple[Number, ...]


@dataclass(frozen=True)
class Facts:
    """``fixed``: tensors that depend on no input. ``uniform``: dimensions along which a tensor repeats itself."""

    patterns: Mapping[str, Pattern]
    ramps: Mapping[str, Ramp]
    fixed: frozenset[str]
    uniform: Mapping[str, frozenset[int]]


def gather_facts(program: Program) -> Facts:
    """One pass over the program in execution order."""
    patterns: dict[str, Pattern] = {}
    ramps: dict[str, Ramp] = {}
    fixed: set[str] = set()
    uniform: dict[str, frozenset[int]] = {}
    for name, tensor in program.tensors.items():
        uniform[name] = frozenset(i for i, extent in enumerate(tensor.shape) if extent <= 1)
        known = _from_values(program, name, tensor)
        if known is not None:
            patterns[name] = known
    for name, structure in program.structures.items():
        shape = program.tensors[name].shape
        if structure == "lower_triangular" and len(shape) >= 2:
            triangle = Pair(len(shape) - 2, len(shape) - 1, high=0)
            patterns[name] = Pattern(Block(everything(shape).axes, (triangle,)), 1, 0)
            fixed.add(name)
    for op in program.ops:
        if op.kind != "opaque" and op.function != "random" and all(name in fixed for name in op.operands):
            fixed.update(op.outputs)
        for output in op.outputs:
            uniform[output] |= _uniform(program, op, output, uniform)
        if len(op.outputs) != 1 or op.outputs[0] in patterns:
            continue
        output = op.outputs[0]
        ramp = _ramp(program, op, ramps)
        if ramp is not None:
            ramps[output] = ramp
            if not any(ramp.steps):
                patterns[output] = Pattern(None, None, ramp.start)
            continue
        pattern = _pattern(program, op, patterns, ramps)
        if pattern is not None:
            patterns[output] = _normal(pattern)
    return Facts(patterns, ramps, frozenset(fixed), uniform)


def scalars_of(op: Op) -> dict[int, Number]:
    """Constant arguments of a map by position."""
    return {int(position): number(value) for position, value in op.attributes.get("scalars", {}).items()}


def number(value: Any) -> Number:
    """A scalar as the IR writes it."""
    return float(value) if isinstance(value, str) else value


# --- patterns ------------------------------------------------------------------------------------------------------


def _normal(pattern: Pattern) -> Pattern:
    """Known value outside where only the inside is known."""
    if pattern.block is not None and pattern.outside is None and pattern.inside is not None:
        other = opposite(pattern.block)
        if other is not None:
            return Pattern(other, None, pattern.inside)
    if pattern.block is not None and pattern.inside == pattern.outside and pattern.inside is not None:
        return Pattern(None, None, pattern.outside)
    return pattern


def _from_values(program: Program, name: str, tensor: Tensor) -> Pattern | None:
    """Known contents with two values at most (masks), over the last two dimensions or one."""
    values = program.values.get(name)
    if values is None or not values or len(values) != tensor.elements:
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


def _pattern(
    program: Program, op: Op, patterns: Mapping[str, Pattern], ramps: Mapping[str, Ramp]
) -> Pattern | None:
    shape = program.tensors[op.outputs[0]].shape
    attributes = op.attributes
    if op.kind == "create":
        if op.function == "full":
            return Pattern(None, None, number(attributes["value"]))
        if op.function == "eye" and len(shape) == 2:
            return Pattern(Block(everything(shape).axes, (Pair(0, 1, low=0, high=0),)), 1, 0)
        return None
    own = patterns.get(op.operands[0]) if op.operands else None
    if op.kind == "view":
        if own is None:
            return None
        if own.block is None:
            return own
        moved = push_view(op.function, attributes, own.block, shape)
        return None if moved is None else replace(own, block=moved)
    if op.kind == "cast" or (op.kind == "copy" and op.function == "clone"):
        return own
    if op.kind == "copy":
        return _copy_pattern(program, op, own, shape)
    if op.kind == "map":
        if op.function in ("tril", "triu"):
            k = attributes["diagonal"]
            last = len(shape) - 1
            pair = Pair(last - 1, last, high=k) if op.function == "tril" else Pair(last - 1, last, low=k)
            triangle = Pattern(Block(everything(shape).axes, (pair,)), None, 0)
            if own is None:
                return triangle
            return _blend("tril", [Pattern(triangle.block, True, False), own], {}, shape)
        compared = _compare_ramps(program, op, ramps, shape)
        if compared is not None:
            return compared
        if op.function in ("eq", "ne") and scalars_of(op).get(1) == IGNORED:
            return Pattern(None, None, op.function == "ne")
        arguments = [
            None if name not in patterns else _broadcast(patterns[name], shape) for name in op.operands
        ]
        if not any(arguments) and op.function != "where":
            return None
        return _blend(op.function, arguments, scalars_of(op), shape)
    return None


def _copy_pattern(program: Program, op: Op, own: Pattern | None, shape: Shape) -> Pattern | None:
    if op.function == "pad":
        value = number(op.attributes["value"])
        inner = program.tensors[op.operands[0]].shape
        axes = tuple(
            ax.run(extent, before, before + size)
            for extent, before, size in zip(shape, op.attributes["before"], inner, strict=True)
        )
        return Pattern(Block(axes), None, value)
    if op.function == "diagonal_scatter" and own is not None and own.block is None:
        a = op.attributes
        pair = Pair(a["dim1"], a["dim2"], low=a["offset"], high=a["offset"])
        return Pattern(Block(everything(shape).axes, (pair,)), None, own.outside)
    if op.function in ("slice_scatter", "select_scatter") and own is not None and own.block is None:
        a = op.attributes
        dim = a["dim"]
        start, stop, step = (
            (a["start"], a["stop"], a["step"]) if op.function == "slice_scatter" else (a["index"], a["index"] + 1, 1)
        )
        axes = list(everything(shape).axes)
        axes[dim] = ax.run(shape[dim], start, stop, step)
        return Pattern(Block(tuple(axes)), None, own.outside)
    return None


def _broadcast(pattern: Pattern, shape: Shape) -> Pattern | None:
    """The same pattern over a shape that its tensor broadcasts to."""
    if pattern.block is None:
        return pattern
    block = pattern.block
    lead = len(shape) - len(block.axes)
    axes = list(everything(shape).axes)
    for i, axis in enumerate(block.axes):
        if axis.extent == shape[i + lead]:
            axes[i + lead] = axis
        elif not axis.full:
            return None
        elif any(i in (p.first, p.second) for p in block.pairs):
            return None
    pairs = tuple(replace(p, first=p.first + lead, second=p.second + lead) for p in block.pairs)
    return replace(pattern, block=Block(tuple(axes), pairs))


def _blend(
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
    constant: list[Number | None] = [
        slot.outside if isinstance(slot, Pattern) else slot for slot in slots
    ]
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
        return None if both is None else Pattern(both, corners[True, True], corners[False, False])
    joined = {corners[True, True], corners[True, False], corners[False, True]}
    if len(joined) == 1 and None not in joined:
        left, right = opposite(blocks[0]), opposite(blocks[1])
        neither = None if left is None or right is None else combine(left, right)
        return None if neither is None else Pattern(neither, corners[False, False], corners[True, True])
    for i, block in enumerate(blocks):
        outside_pair = {corners[(False, other) if i == 0 else (other, False)] for other in (True, False)}
        if len(outside_pair) == 1 and None not in outside_pair:
            return Pattern(block, None, outside_pair.pop())
        inside_pair = {corners[(True, other) if i == 0 else (other, True)] for other in (True, False)}
        if len(inside_pair) == 1 and None not in inside_pair:
            return Pattern(block, inside_pair.pop(), None)
    return None


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
    "square": lambda a: a * a,
    "exp": _exp,
    "exp2": _exp,
    "sigmoid": lambda a: 0.0 if a <= NEVER else 1 / (1 + math.exp(-a)),
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
        expanded = _broadcast(Pattern(block, None, 0), shape)
        return None if expanded is None else expanded.block
    if function in ("squeeze", "unsqueeze", "reshape"):
        operand = tuple(axis.extent for axis in axes)
        if 0 in operand:
            return None
        result = list(everything(shape).axes)
        where = {}
        for left, right in groups_of(shape, operand):
            if len(left) == len(right) == 1:
                result[left[0]] = axes[right[0]]
                where[right[0]] = left[0]
            elif not all(axes[i].full for i in right):
                return None
        moved = renumber(where)
        return None if moved is None else Block(tuple(result), moved)
    if function == "slice":
        dim, start, step = attributes["dim"], attributes["start"], attributes["step"]
        axes[dim] = ax.preimage(axes[dim], step, start, shape[dim])
        shifted = []
        for pair in pairs:
            if dim in (pair.first, pair.second):
                if step != 1:
                    return None
                if pair.rows is not None:
                    if pair.first == dim:
                        pair = replace(pair, rows=pair.rows[start : start + shape[dim]])
                    else:
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


def _point(block: Block, dim: int, index: int) -> Block:
    whole = everything([axis.extent for axis in block.axes])
    return Block((*whole.axes[:dim], ax.run(whole.axes[dim].extent, index, index + 1), *whole.axes[dim + 1 :]))


# --- ramps ---------------------------------------------------------------------------------------------------------


def _ramp(program: Program, op: Op, ramps: Mapping[str, Ramp]) -> Ramp | None:
    """Affine functions of the position: ``arange`` and what sums, scalings and views make of it."""
    shape = program.tensors[op.outputs[0]].shape
    if op.kind == "create" and op.function == "arange":
        return Ramp(number(op.attributes["start"]), (number(op.attributes["step"]),))
    if not op.operands or op.operands[0] not in ramps:
        return None
    own = ramps[op.operands[0]]
    attributes = op.attributes
    if op.kind == "cast" or (op.kind == "copy" and op.function == "clone"):
        return own
    if op.kind == "view":
        return _ramp_view(op.function, attributes, own, program.tensors[op.operands[0]].shape, shape)
    if op.kind != "map" or op.function not in ("add", "sub", "mul", "neg"):
        return None
    if op.function == "neg":
        return Ramp(-own.start, tuple(-step for step in own.steps))
    scalars = scalars_of(op)
    lead = len(shape) - len(own.steps)
    steps = (*((0,) * lead), *own.steps)
    if op.function == "mul":
        factor = next(iter(scalars.values()), None)
        return None if factor is None else Ramp(own.start * factor, tuple(step * factor for step in steps))
    if scalars:
        position, value = next(iter(scalars.items()))
        if op.function == "add":
            return Ramp(own.start + value, steps)
        if position == 1:
            return Ramp(own.start - value, steps)
        return Ramp(value - own.start, tuple(-step for step in steps))
    other = ramps.get(op.operands[1])
    if other is None:
        return None
    sign = 1 if op.function == "add" else -1
    theirs = (*((0,) * (len(shape) - len(other.steps))), *other.steps)
    return Ramp(own.start + sign * other.start, tuple(a + sign * b for a, b in zip(steps, theirs, strict=True)))


def _ramp_view(
    function: str, attributes: Mapping[str, Any], ramp: Ramp, operand: Shape, shape: Shape
) -> Ramp | None:
    steps = list(ramp.steps)
    if function == "permute":
        return Ramp(ramp.start, tuple(steps[dim] for dim in attributes["dims"]))
    if function == "expand":
        return Ramp(ramp.start, (*((0,) * (len(shape) - len(steps))), *steps))
    if function in ("squeeze", "unsqueeze", "reshape"):
        if 0 in operand:
            return None
        moved: list[Number] = [0] * len(shape)
        for left, right in groups_of(shape, operand):
            if len(left) != 1 or len(right) != 1:
                return None
            moved[left[0]] = steps[right[0]]
        return Ramp(ramp.start, tuple(moved))
    dim = attributes.get("dim", 0)
    if function == "slice":
        start = ramp.start + steps[dim] * attributes["start"]
        return Ramp(start, (*steps[:dim], steps[dim] * attributes["step"], *steps[dim + 1 :]))
    if function == "select":
        return Ramp(ramp.start + steps[dim] * attributes["index"], (*steps[:dim], *steps[dim + 1 :]))
    return None


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _compare_ramps(program: Program, op: Op, ramps: Mapping[str, Ramp], shape: Shape) -> Pattern | None:
    """Comparisons of positions: half planes over two dimensions, or runs along one."""
    if op.function not in _COMPARISONS:
        return None
    scalars = scalars_of(op)
    names = iter(op.operands)
    start: Number = 0
    steps: list[Number] = [0] * len(shape)
    for position, sign in ((0, 1), (1, -1)):
        if position in scalars:
            start += sign * scalars[position]
            continue
        ramp = ramps.get(next(names, ""))
        if ramp is None:
            return None
        start += sign * ramp.start
        for i, step in enumerate(ramp.steps):
            axis = i + len(shape) - len(ramp.steps)
            # A dimension of extent 1 that is broadcast here adds nothing.
            if step and program.tensors[op.outputs[0]].shape[axis] > 1:
                steps[axis] += sign * step
    if isinstance(start, float) and not start.is_integer() or any(not float(step).is_integer() for step in steps):
        return None
    constant, varying = int(start), [i for i, step in enumerate(steps) if step]
    axes = everything(shape).axes
    # difference = constant + a*x (+ b*y); low <= difference <= high.
    low, high = {"eq": (0, 0), "ne": (0, 0), "lt": (None, -1), "le": (None, 0), "gt": (1, None), "ge": (0, None)}[
        op.function
    ]
    inside, outside = (False, True) if op.function == "ne" else (True, False)
    low = None if low is None else low - constant
    high = None if high is None else high - constant
    if len(varying) == 2:
        first, second = varying
        pair = Pair(first, second, int(steps[first]), int(steps[second]), low, high)
        return Pattern(Block(axes, (pair,)), inside, outside)
    if len(varying) == 1:
        axis = varying[0]
        a = int(steps[axis])
        if a < 0:
            a, low, high = -a, (None if high is None else -high), (None if low is None else -low)
        first_hit = 0 if low is None else max(0, -(-low // a))
        stop = shape[axis] if high is None else high // a + 1
        limited: Axis = ax.run(shape[axis], first_hit, max(stop, first_hit))
        return Pattern(Block((*axes[:axis], limited, *axes[axis + 1 :])), inside, outside)
    if not varying:
        met = (low is None or low <= 0) and (high is None or high >= 0)
        return Pattern(None, None, inside if met else outside)
    return None


# --- repetition ----------------------------------------------------------------------------------------------------


def _uniform(program: Program, op: Op, output: str, uniform: Mapping[str, frozenset[int]]) -> frozenset[int]:
    """Dimensions of a result along which every element is the same."""
    shape = program.tensors[output].shape
    if op.kind == "create":
        return frozenset(range(len(shape))) if op.function == "full" else frozenset()
    if not op.operands:
        return frozenset()
    own = uniform[op.operands[0]]
    operand = program.tensors[op.operands[0]].shape
    if op.kind in ("cast",) or (op.kind == "copy" and op.function == "clone"):
        return own
    if op.kind == "map" and op.function not in ("tril", "triu"):
        shared = set(range(len(shape)))
        for name in op.operands:
            theirs = program.tensors[name].shape
            lead = len(shape) - len(theirs)
            shared &= {*range(lead), *(i + lead for i in uniform[name])}
        return frozenset(shared)
    if op.kind == "einsum":
        names = op.attributes["output"]
        changing = {
            index
            for name, forms in zip(op.operands, op.attributes["operands"], strict=True)
            for dim, form in enumerate(forms)
            if dim not in uniform[name] or form["offset"] or len(form["terms"]) > 1
            for index, _ in form["terms"]
        }
        return frozenset(i for i, index in enumerate(names) if index not in changing)
    if op.kind == "reduce" and op.function != "fold":
        dims = set(op.attributes["dims"])
        if op.attributes.get("keepdim"):
            return own | dims
        kept = [i for i in range(len(operand)) if i not in dims]
        return frozenset(i for i, old in enumerate(kept) if old in own)
    if op.kind != "view":
        return frozenset()
    if op.function == "permute":
        return frozenset(i for i, dim in enumerate(op.attributes["dims"]) if dim in own)
    if op.function == "expand":
        lead = len(shape) - len(operand)
        return frozenset({*range(lead), *(i + lead for i in own)})
    if op.function in ("squeeze", "unsqueeze", "reshape") and 0 not in operand and 0 not in shape:
        found = set()
        for left, right in groups_of(shape, operand):
            if all(i in own for i in right):
                found.update(left)
            elif right[0] in own and left and operand[right[0]] % shape[left[0]] == 0 and len(right) > 1:
                # The leading part of a repeated leading dimension.
                found.add(left[0])
        return frozenset(found)
    if op.function == "slice":
        return own
    if op.function == "select":
        dim = op.attributes["dim"]
        return frozenset(i if i < dim else i - 1 for i in own if i != dim)
    return frozenset()
