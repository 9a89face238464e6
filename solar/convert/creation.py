"""Tensors from nothing."""

from __future__ import annotations

from collections.abc import Callable

from solar.convert.build import Build, Number, Value, number
from solar.graph import Node, Ref

Rule = Callable[[Build, Node], list[Value]]


def _of(value: Number | None, key: str | None = None) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        result = build.result()
        fill = node.arguments[key] if key else value
        if isinstance(fill, Ref):
            return [build.expand(build.cast(build.operand(fill), result.dtype), result.shape)]
        if result.dtype == "bool":
            fill = bool(fill)
        return [build.full(result.shape, fill, result.dtype)]  # type: ignore[arg-type]

    return rule


def _empty(build: Build, node: Node) -> list[Value]:
    result = build.result()
    return list(build.op("create", "empty", [], [(result.shape, result.dtype)]))


def _arange(build: Build, node: Node) -> list[Value]:
    result = build.result()
    attributes = {"start": number(node.arguments.get("start", 0)), "step": number(node.arguments.get("step", 1))}
    return list(build.op("create", "arange", [], [(result.shape, result.dtype)], attributes))


def _eye(build: Build, node: Node) -> list[Value]:
    result = build.result()
    return list(build.op("create", "eye", [], [(result.shape, result.dtype)]))


def _constant(build: Build, node: Node) -> list[Value]:
    result = build.result()
    values = [number(value) for value in node.arguments["values"]]
    if len(values) == 1 and result.shape == ():
        return [build.full((), node.arguments["values"][0], result.dtype)]
    return list(build.op("create", "constant", [], [(result.shape, result.dtype)], {"values": values}))


def _random(build: Build, node: Node) -> list[Value]:
    """Draws of one stream follow each other in the order of the program."""
    a, result = node.arguments, build.result()
    attributes = {
        "distribution": a["distribution"],
        "parameters": [number(value) for value in a["parameters"]],
        "seed": number(a["seed"]),
        "stream": a["stream"],
        "drawn": result.dtype,
    }
    return list(build.op("create", "random", [], [(result.shape, result.dtype)], attributes))


RULES: dict[str, Rule] = {
    "full": _of(None, "fill_value"),
    "full_like": _of(None, "fill_value"),
    "new_full": _of(None, "fill_value"),
    "scalar_tensor": _of(None, "s"),
    "fill": _of(None, "value"),
    "zeros": _of(0),
    "zeros_like": _of(0),
    "new_zeros": _of(0),
    "zero": _of(0),
    "ones": _of(1),
    "ones_like": _of(1),
    "new_ones": _of(1),
    "empty": _empty,
    "empty_like": _empty,
    "new_empty": _empty,
    "empty_strided": _empty,
    "new_empty_strided": _empty,
    "empty_permuted": _empty,
    "arange": _arange,
    "eye": _eye,
    "constant": _constant,
    "random": _random,
}
