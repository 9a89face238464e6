"""Embedding bags: rows of a table gathered, and reduced bag by bag."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from solar.convert.build import Build, Value
from solar.graph import Node

Rule = Callable[[Build, Node], Sequence[Value | None]]

_SUM, _MEAN, _MAX = 0, 1, 2


def _embedding_bag(build: Build, node: Node) -> Sequence[Value | None]:
    """The bags; which bag a row is in, how long bags are and where a maximum lies is for the gradient alone."""
    a = node.arguments
    table, index, offsets = (build.operand(a[key]) for key in ("weight", "indices", "offsets"))
    mode, padding = a.get("mode", _SUM), a.get("padding_idx", -1)
    if any(build.wanted(position) for position in (1, 2, 3)):
        raise build.fail("only its bags have a rule, not what it keeps for a gradient")
    (count,), (bags, width) = build.shape(index), build.result().shape
    wide = build.wide(build.index("embedding", [table, index], [count, width], build.dtype(table)))
    if "per_sample_weights" in a:
        weights = build.cast(build.operand(a["per_sample_weights"]), build.dtype(wide))
        wide = build.map("mul", wide, build.unsqueeze(weights, [1]))
    kept = build.map("ne", index, padding, dtype="bool") if padding >= 0 else None
    if kept is not None:
        empty = -math.inf if mode == _MAX else 0.0
        wide = build.map("where", build.unsqueeze(kept, [1]), wide, empty, dtype=build.dtype(wide))
    length = _common_length(build, a["offsets"].tensor, count, bags)
    ones = build.full([count], 1.0, build.dtype(wide)) if kept is None else build.cast(kept, build.dtype(wide))
    if length is not None:
        rows = build.reshape(wide, [bags, length, width])
        total = build.reduce("amax" if mode == _MAX else "sum", rows, [1])
        sizes = build.reduce("sum", build.reshape(ones, [bags, length]), [1]) if kept is not None else None
    else:
        numbers = build.op("create", "arange", [], [((count,), "int64")], {"start": 0, "step": 1})[0]
        starts = build.slice(offsets, 0, 0, bags)
        owner = build.map("sub", build.index("searchsorted", [starts, numbers], [count], "int64", right=True), 1)
        total = _gathered(build, wide, owner, bags, mode == _MAX)
        sizes = _gathered(build, ones, owner, bags, False) if mode in (_MEAN, _MAX) else None
    if sizes is not None:
        sizes = build.unsqueeze(sizes, [1])
        if mode == _MAX:
            total = build.map("where", build.map("gt", sizes, 0.0, dtype="bool"), total, 0.0)
        elif mode == _MEAN:
            total = build.map("div", total, build.map("maximum", sizes, 1.0))
    elif mode == _MEAN and length is not None and length > 1:
        total = build.map("div", total, length)
    return [build.cast(total, build.dtype(table))]


def _common_length(build: Build, offsets: str, count: int, bags: int) -> int | None:
    """Length of every bag, where the offsets are known and say so."""
    known = build.graph.tensors[offsets].values
    if known is None or not bags or count % bags or not count:
        return None
    return count // bags if list(known)[:bags] == list(range(0, count, count // bags)) else None


def _gathered(build: Build, value: Value, owner: Value, bags: int, largest: bool) -> Value:
    """Rows of one owner taken together."""
    shape = [bags, *build.shape(value)[1:]]
    base = build.full(shape, -math.inf if largest else 0.0, build.dtype(value))
    if not largest:
        return build.index("index_add", [base, owner, value], shape, build.dtype(value), dim=0)
    places = build.expand(build.unsqueeze(owner, [1]), build.shape(value))
    return build.index("scatter", [base, places, value], shape, build.dtype(value), dim=0, reduce="amax")


RULES: dict[str, Rule] = {"_embedding_bag": _embedding_bag, "_embedding_bag_forward_only": _embedding_bag}
