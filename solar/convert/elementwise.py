"""Maps: arithmetic, comparisons, selections."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from solar.convert.build import FLOATS, Build, Number, Value, promote
from solar.graph import Node, Ref

Rule = Callable[[Build, Node], list[Value]]

_UNARY = """neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal erf erfc erfinv sin cos tan asin acos
    atan sinh cosh tanh asinh acosh atanh sigmoid relu floor ceil trunc frac lgamma digamma"""
_TESTS = ("isnan", "isinf", "isfinite", "signbit", "isposinf", "isneginf")
_BINARY = """mul maximum minimum atan2 hypot fmod remainder bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift copysign nextafter heaviside fmax fmin"""
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_LOGIC = ("logical_and", "logical_or", "logical_xor")
_ALIASES = {"__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift"}
_ALIASES |= {f"__{name}__": f"bitwise_{name}" for name in ("and", "or", "xor")}


def argument(build: Build, value: Any, dtype: str) -> Value | Number:
    """A tensor cast to ``dtype``, a 0-d constant as a number, or a number as it is."""
    if not isinstance(value, Ref):
        return value
    tensor = build.operand(value)
    producer = build.producer(tensor)
    if producer is not None and producer.function == "full" and build.shape(tensor) == ():
        constant = producer.attributes["value"]
        return float(constant) if isinstance(constant, str) else constant
    return build.cast(tensor, dtype)


def tensors(build: Build, *values: Value | Number) -> list[Value | Number]:
    """The same arguments, the last number made a tensor if there is no tensor among them."""
    if any(isinstance(value, str) for value in values):
        return list(values)
    return [*values[:-1], build.full((), values[-1], build.result().dtype)]  # type: ignore[arg-type]


def finish(build: Build, value: Value) -> list[Value]:
    """Expand (for in-place results) and cast to what the node yields."""
    result = build.result()
    return [build.expand(build.cast(value, result.dtype), result.shape)]


def _unary(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        return [build.map(name, build.cast(build.operand(node.arguments["self"]), build.result().dtype))]

    return rule


def _test(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        return [build.map(name, build.operand(node.arguments["self"]), dtype="bool")]

    return rule


def _binary(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        dtype = build.result().dtype
        second = node.arguments["values" if name == "heaviside" else "other"]
        pair = [argument(build, value, dtype) for value in (node.arguments["self"], second)]
        return finish(build, build.map(name, *tensors(build, *pair), dtype=dtype))

    return rule


def _comparison(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        raw = [build.operand(v) if isinstance(v, Ref) else v for v in (node.arguments["self"], node.arguments["other"])]
        dtype = promote(build, raw)
        pair = [argument(build, v, dtype) for v in (node.arguments["self"], node.arguments["other"])]
        if not isinstance(pair[0], str) and not isinstance(pair[1], str):
            pair[0] = build.cast(build.operand(node.arguments["self"]), dtype)
        return finish(build, build.map(name, *pair, dtype="bool"))

    return rule


def _logic(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        pair = [build.cast(build.operand(node.arguments[key]), "bool") for key in ("self", "other")]
        return finish(build, build.map(name, *pair, dtype="bool"))

    return rule


def _not(build: Build, node: Node) -> list[Value]:
    return [build.map("logical_not", build.cast(build.operand(node.arguments["self"]), "bool"), dtype="bool")]


def _bitwise_not(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    return [build.map("logical_not" if build.dtype(value) == "bool" else "bitwise_not", value)]


def _sum(sign: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        dtype = build.result().dtype
        left = argument(build, node.arguments["self"], dtype)
        right = argument(build, node.arguments["other"], dtype)
        alpha = node.arguments.get("alpha", 1)
        if alpha != 1:
            right = build.map("mul", right, alpha) if isinstance(right, str) else right * alpha
        if sign == "rsub":
            left, right = right, left
        name = "sub" if sign == "rsub" else sign
        if dtype == "bool":
            name = "logical_or"
        return finish(build, build.map(name, *tensors(build, left, right), dtype=dtype))

    return rule


def _div(build: Build, node: Node) -> list[Value]:
    dtype = build.result().dtype
    mode = node.arguments.get("rounding_mode")
    pair = tensors(build, *(argument(build, node.arguments[key], dtype) for key in ("self", "other")))
    if mode == "floor":
        return finish(build, build.map("floor_divide", *pair, dtype=dtype))
    quotient = build.map("div", *pair, dtype=dtype)
    if mode == "trunc" and dtype in FLOATS:
        quotient = build.map("trunc", quotient)
    return finish(build, quotient)


def _floor_divide(build: Build, node: Node) -> list[Value]:
    dtype = build.result().dtype
    pair = tensors(build, *(argument(build, node.arguments[key], dtype) for key in ("self", "other")))
    return finish(build, build.map("floor_divide", *pair, dtype=dtype))


def _pow(build: Build, node: Node) -> list[Value]:
    dtype = build.result().dtype
    base, exponent = (argument(build, node.arguments[key], dtype) for key in ("self", "exponent"))
    if isinstance(base, str) and not isinstance(exponent, str):
        # PyTorch's own short cuts: exact squares, square roots and reciprocals.
        if exponent == 2:
            return [build.map("mul", base, base)]
        if dtype in FLOATS and exponent in (0.5, -0.5, -1, 1):
            names = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
            return [build.map(names[exponent], base)] if exponent != 1 else [base]
    return finish(build, build.map("pow", *tensors(build, base, exponent), dtype=dtype))


def _round(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    decimals = node.arguments.get("decimals", 0)
    if not decimals:
        return [build.map("round", value)]
    scaled = build.map("mul", build.wide(value), float(10**decimals))
    return finish(build, build.map("div", build.map("round", scaled), float(10**decimals)))


def _where(build: Build, node: Node) -> list[Value]:
    dtype = build.result().dtype
    condition = build.cast(build.operand(node.arguments["condition"]), "bool")
    then, other = (argument(build, node.arguments[key], dtype) for key in ("self", "other"))
    return finish(build, build.map("where", condition, then, other, dtype=dtype))


def _masked_fill(build: Build, node: Node) -> list[Value]:
    dtype = build.result().dtype
    mask = build.cast(build.operand(node.arguments["mask"]), "bool")
    fill = argument(build, node.arguments["value"], dtype)
    value = build.cast(build.operand(node.arguments["self"]), dtype)
    return finish(build, build.map("where", mask, fill, value, dtype=dtype))


def _clamp(build: Build, node: Node) -> list[Value]:
    dtype = build.result().dtype
    value = build.cast(build.operand(node.arguments["self"]), dtype)
    low = node.arguments.get("min", node.arguments.get("min_val"))
    high = node.arguments.get("max", node.arguments.get("max_val"))
    if isinstance(low, Ref) or isinstance(high, Ref):
        if low is not None:
            value = build.map("maximum", value, argument(build, low, dtype), dtype=dtype)
        if high is not None:
            value = build.map("minimum", value, argument(build, high, dtype), dtype=dtype)
        return finish(build, value)
    return finish(build, limited(build, value, low, high))


def limited(build: Build, value: Value, low: Number | None, high: Number | None) -> Value:
    """Clamp to numbers; None leaves a side open."""
    if low is None and high is None:
        return value
    scalars = {position: limit for position, limit in (("1", low), ("2", high)) if limit is not None}
    numbers = {
        position: str(v) if isinstance(v, float) and not math.isfinite(v) else v for position, v in scalars.items()
    }
    return build.op("map", "clamp", [value], [(build.shape(value), build.dtype(value))], {"scalars": numbers})[0]


def _clamp_side(key: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        dtype = build.result().dtype
        value = build.cast(build.operand(node.arguments["self"]), dtype)
        limit = argument(build, node.arguments[key], dtype)
        name = "maximum" if key == "min" else "minimum"
        if isinstance(limit, str):
            return finish(build, build.map(name, value, limit))
        return finish(build, limited(build, value, *((limit, None) if key == "min" else (None, limit))))

    return rule


def _triangle(name: str) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value = build.operand(node.arguments["self"])
        return [build.map(name, value, diagonal=node.arguments.get("diagonal", 0))]

    return rule


def _polynomial(name: str) -> Rule:
    """``self + value * a * b`` and ``self + value * a / b``."""

    def rule(build: Build, node: Node) -> list[Value]:
        dtype = build.result().dtype
        base, first, second = (argument(build, node.arguments[k], dtype) for k in ("self", "tensor1", "tensor2"))
        product = build.map(name, *tensors(build, first, second))
        scale = node.arguments.get("value", 1)
        if scale != 1:
            product = build.map("mul", product, scale)
        return finish(build, build.map("add", base, product))

    return rule


def _lerp(build: Build, node: Node) -> list[Value]:
    """self + weight * (end - self)."""
    dtype = build.result().dtype
    start = build.cast(build.operand(node.arguments["self"]), dtype)
    end, weight = (argument(build, node.arguments[key], dtype) for key in ("end", "weight"))
    distance = build.map("mul", build.map("sub", end, start, dtype=dtype), weight, dtype=dtype)
    return finish(build, build.map("add", start, distance))


def _ldexp(build: Build, node: Node) -> list[Value]:
    """self * 2^other."""
    dtype = build.result().dtype
    value, power = (build.cast(build.operand(node.arguments[key]), dtype) for key in ("self", "other"))
    return finish(build, build.map("mul", value, build.map("exp2", power)))


def _logaddexp(base: str) -> Rule:
    """max + log(1 + b^-|difference|); the difference of equal infinities is taken as none."""

    def rule(build: Build, node: Node) -> list[Value]:
        dtype = build.result().dtype
        pair = [build.wide(build.cast(build.operand(node.arguments[key]), dtype)) for key in ("self", "other")]
        distance = build.map("neg", build.map("abs", build.map("sub", *pair)))
        powers = build.map("exp2" if base else "exp", build.map("fmin", distance, 0.0))
        more = build.map("log2", build.map("add", powers, 1.0)) if base else build.map("log1p", powers)
        return [build.cast(build.map("add", build.map("maximum", *pair), more), dtype)]

    return rule


RULES: dict[str, Rule] = {name: _unary(name) for name in _UNARY.split()}
RULES |= {name: _test(name) for name in _TESTS}
RULES |= {name: _binary(name) for name in _BINARY.split()}
RULES |= {name: _comparison(name) for name in _COMPARISONS}
RULES |= {name: _logic(name) for name in _LOGIC}
RULES |= {alias: _binary(name) for alias, name in _ALIASES.items()}
RULES |= {
    "add": _sum("add"),
    "sub": _sum("sub"),
    "rsub": _sum("rsub"),
    "div": _div,
    "true_divide": _div,
    "floor_divide": _floor_divide,
    "pow": _pow,
    "round": _round,
    "logical_not": _not,
    "bitwise_not": _bitwise_not,
    "where": _where,
    "masked_fill": _masked_fill,
    "clamp": _clamp,
    "hardtanh": _clamp,
    "clamp_min": _clamp_side("min"),
    "clamp_max": _clamp_side("max"),
    "tril": _triangle("tril"),
    "triu": _triangle("triu"),
    "lerp": _lerp,
    "ldexp": _ldexp,
    "logaddexp": _logaddexp(""),
    "logaddexp2": _logaddexp("2"),
    "sgn": _unary("sign"),
    "addcmul": _polynomial("mul"),
    "addcdiv": _polynomial("div"),
}
