"""Order: sort, top-k, order statistics."""

from __future__ import annotations

from collections.abc import Callable

from solar.convert.build import Build, Value, dim_of
from solar.graph import Node

Rule = Callable[[Build, Node], list[Value]]


def _sort(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    shape = build.shape(value)
    if not shape:
        return [value, build.full((), 0, "int64")]
    attributes = {
        "dim": dim_of(build, node.arguments.get("dim", -1), len(shape)),
        "descending": bool(node.arguments.get("descending", False)),
        "stable": bool(node.arguments.get("stable", False)),
    }
    return list(build.op("sort", "sort", [value], [(shape, build.dtype(value)), (shape, "int64")], attributes))


def _topk(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    shape = list(build.shape(value))
    dim = dim_of(build, node.arguments.get("dim", -1), len(shape))
    if shape:
        shape[dim] = node.arguments["k"]
    attributes = {
        "dim": dim,
        "k": node.arguments["k"],
        "largest": bool(node.arguments.get("largest", True)),
        "sorted": bool(node.arguments.get("sorted", True)),
    }
    return list(build.op("sort", "topk", [value], [(shape, build.dtype(value)), (shape, "int64")], attributes))


def _order(build: Build, value: Value, dim: int, rank: int, keepdim: bool) -> list[Value]:
    """Value and position at one rank of the ascending order."""
    shape = build.shape(value)
    attributes = {"dim": dim, "descending": False, "stable": True}
    sorted_ = build.op("sort", "sort", [value], [(shape, build.dtype(value)), (shape, "int64")], attributes)
    if keepdim:
        return [build.slice(item, dim, rank, rank + 1) for item in sorted_]
    return [build.select(item, dim, rank) for item in sorted_]


def _kthvalue(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    dim = dim_of(build, node.arguments.get("dim", -1), len(build.shape(value)))
    return _order(build, value, dim, node.arguments["k"] - 1, bool(node.arguments.get("keepdim", False)))


def _median(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    shape = build.shape(value)
    if "dim" not in node.arguments:
        flat = build.reshape(value, [build.tensors[value].elements])
        return _order(build, flat, 0, (build.shape(flat)[0] - 1) // 2, False)[:1]
    dim = dim_of(build, node.arguments["dim"], len(shape))
    return _order(build, value, dim, (shape[dim] - 1) // 2, bool(node.arguments.get("keepdim", False)))


RULES: dict[str, Rule] = {"sort": _sort, "topk": _topk, "kthvalue": _kthvalue, "median": _median}
