"""Matrix products as einsums. A bias is a map; sums of 16-bit products that go on (a bias, a scale) stay float32 until
the one rounding at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from solar.convert.build import FLOATS, Build, Value, affine
from solar.einsum import DTYPE_BITS
from solar.graph import Node

Rule = Callable[[Build, Node], list[Value]]


def accumulator(dtype: str) -> str:
    """Dtype in which a sum of products of ``dtype`` is held before its rounding."""
    return "float32" if dtype in FLOATS and DTYPE_BITS[dtype] < 32 else dtype


def product(build: Build, left: Value, right: Value, dtype: str) -> Value:
    """[.., m, k] x [.., k, n] with equal leading dimensions."""
    shape, other = build.shape(left), build.shape(right)
    batch = [f"b{i}" if len(shape) > 3 else "b" for i in range(len(shape) - 2)]
    if shape[:-2] != other[:-2] or shape[-1] != other[-2]:
        raise build.fail(f"cannot multiply {list(shape)} by {list(other)}")
    indices = {**dict(zip(batch, shape)), "m": shape[-2], "n": other[-1], "k": shape[-1]}
    maps: list[Sequence[Any]] = [[*batch, "m", "k"], [*batch, "k", "n"]]
    return build.einsum("matmul", [left, right], indices, maps, [*batch, "m", "n"], dtype)


def _plain(second: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        left, right = build.operand(node.arguments["self"]), build.operand(node.arguments[second])
        return [product(build, left, right, build.result().dtype)]

    return rule


def _added(first: str, second: str) -> Rule:
    """beta * self + alpha * (a @ b)."""

    def rule(build: Build, node: Node) -> list[Value]:
        dtype = build.result().dtype
        wide = accumulator(dtype)
        alpha, beta = node.arguments.get("alpha", 1), node.arguments.get("beta", 1)
        left, right = build.operand(node.arguments[first]), build.operand(node.arguments[second])
        value = product(build, left, right, wide)
        if alpha != 1:
            value = build.map("mul", value, alpha)
        if beta != 0:
            base = build.cast(build.operand(node.arguments["self"]), wide)
            if beta != 1:
                base = build.map("mul", base, beta)
            value = build.map("add", value, base)
        return [build.cast(value, dtype)]

    return rule


def _addbmm(build: Build, node: Node) -> list[Value]:
    dtype = build.result().dtype
    left, right = build.operand(node.arguments["batch1"]), build.operand(node.arguments["batch2"])
    (b, m, k), n = build.shape(left), build.shape(right)[2]
    indices = {"b": b, "m": m, "n": n, "k": k}
    maps = [["b", "m", "k"], ["b", "k", "n"]]
    value = build.einsum("matmul", [left, right], indices, maps, ["m", "n"], accumulator(dtype))
    alpha, beta = node.arguments.get("alpha", 1), node.arguments.get("beta", 1)
    if alpha != 1:
        value = build.map("mul", value, alpha)
    base = build.cast(build.operand(node.arguments["self"]), accumulator(dtype))
    value = build.map("add", value, base if beta == 1 else build.map("mul", base, beta))
    return [build.cast(value, dtype)]


def _vector(second: str) -> Rule:
    """Matrix by vector, and vector by vector."""

    def rule(build: Build, node: Node) -> list[Value]:
        left, right = build.operand(node.arguments["self"]), build.operand(node.arguments[second])
        shape = build.shape(left)
        rows = ["m"] if len(shape) == 2 else []
        indices = {**({"m": shape[0]} if rows else {}), "k": shape[-1]}
        return [build.einsum("matmul", [left, right], indices, [[*rows, "k"], ["k"]], rows, build.result().dtype)]

    return rule


def _trilinear(build: Build, node: Node) -> list[Value]:
    """Product of three operands, each with ones at its ``expand`` dimensions, summed over ``sumdim``."""
    a = node.arguments
    names = ("i1", "i2", "i3")
    operands = [build.operand(a[name]) for name in names]
    rank = len(build.shape(operands[0])) + len(a["expand1"])
    missing = [set(a[f"expand{i}"]) for i in (1, 2, 3)]
    indices: dict[str, int] = {}
    maps: list[list[Any]] = []
    for operand, absent in zip(operands, missing):
        extents = iter(build.shape(operand))
        own = [(d, next(extents)) for d in range(rank) if d not in absent]
        for d, extent in own:
            indices[f"d{d}"] = max(indices.get(f"d{d}", 1), extent)
        maps.append(own)
    forms = [[f"d{d}" if n == indices[f"d{d}"] else affine() for d, n in own] for own in maps]
    output = [f"d{d}" for d in range(rank) if d not in a["sumdim"]]
    indices = {f"d{d}": indices.get(f"d{d}", 1) for d in range(rank)}
    return [build.einsum("matmul", operands, indices, forms, output, build.result().dtype)]


RULES: dict[str, Rule] = {
    "_trilinear": _trilinear,
    "mm": _plain("mat2"),
    "bmm": _plain("mat2"),
    "_int_mm": _plain("mat2"),
    "addmm": _added("mat1", "mat2"),
    "baddbmm": _added("batch1", "batch2"),
    "addbmm": _addbmm,
    "mv": _vector("vec"),
    "dot": _vector("tensor"),
    "vdot": _vector("other"),
}
