"""Softmax and the normalisations, as reductions and maps."""

from __future__ import annotations

import math
from collections.abc import Callable

from solar.convert.build import Build, Value, dim_of
from solar.convert.reduction import mean, moments
from solar.graph import Node

Rule = Callable[[Build, Node], list[Value]]


def _softmax(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    wide = build.wide(build.cast(value, node.arguments["dtype"]) if "dtype" in node.arguments else value)
    if not build.shape(value):
        return [build.cast(build.map("exp", build.map("sub", wide, wide)), build.result().dtype)]
    dim = dim_of(build, node.arguments["dim"], len(build.shape(value)))
    top = build.reduce("amax", wide, [dim], keepdim=True)
    powers = build.map("exp", build.map("sub", wide, top))
    total = build.reduce("sum", powers, [dim], keepdim=True)
    return [build.cast(build.map("div", powers, total), build.result().dtype)]


def _safe_softmax(build: Build, node: Node) -> list[Value]:
    """Rows that are masked altogether give zeros, not NaN: their maximum -inf is replaced before it is subtracted, and
    their sum 0 before it divides."""
    value = build.operand(node.arguments["self"])
    wide = build.wide(value)
    dim = dim_of(build, node.arguments["dim"], len(build.shape(value)))
    top = build.reduce("amax", wide, [dim], keepdim=True)
    top = build.map("where", build.map("eq", top, -math.inf, dtype="bool"), 0.0, top)
    powers = build.map("exp", build.map("sub", wide, top))
    total = build.reduce("sum", powers, [dim], keepdim=True)
    total = build.map("where", build.map("eq", total, 0.0, dtype="bool"), 1.0, total)
    return [build.cast(build.map("div", powers, total), build.result().dtype)]


def _log_softmax(build: Build, node: Node) -> list[Value]:
    value = build.operand(node.arguments["self"])
    wide = build.wide(value)
    dim = dim_of(build, node.arguments["dim"], len(build.shape(value)))
    shifted = build.map("sub", wide, build.reduce("amax", wide, [dim], keepdim=True))
    total = build.reduce("sum", build.map("exp", shifted), [dim], keepdim=True)
    return [build.cast(build.map("sub", shifted, build.map("log", total)), build.result().dtype)]


def _affine(build: Build, value: Value, node: Node) -> Value:
    """Gain and shift, as far as they are given, broadcast from the right."""
    for function, key in (("mul", "weight"), ("add", "bias")):
        if key in node.arguments:
            value = build.map(function, value, build.cast(build.operand(node.arguments[key]), build.dtype(value)))
    return value


def _layer_norm(build: Build, node: Node) -> list[Value]:
    value = build.wide(build.operand(node.arguments["input"]))
    rank = len(build.shape(value))
    dims = list(range(rank - len(node.arguments["normalized_shape"]), rank))
    centre, centred, variance = moments(build, value, dims)
    inverse = build.map("rsqrt", build.map("add", variance, node.arguments["eps"]))
    normed = _affine(build, build.map("mul", centred, inverse), node)
    return [build.cast(normed, build.result().dtype), centre, inverse]


def _rms_norm(build: Build, node: Node) -> list[Value]:
    value = build.wide(build.operand(node.arguments["input"]))
    rank = len(build.shape(value))
    dims = list(range(rank - len(node.arguments["normalized_shape"]), rank))
    square = mean(build, build.map("mul", value, value), dims, keepdim=True)
    dtype = build.result().dtype
    eps = node.arguments.get(
        "eps", {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}.get(dtype, 2.0**-23)
    )
    inverse = build.map("rsqrt", build.map("add", square, eps))
    return [build.cast(_affine(build, build.map("mul", value, inverse), node), dtype), inverse]


def _group_norm(build: Build, node: Node) -> list[Value]:
    value = build.wide(build.operand(node.arguments["input"]))
    shape = build.shape(value)
    batch, channels, groups = node.arguments["N"], node.arguments["C"], node.arguments["group"]
    inner = channels // groups
    rows = build.reshape(value, [batch, groups, inner * math.prod(shape[2:])])
    centre, centred, variance = moments(build, rows, [2])
    inverse = build.map("rsqrt", build.map("add", variance, node.arguments["eps"]))
    normed = build.reshape(build.map("mul", centred, inverse), shape)
    for function, key in (("mul", "weight"), ("add", "bias")):
        if key in node.arguments:
            factor = build.cast(build.operand(node.arguments[key]), build.dtype(normed))
            normed = build.map(function, normed, build.reshape(factor, [channels] + [1] * (len(shape) - 2)))
    statistics = [build.reshape(item, [batch, groups]) for item in (centre, inverse)]
    return [build.cast(normed, build.result().dtype), *statistics]


def _batch_norm(build: Build, node: Node) -> list[Value]:
    """With stored statistics: one multiplication and one addition an element, for gain and shift fold into them.
    With batch statistics the stored ones are moved on (``momentum``), as extra results."""
    a = node.arguments
    value = build.operand(a.get("self", a.get("input")))
    wide = build.wide(value)
    shape = build.shape(wide)
    channels = [shape[1]] + [1] * (len(shape) - 2)
    dims = [d for d in range(len(shape)) if d != 1]
    training = bool(a.get("training", a.get("train", False)))
    moved: list[Value] = []

    def given(key: str) -> Value | None:
        return build.cast(build.operand(a[key]), build.dtype(wide)) if key in a else None

    weight, bias, stored_mean, stored_var = (given(k) for k in ("weight", "bias", "running_mean", "running_var"))
    if training:
        centre, centred, variance = moments(build, wide, dims)
        inverse = build.map("rsqrt", build.map("add", variance, a["eps"]))
        result = build.map("mul", centred, inverse)
        if weight is not None:
            result = build.map("mul", result, build.reshape(weight, channels))
        if bias is not None:
            result = build.map("add", result, build.reshape(bias, channels))
        saved = [build.reshape(item, [shape[1]]) for item in (centre, inverse)]
        n = math.prod(shape[d] for d in dims)
        for stored, fresh in ((stored_mean, saved[0]), (stored_var, build.reshape(variance, [shape[1]]))):
            if stored is None:
                continue
            if stored is stored_var and n > 1:
                fresh = build.map("mul", fresh, n / (n - 1))
            kept = build.map("mul", stored, 1 - a["momentum"])
            moved.append(build.map("add", kept, build.map("mul", fresh, a["momentum"])))
    else:
        if stored_mean is None or stored_var is None:
            raise build.fail("batch normalisation without statistics of its own needs stored ones")
        scale = build.map("rsqrt", build.map("add", stored_var, a["eps"]))
        saved = [stored_mean, scale]
        if weight is not None:
            scale = build.map("mul", scale, weight)
        shift = build.map("neg", build.map("mul", stored_mean, scale))
        if bias is not None:
            shift = build.map("add", shift, bias)
        result = build.map("mul", wide, build.reshape(scale, channels))
        result = build.map("add", result, build.reshape(shift, channels))
    outputs = [build.cast(result, build.result().dtype)]
    if training:
        outputs += saved
    else:
        for position, item in enumerate(saved, 1):
            declared = build.result(position).shape
            outputs.append(item if declared == build.shape(item) else build.full(declared, 0.0, "float32"))
    if node.mutates:
        outputs += [build.cast(item, build.graph.tensors[name].dtype) for item, name in zip(moved, node.mutates)]
    return outputs


RULES: dict[str, Rule] = {
    "_softmax": _softmax,
    "softmax": _softmax,
    "_safe_softmax": _safe_softmax,
    "_log_softmax": _log_softmax,
    "native_layer_norm": _layer_norm,
    "_fused_rms_norm": _rms_norm,
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm,
    "cudnn_batch_norm": _batch_norm,
}
