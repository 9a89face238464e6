"""Sums, extrema, statistics, norms and cumulative operations. A mean is a sum and a division; a variance takes two
passes; everything runs in float32 where the input is narrower."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from solar.convert.build import FLOATS, Build, Value, dim_of, dims_of
from solar.graph import Node

Rule = Callable[[Build, Node], Sequence[Value | None]]


def _argument(build: Build, node: Node) -> tuple[Value, list[int], bool]:
    value = build.operand(node.arguments["self"])
    dims = dims_of(build, node.arguments.get("dim"), len(build.shape(value)))
    return value, dims, bool(node.arguments.get("keepdim", False))


def count(build: Build, value: Value, dims: Sequence[int]) -> int:
    """Elements that a reduction over ``dims`` takes together."""
    return math.prod(build.shape(value)[d] for d in dims)


def mean(build: Build, value: Value, dims: Sequence[int], *, keepdim: bool = False) -> Value:
    """Sum and division, in the value's own dtype."""
    total = build.reduce("sum", value, dims, keepdim=keepdim)
    return build.map("div", total, count(build, value, dims))


def moments(build: Build, value: Value, dims: Sequence[int], correction: float = 0) -> tuple[Value, Value, Value]:
    """Mean, centred values and variance (two passes), dimensions kept."""
    centre = mean(build, value, dims, keepdim=True)
    centred = build.map("sub", value, centre)
    squares = build.reduce("sum", build.map("mul", centred, centred), dims, keepdim=True)
    return centre, centred, build.map("div", squares, max(count(build, value, dims) - correction, 0))


def squeezed(build: Build, value: Value, dims: Sequence[int], keepdim: bool) -> Value:
    """Drop reduced dimensions unless they are kept."""
    if keepdim or not dims:
        return value
    shape = build.shape(value)
    kept = [n for i, n in enumerate(shape) if i not in dims]
    return build.view("squeeze", value, kept, dims=sorted(dims))


