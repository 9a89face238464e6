"""Pooling: a maximum over windows, and sums over windows as one-operand einsums."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from solar.convert.build import FLOATS, Build, Value, affine
from solar.convert.copies import padded
from solar.convert.views import windows
from solar.graph import Node

Rule = Callable[[Build, Node], list[Value]]


def _spread(values: Sequence[int] | None, rank: int, default: Sequence[int]) -> list[int]:
    if not values:
        return list(default)
    return [int(v) for v in values] if len(values) == rank else [int(values[0])] * rank


def _max_pool(rank: int) -> Rule:
    """Values, and positions in the flattened input plane."""

    def rule(build: Build, node: Node) -> list[Value]:
        a = node.arguments
        value = build.operand(a["self"])
        kernel = _spread(a["kernel_size"], rank, ())
        stride = _spread(a.get("stride"), rank, kernel)
        padding = _spread(a.get("padding"), rank, [0] * rank)
        dilation = _spread(a.get("dilation"), rank, [1] * rank)
        outer = build.result().shape[-rank:]
        plane = build.shape(value)[-rank:]
        lead = len(build.shape(value)) - rank
        if build.dtype(value) not in FLOATS and any(padding):
            raise build.fail("max pooling of padded integers is not supported")
        # As much padding on the far side as the last window reaches (ceil_mode) and no more.
        reach = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(outer, stride, kernel, dilation)]
        far = [r - n - p for r, n, p in zip(reach, plane, padding)]
        framed = padded(build, value, [0] * lead + padding, [0] * lead + far, -math.inf)
        for position in range(rank):
            framed = windows(build, framed, lead + position, kernel[position], stride[position], dilation[position])
        inner = list(range(lead + rank, lead + 2 * rank))
        pooled = build.reduce("amax", framed, inner)
        if not build.wanted(1):
            return [pooled]
        return [pooled, _positions(build, framed, lead, plane, kernel, stride, padding, dilation)]

    return rule


def _positions(
    build: Build,
    framed: Value,
    lead: int,
    plane: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Value:
    """Row-major position in the plane of each window's first maximum."""
    rank = len(plane)
    shape = build.shape(framed)[: lead + rank]
    best = build.reduce("argmax", build.reshape(framed, [*shape, math.prod(kernel)]), [lead + rank], dtype="int64")
    total: Value | None = None
    rest = math.prod(kernel)
    for d in range(rank):
        rest //= kernel[d]
        inside = build.map("floor_divide", best, rest) if rest > 1 else best
        inside = build.map("remainder", inside, kernel[d])
        origin = build.op(
            "create", "arange", [], [((shape[lead + d],), "int64")], {"start": -padding[d], "step": stride[d]}
        )[0]
        origin = build.reshape(origin, _column(shape, lead, d))
        if dilation[d] != 1:
            inside = build.map("mul", inside, dilation[d])
        place = build.map("add", origin, inside)
        width = math.prod(plane[d + 1 :])
        if width != 1:
            place = build.map("mul", place, width)
        total = place if total is None else build.map("add", total, place)
    assert total is not None
    return total


def _column(shape: Sequence[int], lead: int, dim: int) -> list[int]:
    return [shape[lead + dim] if i == dim else 1 for i in range(len(shape) - lead)]


def _average_pool(rank: int) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        a = node.arguments
        value = build.operand(a["self"])
        dtype = build.dtype(value)
        kernel = _spread(a["kernel_size"], rank, ())
        stride = _spread(a.get("stride"), rank, kernel)
        padding = _spread(a.get("padding"), rank, [0] * rank)
        outer = build.result().shape[-rank:]
        wide = build.wide(value)
        total = window_sum(build, wide, kernel, stride, padding, outer)
        counts = _counts(a, build.shape(value)[-rank:], outer, kernel, stride, padding)
        return [build.cast(divided(build, total, counts, outer), dtype)]

    return rule


def window_sum(
    build: Build,
    value: Value,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    outer: Sequence[int],
) -> Value:
    """Sums over windows of the last dimensions."""
    rank, shape = len(kernel), build.shape(value)
    lead = [f"n{i}" for i in range(len(shape) - rank)]
    ys, rs = [f"y{i}" for i in range(rank)], [f"r{i}" for i in range(rank)]
    # A dimension pooled by one (1-d pooling comes as 2-d) has no index inside the window.
    inside = {r: k for r, k in zip(rs, kernel) if k > 1}
    indices = dict(zip(lead, shape)) | dict(zip(ys, outer)) | inside
    places = [
        affine((y, s), *(((r, 1),) if r in inside else ()), offset=-p) for y, r, s, p in zip(ys, rs, stride, padding)
    ]
    return build.einsum("window_sum", [value], indices, [[*lead, *places]], [*lead, *ys], build.dtype(value))


def divided(build: Build, value: Value, counts: Sequence[int], outer: Sequence[int]) -> Value:
    """By one number, or by one for each window."""
    if len(counts) == 1:
        return value if counts[0] == 1 else build.map("div", value, counts[0])
    return build.map("div", value, build.constant(outer, counts, build.dtype(value)))


def _counts(
    a: Mapping[str, Any],
    plane: Sequence[int],
    outer: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
) -> list[int]:
    """What each window divides by, row-major."""
    if a.get("divisor_override"):
        return [int(a["divisor_override"])]
    include = bool(a.get("count_include_pad", True))
    per_dim: list[list[int]] = []
    for n, o, k, s, p in zip(plane, outer, kernel, stride, padding):
        # Padding counts where it was asked for; what ceil_mode adds beyond it never does.
        low, high = (-p, n + p) if include else (0, n)
        per_dim.append([min(i * s - p + k, high) - max(i * s - p, low) for i in range(o)])
    counts = [1]
    for column in per_dim:
        counts = [count * extent for count in counts for extent in column]
    return counts if len(set(counts)) > 1 else counts[:1]


def _average_pool_backward(rank: int) -> Rule:
    """Each gradient goes, divided, to every place of its window; what meets there adds up."""

    def rule(build: Build, node: Node) -> list[Value]:
        a = node.arguments
        gradient = build.operand(a["grad_output"])
        dtype, shape = build.dtype(gradient), build.shape(gradient)
        kernel = _spread(a["kernel_size"], rank, ())
        stride = _spread(a.get("stride"), rank, kernel)
        padding = _spread(a.get("padding"), rank, [0] * rank)
        outer = shape[-rank:]
        result = build.result().shape
        shares = divided(build, build.wide(gradient), _counts(a, result[-rank:], outer, kernel, stride, padding), outer)
        spread = build.unsqueeze(shares, list(range(len(shape), len(shape) + rank)))
        spread = build.expand(spread, [*shape, *kernel])
        attributes = {
            "spatial": rank,
            "stride": stride,
            "dilation": [1] * rank,
            "padding": padding,
            "dims": list(range(len(shape) - rank, len(shape) + rank)),
            "keepdim": False,
        }
        total = build.op("reduce", "fold", [spread], [(result, build.dtype(spread))], attributes)[0]
        return [build.cast(total, dtype)]

    return rule


RULES: dict[str, Rule] = {
    "avg_pool2d_backward": _average_pool_backward(2),
    "avg_pool3d_backward": _average_pool_backward(3),
    "max_pool2d_with_indices": _max_pool(2),
    "max_pool3d_with_indices": _max_pool(3),
    "avg_pool1d": _average_pool(1),
    "avg_pool2d": _average_pool(2),
    "avg_pool3d": _average_pool(3),
}
