"""Functions of the position: ``arange``, known lengths and offsets, sums of them, and what their comparisons choose."""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from solar.bound import axes as ax
from solar.bound.axes import LARGEST_MASK, LARGEST_WALK, Axis
from solar.bound.pairs import LARGEST_PAIR_MASK, Pair, mask
from solar.bound.patterns import Number, Pattern, Shape, number, scalars_of
from solar.bound.regions import Block, everything, tabled
from solar.bound.views import groups_of
from solar.einsum import Op, Program, Tensor

# What one dimension adds to a value: so much a position, or a number for each position.
Part = Number | tuple[Number, ...]


@dataclass(frozen=True)
class Ramp:
    """value = start + sum of what each dimension adds at its position."""

    start: Number
    steps: tuple[Part, ...]

    def line(self, extent: int) -> tuple[Number, ...]:
        """All values of a ramp over one dimension."""
        return tuple(self.start + _at(self.steps[0], i) for i in range(extent))


def listed(tensor: Tensor, values: Sequence[Number]) -> Ramp | None:
    """Known whole numbers that vary along one dimension."""
    wide = [i for i, extent in enumerate(tensor.shape) if extent > 1]
    if len(wide) > 1 or not values or len(values) != tensor.elements or any(type(v) is not int for v in values):
        return None
    steps: list[Part] = [0] * len(tensor.shape)
    if not wide:
        return Ramp(values[0], tuple(steps))
    steps[wide[0]] = tuple(values)
    return Ramp(0, tuple(steps))


def ramp_of(program: Program, op: Op, ramps: Mapping[str, Ramp]) -> Ramp | None:
    """What sums, scalings, views and searches make of ``arange`` and of known numbers."""
    ramp = _ramp(program, op, ramps)
    if ramp is None:
        return None
    shape = program.tensors[op.outputs[0]].shape
    # A single position adds a constant, also where it is broadcast later.
    single = [part for part, extent in zip(ramp.steps, shape, strict=True) if extent == 1]
    start = ramp.start + sum(_at(part, 0) for part in single)
    return Ramp(start, tuple(0 if n == 1 else part for part, n in zip(ramp.steps, shape, strict=True)))


def _ramp(program: Program, op: Op, ramps: Mapping[str, Ramp]) -> Ramp | None:
    shape = program.tensors[op.outputs[0]].shape
    if op.kind == "create" and op.function == "arange":
        return Ramp(number(op.attributes["start"]), (number(op.attributes["step"]),))
    if not op.operands or op.operands[0] not in ramps:
        return None
    own = ramps[op.operands[0]]
    attributes = op.attributes
    if op.function == "searchsorted":
        return _searched(program, op, own, ramps.get(op.operands[1]))
    if op.kind == "cast":
        dtype = program.tensors[op.outputs[0]].dtype
        kept = dtype != "bool" and (_whole(own) or dtype.startswith(("float", "bfloat")))
        return own if kept else None
    if op.kind == "copy" and op.function == "clone":
        return own
    if op.kind == "view":
        return _ramp_view(op.function, attributes, own, program.tensors[op.operands[0]].shape, shape)
    if op.kind != "map":
        return None
    if op.function not in ("add", "sub", "mul", "neg"):
        return _mapped(op, own, shape)
    if op.function == "neg":
        return Ramp(-own.start, tuple(_times(part, -1) for part in own.steps))
    scalars = scalars_of(op)
    lead = len(shape) - len(own.steps)
    steps = (*((0,) * lead), *own.steps)
    if op.function == "mul":
        factor = next(iter(scalars.values()), None)
        return None if factor is None else Ramp(own.start * factor, tuple(_times(part, factor) for part in steps))
    if scalars:
        position, value = next(iter(scalars.items()))
        if op.function == "add":
            return Ramp(own.start + value, steps)
        if position == 1:
            return Ramp(own.start - value, steps)
        return Ramp(value - own.start, tuple(_times(part, -1) for part in steps))
    other = ramps.get(op.operands[1])
    if other is None:
        return None
    sign = 1 if op.function == "add" else -1
    theirs = (*((0,) * (len(shape) - len(other.steps))), *other.steps)
    joined = tuple(_plus(a, _times(b, sign)) for a, b in zip(steps, theirs, strict=True))
    return Ramp(own.start + sign * other.start, joined)


def _at(part: Part, position: int) -> Number:
    return part[position] if isinstance(part, tuple) else part * position


def _times(part: Part, factor: Number) -> Part:
    if factor == 1:
        return part
    return tuple(value * factor for value in part) if isinstance(part, tuple) else part * factor


def _plus(a: Part, b: Part) -> Part:
    if not a or not b:
        return a or b
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return a + b
    extent = len(a) if isinstance(a, tuple) else len(b) if isinstance(b, tuple) else 0
    return tuple(_at(a, i) + _at(b, i) for i in range(extent))


