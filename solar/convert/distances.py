"""Distances between rows. Euclidean ones are a matrix product, |a|^2 + |b|^2 - 2 ab, the cheapest way there is; formed
in float64, where what cancels is below float32's roundings."""

from __future__ import annotations

from collections.abc import Callable

from solar.convert.build import Build, Value
from solar.convert.contraction import product
from solar.convert.reduction import norm
from solar.graph import Node

Rule = Callable[[Build, Node], list[Value]]
LARGEST_LIST = 1 << 16


def _gaps(build: Build, left: Value, right: Value, order: float) -> Value:
    """All distances of rows [.., m, k] and [.., n, k] in the norm of that order; squared where the order is 2."""
    rank = len(build.shape(left))
    (m, k), n = build.shape(left)[-2:], build.shape(right)[-2]
    if order != 2 or min(m, n) == 1 or k == 1:
        gap = build.map("sub", build.unsqueeze(left, [rank - 1]), build.unsqueeze(right, [rank - 2]))
        if order == 2:
            return build.reduce("sum", build.map("mul", gap, gap), [rank])
        return norm(build, build.wide(gap), [rank], False, order)
    left, right = build.cast(left, "float64"), build.cast(right, "float64")
    squares = [build.reduce("sum", build.map("mul", x, x), [rank - 1], keepdim=True) for x in (left, right)]
    turned = [*range(rank - 2), rank - 1, rank - 2]
    crossed = build.map("mul", product(build, left, build.permute(right, turned), "float64"), -2.0)
    return build.map("add", build.map("add", crossed, squares[0]), build.permute(squares[1], turned))


def _finished(build: Build, value: Value, order: float) -> list[Value]:
    if order == 2:
        value = build.map("sqrt", build.map("abs", value))
    return [build.cast(value, build.result().dtype)]


def _cdist(build: Build, node: Node) -> list[Value]:
    """[.., m, k] and [.., n, k]: all distances [.., m, n]; batch dimensions broadcast."""
    left, right = build.operand(node.arguments["x1"]), build.operand(node.arguments["x2"])
    order, batch = node.arguments.get("p", 2.0), build.result().shape[:-2]
    left, right = (build.expand(x, (*batch, *build.shape(x)[-2:])) for x in (left, right))
    return _finished(build, _gaps(build, left, right, order), order)


def _pdist(build: Build, node: Node) -> list[Value]:
    """Distances of every pair of rows once."""
    value, order = build.operand(node.arguments["self"]), node.arguments.get("p", 2.0)
    n = build.shape(value)[0]
    places = [i * n + j for i in range(n) for j in range(i + 1, n)]
    if len(places) > LARGEST_LIST:
        raise build.fail(f"{len(places)} pairs are too many to list; write the distances as a product")
    index = build.op("create", "constant", [], [((len(places),), "int64")], {"values": places})[0]
    flat = build.reshape(_gaps(build, value, value, order), [n * n])
    picked = build.index("index_select", [flat, index], (len(places),), build.dtype(flat), dim=0)
    return _finished(build, picked, order)


def _cdist_backward(build: Build, node: Node) -> list[Value]:
    """To the left points, Euclidean only: x sum(w) - w y with w the gradient over the distance, 0 where that is 0."""
    a = node.arguments
    if a["p"] != 2:
        raise build.fail("the gradient of distances that are not Euclidean")
    gradient, left, right, distance = (
        build.cast(build.operand(a[k]), "float64") for k in ("grad", "x1", "x2", "cdist")
    )
    apart = build.map("ne", distance, 0.0, dtype="bool")
    weight = build.map("where", apart, build.map("div", gradient, distance), 0.0)
    rank = len(build.shape(weight))
    total = build.reduce("sum", weight, [rank - 1], keepdim=True)
    moved = build.map("sub", build.map("mul", left, total), product(build, weight, right, "float64"))
    return [build.cast(moved, build.result().dtype)]


RULES: dict[str, Rule] = {"_cdist_backward": _cdist_backward, "_cdist_forward": _cdist, "_pdist_forward": _pdist}
