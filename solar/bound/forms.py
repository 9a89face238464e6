"""Places in the operand of a view, as forms of a network's indices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from solar.bound.networks import Form, Network, NotALinearMapError
from solar.bound.views import groups_of
from solar.einsum import Op


def aligned(forms: Sequence[Form], shape: Sequence[int]) -> tuple[Form, ...]:
    """Forms of an operand that broadcasts to the result."""
    lead = len(forms) - len(shape)
    return tuple(Form() if extent == 1 else forms[i + lead] for i, extent in enumerate(shape))


def view_forms(
    net: Network, op: Op, forms: Sequence[Form], operand: Sequence[int], result: Sequence[int]
) -> tuple[Form, ...]:
    """Forms of a view's operand from those of its result."""
    function, attributes = op.function, op.attributes
    rank = len(operand)
    if function == "permute":
        made = [Form()] * rank
        for i, dim in enumerate(attributes["dims"]):
            made[dim] = forms[i]
        return tuple(made)
    if function == "reshape":
        return tuple(reshape_forms(net, forms, result, operand))
    if function == "expand":
        return aligned(forms, operand)
    if function == "slice":
        dim = attributes["dim"]
        moved = forms[dim].scaled(attributes["step"], attributes["start"])
        return (*forms[:dim], moved, *forms[dim + 1 :])
    if function == "select":
        dim = attributes["dim"]
        return (*forms[:dim], Form((), attributes["index"]), *forms[dim:])
    if function == "squeeze":
        rest = iter(forms)
        return tuple(Form() if dim in attributes["dims"] else next(rest) for dim in range(rank))
    if function == "unsqueeze":
        return tuple(form for dim, form in enumerate(forms) if dim not in attributes["dims"])
    if function == "diagonal":
        first, second, offset = attributes["dim1"], attributes["dim2"], attributes["offset"]
        rest = iter(forms[:-1])
        made = [Form() if dim in (first, second) else next(rest) for dim in range(rank)]
        made[first] = forms[-1].scaled(1, max(0, -offset))
        made[second] = forms[-1].scaled(1, max(0, offset))
        return tuple(made)
    if function == "unfold":
        dim = attributes["dim"]
        joined = forms[dim].scaled(attributes["step"], 0).plus(forms[-1].scaled(attributes["dilation"], 0))
        return (*forms[:dim], joined, *forms[dim + 1 : -1])
    raise NotALinearMapError


def reshape_forms(net: Network, forms: Sequence[Form], result: Sequence[int], operand: Sequence[int]) -> list[Form]:
    """Forms of the operand of a row-major reshape from the forms of its result; splits indices where it must.

    ``net`` is changed; the caller's factor must already be out of it.
    """
    made = [Form() for _ in operand]
    for left, right in groups_of(tuple(result), tuple(operand)):
        if len(left) == len(right) == 1:
            made[right[0]] = forms[left[0]]
            continue
        # Flat position inside the group, as a sum of coefficient * index.
        flat = Form()
        stride = 1
        for dim in reversed(left):
            flat = flat.plus(net.current(forms[dim]).scaled(stride, 0))
            stride *= result[dim]
        for dim, form in zip(right, _digits(net, flat, [operand[i] for i in right]), strict=True):
            made[dim] = form
    return [net.current(form) for form in made]


def _digits(net: Network, flat: Form, extents: Sequence[int]) -> list[Form]:
    """Mixed-radix digits of an affine flat position; each index must fall into one digit, or be cut at its edge."""
    strides = [math.prod(extents[i + 1 :]) for i in range(len(extents))]
    digits: list[list[tuple[str, int]]] = [[] for _ in extents]
    offsets = []
    rest = flat.offset
    if rest < 0:
        raise NotALinearMapError
    for stride in strides:
        offsets.append(rest // stride)
        rest %= stride
    reach = list(offsets)
    queue = list(flat.terms)
    while queue:
        name, coefficient = queue.pop()
        if name in net.renames:
            queue += net.renames[name].scaled(coefficient, 0).terms
            continue
        if coefficient <= 0:
            raise NotALinearMapError
        extent = net.sets[name].extent
        digit = next(i for i, stride in enumerate(strides) if coefficient >= stride)
        step, uneven = divmod(coefficient, strides[digit])
        if uneven:
            raise NotALinearMapError
        if digit and step * (extent - 1) >= extents[digit]:
            radix, left_over = divmod(extents[digit], step)
            if left_over or extent % radix:
                raise NotALinearMapError
            net.split(name, radix)
            queue.append((name, coefficient))
            continue
        reach[digit] += step * (extent - 1)
        if reach[digit] >= extents[digit]:
            raise NotALinearMapError
        digits[digit].append((name, step))
    return [net.current(Form(tuple(row), offsets[i])) for i, row in enumerate(digits)]
