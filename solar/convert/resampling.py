"""Resampling by weights that the sizes fix, one dimension after the other.

A result along one dimension is a weighted sum of a few places (taps). Places and weights follow PyTorch's conventions
(``align_corners``, half-pixel centres, scale factors), in float32 as there, so that no place falls to the other side
of a whole number.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from solar.convert.build import FLOATS, Build, Value
from solar.graph import Node

Rule = Callable[[Build, Node], list[Value]]

# Free parameter of the cubic convolution kernel (R. Keys, "Cubic convolution interpolation for digital image
# processing", IEEE Trans. ASSP 29, 1981): PyTorch's choice for plain and for antialiased resampling.
_CUBIC, _CUBIC_SMOOTH = -0.75, -0.5


@dataclass(frozen=True)
class Taps:
    """Per result position: places along the dimension and their weights, equally many for each."""

    places: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[float, ...], ...]

    @property
    def plain(self) -> bool:
        """Whether each result is one element."""
        return all(row == (1.0,) for row in self.weights)


def _single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _cubic(x: float, a: float) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def _scale(inner: int, outer: int, align: bool, given: float | None) -> float:
    if align:
        return _single((inner - 1) / (outer - 1)) if outer > 1 else 0.0
    return _single(1.0 / given) if given else _single(inner / outer)


def taps(mode: str, inner: int, outer: int, align: bool = False, given: float | None = None) -> Taps:
    """Taps of a dimension resampled from ``inner`` to ``outer``; ``given``: the scale factor asked for, if any.

    Modes: nearest, nearest_exact, linear, cubic, and linear_smooth and cubic_smooth, which widen the kernel where the
    dimension shrinks.
    """
    scale = _scale(inner, outer, align, given)
    rows: list[dict[int, float]] = []
    for i in range(outer):
        row: dict[int, float] = {}
        if mode.startswith("nearest"):
            place = math.floor(_single((i + 0.5 if mode == "nearest_exact" else i) * scale))
            row[min(place, inner - 1)] = 1.0
        elif mode.endswith("smooth"):
            reach = (1.0 if mode.startswith("linear") else 2.0) * max(scale, 1.0)
            centre = _single(scale * (i + 0.5))
            low, high = max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), inner)
            for place in range(low, high):
                x = (place - centre + 0.5) / max(scale, 1.0)
                row[place] = max(0.0, 1.0 - abs(x)) if mode.startswith("linear") else _cubic(x, _CUBIC_SMOOTH)
            total = math.fsum(row.values())
            row = {place: weight / total for place, weight in row.items()}
        else:
            source = _single(scale * i) if align else _single(_single(scale * (i + 0.5)) - 0.5)
            if mode == "linear":
                source = min(max(source, 0.0), inner - 1.0)
            base = math.floor(source)
            for offset in (0, 1) if mode == "linear" else (-1, 0, 1, 2):
                x = source - (base + offset)
                place = min(max(base + offset, 0), inner - 1)
                row[place] = row.get(place, 0.0) + (1.0 - abs(x) if mode == "linear" else _cubic(x, _CUBIC))
        rows.append({place: weight for place, weight in row.items() if weight} or {next(iter(row)): 0.0})
    widest = max(len(row) for row in rows)
    # Shorter sums are filled up with what they read anyway, at weight zero.
    filled = [[*row.items(), *[(next(iter(row)), 0.0)] * (widest - len(row))] for row in rows]
    return Taps(
        tuple(tuple(place for place, _ in row) for row in filled),
        tuple(tuple(weight for _, weight in row) for row in filled),
    )


def _column(rank: int, dim: int, extents: Sequence[int]) -> list[int]:
    """Shape in which a table of ``extents`` stands at ``dim`` and broadcasts over the rest of ``rank``."""
    return [*extents, *[1] * (rank - dim - len(extents))]


def resampled(build: Build, value: Value, dim: int, table: Taps) -> Value:
    """Weighted sums along ``dim``."""
    shape = list(build.shape(value))
    outer, count = len(table.places), len(table.places[0])
    if table.plain and [row[0] for row in table.places] == list(range(shape[dim])):
        return value
    flat = build.constant([outer * count], [place for row in table.places for place in row], "int64")
    shape[dim] = outer * count
    picked = build.index("index_select", [value, flat], shape, build.dtype(value), dim=dim)
    if table.plain:
        return picked
    shape[dim : dim + 1] = [outer, count]
    weights = build.constant([outer, count], [w for row in table.weights for w in row], build.dtype(value))
    weights = build.reshape(weights, _column(len(shape), dim, [outer, count]))
    return build.reduce("sum", build.map("mul", build.reshape(picked, shape), weights), [dim + 1])


def spread(build: Build, value: Value, dim: int, table: Taps, inner: int) -> Value:
    """The transpose: each element goes to its places along ``dim`` (of extent ``inner``) by its weights."""
    shape = list(build.shape(value))
    outer, count = len(table.places), len(table.places[0])
    if table.plain and [row[0] for row in table.places] == list(range(inner)):
        return value
    if not table.plain:
        weights = build.constant([outer, count], [w for row in table.weights for w in row], build.dtype(value))
        weights = build.reshape(weights, _column(len(shape) + 1, dim, [outer, count]))
        value = build.map("mul", build.unsqueeze(value, [dim + 1]), weights)
        value = build.reshape(value, [*shape[:dim], outer * count, *shape[dim + 1 :]])
    flat = build.constant([outer * count], [place for row in table.places for place in row], "int64")
    shape[dim] = inner
    base = build.full(shape, 0.0, build.dtype(value))
    return build.index("index_add", [base, flat, value], shape, build.dtype(value), dim=dim)


def _interpolation(mode: str, rank: int, backward: bool = False) -> Rule:
    keys = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}[rank]

    def rule(build: Build, node: Node) -> list[Value]:
        a = node.arguments
        value = build.operand(a["grad_output" if backward else "self"])
        dtype = build.dtype(value)
        if dtype not in FLOATS and not mode.startswith("nearest"):
            raise build.fail("weighted resampling of integers is not supported")
        wide = value if mode.startswith("nearest") and not backward else build.wide(value)
        inner = tuple(a["input_size"]) if backward else build.shape(value)
        outer = tuple(a["output_size"])
        align = bool(a.get("align_corners", False))
        lead = len(inner) - rank
        # What shrinks most comes first: the others have less to do then.
        order = sorted(range(rank), key=lambda d: outer[d] / inner[lead + d])
        for d in reversed(order) if backward else order:
            table = taps(mode, inner[lead + d], outer[d], align, a.get(keys[d]))
            if backward:
                wide = spread(build, wide, lead + d, table, inner[lead + d])
            else:
                wide = resampled(build, wide, lead + d, table)
        return [build.cast(wide, dtype)]

    return rule


def _replicated_backward(rank: int) -> Rule:
    """What was padded with the border goes back to it."""

    def rule(build: Build, node: Node) -> list[Value]:
        value, padding = build.operand(node.arguments["grad_output"]), node.arguments["padding"]
        inner, lead = build.result().shape, len(build.result().shape) - rank
        for d in range(rank):
            n, before = inner[lead + d], padding[2 * (rank - 1 - d)]
            places = tuple((min(max(i - before, 0), n - 1),) for i in range(build.shape(value)[lead + d]))
            value = spread(build, value, lead + d, Taps(places, ((1.0,),) * len(places)), n)
        return [value]

    return rule


RULES: dict[str, Rule] = {}
for _name, _mode, _rank in (
    *((f"upsample_nearest{rank}d", "nearest", rank) for rank in (1, 2, 3)),
    *((f"_upsample_nearest_exact{rank}d", "nearest_exact", rank) for rank in (1, 2, 3)),
    ("upsample_linear1d", "linear", 1),
    ("upsample_bilinear2d", "linear", 2),
    ("upsample_trilinear3d", "linear", 3),
    ("upsample_bicubic2d", "cubic", 2),
    ("_upsample_bilinear2d_aa", "linear_smooth", 2),
    ("_upsample_bicubic2d_aa", "cubic_smooth", 2),
):
    RULES[_name] = _interpolation(_mode, _rank)
    RULES[f"{_name}_backward"] = _interpolation(_mode, _rank, backward=True)
RULES |= {f"replication_pad{rank}d_backward": _replicated_backward(rank) for rank in (1, 2, 3)}
