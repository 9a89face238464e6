"""Activations, written as the maps they are made of, in float32 where their input is narrower; dropout that drops
nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

from solar.convert.build import Build, Value
from solar.convert.elementwise import limited
from solar.graph import Node

Rule = Callable[[Build, Node], list[Value]]


def _activation(body: Callable[[Build, Value, Node], Value]) -> Rule:
    def rule(build: Build, node: Node) -> list[Value]:
        value = build.operand(node.arguments["self"])
        return [build.cast(body(build, build.wide(value), node), build.result().dtype)]

    return rule


def _gelu(build: Build, x: Value, node: Node) -> Value:
    if node.arguments.get("approximate", "none") == "none":
        inner = build.map("erf", build.map("mul", x, math.sqrt(0.5)))
    else:
        cube = build.map("mul", build.map("mul", x, x), x)
        sum_ = build.map("add", x, build.map("mul", cube, 0.044715))
        inner = build.map("tanh", build.map("mul", sum_, math.sqrt(2.0 / math.pi)))
    return build.map("mul", build.map("mul", x, 0.5), build.map("add", inner, 1.0))


def _silu(build: Build, x: Value, node: Node) -> Value:
    return build.map("mul", x, build.map("sigmoid", x))


def softplus(build: Build, x: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """log(1 + exp(beta x)) / beta; x itself where beta x exceeds the threshold."""
    scaled = x if beta == 1 else build.map("mul", x, beta)
    soft = build.map("log1p", build.map("exp", scaled))
    if beta != 1:
        soft = build.map("div", soft, beta)
    if math.isinf(threshold):
        return soft
    return build.map("where", build.map("gt", scaled, threshold, dtype="bool"), x, soft)


def _softplus(build: Build, x: Value, node: Node) -> Value:
    return softplus(build, x, node.arguments.get("beta", 1.0), node.arguments.get("threshold", 20.0))


def _mish(build: Build, x: Value, node: Node) -> Value:
    return build.map("mul", x, build.map("tanh", softplus(build, x, threshold=math.inf)))


def _elu(build: Build, x: Value, node: Node) -> Value:
    alpha, scale = node.arguments.get("alpha", 1.0), node.arguments.get("scale", 1.0)
    inner = node.arguments.get("input_scale", 1.0)
    low = build.map("expm1", x if inner == 1 else build.map("mul", x, inner))
    if alpha * scale != 1:
        low = build.map("mul", low, alpha * scale)
    high = x if scale == 1 else build.map("mul", x, scale)
    return build.map("where", build.map("gt", x, 0.0, dtype="bool"), high, low)


def _celu(build: Build, x: Value, node: Node) -> Value:
    alpha = node.arguments.get("alpha", 1.0)
    low = build.map("mul", build.map("expm1", build.map("div", x, alpha)), alpha)
    return build.map("where", build.map("gt", x, 0.0, dtype="bool"), x, low)


def _leaky_relu(build: Build, x: Value, node: Node) -> Value:
    return _leaky(build, x, node.arguments.get("negative_slope", 0.01))


def _rrelu(build: Build, node: Node) -> list[Value]:
    """Without training: the mean slope, and the noise as it was."""
    a = node.arguments
    if a.get("training", False):
        raise build.fail("its random slopes have no rule")
    value = build.operand(a["self"])
    done = _leaky(build, build.wide(value), (a.get("lower", 0.125) + a.get("upper", 1 / 3)) / 2)
    return [build.cast(done, build.result().dtype), build.operand(a["noise"])]


def _leaky(build: Build, x: Value, slope: float) -> Value:
    scaled = build.map("mul", x, slope)
    if 0 <= slope <= 1:
        return build.map("maximum", x, scaled)
    return build.map("where", build.map("gt", x, 0.0, dtype="bool"), x, scaled)


def _hardswish(build: Build, x: Value, node: Node) -> Value:
    gate = limited(build, build.map("add", x, 3.0), 0.0, 6.0)
    return build.map("div", build.map("mul", x, gate), 6.0)


def _hardsigmoid(build: Build, x: Value, node: Node) -> Value:
    return build.map("div", limited(build, build.map("add", x, 3.0), 0.0, 6.0), 6.0)


def _sinc(build: Build, x: Value, node: Node) -> Value:
    angle = build.map("mul", x, math.pi)
    ratio = build.map("div", build.map("sin", angle), angle)
    return build.map("where", build.map("eq", x, 0.0, dtype="bool"), 1.0, ratio)


def _shrink_backward(build: Build, node: Node) -> list[Value]:
    """The gradient where the input is farther from zero than lambda."""
    a = node.arguments
    gradient, value = build.operand(a.get("grad_output", a.get("grad_out"))), build.operand(a["self"])
    far = build.map("gt", build.map("abs", value), a["lambd"], dtype="bool")
    return [build.map("where", far, gradient, 0.0)]


def _prelu(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    slope = build.operand(node.arguments["weight"])
    scaled = build.map("mul", value, slope)
    return [build.map("where", build.map("gt", value, 0.0, dtype="bool"), value, scaled)]


def _glu(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    dim = node.arguments.get("dim", -1) % len(build.shape(value))
    half = build.shape(value)[dim] // 2
    first, second = build.slice(value, dim, 0, half), build.slice(value, dim, half, 2 * half)
    gated = build.map("mul", build.wide(first), build.map("sigmoid", build.wide(second)))
    return [build.cast(gated, build.result().dtype)]


def _identity(build: Build, node: Node) -> list[Value]:
    if node.op.startswith("aten.native_dropout"):
        value = build.operand(node.arguments["input"])
        return [value, build.full(build.shape(value), True, "bool")]
    return [build.operand(node.arguments["self"])]


RULES: dict[str, Rule] = {
    "gelu": _activation(_gelu),
    "silu": _activation(_silu),
    "softplus": _activation(_softplus),
    "mish": _activation(_mish),
    "elu": _activation(_elu),
    "celu": _activation(_celu),
    "leaky_relu": _activation(_leaky_relu),
    "rrelu_with_noise": _rrelu,
    "hardswish": _activation(_hardswish),
    "hardsigmoid": _activation(_hardsigmoid),
    "sinc": _activation(_sinc),
    "hardshrink_backward": _shrink_backward,
    "softshrink_backward": _shrink_backward,
    "_prelu_kernel": _prelu,
    "glu": _glu,
    "native_dropout": _identity,
    "dropout": _identity,
}
