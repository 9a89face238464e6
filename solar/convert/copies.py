"""Data movement that must materialise, and writes into parts of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from solar.convert.build import Build, Value, dim_of, number
from solar.convert.elementwise import argument
from solar.convert.views import limits
from solar.graph import Node

Rule = Callable[[Build, Node], list[Value]]


def _clone(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    return [build.copy("clone", [value], build.shape(value), build.dtype(value))]


def _cat(build: Build, node: Node) -> list[Value]:
    result = build.result()
    rank = len(result.shape)
    dim = dim_of(build, node.arguments.get("dim", 0), rank)
    # An empty one-dimensional operand is PyTorch's old way of saying "nothing yet".
    parts = [build.cast(build.operand(item), result.dtype) for item in node.arguments["tensors"]]
    parts = [part for part in parts if build.shape(part) != (0,) or rank == 1]
    return [build.copy("cat", parts, result.shape, result.dtype, dim=dim)]


def _stack(build: Build, node: Node) -> list[Value]:
    result = build.result()
    dim = dim_of(build, node.arguments.get("dim", 0), len(result.shape))
    parts = [build.cast(build.operand(item), result.dtype) for item in node.arguments["tensors"]]
    parts = [build.unsqueeze(part, [dim]) for part in parts]
    return [build.copy("cat", parts, result.shape, result.dtype, dim=dim)]


def padded(build: Build, value: Value, before: Sequence[int], after: Sequence[int], fill: float) -> Value:
    """Add elements of one value around; negative amounts cut."""
    for dim, (low, high) in enumerate(zip(before, after)):
        if low < 0 or high < 0:
            extent = build.shape(value)[dim]
            value = build.slice(value, dim, max(0, -low), extent - max(0, -high))
    low_, high_ = [max(0, x) for x in before], [max(0, x) for x in after]
    if not any(low_) and not any(high_):
        return value
    shape = [n + a + b for n, a, b in zip(build.shape(value), low_, high_)]
    return build.copy("pad", [value], shape, build.dtype(value), before=low_, after=high_, value=number(fill))


def _pad(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    rank = len(build.shape(value))
    amounts = node.arguments["pad"]
    before, after = [0] * rank, [0] * rank
    for position in range(len(amounts) // 2):
        before[rank - 1 - position], after[rank - 1 - position] = amounts[2 * position], amounts[2 * position + 1]
    result = padded(build, value, before, after, node.arguments.get("value", 0))
    return [result if result != value else build.copy("clone", [value], build.shape(value), build.dtype(value))]


def _flip(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    shape = build.shape(value)
    dims = sorted(dim_of(build, d, len(shape)) for d in node.arguments["dims"])
    return [build.copy("flip", [value], shape, build.dtype(value), dims=dims)]


def _roll(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    shape = build.shape(value)
    shifts, dims = list(node.arguments["shifts"]), node.arguments.get("dims", ())
    if dims:
        where = [dim_of(build, d, len(shape)) for d in dims]
        return [build.copy("roll", [value], shape, build.dtype(value), shifts=shifts, dims=where)]
    flat = build.reshape(value, [math.prod(shape)])
    rolled = build.copy("roll", [flat], build.shape(flat), build.dtype(flat), shifts=shifts, dims=[0])
    return [build.reshape(rolled, shape)]


def _repeat(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    result = build.result()
    return [build.copy("repeat", [value], result.shape, result.dtype, repeats=list(node.arguments["repeats"]))]


def _slice_scatter(build: Build, node: Node) -> list[Value]:
    base = build.operand(node.arguments["self"])
    shape = build.shape(base)
    dim = dim_of(build, node.arguments.get("dim", 0), len(shape))
    start, stop, step = limits(node, shape[dim])
    source = build.cast(build.operand(node.arguments["src"]), build.dtype(base))
    attributes = {"dim": dim, "start": start, "stop": stop, "step": step}
    return [build.copy("slice_scatter", [base, source], shape, build.dtype(base), **attributes)]


def _select_scatter(build: Build, node: Node) -> list[Value]:
    base = build.operand(node.arguments["self"])
    shape = build.shape(base)
    dim = dim_of(build, node.arguments["dim"], len(shape))
    source = build.cast(build.operand(node.arguments["src"]), build.dtype(base))
    attributes = {"dim": dim, "index": node.arguments["index"] % shape[dim]}
    return [build.copy("select_scatter", [base, source], shape, build.dtype(base), **attributes)]


def _diagonal_scatter(build: Build, node: Node) -> list[Value]:
    base = build.operand(node.arguments["self"])
    shape = build.shape(base)
    source = build.cast(build.operand(node.arguments["src"]), build.dtype(base))
    first, second = (dim_of(build, node.arguments.get(k, d), len(shape)) for k, d in (("dim1", 0), ("dim2", 1)))
    attributes = {"offset": node.arguments.get("offset", 0), "dim1": first, "dim2": second}
    return [build.copy("diagonal_scatter", [base, source], shape, build.dtype(base), **attributes)]


def _as_strided_scatter(build: Build, node: Node) -> list[Value]:
    """The base lies row-major in the IR; strides that count in another layout have no form here."""
    a = node.arguments
    base = build.operand(a["self"])
    if not build.graph.tensors[a["self"].tensor].contiguous:
        raise build.fail("as_strided of a tensor that does not lie row-major in memory")
    source = build.cast(build.operand(a["src"]), build.dtype(base))
    attributes = {"stride": list(a["stride"]), "offset": a.get("storage_offset", 0)}
    return [build.copy("as_strided_scatter", [base, source], build.shape(base), build.dtype(base), **attributes)]


def _narrow(build: Build, node: Node) -> list[Value]:
    a = node.arguments
    value = build.operand(a["self"])
    dim = dim_of(build, a["dim"], len(build.shape(value)))
    start = a["start"] % build.shape(value)[dim]
    return [build.slice(value, dim, start, start + a["length"])]


def _overwrite(build: Build, node: Node) -> list[Value]:
    """``copy_``: the new content is the source, converted and broadcast."""
    result = build.result()
    source = argument(build, node.arguments["src"], result.dtype)
    if not isinstance(source, str):
        return [build.full(result.shape, source, result.dtype)]
    return [build.expand(source, result.shape)]


RULES: dict[str, Rule] = {
    "clone": _clone,
    "cat": _cat,
    "stack": _stack,
    "constant_pad_nd": _pad,
    "flip": _flip,
    "roll": _roll,
    "repeat": _repeat,
    "slice_scatter": _slice_scatter,
    "select_scatter": _select_scatter,
    "diagonal_scatter": _diagonal_scatter,
    "as_strided_scatter": _as_strided_scatter,
    "narrow_copy": _narrow,
    "copy": _overwrite,
}