def _whole(ramp: Ramp) -> bool:
    parts = (part if isinstance(part, tuple) else (part,) for part in ramp.steps)
    return float(ramp.start).is_integer() and all(
        type(value) is int or float(value).is_integer() for part in parts for value in part
    )


_WHOLE: Mapping[str, Callable[..., int]] = {
    "abs": abs,
    "neg": operator.neg,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "maximum": max,
    "minimum": min,
}


def _function(op: Op) -> Callable[[int], int] | None:
    """A map of one tensor of whole numbers, and of one whole number after it, as a function of an element."""
    rule, scalars = _WHOLE.get(op.function), scalars_of(op)
    if op.kind != "map" or rule is None or len(op.operands) != 1 or any(p != 1 for p in scalars):
        return None
    if 1 not in scalars:
        return rule
    value = scalars[1]
    if not float(value).is_integer() or (value == 0 and op.function in ("floor_divide", "remainder")):
        return None
    return lambda element: rule(element, int(value))


def _mapped(op: Op, ramp: Ramp, shape: Shape) -> Ramp | None:
    """A function of whole numbers that vary along one dimension at most: its values are listed."""
    function = _function(op)
    varying = [i for i, part in enumerate(ramp.steps) if part]
    if function is None or len(varying) > 1 or not _whole(ramp) or any(shape[i] > LARGEST_MASK for i in varying):
        return None
    steps: list[Part] = [0] * len(shape)
    for i in varying:
        steps[i] = tuple(function(int(ramp.start + _at(ramp.steps[i], position))) for position in range(shape[i]))
    return Ramp(0 if varying else function(int(ramp.start)), tuple(steps))


def _searched(program: Program, op: Op, ends: Ramp, wanted: Ramp | None) -> Ramp | None:
    """Where known numbers stand in a known ascending line: the groups of rows."""
    shapes = [program.tensors[name].shape for name in op.operands]
    if wanted is None or any(len(shape) != 1 for shape in shapes) or shapes[1][0] > LARGEST_MASK:
        return None
    line, find = ends.line(shapes[0][0]), bisect_right if op.attributes["right"] else bisect_left
    return Ramp(0, (tuple(find(line, value) for value in wanted.line(shapes[1][0])),))


def _ramp_view(function: str, attributes: Mapping[str, Any], ramp: Ramp, operand: Shape, shape: Shape) -> Ramp | None:
    steps = list(ramp.steps)
    if function == "permute":
        return Ramp(ramp.start, tuple(steps[dim] for dim in attributes["dims"]))
    if function == "expand":
        return Ramp(ramp.start, (*((0,) * (len(shape) - len(steps))), *steps))
    if function in ("squeeze", "unsqueeze", "reshape"):
        if 0 in operand:
            return None
        moved: list[Part] = [0] * len(shape)
        for left, right in groups_of(shape, operand):
            if len(left) != 1 or len(right) != 1:
                return None
            moved[left[0]] = steps[right[0]]
        return Ramp(ramp.start, tuple(moved))
    dim = attributes.get("dim", 0)
    if function == "slice":
        first, step = attributes["start"], attributes["step"]
        part = steps[dim]
        if isinstance(part, tuple):
            steps[dim] = part[first : first + step * shape[dim] : step]
            return Ramp(ramp.start, tuple(steps))
        return Ramp(ramp.start + part * first, (*steps[:dim], part * step, *steps[dim + 1 :]))
    if function == "select":
        return Ramp(ramp.start + _at(steps[dim], attributes["index"]), (*steps[:dim], *steps[dim + 1 :]))
    return None


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def compare_ramps(program: Program, op: Op, ramps: Mapping[str, Ramp], shape: Shape) -> Pattern | None:
    """Comparisons of positions and known numbers: half planes over two dimensions, a run a row, sets along one."""
    if op.function not in _COMPARISONS:
        return None
    scalars = scalars_of(op)
    names = iter(op.operands)
    start: Number = 0
    steps: list[Part] = [0] * len(shape)
    for position, sign in ((0, 1), (1, -1)):
        if position in scalars:
            start += sign * scalars[position]
            continue
        ramp = ramps.get(next(names, ""))
        if ramp is None:
            return None
        start += sign * ramp.start
        for axis, part in enumerate(ramp.steps, len(shape) - len(ramp.steps)):
            steps[axis] = _plus(steps[axis], _times(part, sign))
    if not _whole(Ramp(start, tuple(steps))):
        return None
    # low <= difference <= high
    low, high = {"eq": (0, 0), "ne": (0, 0), "lt": (None, -1), "le": (None, 0), "gt": (1, None), "ge": (0, None)}[
        op.function
    ]
    inside, outside = (False, True) if op.function == "ne" else (True, False)
    low = None if low is None else low - int(start)
    high = None if high is None else high - int(start)
    varying = [i for i, part in enumerate(steps) if part]
    axes = everything(shape).axes
    if not varying:
        met = (low is None or low <= 0) and (high is None or high >= 0)
        return Pattern(None, None, inside if met else outside)
    if len(varying) == 1:
        axis = varying[0]
        limited = _limited(steps[axis], low, high, shape[axis])
        return Pattern(Block((*axes[:axis], limited, *axes[axis + 1 :])), inside, outside)
    pair = _tied(varying[0], varying[1], steps, low, high, shape) if len(varying) == 2 else None
    return None if pair is None else Pattern(Block(axes, (pair,)), inside, outside)


