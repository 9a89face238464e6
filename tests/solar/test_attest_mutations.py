"""Attestation finds wrong programs: every way to spoil one op of a dozen references is refused, or changes nothing.

A change that leaves what is computed as it is (another order of a commutative product, a reduction over a dimension of
extent 1) is told apart by an independent witness: the spoilt program gives the same values in float64.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

from solar.attest import attest, patterned  # noqa: E402
from solar.convert import convert  # noqa: E402
from solar.einsum import Op, Program  # noqa: E402
from solar.errors import GraphError, ReplayError  # noqa: E402
from solar.extract.aten import extract  # noqa: E402
from solar.graph import Input  # noqa: E402
from solar.rounding import bounded_outputs  # noqa: E402


def rope(x: Any, angle: Any) -> Any:
    first, second = x.chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def update(cache: Any, x: Any) -> Any:
    cache[2:5] = x
    return cache.sum(1)


def routed(x: Any, w: Any) -> Any:
    weight, chosen = (x @ w).softmax(-1).topk(2, -1)
    return weight / weight.sum(-1, keepdim=True), chosen


REFERENCES: dict[str, tuple[Any, dict[str, tuple[int, ...]], dict[str, Any]]] = {
    "linear": (lambda x, w, b: F.linear(x, w, b), {"x": (6, 8), "w": (5, 8), "b": (5,)}, {}),
    "softmax": (lambda x: x.softmax(1), {"x": (5, 7)}, {}),
    "layer norm": (lambda x, w: F.layer_norm(x, (7,), w), {"x": (5, 7), "w": (7,)}, {}),
    "rms norm": (
        lambda x, w: x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-3) * w,
        {"x": (5, 7), "w": (7,)},
        {},
    ),
    "convolution": (lambda x, w: F.conv2d(x, w, stride=2, padding=1), {"x": (2, 3, 9, 9), "w": (4, 3, 3, 3)}, {}),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        {"q": (2, 6, 4), "k": (2, 6, 4), "v": (2, 6, 3)},
        {},
    ),
    "cross entropy": (lambda x, y: (x.log_softmax(1) * y.softmax(1)).sum(), {"x": (5, 7), "y": (5, 7)}, {}),
    "pooling": (lambda x: F.avg_pool2d(F.max_pool2d(x, 2), 2), {"x": (2, 3, 8, 8)}, {}),
    "rope": (rope, {"x": (3, 5, 8), "angle": (5, 4)}, {}),
    "cumulative": (lambda x: (x.cumsum(1) - 0.5) / (1 + x.abs().amax(1, keepdim=True)), {"x": (5, 7)}, {}),
    "in place": (update, {"cache": (8, 4), "x": (3, 4)}, {"in_place": ["cache"]}),
    "routing": (routed, {"x": (6, 8), "w": (8, 5)}, {}),
    "quantise": (lambda x: (x / (x.abs().amax(1, keepdim=True) / 127)).round().to(torch.int8), {"x": (5, 7)}, {}),
}  # fmt: skip
OTHER = {"add": "sub", "sub": "add", "mul": "add", "div": "mul", "exp": "expm1", "sum": "amax", "amax": "amin",
         "amin": "amax", "maximum": "minimum", "relu": "abs", "sin": "cos", "cos": "sin", "rsqrt": "sqrt",
         "sqrt": "rsqrt", "log": "log1p", "round": "floor", "cumsum": "cumprod", "gt": "ge", "eq": "ne"}  # fmt: skip

# Why a change may leave the values as they are: pattern of "reference: change: op function" by reason.
EQUIVALENT = {
    "a sum and a product commute": r".*: swap: \S+ (add|mul)$",
    "softmax does not change when a row is shifted": r".*: (drop|function): _(log_|safe_)?softmax(\.[24])? (sub|amax)$",
    "the live scores of a row are shifted together": r"attention: scalar: where where$",
    "no row is masked altogether": r"attention: .*: _safe_softmax\.[2378] (eq|where)$",
    "the weights are divided by their own sum again": r"routing: .*: _softmax\.[45] (sum|div)$",
    "all dimensions are summed, in whatever order": r"cross entropy: dimension: sum_1 sum$",
}


def mutations(program: Program) -> Iterator[tuple[str, Program]]:
    """Programs with one op spoilt: left out, swapped operands, another axis, scalar, reduced dimension, function."""
    for place, op in enumerate(program.ops):
        for what, changed in _changes(program, op):
            yield (
                f"{what}: {op.name} {op.function}",
                replace(program, ops=(*program.ops[:place], changed, *program.ops[place + 1 :])),
            )


def _changes(program: Program, op: Op) -> Iterator[tuple[str, Op]]:
    a = op.attributes
    shape = program.tensors[op.outputs[0]].shape

    def but(**changed: Any) -> Op:
        return replace(op, attributes={**a, **changed})

    if op.kind in ("map", "scan") and op.operands and len(op.outputs) == 1:
        for name in op.operands:
            if program.tensors[name] == program.tensors[op.outputs[0]]:
                yield "drop", replace(op, kind="copy", function="clone", operands=(name,), attributes={})
                break
    if len(op.operands) == 2 and op.kind == "map":
        yield "swap", replace(op, operands=op.operands[::-1])
    if op.kind == "einsum" and len(op.operands) == 2 and len({program.tensors[n] for n in op.operands}) == 1:
        yield "swap", replace(op, operands=op.operands[::-1])
    for key in ("dim", "dim1"):
        if key in a and len(shape) > 1:
            yield "axis", but(**{key: (a[key] + 1) % len(program.tensors[op.operands[0]].shape)})
    if op.function == "permute":
        yield "axis", but(dims=[*a["dims"][1:], a["dims"][0]])
    for place, value in a.get("scalars", {}).items():
        if not isinstance(value, str):
            other = (
                not value if isinstance(value, bool) else value * 1.01 + 1e-3 if isinstance(value, float) else value + 1
            )
            yield "scalar", but(scalars={**a["scalars"], place: other})
    if op.kind == "reduce" and len(program.tensors[op.operands[0]].shape) > 1:
        rank = len(program.tensors[op.operands[0]].shape)
        yield "dimension", but(dims=[(dim + 1) % rank for dim in a["dims"]])
    if op.function in OTHER and op.kind in ("map", "reduce", "scan"):
        yield "function", replace(op, function=OTHER[op.function])
    if op.kind == "einsum":
        for i, dims in enumerate(a["operands"]):
            for d, form in enumerate(dims):
                if form["offset"] or len(form["terms"]) > 1:
                    moved = [list(other) for other in a["operands"]]
                    moved[i][d] = {**form, "offset": form["offset"] + 1}
                    yield "offset", but(operands=moved)
    if op.kind == "view" and op.function == "slice" and a["start"] > 0:
        yield "slice", but(start=a["start"] - 1, stop=a["stop"] - 1)
    if op.function == "slice_scatter":
        yield "slice", but(start=a["start"] + 1, stop=a["stop"] + 1)


def drawn(shapes: dict[str, tuple[int, ...]]) -> Any:
    def inputs_for(seed: int, kind: str) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(seed)
        return patterned({name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}, kind)

    return inputs_for


def same_values(first: Program, second: Program, inputs_for: Any) -> bool:
    """Whether two programs agree in float64, far below float32's roundoff."""
    for seed, kind in ((101, "random"), (102, "random"), (101, "zeros"), (101, "boundary")):
        inputs = inputs_for(seed, kind)
        one, other = bounded_outputs(first, inputs), bounded_outputs(second, inputs)
        for name, known in one.items():
            if not torch.allclose(
                known.exact.double(), other[name].exact.double(), rtol=1e-11, atol=1e-12, equal_nan=True
            ):
                return False
    return True


@pytest.mark.parametrize("name", REFERENCES)
def test_every_spoilt_program_is_refused(name: str) -> None:
    run, shapes, options = REFERENCES[name]
    program = convert(extract(run, {key: Input(shape, "float32") for key, shape in shapes.items()}, **options))
    inputs_for = drawn(shapes)

    def stated(made: Program) -> dict[str, Any]:
        return attest(made, run, inputs_for, subject={}, digest=lambda value: "none:0", seeds=(11,))

    assert stated(program)["predicate"]["verdict"] == "passed"
    counts: Counter[str] = Counter()
    for what, spoilt in mutations(program):
        try:
            stated(spoilt)
        except (ReplayError, GraphError):
            counts["refused"] += 1
            continue
        assert same_values(program, spoilt, inputs_for), f"not found: {what}"
        assert any(re.match(pattern, f"{name}: {what}") for pattern in EQUIVALENT.values()), f"no reason: {what}"
    assert counts["refused"] >= 2, counts
