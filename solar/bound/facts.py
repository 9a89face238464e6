"""What is known of tensors before any input is drawn, forwards: zeros by structure, masks, constants, repetition.

Patterns (:mod:`solar.bound.patterns`) are the zeros of ``tril``, ``diag``, ``eye`` and ``pad``, the ``-inf`` of a
causal mask, the zeros that ``exp`` makes of them, and the booleans that comparisons of positions make
(:mod:`solar.bound.ramps`). Elements of known value are never computed and never read. Whatever is not recognised is
simply not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from solar.bound import axes as ax
from solar.bound.copies import flip_block
from solar.bound.pairs import Pair
from solar.bound.patterns import (
    Pattern,
    Shape,
    beside,
    blend,
    broadcast,
    from_values,
    normal,
    number,
    push_view,
    scalars_of,
)
from solar.bound.ramps import Ramp, compare_functions, compare_ramps, listed, ramp_of
from solar.bound.regions import Block, everything
from solar.bound.views import groups_of
from solar.einsum import Op, Program

# PyTorch's mark of a target that does not count. An input without declared values is taken to have none.
IGNORED = -100


@dataclass(frozen=True)
class Facts:
    """``fixed``: tensors that depend on no input. ``uniform``: dimensions along which a tensor repeats itself.
    ``selectors``: one-hot tensors, with the dimension along which one element at most is 1, the others 0.
    ``orders``: tensors of positions none of which comes twice along a dimension, with that dimension."""

    patterns: Mapping[str, Pattern]
    ramps: Mapping[str, Ramp]
    fixed: frozenset[str]
    uniform: Mapping[str, frozenset[int]]
    selectors: Mapping[str, int]
    orders: Mapping[str, int]


def gather_facts(program: Program) -> Facts:
    """One pass over the program in execution order."""
    patterns: dict[str, Pattern] = {}
    ramps: dict[str, Ramp] = {}
    fixed: set[str] = set()
    uniform: dict[str, frozenset[int]] = {}
    selectors: dict[str, int] = {}
    orders: dict[str, int] = {}
    producers = program.producers()
    for name, tensor in program.tensors.items():
        uniform[name] = frozenset(i for i, extent in enumerate(tensor.shape) if extent <= 1)
        known = from_values(program.values.get(name), tensor)
        if known is not None:
            patterns[name] = known
    for name, contents in program.values.items():
        column = listed(program.tensors[name], contents)
        if column is not None:
            ramps[name] = column
    for name, structure in program.structures.items():
        shape = program.tensors[name].shape
        if structure == "lower_triangular" and len(shape) >= 2:
            triangle = Pair(len(shape) - 2, len(shape) - 1, high=0)
            patterns[name] = Pattern(Block(everything(shape).axes, (triangle,)), 1, 0)
            fixed.add(name)
    for op in program.ops:
        if op.function != "random" and all(name in fixed for name in op.operands):
            fixed.update(op.outputs)
        for output in op.outputs:
            uniform[output] |= _uniform(program, op, output, uniform)
            ordered = _order(program, op, output, orders)
            if ordered is not None:
                orders[output] = ordered
        if len(op.outputs) != 1 or op.outputs[0] in patterns:
            continue
        output = op.outputs[0]
        selected = _selector(program, op, ramps, uniform, selectors)
        if selected is not None:
            selectors[output] = selected
        ramp = ramp_of(program, op, ramps)
        if ramp is not None:
            ramps[output] = ramp
            if not any(ramp.steps):
                patterns[output] = Pattern(None, None, ramp.start)
            continue
        pattern = _pattern(program, op, patterns, ramps, producers)
        if pattern is not None:
            patterns[output] = normal(pattern)
    return Facts(patterns, ramps, frozenset(fixed), uniform, selectors, orders)


# --- patterns ------------------------------------------------------------------------------------------------------


def _pattern(
    program: Program, op: Op, patterns: Mapping[str, Pattern], ramps: Mapping[str, Ramp], producers: Mapping[str, Op]
) -> Pattern | None:  # fmt: skip
    shape = program.tensors[op.outputs[0]].shape
    attributes = op.attributes
    if op.kind == "create":
        if op.function == "full":
            return Pattern(None, None, number(attributes["value"]))
        if op.function == "eye" and len(shape) == 2:
            return Pattern(Block(everything(shape).axes, (Pair(0, 1, low=0, high=0),)), 1, 0)
        return None
    if op.kind == "einsum":
        return _zero_lines(program, op, patterns)
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
    if op.function == "cat":
        sizes = [program.tensors[name].shape[attributes["dim"]] for name in op.operands]
        return beside([patterns.get(name) for name in op.operands], sizes, attributes["dim"], shape)
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
            return blend("tril", [Pattern(triangle.block, True, False), own], {}, shape)
        compared = compare_ramps(program, op, ramps, shape) or compare_functions(program, op, ramps, producers)
        if compared is not None:
            return compared
        if op.function in ("eq", "ne") and scalars_of(op).get(1) == IGNORED:
            return Pattern(None, None, op.function == "ne")
        arguments = [None if name not in patterns else broadcast(patterns[name], shape) for name in op.operands]
        if not any(arguments) and op.function != "where":
            return None
        return blend(op.function, arguments, scalars_of(op), shape)
    return None


def _zero_lines(program: Program, op: Op, patterns: Mapping[str, Pattern]) -> Pattern | None:
    """Positions along an output index at which an operand has only zeros, and so has the result."""
    axes = [ax.whole(op.attributes["indices"][index]) for index in op.attributes["output"]]
    for name, forms in zip(op.operands, op.attributes["operands"], strict=True):
        pattern = patterns.get(name)
        if pattern is None or pattern.block is None or pattern.outside != 0:
            continue
        for dim, form in enumerate(forms):
            for i, index in enumerate(op.attributes["output"]):
                if [list(term) for term in form["terms"]] == [[index, 1]] and not form["offset"]:
                    shown = pattern.block.position(dim)
                    if shown.extent == axes[i].extent:
                        axes[i] = ax.intersection(axes[i], shown)
    return None if all(axis.full for axis in axes) else Pattern(Block(tuple(axes)), None, 0)


def _copy_pattern(program: Program, op: Op, own: Pattern | None, shape: Shape) -> Pattern | None:
    if op.function == "pad":
        value = number(op.attributes["value"])
        inner = program.tensors[op.operands[0]].shape
        axes = tuple(
            ax.run(extent, before, before + size)
            for extent, before, size in zip(shape, op.attributes["before"], inner, strict=True)
        )
        return Pattern(Block(axes), None, value)
    if op.function == "flip" and own is not None:
        flipped = None if own.block is None else flip_block(own.block, op.attributes["dims"])
        return own if own.block is None else None if flipped is None else replace(own, block=flipped)
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
        written = list(everything(shape).axes)
        written[dim] = ax.run(shape[dim], start, stop, step)
        return Pattern(Block(tuple(written)), None, own.outside)
    return None


# --- one-hot -------------------------------------------------------------------------------------------------------


def _selector(
    program: Program, op: Op, ramps: Mapping[str, Ramp], uniform: Mapping[str, frozenset[int]],
    selectors: Mapping[str, int],
) -> int | None:  # fmt: skip
    """Dimension along which a result is one-hot: positions compared with something that is constant along it."""
    shape = program.tensors[op.outputs[0]].shape
    if op.kind == "map" and op.function == "eq" and len(op.operands) == 2:
        for ramp_name, other in (op.operands, op.operands[::-1]):
            ramp = ramps.get(ramp_name)
            if ramp is None or (other in ramps and not any(isinstance(part, tuple) for part in ramps[other].steps)):
                continue
            lead = len(shape) - len(ramp.steps)
            varying = [i + lead for i, step in enumerate(ramp.steps) if step and shape[i + lead] > 1]
            theirs = program.tensors[other].shape
            repeated = {*range(len(shape) - len(theirs)), *(i + len(shape) - len(theirs) for i in uniform[other])}
            placed = not any(isinstance(part, tuple) for part in ramp.steps)
            if placed and len(varying) == 1 and varying[0] in repeated:
                return varying[0]
        return None
    if not op.operands or op.operands[0] not in selectors:
        return None
    own = selectors[op.operands[0]]
    if op.kind == "cast" or (op.kind == "copy" and op.function == "clone"):
        return own
    if op.kind == "map" and op.function == "where":
        scalars = scalars_of(op)
        return own if (scalars.get(1), scalars.get(2)) == (1, 0) else None
    if op.kind != "view":
        return None
    operand = program.tensors[op.operands[0]].shape
    if op.function == "permute":
        return list(op.attributes["dims"]).index(own)
    if op.function in ("squeeze", "unsqueeze", "reshape") and 0 not in operand:
        for left, right in groups_of(shape, operand):
            if right == [own] and len(left) == 1:
                return left[0]
    return None


def _order(program: Program, op: Op, output: str, orders: Mapping[str, int]) -> int | None:
    """Positions that a sort, a top-k or a pivoting gives, and the same in another shape."""
    if op.kind == "sort":
        return int(op.attributes["dim"]) if output in op.outputs[1:] else None
    if op.function == "lu":
        return len(program.tensors[output].shape) - 1 if output in op.outputs[2:3] else None
    own = orders.get(op.operands[0]) if op.operands else None
    if own is None or op.kind == "cast" or op.function in ("clone", "slice"):
        return own
    if op.function == "expand":
        return own + len(program.tensors[output].shape) - len(program.tensors[op.operands[0]].shape)
    if op.function == "permute":
        return list(op.attributes["dims"]).index(own)
    if op.function == "unsqueeze":
        return [i for i in range(len(program.tensors[output].shape)) if i not in op.attributes["dims"]][own]
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
    if op.kind == "opaque" or op.function in ("tril", "triu"):
        # Whole matrices repeat.
        return frozenset(i for i in own.intersection(*(uniform[n] for n in op.operands)) if i < len(operand) - 2)
    if op.kind in ("sort", "scan") or op.function in ("gather", "index_select"):
        same = own & uniform[op.operands[1]] if op.function == "gather" else own
        return same - {op.attributes["dim"]}
    if op.function == "scatter":
        index = program.tensors[op.operands[1]].shape
        same = own.intersection(*(uniform[name] for name in op.operands[1:])) - {op.attributes["dim"]}
        return frozenset(i for i in same if index[i] == shape[i])
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
