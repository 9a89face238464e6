"""Counts that are known in closed form, from the einsums' index products."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from solar.convert import convert
from solar.einsum import Program
from solar.extract.aten import extract
from solar.graph import Input, to_dict


def converted(run, **shapes: tuple[int, ...]) -> Program:
    return convert(extract(run, {name: Input(shape, "float32") for name, shape in shapes.items()}))


def macs(program: Program) -> int:
    return sum(math.prod(op.attributes["indices"].values()) for op in program.ops if op.kind == "einsum")


@pytest.mark.parametrize(
    ("run", "shapes", "expected"),
    [
        # 3 -> 16 channels, 3x3, padded to 32x32: 16*32*32*3*9.
        (lambda x, w: F.conv2d(x, w, padding=1), {"x": (1, 3, 32, 32), "w": (16, 3, 3, 3)}, 442_368),
        # 768 groups of one channel, 2 rows of 130 results, 3 taps each: 2*768*130*3.
        (lambda x, w: F.conv1d(x, w, padding=1, groups=768), {"x": (2, 768, 130), "w": (768, 1, 3)}, 599_040),
        (lambda x, w, b: F.linear(x, w, b), {"x": (2, 128, 256), "w": (512, 256), "b": (512,)}, 33_554_432),
        (lambda a, b: a @ b, {"a": (4, 32, 64), "b": (64, 128)}, 1_048_576),
        # Both products of self-attention: 2 * 12*64*64*64, half the 12,582,912 FLOPs.
        (lambda q: F.scaled_dot_product_attention(q, q, q), {"q": (1, 12, 64, 64)}, 12_582_912 // 2),
        # A transposed convolution multiplies every input element with a whole kernel: 4*6*7*8*9*3.
        (lambda x, w: F.conv_transpose2d(x, w, stride=2), {"x": (4, 6, 7, 8), "w": (6, 3, 3, 3)}, 36_288),
    ],
)  # fmt: skip
def test_macs(run, shapes, expected: int) -> None:
    assert macs(converted(run, **shapes)) == expected


def test_a_convolutions_maps_are_affine() -> None:
    program = converted(lambda x, w: F.conv1d(x, w, stride=2, padding=3, dilation=4), x=(1, 2, 40), w=(5, 2, 3))
    (op,) = [op for op in program.ops if op.kind == "einsum"]
    assert op.attributes["operands"][0][2] == {"terms": [["y0", 2], ["r0", 4]], "offset": -3}
    assert op.attributes["indices"] == {"n": 1, "k": 5, "y0": 19, "c": 2, "r0": 3}


def test_softmax_is_two_reductions_and_three_maps() -> None:
    program = converted(lambda x: x.softmax(1), x=(3, 5))
    assert [(op.kind, op.function) for op in program.ops] == [
        ("reduce", "amax"),
        ("map", "sub"),
        ("map", "exp"),
        ("reduce", "sum"),
        ("map", "div"),
    ]


def test_average_pooling_is_one_sum_of_windows() -> None:
    program = converted(lambda x: F.avg_pool1d(x, 16), x=(4, 64))
    (total, scale) = [op for op in program.ops if op.kind != "view"]
    assert total.attributes["operands"][0][-1] == {"terms": [["y1", 16], ["r1", 1]], "offset": 0}
    assert math.prod(total.attributes["indices"].values()) == 4 * 64
    assert (scale.function, scale.attributes["scalars"]) == ("div", {"1": 16})


def test_narrow_activations_are_evaluated_in_float32_and_rounded_once() -> None:
    program = convert(extract(F.gelu, {"x": Input((3, 5), "float16")}))
    assert [op.kind for op in program.ops] == ["cast", "map", "map", "map", "map", "map", "cast"]
    assert program.ops[0].attributes["implicit"]
    assert {program.tensors[op.outputs[0]].dtype for op in program.ops[:-1]} == {"float32"}


def test_causal_mask_is_a_triangle_of_a_constant() -> None:
    program = converted(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q=(1, 2, 8, 4))
    triangle = next(op for op in program.ops if op.function == "tril")
    where = next(op for op in program.consumers()[triangle.outputs[0]])
    assert program.producers()[triangle.operands[0]].attributes["value"] is True
    assert (where.function, where.attributes["scalars"]) == ("where", {"1": 0.0, "2": "-inf"})


def test_no_two_rules_share_a_name_and_every_view_is_dropped_where_idle() -> None:
    program = converted(lambda x: x.detach().view(3, 5)[:].expand(3, 5).permute(0, 1) + 1, x=(3, 5))
    assert [op.function for op in program.ops] == ["add"]


def test_unused_work_stays_and_unused_constants_go() -> None:
    def run(x):
        (x @ x).sum()
        torch.ones(3)
        return x + torch.zeros(3)

    assert [op.function for op in converted(run, x=(3, 3)).ops] == ["matmul", "sum", "full", "add"]


def test_a_stored_graph_converts_without_torch() -> None:
    graph = json.dumps(to_dict(extract(lambda x: F.gelu(x @ x).softmax(1), {"x": Input((3, 3), "float32")})))
    code = (
        "import json, sys; sys.modules['torch'] = sys.modules['numpy'] = None\n"
        "from solar.convert import convert; from solar.graph import from_dict\n"
        "print(len(convert(from_dict(json.loads(sys.stdin.read()))).ops))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=graph, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "11"), done.stderr