def _limited(part: Part, low: int | None, high: int | None, extent: int) -> Axis:
    """Positions of one axis whose part lies within the limits."""
    if isinstance(part, tuple):
        return ax.of(
            extent,
            (i for i, v in enumerate(part) if (low is None or low <= v) and (high is None or v <= high)),
        )
    a = int(part)
    if a < 0:
        a, low, high = -a, (None if high is None else -high), (None if low is None else -low)
    first = 0 if low is None else max(0, -(-low // a))
    stop = extent if high is None else high // a + 1
    return ax.run(extent, first, max(stop, first))


def _tied(
    x: int, y: int, steps: Sequence[Part], low: int | None, high: int | None, shape: Shape
) -> Pair | None:  # fmt: skip
    """Positions of two axes whose parts add up to something within the limits."""
    if isinstance(steps[y], tuple):
        x, y = y, x
    column, step = steps[x], steps[y]
    if not isinstance(column, tuple):
        return None if isinstance(step, tuple) else Pair(x, y, int(column), int(step), low, high)
    if shape[x] > LARGEST_WALK or shape[x] * shape[y] > LARGEST_PAIR_MASK:
        return None
    if isinstance(step, tuple):
        return Pair(x, y, rows=_sums_within(column, step, low, high)) if shape[y] <= LARGEST_WALK else None
    band = Pair(x, y, 1, int(step), low, high)
    return Pair(x, y, rows=tuple(mask(band, int(value), shape[y]) for value in column))


def _sums_within(
    column: Sequence[Number], line: Sequence[Number], low: int | None, high: int | None
) -> tuple[int, ...]:  # fmt: skip
    """Positions of a line that add up with each value of a column to something within the limits, as bit masks."""
    places: dict[Number, int] = {}
    for position, value in enumerate(line):
        places[value] = places.get(value, 0) | 1 << position
    values = sorted(places)
    below = list(accumulate((places[value] for value in values), operator.or_, initial=0))
    return tuple(
        below[len(values) if high is None else bisect_right(values, high - value)]
        ^ below[0 if low is None else bisect_left(values, low - value)]
        for value in column
    )


def compare_functions(
    program: Program, op: Op, ramps: Mapping[str, Ramp], producers: Mapping[str, Op]
) -> Pattern | None:
    """A number compared with a function of the sum of two positions (a dilated mask, a distance): few sums occur."""
    scalars = scalars_of(op) if op.kind == "map" and op.function in _COMPARISONS else {}
    if 1 not in scalars or not op.operands:
        return None
    name = op.operands[0]
    functions: list[Callable[[int], int]] = []
    while name not in ramps:
        made = producers.get(name)
        function = None if made is None else _function(made)
        if made is None or function is None:
            return None
        functions.insert(0, function)
        name = made.operands[0]
    ramp, shape = ramps[name], program.tensors[name].shape
    varying = [i for i, part in enumerate(ramp.steps) if part]
    if len(varying) != 2 or not _whole(ramp):
        return None
    if ramp.steps[varying[1]] not in (1, -1):
        varying.reverse()
    (x, y), sign = varying, ramp.steps[varying[1]]
    if sign not in (1, -1) or shape[x] > LARGEST_WALK or shape[x] * shape[y] > LARGEST_PAIR_MASK:
        return None

    def met(total: int) -> bool:
        for function in functions:
            total = function(total)
        return _COMPARISONS[op.function](total, scalars[1])

    # sign * (what x adds) + y, with the sign taken back where it is looked up.
    firsts = [int(sign * (ramp.start + _at(ramp.steps[x], position))) for position in range(shape[x])]
    least = min(firsts)
    if max(firsts) - least + shape[y] > LARGEST_MASK:
        return None
    text = "".join(str(int(met(int(sign) * total))) for total in range(max(firsts) + shape[y] - 1, least - 1, -1))
    answers = int(text, 2)
    return Pattern(tabled(shape, varying, [answers >> first - least for first in firsts]), True, False)
