"""Products of quantised operands with their scales, and rounding to a grid of integers and back."""

from __future__ import annotations

from collections.abc import Callable

from solar.convert.build import Build, Value
from solar.convert.contraction import product
from solar.graph import Node

Rule = Callable[[Build, Node], list[Value]]


def _scaled_mm(build: Build, node: Node) -> list[Value]:
    """(a b) scale_a scale_b + bias in float32, rounded once. A scale is of the whole, of a row, or of a column."""
    a = node.arguments
    left, right = build.operand(a["self"]), build.operand(a["mat2"])
    value = product(build, left, right, "float32")
    for key in ("scale_a", "scale_b", "scale_result"):
        if key not in a:
            continue
        scale = build.operand(a[key])
        if build.tensors[scale].elements == 1:
            scale = build.reshape(scale, ())
        elif any(n not in (1, m) for n, m in zip(build.shape(scale), build.shape(value))) or len(
            build.shape(scale)
        ) != len(build.shape(value)):
            raise build.fail(f"{key} of shape {list(build.shape(scale))}: scales by block are written out instead")
        value = build.map("mul", value, build.cast(scale, "float32"))
    if "bias" in a:
        value = build.map("add", value, build.cast(build.operand(a["bias"]), "float32"))
    return [build.cast(value, build.result().dtype)]


def _grouped_mm(build: Build, node: Node) -> list[Value]:
    """Rows of one group after the other, each group with a matrix of its own; where groups end is known."""
    a = node.arguments
    rows, matrices = build.operand(a["self"]), build.operand(a["mat2"])
    dtype = build.result().dtype
    ends = build.graph.tensors[a["offs"].tensor].values if "offs" in a else None
    if len(build.shape(rows)) != 2 or len(build.shape(matrices)) != 3 or ends is None:
        raise build.fail("takes rows, a matrix of each group, and offsets whose contents are declared")
    parts, start = [], 0
    for group, end in enumerate(int(end) for end in ends):
        if end > start:
            matrix = build.select(matrices, 0, group)
            parts.append(product(build, build.slice(rows, 0, start, end), matrix, dtype))
        start = end
    if start != build.shape(rows)[0]:
        raise build.fail("the last group does not end with the rows")
    value = build.copy("cat", parts, build.result().shape, dtype, dim=0)
    if "bias" in a:
        value = build.map("add", value, build.operand(a["bias"]))
    return [value]


def _int8pack_mm(build: Build, node: Node) -> list[Value]:
    """x times INT8 weights [n, k] with a scale for each of the n."""
    a = node.arguments
    rows, weight = build.operand(a["self"]), build.operand(a["mat2"])
    codes = build.permute(build.cast(weight, build.dtype(rows)), [1, 0])
    value = product(build, rows, codes, "float32")
    return [
        build.cast(build.map("mul", value, build.cast(build.operand(a["scales"]), "float32")), build.result().dtype)
    ]


RULES: dict[str, Rule] = {"_weight_int8pack_mm": _int8pack_mm, "_scaled_mm": _scaled_mm, "_grouped_mm": _grouped_mm}
