"""Addends that a following subtraction takes out again: a bias before a mean is removed, or a maximum.

``z - mean(z)`` and ``z - amax(z)`` do not change when ``z`` is shifted by something that is the same along the reduced
dimensions. If nothing else reads ``z = u + b``, no output depends on such a ``b``, and no kernel has to read it.
Neither does the place of an extremum change when all that is compared is shifted alike, or divided by what is positive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from solar.bound.demand import is_pointwise_linear
from solar.bound.forms import view_forms
from solar.bound.networks import Form, Network, NotALinearMapError
from solar.bound.regions import everything
from solar.bound.views import groups_of
from solar.einsum import Op, Program

# Strictly, so that they leave the place of an extremum alone.
INCREASING = frozenset(("exp", "sigmoid", "tanh", "sqrt", "log", "expm1", "log1p", "erf"))
_SHIFTED_ALONG = ("sum", "amax", "amin")


def cancelled(program: Program) -> frozenset[tuple[str, int]]:
    """(op name, operand position) of addends, subtrahends and divisors that no output depends on."""
    producers, readers = program.producers(), program.consumers()
    centred = centred_values(program, producers)
    outputs = {name for _, name in program.outputs}
    found = _ranked(program, producers, readers, outputs)
    for op in program.ops:
        if op.kind != "map" or op.function not in ("add", "sub") or len(op.operands) != 2:
            continue
        reached = _removed_along(program, op.outputs[0], readers, centred, outputs)
        if reached is None:
            continue
        sizes = [program.tensors[name].elements for name in op.operands]
        position = 1 if sizes[1] <= sizes[0] else 0
        if all(_constant_along(program, op, position, path, dims) for path, dims in reached):
            found.add((op.name, position))
    return frozenset(found)


def ordered(program: Program) -> frozenset[str]:
    """Subtractions of, and divisions by, the same for all that is compared: an extremum of the result, or its largest
    few, are those of the operand. Only extrema and sorts along one dimension read them, through monotone functions."""
    outputs = {name for _, name in program.outputs}
    return frozenset(name for name, _ in _ranked(program, program.producers(), program.consumers(), outputs, False))


def _ranked(
    program: Program, producers: Mapping[str, Op], readers: Mapping[str, list[Op]], outputs: set[str],
    places: bool = True,
) -> set[tuple[str, int]]:  # fmt: skip
    """Subtrahends and divisors, the same for all that is compared. ``places``: only where the values of the extrema or
    of what is sorted do not count."""
    found: set[tuple[str, int]] = set()
    unread: set[str] = set()
    compared: dict[str, int] = {}  # results that count only by their order along a dimension
    for op in reversed(program.ops):
        if op.kind == "sort" and not any(name in outputs or readers[name] for name in op.outputs):
            unread.add(op.name)
        if len(op.outputs) != 1 or op.outputs[0] in outputs:
            continue
        output = op.outputs[0]
        along: set[int | None] = set()
        for reader in readers[output]:
            for position, name in enumerate(reader.operands):
                if name != output or reader.name in unread or (places and (reader.name, position) in found):
                    continue
                if reader.name in compared and position == 0:
                    along.add(_before(program, reader, compared[reader.name]))
                else:
                    along.add(_compared_along(reader, readers, outputs, places))
        if not along:
            unread.add(op.name)
        dim = along.pop() if len(along) == 1 else None
        if dim is None:
            continue
        if op.function in INCREASING or (op.kind == "cast" and is_pointwise_linear(program, op)) or op.kind == "view":
            compared[op.name] = dim
        elif op.kind == "map" and op.function in ("sub", "div") and len(op.operands) == 2:
            value, other = (program.tensors[name].shape for name in op.operands)
            own = dim - len(value) + len(other)
            alike = value == program.tensors[output].shape and (own < 0 or other[own] == 1)
            if alike and (op.function == "sub" or _is_positive(producers, op.operands[1])):
                compared[op.name] = dim
                found.add((op.name, 1))
    return found


def _compared_along(
    reader: Op, readers: Mapping[str, list[Op]], outputs: set[str], places: bool
) -> int | None:  # fmt: skip
    """The dimension along which an op only compares, if it does; ``places``: and gives no values."""
    if reader.kind == "sort":
        values = reader.outputs[0]
        return None if places and (values in outputs or readers[values]) else int(reader.attributes["dim"])
    extrema = ("argmax", "argmin") if places else ("argmax", "argmin", "amax", "amin")
    if reader.kind != "reduce" or reader.function not in extrema or len(reader.attributes["dims"]) != 1:
        return None
    return int(reader.attributes["dims"][0])


def _before(program: Program, op: Op, dim: int) -> int | None:
    """The dimension of an operand that a dimension of the result is, whole."""
    if op.kind != "view":
        return dim
    shape, given = (program.tensors[name].shape for name in (op.outputs[0], op.operands[0]))
    if op.function == "permute":
        return int(op.attributes["dims"][dim])
    if op.function not in ("squeeze", "unsqueeze", "reshape") or 0 in shape:
        return None
    matching = [right for left, right in groups_of(shape, given) if left == [dim]]
    return matching[0][0] if matching and len(matching[0]) == 1 else None


def _is_positive(producers: Mapping[str, Op], name: str) -> bool:
    """Whether a tensor is an exponential or a sigmoid, or sums of it."""
    op = producers.get(name)
    while op is not None and op.kind == "reduce" and op.function == "sum":
        op = producers.get(op.operands[0])
    return op is not None and op.kind == "map" and op.function in ("exp", "sigmoid")


def centred_values(program: Program, producers: Mapping[str, Op]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Subtractions of a tensor's own mean or extremum: op name -> (name of the reduction, its dimensions)."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for op in program.ops:
        if op.kind != "map" or op.function != "sub" or len(op.operands) != 2:
            continue
        value, name = op.operands
        divisor = 1.0
        while True:
            made = producers.get(name)
            if made is None:
                break
            scalars = made.attributes.get("scalars", {})
            if made.kind == "map" and made.function == "div" and set(scalars) == {"1"}:
                divisor *= float(scalars["1"])
                name = made.operands[0]
                continue
            if made.kind == "reduce" and made.function in _SHIFTED_ALONG and made.operands[0] == value:
                dims = tuple(made.attributes["dims"])
                length = math.prod(program.tensors[value].shape[dim] for dim in dims)
                if made.attributes.get("keepdim") and divisor == (length if made.function == "sum" else 1):
                    found[op.name] = (made.name, dims)
            break
    return found


def _removed_along(
    program: Program, name: str, readers: Mapping[str, list[Op]],
    centred: Mapping[str, tuple[str, tuple[int, ...]]], outputs: set[str],
) -> list[tuple[list[Op], tuple[int, ...]]] | None:  # fmt: skip
    """Views on the way to every reader, and the dimensions along which it removes a shift; None if one does not."""
    reductions = {reduction for reduction, _ in centred.values()}
    result: list[tuple[list[Op], tuple[int, ...]]] = []
    queue: list[tuple[str, list[Op]]] = [(name, [])]
    while queue:
        tensor, path = queue.pop()
        if tensor in outputs or not readers[tensor]:
            return None
        for reader in readers[tensor]:
            if reader.kind == "view":
                queue.append((reader.outputs[0], [*path, reader]))
            elif reader.name in centred and reader.operands[0] == tensor != reader.operands[1]:
                result.append((path, centred[reader.name][1]))
            elif reader.name in reductions and _only_centres(program, reader, readers, centred, outputs):
                continue
            else:
                return None
    return result or None


def _only_centres(
    program: Program, reduction: Op, readers: Mapping[str, list[Op]],
    centred: Mapping[str, tuple[str, tuple[int, ...]]], outputs: set[str],
) -> bool:  # fmt: skip
    """Whether a mean or extremum is read by the subtractions of it only."""
    queue = list(reduction.outputs)
    while queue:
        name = queue.pop()
        if name in outputs:
            return False
        for reader in readers[name]:
            if reader.name in centred and centred[reader.name][0] == reduction.name:
                continue
            if reader.kind != "map" or reader.function != "div" or len(reader.operands) != 1:
                return False
            queue.extend(reader.outputs)
    return True


def _constant_along(program: Program, op: Op, position: int, path: list[Op], dims: tuple[int, ...]) -> bool:
    """Whether an addend is the same along ``dims`` of the last view on the path."""
    last = path[-1].outputs[0] if path else op.outputs[0]
    net = Network.at(last, everything(program.tensors[last].shape))
    reduced = [Form(((net.output[dim], 1),)) for dim in dims]
    forms = net.factors.pop().forms
    try:
        for view in reversed(path):
            operand = program.tensors[view.operands[0]].shape
            forms = view_forms(net, view, forms, operand, program.tensors[view.outputs[0]].shape)
    except NotALinearMapError:
        return False
    shape = program.tensors[op.operands[position]].shape
    lead = len(forms) - len(shape)
    varying = {name for i, extent in enumerate(shape) if extent > 1 for name, _ in net.current(forms[i + lead]).terms}
    return not any(name in varying for form in reduced for name, _ in net.current(form).terms)
