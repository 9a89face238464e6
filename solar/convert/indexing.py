"""Gathers and scatters; the losses that look a class up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from solar.convert.build import Build, Value, dim_of
from solar.convert.elementwise import argument
from solar.graph import Node, Ref

Rule = Callable[[Build, Node], list[Value]]

_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "amax", "amin": "amin"}


def _gather(build: Build, node: Node) -> list[Value]:
    value, index = build.operand(node.arguments["self"]), build.operand(node.arguments["index"])
    rank = len(build.shape(value))
    dim = dim_of(build, node.arguments["dim"], rank)
    if not rank:
        return [build.expand(value, build.shape(index))]
    return [build.index("gather", [value, index], build.shape(index), build.dtype(value), dim=dim)]


def _index_select(build: Build, node: Node) -> list[Value]:
    value, index = build.operand(node.arguments["self"]), build.operand(node.arguments["index"])
    dim = dim_of(build, node.arguments["dim"], len(build.shape(value)))
    return [build.index("index_select", [value, index], build.result().shape, build.dtype(value), dim=dim)]


def _embedding(build: Build, node: Node) -> list[Value]:
    table, index = build.operand(node.arguments["weight"]), build.operand(node.arguments["indices"])
    return [build.index("embedding", [table, index], build.result().shape, build.dtype(table))]


def _indices(build: Build, node: Node) -> tuple[list[int], list[Value]]:
    listed = node.arguments["indices"]
    dims = [position for position, item in enumerate(listed) if item is not None]
    return dims, [build.operand(listed[d]) for d in dims]


def _index(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    dims, indices = _indices(build, node)
    if any(build.dtype(index) == "bool" for index in indices):
        raise build.fail("a boolean mask whose contents are unknown decides the result's shape")
    return [build.index("index", [value, *indices], build.result().shape, build.dtype(value), dims=dims)]


def _index_put(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    shape, dtype = build.shape(value), build.dtype(value)
    dims, indices = _indices(build, node)
    source = argument(build, node.arguments["values"], dtype)
    accumulate = bool(node.arguments.get("accumulate", False))
    if any(build.dtype(index) == "bool" for index in indices):
        # x[mask] = one value: a selection, and no position needs to be known.
        if (
            len(indices) != 1
            or dims != [0]
            or accumulate
            or (isinstance(source, str) and build.shape(source) not in ((), (1,)))
        ):
            raise build.fail("a write through a boolean mask whose contents are unknown takes a single value")
        mask = indices[0]
        mask = build.unsqueeze(mask, list(range(len(build.shape(mask)), len(shape))))
        if isinstance(source, str):
            source = build.reshape(source, ())
        return [build.map("where", mask, source, value, dtype=dtype)]
    attributes: dict[str, Any] = {"dims": dims, "accumulate": accumulate}
    operands = [value, *indices]
    if isinstance(source, str):
        operands.append(source)
    else:
        attributes["scalars"] = {str(len(operands)): source}
    return [build.index("index_put", operands, shape, dtype, **attributes)]


def _scatter(reduce: str | None) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value, index = build.operand(node.arguments["self"]), build.operand(node.arguments["index"])
        shape, dtype = build.shape(value), build.dtype(value)
        mode = _REDUCTIONS.get(node.arguments["reduce"]) if "reduce" in node.arguments else reduce
        if "reduce" in node.arguments and (mode is None or not node.arguments.get("include_self", True)):
            raise build.fail(f"reduce={node.arguments['reduce']!r}, include_self={node.arguments.get('include_self')}")
        attributes: dict[str, Any] = {"dim": dim_of(build, node.arguments["dim"], len(shape)), "reduce": mode}
        source = argument(build, node.arguments.get("src", node.arguments.get("value")), dtype)
        if not isinstance(source, str):
            attributes["scalars"] = {"2": source}
            return [build.index("scatter", [value, index], shape, dtype, **attributes)]
        for dim, (have, need) in enumerate(zip(build.shape(source), build.shape(index))):
            if have != need:
                source = build.slice(source, dim, 0, need)
        return [build.index("scatter", [value, index, source], shape, dtype, **attributes)]

    return rule


def _along(accumulate: bool) -> Rule:
    """``index_add`` and ``index_copy``."""

    def rule(build: Build, node: Node) -> list[Value]:
        value, index = build.operand(node.arguments["self"]), build.operand(node.arguments["index"])
        shape, dtype = build.shape(value), build.dtype(value)
        dim = dim_of(build, node.arguments["dim"], len(shape))
        source = build.cast(build.operand(node.arguments["source"]), dtype)
        alpha = node.arguments.get("alpha", 1)
        if alpha != 1:
            source = build.map("mul", source, alpha)
        if accumulate:
            return [build.index("index_add", [value, index, source], shape, dtype, dim=dim)]
        moved = [dim, *(d for d in range(len(shape)) if d != dim)]
        front = build.permute(value, moved)
        attributes = {"dims": [0], "accumulate": False}
        written = build.index(
            "index_put", [front, index, build.permute(source, moved)], build.shape(front), dtype, **attributes
        )
        return [build.permute(written, [moved.index(d) for d in range(len(shape))])]

    return rule


def _index_fill(build: Build, node: Node) -> list[Value]:
    value, index = build.operand(node.arguments["self"]), build.operand(node.arguments["index"])
    shape, dtype = build.shape(value), build.dtype(value)
    dim = dim_of(build, node.arguments["dim"], len(shape))
    moved = [dim, *(d for d in range(len(shape)) if d != dim)]
    front = build.permute(value, moved)
    attributes: dict[str, Any] = {"dims": [0], "accumulate": False}
    source = argument(build, node.arguments["value"], dtype)
    operands = [front, index]
    if isinstance(source, str):
        operands.append(source)
    else:
        attributes["scalars"] = {"2": source}
    written = build.index("index_put", operands, build.shape(front), dtype, **attributes)
    return [build.permute(written, [moved.index(d) for d in range(len(shape))])]


def _searchsorted(build: Build, node: Node) -> list[Value]:
    a = node.arguments
    edges, wanted = (a["boundaries"], a["self"]) if "boundaries" in a else (a["sorted_sequence"], a["self"])
    if "sorter" in a:
        raise build.fail("a sorter is not supported")
    right = bool(a.get("right", False)) or a.get("side") == "right"
    result = build.result()
    sequence = build.operand(edges)
    if not isinstance(wanted, Ref):
        wanted_value = build.full((), wanted, build.dtype(sequence))
    else:
        wanted_value = build.operand(wanted)
    return [build.index("searchsorted", [sequence, wanted_value], result.shape, result.dtype, right=right)]


def _nll_loss(build: Build, node: Node) -> list[Value]:
    """-log p at the target, weighted; ignored targets count nothing. Results: loss and total weight."""
    a = node.arguments
    scores, target = build.operand(a["self"]), build.operand(a["target"])
    dtype = build.dtype(scores)
    wide = build.wide(scores)
    rank = len(build.shape(scores))
    ignored, reduction = a.get("ignore_index", -100), a.get("reduction", 1)
    valid = build.map("ne", target, ignored, dtype="bool")
    safe = build.map("where", valid, target, 0)
    column = build.unsqueeze(safe, [rank - 1])
    picked = build.index("gather", [wide, column], build.shape(column), build.dtype(wide), dim=rank - 1)
    losses = build.map("neg", build.view("squeeze", picked, build.shape(safe), dims=[rank - 1]))
    if "weight" in a:
        table = build.cast(build.operand(a["weight"]), build.dtype(wide))
        weights = build.index("embedding", [table, safe], build.shape(safe), build.dtype(table))
        losses = build.map("mul", losses, weights)
        weights = build.map("where", valid, weights, 0.0)
    else:
        weights = build.cast(valid, build.dtype(wide))
    losses = build.map("where", valid, losses, 0.0)
    every = list(range(len(build.shape(losses))))
    total = build.reduce("sum", weights, every)
    if reduction == 0:
        return [build.cast(losses, dtype), build.full((), 0.0, dtype)]
    loss = build.reduce("sum", losses, every)
    if reduction == 1:
        loss = build.map("div", loss, total)
    return [build.cast(loss, dtype), build.cast(total, dtype)]


def _take(build: Build, node: Node) -> list[Value]:
    value, index = build.operand(node.arguments["self"]), build.operand(node.arguments["index"])
    size = math.prod(build.shape(value))
    return [build.index("embedding", [build.reshape(value, [size]), index], build.shape(index), build.dtype(value))]


def _embedding_backward(build: Build, node: Node) -> list[Value]:
    """Rows of the gradient added where they came from; those of the padding index add zero."""
    a = node.arguments
    gradient, index = build.operand(a["grad_output"]), build.operand(a["indices"])
    if a.get("scale_grad_by_freq"):
        raise build.fail("scale_grad_by_freq is not supported")
    width = build.shape(gradient)[-1]
    count = math.prod(build.shape(index))
    rows, places = build.reshape(gradient, [count, width]), build.reshape(index, [count])
    padding = a.get("padding_idx", -1)
    if padding >= 0:
        keep = build.unsqueeze(build.map("ne", places, padding, dtype="bool"), [1])
        rows = build.map("where", keep, rows, 0.0)
    shape = [a["num_weights"], width]
    base = build.full(shape, 0.0, build.dtype(gradient))
    return [build.index("index_add", [base, places, rows], shape, build.dtype(gradient), dim=0)]


def _inside(build: Build, shape: tuple[int, ...], node: Node) -> tuple[list[int], list[Value]]:
    """Indices of a masked access, brought inside: where the mask does not hold they may lie anywhere."""
    dims, indices = _indices(build, node)
    limited = []
    for dim, index in zip(dims, indices):
        limits = {"scalars": {"1": 0, "2": shape[dim] - 1}}
        limited.append(build.op("map", "clamp", [index], [(build.shape(index), build.dtype(index))], limits)[0])
    return dims, limited


def _masked_index(build: Build, node: Node) -> list[Value]:
    value, mask = build.operand(node.arguments["self"]), build.operand(node.arguments["mask"])
    dtype = build.dtype(value)
    dims, indices = _inside(build, build.shape(value), node)
    result = build.result()
    picked = build.index("index", [value, *indices], result.shape, dtype, dims=dims)
    return [build.map("where", mask, picked, node.arguments["fill"], dtype=dtype)]


def _masked_accumulate(build: Build, node: Node) -> list[Value]:
    value, mask = build.operand(node.arguments["self"]), build.operand(node.arguments["mask"])
    dtype = build.dtype(value)
    dims, indices = _inside(build, build.shape(value), node)
    source = build.map("where", mask, build.cast(build.operand(node.arguments["values"]), dtype), 0.0, dtype=dtype)
    attributes = {"dims": dims, "accumulate": True}
    return [build.index("index_put", [value, *indices, source], build.shape(value), dtype, **attributes)]


RULES: dict[str, Rule] = {
    "embedding_dense_backward": _embedding_backward,
    "_unsafe_masked_index": _masked_index,
    "_unsafe_masked_index_put_accumulate": _masked_accumulate,
    "gather": _gather,
    "index_select": _index_select,
    "embedding": _embedding,
    "index": _index,
    "_unsafe_index": _index,
    "index_put": _index_put,
    "_unsafe_index_put": _index_put,
    "scatter": _scatter(None),
    "scatter_add": _scatter("add"),
    "scatter_reduce": _scatter(None),
    "index_add": _along(True),
    "index_copy": _along(False),
    "index_fill": _index_fill,
    "searchsorted": _searchsorted,
    "bucketize": _searchsorted,
    "take": _take,
    "nll_loss_forward": _nll_loss,
}
