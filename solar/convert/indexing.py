"""Gathers and scatters; the losses that look a class up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from solar.convert.build import FLOATS, Build, Number, Value, dim_of, number
from solar.convert.elementwise import argument
from solar.einsum import DTYPE_BITS
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


# What a reduction starts from where it leaves out what stood there, for floats.
_NEUTRAL = {"add": 0, "mul": 1, "amax": -math.inf, "amin": math.inf}


def _neutral(build: Build, mode: str, dtype: str) -> float:
    value = _NEUTRAL[mode]
    if dtype in FLOATS or not math.isinf(value):
        return value
    top = 2 ** (DTYPE_BITS[dtype] - (dtype != "uint8")) - 1
    return top if value > 0 else 0 if dtype == "uint8" else -top - 1


def _scattered(build: Build, base: Value, dim: int, index: Value, source: Value | Number, mode: str | None) -> Value:
    attributes: dict[str, Any] = {"dim": dim, "reduce": mode}
    operands = [base, index]
    if isinstance(source, str):
        for d, (have, need) in enumerate(zip(build.shape(source), build.shape(index))):
            if have != need:
                source = build.slice(source, d, 0, need)
        operands.append(source)
    else:
        attributes["scalars"] = {"2": number(source)}
    return build.index("scatter", operands, build.shape(base), build.dtype(base), **attributes)


def reduced_scatter(
    build: Build, base: Value, dim: int, index: Value, source: Value | Number, mode: str, include: bool
) -> Value:
    """Scatter with a reduction (of ``_REDUCTIONS``, or "mean"); ``include``: what stood there takes part."""
    dtype = build.dtype(base)
    known = _REDUCTIONS.get("sum" if mode == "mean" else mode)
    if known is None:
        raise build.fail(f"reduce={mode!r}")
    if not include:
        base = _scattered(build, base, dim, index, _neutral(build, known, dtype), None)
    total = _scattered(build, base, dim, index, source, known)
    if mode != "mean":
        return total
    ones = build.full(build.shape(base), 1, dtype)
    if not include:
        ones = _scattered(build, ones, dim, index, 0, None)
    counts = _scattered(build, ones, dim, index, build.full(build.shape(index), 1, dtype), "add")
    return build.map("div" if dtype in FLOATS else "floor_divide", total, counts)


def _scatter(reduce: str | None) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value, index = build.operand(node.arguments["self"]), build.operand(node.arguments["index"])
        dim = dim_of(build, node.arguments["dim"], len(build.shape(value)))
        source = argument(build, node.arguments.get("src", node.arguments.get("value")), build.dtype(value))
        mode = node.arguments.get("reduce", reduce)
        if mode is None:
            return [_scattered(build, value, dim, index, source, None)]
        include = bool(node.arguments.get("include_self", True))
        return [reduced_scatter(build, value, dim, index, source, mode, include)]

    return rule


def _index_reduce(build: Build, node: Node) -> list[Value]:
    """Rows go where a list of positions says: a scatter whose index repeats along the other dimensions."""
    a = node.arguments
    value, index = build.operand(a["self"]), build.operand(a["index"])
    source = build.cast(build.operand(a["source"]), build.dtype(value))
    shape = build.shape(source)
    dim = dim_of(build, a["dim"], len(shape))
    column = build.unsqueeze(index, [d for d in range(len(shape)) if d != dim])
    spread = build.expand(column, shape)
    return [reduced_scatter(build, value, dim, spread, source, a["reduce"], bool(a.get("include_self", True)))]


def _segment_reduce(build: Build, node: Node) -> list[Value]:
    """Runs of rows, by their lengths or offsets: each row finds its run, a scatter reduces. An empty run is neutral."""
    a = node.arguments
    value = build.operand(a["data"])
    shape = build.shape(value)
    given = build.operand(a["offsets" if "offsets" in a else "lengths"])
    if a.get("axis", 0) != 0 or len(build.shape(given)) != 1 or "indices" in a:
        raise build.fail("runs along the first dimension, by lengths or offsets of one dimension, are supported")
    count = build.shape(given)[0]
    if "offsets" in a:
        count -= 1
        ends = build.slice(given, 0, 1, count + 1)
    else:
        ends = build.op("scan", "cumsum", [given], [((count,), build.dtype(given))], {"dim": 0})[0]
    rows = build.op("create", "arange", [], [((shape[0],), build.dtype(given))], {"start": 0, "step": 1})[0]
    run = build.index("searchsorted", [ends, rows], (shape[0],), "int64", right=True)
    index = build.expand(build.unsqueeze(run, list(range(1, len(shape)))), shape)
    mode = {"max": "amax", "min": "amin"}.get(a["reduce"], a["reduce"])
    known = _REDUCTIONS.get("sum" if mode == "mean" else mode)
    if known is None:
        raise build.fail(f"reduce={mode!r}")
    dtype = build.dtype(value)
    initial = a.get("initial")
    base = build.full((count, *shape[1:]), _neutral(build, known, dtype) if initial is None else initial, dtype)
    total = _scattered(build, base, 0, index, value, known)
    if mode != "mean":
        return [total]
    ones = build.full((shape[0],), 1.0, dtype)
    counts = build.index("index_add", [build.full((count,), 0.0, dtype), run, ones], (count,), dtype, dim=0)
    return [build.map("div", total, build.reshape(counts, [count] + [1] * (len(shape) - 1)))]


def _histc(build: Build, node: Node) -> list[Value]:
    """Counts in equal bins; the last one holds its upper edge, what lies outside of all counts nothing."""
    a = node.arguments
    value = build.operand(a["self"])
    dtype, bins = build.dtype(value), a.get("bins", 100)
    low, high = a.get("min", 0), a.get("max", 0)
    if low == high:
        raise build.fail("equal limits mean those of the data; give both")
    value = build.reshape(value, [build.tensors[value].elements])
    limited = _clamped(build, value, low, high)
    inside = build.map("eq", value, limited, dtype="bool")
    scaled = build.map("div", build.map("mul", build.map("sub", limited, low), bins), high - low)
    place = _clamped(build, build.cast(scaled, "int64"), 0, bins - 1)
    return [
        build.index(
            "index_add", [build.full((bins,), 0, dtype), place, build.cast(inside, dtype)], (bins,), dtype, dim=0
        )
    ]


def _clamped(build: Build, value: Value, low: Number, high: Number) -> Value:
    limits = {"scalars": {"1": low, "2": high}}
    return build.op("map", "clamp", [value], [(build.shape(value), build.dtype(value))], limits)[0]


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
        limited.append(_clamped(build, index, 0, shape[dim] - 1))
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


def _masked_scatter(build: Build, node: Node) -> list[Value]:
    """Where the mask holds, the source's elements in order: the running count of the mask tells which."""
    a = node.arguments
    value, dtype = build.operand(a["self"]), build.result().dtype
    shape = build.result().shape
    mask = build.expand(build.operand(a["mask"]), shape)
    size = math.prod(shape)
    source = build.operand(a["source"])
    source = build.reshape(source, [build.tensors[source].elements])
    flat = build.reshape(build.cast(mask, "int64"), [size])
    rank = build.map("sub", build.op("scan", "cumsum", [flat], [((size,), "int64")], {"dim": 0})[0], 1)
    place = _clamped(build, rank, 0, build.shape(source)[0] - 1)
    picked = build.reshape(build.index("index_select", [source, place], (size,), dtype, dim=0), shape)
    return [build.map("where", mask, picked, build.expand(value, shape), dtype=dtype)]


def _put(build: Build, node: Node) -> list[Value]:
    a = node.arguments
    value, index = build.operand(a["self"]), build.operand(a["index"])
    shape, dtype = build.shape(value), build.dtype(value)
    flat = build.reshape(value, [math.prod(shape)])
    attributes = {"dims": [0], "accumulate": bool(a.get("accumulate", False))}
    source = build.reshape(build.operand(a["source"]), build.shape(index))
    return [
        build.reshape(build.index("index_put", [flat, index, source], build.shape(flat), dtype, **attributes), shape)
    ]


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
    "index_reduce": _index_reduce,
    "segment_reduce": _segment_reduce,
    "histc": _histc,
    "masked_scatter": _masked_scatter,
    "put": _put,
    "index_add": _along(True),
    "index_copy": _along(False),
    "index_fill": _index_fill,
    "searchsorted": _searchsorted,
    "bucketize": _searchsorted,
    "take": _take,
    "nll_loss_forward": _nll_loss,
}