def _sum(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value, dims, keepdim = _argument(build, node)
        dtype = build.result().dtype
        if dtype in FLOATS and build.dtype(value) in FLOATS:
            return [build.reduce(name, value, dims, keepdim=keepdim, dtype=dtype)]
        return [build.reduce(name, build.cast(value, dtype), dims, keepdim=keepdim)]

    return rule


def _mean(build: Build, node: Node) -> list[Value]:
    value, dims, keepdim = _argument(build, node)
    dtype = build.result().dtype
    wide = build.wide(value if build.dtype(value) in FLOATS else build.cast(value, dtype))
    return [build.cast(mean(build, wide, dims, keepdim=keepdim), dtype)]


def _extremum(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value, dims, keepdim = _argument(build, node)
        return [build.reduce(name, value, dims, keepdim=keepdim)]

    return rule


def _with_position(name: str) -> Rule:
    """``max`` and ``min``: over everything, or along a dimension with positions."""

    def rule(build: Build, node: Node) -> list[Value | None]:
        value = build.operand(node.arguments["self"])
        rank = len(build.shape(value))
        if "dim" not in node.arguments:
            return [build.reduce(f"a{name}", value, range(rank))]
        dims, keepdim = [dim_of(build, node.arguments["dim"], rank)], bool(node.arguments.get("keepdim", False))
        if not rank:
            return [value, build.full((), 0, "int64")]
        extreme = build.reduce(f"a{name}", value, dims, keepdim=keepdim) if build.wanted(0) else None
        if not build.wanted(1):
            return [extreme]
        return [extreme, build.reduce(f"arg{name}", value, dims, keepdim=keepdim, dtype="int64")]

    return rule


def _position(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value = build.operand(node.arguments["self"])
        rank = len(build.shape(value))
        keepdim = bool(node.arguments.get("keepdim", False))
        if "dim" in node.arguments and rank:
            return [
                build.reduce(name, value, [dim_of(build, node.arguments["dim"], rank)], keepdim=keepdim, dtype="int64")
            ]
        flat = build.reshape(value, [math.prod(build.shape(value))])
        return [build.reshape(build.reduce(name, flat, [0], dtype="int64"), build.result().shape)]

    return rule


def _truth(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value, dims, keepdim = _argument(build, node)
        reduced = build.reduce(name, build.cast(value, "bool"), dims, keepdim=keepdim, dtype="bool")
        return [build.cast(reduced, build.result().dtype)]

    return rule


def _count_nonzero(build: Build, node: Node) -> list[Value]:
    value, dims, keepdim = _argument(build, node)
    present = build.cast(build.map("ne", value, 0, dtype="bool"), "int64")
    return [build.reduce("sum", present, dims, keepdim=keepdim)]


def _spread(root: bool, with_mean: bool) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value, dims, keepdim = _argument(build, node)
        dtype = build.result().dtype
        correction = node.arguments.get("correction", 1 if node.arguments.get("unbiased", True) else 0)
        centre, _, variance = moments(build, build.wide(value), dims, correction)
        if root:
            variance = build.map("sqrt", variance)
        results = [variance, centre] if with_mean else [variance]
        return [build.cast(squeezed(build, item, dims, keepdim), dtype) for item in results]

    return rule


def _logsumexp(build: Build, node: Node) -> list[Value]:
    value, dims, keepdim = _argument(build, node)
    wide = build.wide(value)
    top = build.reduce("amax", wide, dims, keepdim=True)
    finite = build.map("where", build.map("isfinite", top, dtype="bool"), top, 0.0)
    total = build.reduce("sum", build.map("exp", build.map("sub", wide, finite)), dims, keepdim=True)
    result = build.map("add", build.map("log", total), finite)
    return [build.cast(squeezed(build, result, dims, keepdim), build.result().dtype)]


def norm(build: Build, value: Value, dims: Sequence[int], keepdim: bool, order: float) -> Value:
    """(sum of |x|^p)^(1/p), in the value's own dtype; p = 0 counts what is not zero, infinity takes the largest."""
    if order == 0:
        present = build.cast(build.map("ne", value, 0, dtype="bool"), build.dtype(value))
        return build.reduce("sum", present, dims, keepdim=keepdim)
    if math.isinf(order):
        return build.reduce("amax" if order > 0 else "amin", build.map("abs", value), dims, keepdim=keepdim)
    if order == 1:
        return build.reduce("sum", build.map("abs", value), dims, keepdim=keepdim)
    if order == 2:
        return build.map("sqrt", build.reduce("sum", build.map("mul", value, value), dims, keepdim=keepdim))
    power = build.map("pow", build.map("abs", value), float(order))
    return build.map("pow", build.reduce("sum", power, dims, keepdim=keepdim), 1.0 / order)


def _vector_norm(key: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value, dims, keepdim = _argument(build, node)
        wide = build.wide(build.cast(value, node.arguments["dtype"]) if "dtype" in node.arguments else value)
        return [build.cast(norm(build, wide, dims, keepdim, node.arguments.get(key, 2)), build.result().dtype)]

    return rule


def _scan(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        dtype = build.result().dtype
        value = build.cast(build.operand(node.arguments["self"]), dtype)
        shape = build.shape(value)
        dim = dim_of(build, node.arguments["dim"], len(shape))
        return list(build.op("scan", name, [value], [(shape, dtype)], {"dim": dim}))

    return rule


def _scan_with_position(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value = build.operand(node.arguments["self"])
        shape = build.shape(value)
        dim = dim_of(build, node.arguments["dim"], len(shape))
        return list(build.op("scan", name, [value], [(shape, build.dtype(value)), (shape, "int64")], {"dim": dim}))

    return rule


RULES: dict[str, Rule] = {
    "sum": _sum("sum"),
    "prod": _sum("prod"),
    "mean": _mean,
    "amax": _extremum("amax"),
    "amin": _extremum("amin"),
    "max": _with_position("max"),
    "min": _with_position("min"),
    "argmax": _position("argmax"),
    "argmin": _position("argmin"),
    "any": _truth("any"),
    "all": _truth("all"),
    "count_nonzero": _count_nonzero,
    "var": _spread(False, False),
    "std": _spread(True, False),
    "var_mean": _spread(False, True),
    "std_mean": _spread(True, True),
    "logsumexp": _logsumexp,
    "linalg_vector_norm": _vector_norm("ord"),
    "norm": _vector_norm("p"),
    "cumsum": _scan("cumsum"),
    "cumprod": _scan("cumprod"),
    "logcumsumexp": _scan("logcumsumexp"),
    "cummax": _scan_with_position("cummax"),
    "cummin": _scan_with_position("cummin"),
}
