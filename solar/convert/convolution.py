"""Convolutions of any rank as einsums with affine index maps, and their gradients.

A transposed convolution multiplies first (its columns, MACs exact) and adds up afterwards (``fold``), as the gradient
to a convolution's input does, which is the same thing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from solar.convert.build import Build, Value, affine
from solar.convert.contraction import accumulator
from solar.graph import Node

Rule = Callable[[Build, Node], Sequence[Value | None]]


def _spread(values: Sequence[int], rank: int) -> list[int]:
    """PyTorch lets one number stand for all spatial dimensions."""
    return [int(v) for v in values] if len(values) == rank else [int(values[0])] * rank


class _Window:
    """Geometry: what the maps of a convolution share."""

    def __init__(self, node: Node, rank: int) -> None:
        a = node.arguments
        self.rank = rank
        self.stride = _spread(a["stride"], rank)
        self.padding = _spread(a["padding"], rank)
        self.dilation = _spread(a["dilation"], rank)
        self.groups = int(a["groups"])
        self.ys = [f"y{i}" for i in range(rank)]
        self.rs = [f"r{i}" for i in range(rank)]

    def positions(self) -> list[dict[str, Any]]:
        """Input position under output position y and kernel position r, per dimension."""
        return [
            affine((y, s), (r, d), offset=-p)
            for y, r, s, d, p in zip(self.ys, self.rs, self.stride, self.dilation, self.padding)
        ]

    def channel(self, inner: str, extent: int) -> Any:
        """Channel number of ``inner`` within its group."""
        return inner if self.groups == 1 else affine(("g", extent), (inner, 1))

    @property
    def g(self) -> list[str]:
        return [] if self.groups == 1 else ["g"]


def _convolve(build: Build, window: _Window, value: Value, weight: Value, outer: Sequence[int], dtype: str) -> Value:
    """[n, G*c, ..] with [G*k, c, r..] to [n, G*k, *outer]."""
    n = build.shape(value)[0]
    total, c, *kernel = build.shape(weight)
    k = total // window.groups
    indices = {"n": n, **({"g": window.groups} if window.g else {}), "k": k}
    indices |= dict(zip(window.ys, outer)) | {"c": c} | dict(zip(window.rs, kernel))
    maps = [
        ["n", window.channel("c", c), *window.positions()],
        [window.channel("k", k), "c", *window.rs],
    ]
    output = ["n", *window.g, "k", *window.ys]
    result = build.einsum("convolution", [value, weight], indices, maps, output, dtype)
    return build.reshape(result, [n, total, *outer])


def _columns(build: Build, window: _Window, value: Value, weight: Value, outer: Sequence[int], dtype: str) -> Value:
    """[n, G*k, y..] with [G*k, c, r..] to [n, G*c, *outer]: each input element spreads a kernel."""
    n, total, *inner = build.shape(value)
    _, c, *kernel = build.shape(weight)
    k = total // window.groups
    indices = {"n": n, **({"g": window.groups} if window.g else {}), "c": c}
    indices |= dict(zip(window.ys, inner)) | dict(zip(window.rs, kernel)) | {"k": k}
    maps = [["n", window.channel("k", k), *window.ys], [window.channel("k", k), "c", *window.rs]]
    output = ["n", *window.g, "c", *window.ys, *window.rs]
    columns = build.einsum("columns", [value, weight], indices, maps, output, dtype)
    columns = build.reshape(columns, [n, window.groups * c, *inner, *kernel])
    attributes = {
        "spatial": window.rank,
        "stride": window.stride,
        "dilation": window.dilation,
        "padding": window.padding,
        "dims": list(range(2, 2 + 2 * window.rank)),
        "keepdim": False,
    }
    return build.op("reduce", "fold", [columns], [([n, window.groups * c, *outer], dtype)], attributes)[0]


def _convolution(build: Build, node: Node) -> list[Value]:
    value, weight = build.operand(node.arguments["input"]), build.operand(node.arguments["weight"])
    result = build.result()
    window = _Window(node, len(result.shape) - 2)
    wide = accumulator(result.dtype) if "bias" in node.arguments else result.dtype
    direction = _columns if node.arguments["transposed"] else _convolve
    total = direction(build, window, value, weight, result.shape[2:], wide)
    if "bias" in node.arguments:
        bias = build.cast(build.operand(node.arguments["bias"]), wide)
        total = build.map("add", total, build.reshape(bias, [result.shape[1]] + [1] * window.rank))
    return [build.cast(total, result.dtype)]


def _backward(build: Build, node: Node) -> list[Value | None]:
    """Gradients to input, weight and bias, as far as ``output_mask`` asks for them."""
    a = node.arguments
    gradient, value, weight = (build.operand(a[key]) for key in ("grad_output", "input", "weight"))
    dtype = build.dtype(gradient)
    window = _Window(node, len(build.shape(value)) - 2)
    wanted = a["output_mask"]
    results: list[Value | None] = [None, None, None]
    if wanted[0]:
        outer = build.shape(value)[2:]
        if a["transposed"]:
            results[0] = _convolve(build, window, gradient, weight, outer, dtype)
        else:
            results[0] = _columns(build, window, gradient, weight, outer, dtype)
    if wanted[1]:
        # Sums over samples and positions of small x large: the side that the window slides over is the larger one.
        slid, fixed = (gradient, value) if a["transposed"] else (value, gradient)
        total, c, *kernel = build.shape(weight)
        k = total // window.groups
        n, _, *ys = build.shape(fixed)
        indices = {**({"g": window.groups} if window.g else {}), "k": k, "c": c}
        indices |= dict(zip(window.rs, kernel)) | {"n": n} | dict(zip(window.ys, ys))
        maps = [
            ["n", window.channel("k", k), *window.ys],
            ["n", window.channel("c", c), *window.positions()],
        ]
        output = [*window.g, "k", "c", *window.rs]
        grown = build.einsum("convolution_weight", [fixed, slid], indices, maps, output, dtype)
        results[1] = build.reshape(grown, [total, c, *kernel])
    if wanted[2]:
        dims = [d for d in range(len(build.shape(gradient))) if d != 1]
        results[2] = build.reduce("sum", gradient, dims)
    return results


def _time_first(build: Build, node: Node) -> list[Value]:
    """[t, n, c] with [r, c, k] and [k] to [t', n, k], padded in time."""
    a, result = node.arguments, build.result()
    value, weight = build.operand(a["self"]), build.operand(a["weight"])
    steps, n, k = result.shape
    taps, c, _ = build.shape(weight)
    indices = {"n": n, "k": k, "y0": steps, "c": c, "r0": taps}
    maps: list[list[Any]] = [[affine(("y0", 1), ("r0", 1), offset=-a.get("pad", 0)), "n", "c"], ["r0", "c", "k"]]
    wide = accumulator(result.dtype)
    total = build.einsum("convolution", [value, weight], indices, maps, ["y0", "n", "k"], wide)
    return [build.cast(build.map("add", total, build.cast(build.operand(a["bias"]), wide)), result.dtype)]


RULES: dict[str, Rule] = {
    "convolution": _convolution,
    "_convolution": _convolution,
    "conv_tbc": _time_first,
    "convolution_backward": _backward,
}
