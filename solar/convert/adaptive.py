"""Pooling whose windows the sizes decide (adaptive) or given numbers (fractional), and pooling undone at kept places.

Adaptive window i of o over n elements is [floor(i n / o), ceil((i + 1) n / o)). With g = gcd(n, o) the windows repeat
every o / g results, shifted by n / g elements: each of these phases is a plain strided window.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from solar.convert.build import Build, Value
from solar.convert.pooling import divided, window_sum
from solar.convert.resampling import Taps, spread
from solar.convert.views import windows
from solar.graph import Node

Rule = Callable[[Build, Node], list[Value]]


def _limits(inner: int, outer: int) -> list[tuple[int, int]]:
    return [(i * inner // outer, -(-(i + 1) * inner // outer)) for i in range(outer)]


def _even(inner: int, outer: int) -> bool:
    return inner % outer == 0


def _phases(build: Build, value: Value, dim: int, outer: int) -> list[Value]:
    """The windows of each phase; positions inside a window are the last dimension."""
    inner = build.shape(value)[dim]
    each = math.gcd(inner, outer)
    found = []
    for start, stop in _limits(inner, outer)[: outer // each]:
        step = inner // each
        reach = build.slice(value, dim, start, stop + (each - 1) * step)
        found.append(windows(build, reach, dim, stop - start, step))
    return found


def _interleaved(build: Build, parts: Sequence[Value], dim: int) -> Value:
    """Results of the phases in turn."""
    if len(parts) == 1:
        return parts[0]
    shape = list(build.shape(parts[0]))
    columns = [build.unsqueeze(part, [dim + 1]) for part in parts]
    joined = [*shape[: dim + 1], len(parts), *shape[dim + 1 :]]
    together = build.copy("cat", columns, joined, build.dtype(parts[0]), dim=dim + 1)
    shape[dim] *= len(parts)
    return build.reshape(together, shape)


def _counts(inner: Sequence[int], outer: Sequence[int]) -> list[int]:
    """Elements of each window, row-major; one number where they are all alike."""
    sides = [[stop - start for start, stop in _limits(n, o)] for n, o in zip(inner, outer, strict=True)]
    counts = [math.prod(extents) for extents in itertools.product(*sides)]
    return counts if len(set(counts)) > 1 else counts[:1]


def _average(rank: int) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value = build.operand(node.arguments["self"])
        shape, outer = build.shape(value), build.result().shape[-rank:]
        inner, lead = shape[-rank:], len(shape) - rank
        total = build.wide(value)
        if all(_even(n, o) for n, o in zip(inner, outer, strict=True)):
            kernel = [n // o for n, o in zip(inner, outer, strict=True)]
            total = window_sum(build, total, kernel, kernel, [0] * rank, outer)
        else:
            # What shrinks most comes first: the others have less to add then.
            for d in sorted(range(rank), key=lambda d: outer[d] / inner[d]):
                parts = _phases(build, total, lead + d, outer[d])
                parts = [build.reduce("sum", part, [len(shape)]) for part in parts]
                total = _interleaved(build, parts, lead + d)
        return [build.cast(divided(build, total, _counts(inner, outer), outer), build.dtype(value))]

    return rule


def _average_backward(rank: int) -> Rule:
    """Each gradient goes, divided, to every place of its window."""

    def rule(build: Build, node: Node) -> list[Value]:
        gradient = build.operand(node.arguments["grad_output"])
        shape, inner = build.shape(gradient), build.result().shape[-rank:]
        outer, lead = shape[-rank:], len(shape) - rank
        total = divided(build, build.wide(gradient), _counts(inner, outer), outer)
        for d, (n, o) in enumerate(zip(inner, outer, strict=True)):
            if _even(n, o):
                total = build.unsqueeze(total, [lead + d + 1])
                wide = [*build.shape(total)[: lead + d + 1], n // o, *build.shape(total)[lead + d + 2 :]]
                wider = build.expand(total, wide)
                total = build.reshape(wider, [*wide[: lead + d], n, *wide[lead + d + 2 :]])
            else:
                total = spread(build, total, lead + d, _members(n, o), n)
        return [build.cast(total, build.dtype(gradient))]

    return rule


def _members(inner: int, outer: int) -> Taps:
    limits = _limits(inner, outer)
    widest = max(stop - start for start, stop in limits)
    places = tuple(tuple(min(start + j, stop - 1) for j in range(widest)) for start, stop in limits)
    weights = tuple(tuple(float(start + j < stop) for j in range(widest)) for start, stop in limits)
    return Taps(places, weights)


def _plane(build: Build, inner: Sequence[int], shape: Sequence[int]) -> Value:
    """Row-major position of each element of a plane, for all of ``shape``."""
    count = math.prod(inner)
    numbers = build.op("create", "arange", [], [((count,), "int64")], {"start": 0, "step": 1})[0]
    return build.expand(build.reshape(numbers, inner), shape)


def _maximum(rank: int) -> Rule:
    """Values, and positions in the flattened plane: of several maxima the first, row by row. So the last dimension is
    pooled first."""

    def rule(build: Build, node: Node) -> list[Value]:
        value = build.operand(node.arguments["self"])
        shape, outer = build.shape(value), build.result().shape[-rank:]
        lead, last = len(shape) - rank, len(shape)
        positions = _plane(build, shape[-rank:], shape) if build.wanted(1) else None
        for d in reversed(range(rank)):
            parts = _phases(build, value, lead + d, outer[d])
            if positions is not None:
                places = []
                for part, own in zip(parts, _phases(build, positions, lead + d, outer[d]), strict=True):
                    best = build.reduce("argmax", part, [last], keepdim=True, dtype="int64")
                    picked = build.index("gather", [own, best], build.shape(best), "int64", dim=last)
                    places.append(build.view("squeeze", picked, build.shape(picked)[:-1], dims=[last]))
                positions = _interleaved(build, places, lead + d)
            value = _interleaved(build, [build.reduce("amax", part, [last]) for part in parts], lead + d)
        return [value] if positions is None else [value, positions]

    return rule


def _fractional(rank: int) -> Rule:
    """Windows that start at floor((i + u) a) - floor(u a), a = (n - k) / (o - 1), the last one at n - k; u is given for
    each plane and dimension, in float32 (B. Graham, "Fractional max-pooling", 2014, pseudorandom)."""

    def rule(build: Build, node: Node) -> list[Value]:
        value, samples = build.operand(node.arguments["self"]), build.operand(node.arguments["random_samples"])
        kernel, outer = node.arguments["kernel_size"], node.arguments["output_size"]
        shape = build.shape(value)
        if len(shape) == rank + 1:
            raise build.fail("fractional pooling takes a batch")
        batch, channels, *inner = shape
        total, rest = None, [*outer, *kernel]
        for d in range(rank):
            # PyTorch keeps the last dimension's number first in two dimensions, and the first one's in three.
            u = build.select(samples, 2, rank - 1 - d if rank == 2 else d)
            place = _fractional_places(build, u, inner[d], outer[d], kernel[d])
            column = [batch, channels, *[1] * (2 * rank)]
            column[2 + d], column[2 + rank + d] = outer[d], kernel[d]
            place = build.reshape(place, column)
            width = math.prod(inner[d + 1 :])
            place = build.map("mul", place, width) if width != 1 else place
            total = place if total is None else build.map("add", total, place)
        assert total is not None
        places = build.reshape(total, [batch, channels, math.prod(rest)])
        flat = build.reshape(value, [batch, channels, math.prod(inner)])
        picked = build.index("gather", [flat, places], build.shape(places), build.dtype(value), dim=2)
        grouped = [batch, channels, *outer, math.prod(kernel)]
        picked = build.reshape(picked, grouped)
        results = [build.reduce("amax", picked, [2 + rank])]
        if build.wanted(1):
            best = build.reduce("argmax", picked, [2 + rank], keepdim=True, dtype="int64")
            found = build.index(
                "gather", [build.reshape(places, grouped), best], build.shape(best), "int64", dim=2 + rank
            )
            results.append(build.view("squeeze", found, build.shape(found)[:-1], dims=[2 + rank]))
        return results

    return rule


def _fractional_places(build: Build, u: Value, inner: int, outer: int, kernel: int) -> Value:
    """[batch, channels, outer, kernel] of positions along a dimension."""
    u = build.unsqueeze(u, [2])
    shape = [*build.shape(u)[:2], outer]
    last = build.constant([outer], [i == outer - 1 for i in range(outer)], "bool")
    if outer > 1:
        alpha = (inner - kernel) / (outer - 1)
        steps = build.op("create", "arange", [], [((outer,), build.dtype(u))], {"start": 0, "step": 1})[0]
        moved = build.map("trunc", build.map("mul", build.map("add", u, steps), alpha))
        moved = build.map("sub", moved, build.map("trunc", build.map("mul", u, alpha)))
        start = build.map("where", last, inner - kernel, build.cast(moved, "int64"), dtype="int64")
    else:
        start = build.full(shape, inner - kernel, "int64")
    inside = build.op("create", "arange", [], [((kernel,), "int64")], {"start": 0, "step": 1})[0]
    return build.map("add", build.unsqueeze(start, [3]), inside)


def _placed(build: Build, value: Value, index: Value, outer: Sequence[int], reduce: str | None) -> Value:
    """Planes of zeros with ``value`` at positions of the flattened plane."""
    rank = len(outer)
    lead = build.shape(value)[:-rank]
    count = math.prod(build.shape(value)[-rank:])
    flat = [*lead, math.prod(outer)]
    base = build.full(flat, 0.0, build.dtype(value))
    operands = [base, build.reshape(index, [*lead, count]), build.reshape(value, [*lead, count])]
    placed = build.index("scatter", operands, flat, build.dtype(value), dim=len(lead), reduce=reduce)
    return build.reshape(placed, [*lead, *outer])


def _unpool(build: Build, node: Node) -> list[Value]:
    value, index = build.operand(node.arguments["self"]), build.operand(node.arguments["indices"])
    return [_placed(build, value, index, node.arguments["output_size"], None)]


def _maximum_backward(rank: int) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        gradient, index = build.operand(node.arguments["grad_output"]), build.operand(node.arguments["indices"])
        return [_placed(build, gradient, index, build.result().shape[-rank:], "add")]

    return rule


RULES: dict[str, Rule] = {"max_unpool2d": _unpool, "max_unpool3d": _unpool}
RULES["max_pool3d_with_indices_backward"] = _maximum_backward(3)
for _rank in (2, 3):
    RULES |= {
        f"_adaptive_avg_pool{_rank}d": _average(_rank),
        f"_adaptive_avg_pool{_rank}d_backward": _average_backward(_rank),
        f"adaptive_max_pool{_rank}d": _maximum(_rank),
        f"adaptive_max_pool{_rank}d_backward": _maximum_backward(_rank),
        f"fractional_max_pool{_rank}d": _fractional(_rank),
        f"fractional_max_pool{_rank}d_backward": _maximum_backward(_rank),
    }
