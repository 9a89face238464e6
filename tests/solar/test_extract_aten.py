"""Path ``aten``: what is recorded, what carries a value, what is refused."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from solar.errors import ExtractionError
from solar.extract.aten import extract
from solar.graph import Input, OperatorGraph, Ref, to_dict

X = {"x": Input((4, 8), "float32")}
OFFSETS = Input((4,), "int32", values=(0, 3, 7, 10))


def ops(graph: OperatorGraph) -> list[str]:
    return [node.op for node in graph.nodes]


def test_records_names_shapes_and_arguments() -> None:
    graph = extract(lambda x: F.softmax(x, dim=1), X, outputs=["p"])
    (node,) = graph.nodes
    assert node.op == "aten._softmax.default"
    assert dict(node.arguments) == {"self": Ref("in.x"), "dim": 1, "half_to_float": False}
    assert graph.inputs == (("x", "in.x"),)
    assert graph.outputs == (("p", "_softmax"),)
    assert graph.tensors["_softmax"].shape == (4, 8)


def test_nested_results_are_named_depth_first() -> None:
    graph = extract(lambda x: {"a": x + 1, "b": [x * 2, (x * 3,)]}, X)
    assert [name for name, _ in graph.outputs] == ["a", "b.0", "b.1.0"]
    assert [name for name, _ in extract(lambda x: (x + 1, x * 2), X).outputs] == ["output.0", "output.1"]
    swapped = extract(lambda x: {"a": x + 1, "b": x * 2}, X, outputs=["b", "a"])
    assert swapped.outputs == (("b", "mul"), ("a", "add"))


def test_scalars_are_python_numbers_of_their_dtype() -> None:
    seen = []

    def run(x, eps, flag, n):
        seen.append((eps, flag, n))
        return x.flatten()[:n] + eps if flag else x

    inputs = {
        **X,
        "eps": Input(None, "float32", value=1),
        "flag": Input(None, "bool", value=1),
        "n": Input(None, "int32", value=3.0),
    }
    graph = extract(run, inputs)
    assert seen == [(1.0, True, 3)]
    assert [type(item) for item in seen[0]] == [float, bool, int]
    assert graph.scalars == {"eps": 1.0, "flag": True, "n": 3}
    assert graph.tensors[graph.outputs[0][1]].shape == (3,)


def test_storages_tell_views_from_copies() -> None:
    graph = extract(lambda x: (x.t(), x.t().contiguous()), X)
    view, copy = (graph.tensors[name] for _, name in graph.outputs)
    assert view.storage == graph.tensors["in.x"].storage
    assert view.strides == (1, 8)
    assert copy.storage != view.storage


def test_writes_in_place_are_effects() -> None:
    graph = extract(lambda x: x[0].add_(1), X, in_place=["x"])
    assert graph.nodes[-1].mutates == ("select",)
    assert graph.outputs == (("output", "select"),)


def test_known_values_resolve_loops_and_branches() -> None:
    def run(x, offsets):
        parts = []
        for start, stop in zip(offsets.tolist(), offsets.tolist()[1:], strict=False):
            if stop - start > 3:
                parts.append(x[start:stop].sum(0))
        return torch.stack(parts) * int(offsets.max())

    graph = extract(run, {"x": Input((10, 8), "float32"), "offsets": OFFSETS})
    assert graph.tensors[graph.outputs[0][1]].shape == (1, 8)
    assert graph.tensors["in.offsets"].values == (0, 3, 7, 10)
    assert graph.nodes[-1].arguments["other"] == 10


def test_values_follow_through_integer_arithmetic_to_an_index() -> None:
    def run(x, offsets):
        token = torch.arange(x.shape[0], device=x.device)
        sequence = torch.searchsorted(offsets, token, right=True) - 1
        return x[token - offsets[sequence]]

    graph = extract(run, {"x": Input((10, 8), "float32"), "offsets": OFFSETS})
    (index,) = graph.nodes[-1].arguments["indices"]
    assert graph.tensors[index.tensor].values == (0, 1, 2, 0, 1, 2, 3, 0, 1, 2)


def test_nonzero_of_known_values_is_a_constant() -> None:
    def run(x, ids):
        rows, columns = torch.where(ids == 2)
        return x[rows] * columns[:, None], x[ids[:, 0] < 2]

    graph = extract(run, {**X, "ids": Input((4, 2), "int64", values=(0, 2, 1, 2, 2, 0, 3, 1))})
    assert "solar.constant" in ops(graph)
    constant = next(node for node in graph.nodes if node.op == "solar.constant")
    assert constant.arguments["values"] == (0, 1, 1, 1, 2, 0)
    assert [graph.tensors[name].shape for _, name in graph.outputs] == [(3, 8), (2, 8)]


def test_a_write_forgets_what_was_known() -> None:
    def run(x, ids):
        ids = ids.clone()
        ids[0] = x.argmax()
        return x[: int(ids[0])]

    with pytest.raises(ExtractionError, match="_local_scalar_dense"):
        extract(run, {**X, "ids": Input((2,), "int64", values=(1, 2))})


def test_literals_keep_their_values_whatever_their_device() -> None:
    graph = extract(lambda x: x[torch.tensor([2, 0])] * torch.as_tensor([0.5], device="cpu"), X)
    values = [node.arguments["values"] for node in graph.nodes if node.op == "solar.constant"]
    assert values == [(2, 0), (0.5,)]


def test_autograd_inside_the_reference() -> None:
    def run(x):
        x = x.detach().requires_grad_()
        (x * x).sum().backward()
        return x.grad

    assert "aten.mul.Tensor" in ops(extract(run, X))


def test_the_callers_settings_do_not_matter() -> None:
    def run(x):
        return F.linear(x, torch.ones(3, 8)) + torch.zeros(3).sum()

    plain = to_dict(extract(run, X))
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            assert to_dict(extract(run, X)) == plain
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (lambda x: x * x.sum().item(), "needs the contents of a float32 tensor"),
        (lambda x: x + 1 if x.sum() > 0 else x, "needs the contents of a bool tensor"),
        (lambda x: x.tolist(), "Tensor.tolist: needs the contents"),
        (lambda x: x[x > 0], "a boolean mask of shape"),
        (lambda x: torch.nonzero(x), "aten.nonzero: needs the contents"),
        (lambda x: x * torch.rand_like(x), "draws random numbers"),
        (lambda x: F.dropout(x), "draws random numbers"),
        (lambda x: torch.complex(x, x), "complex numbers are not supported"),
        (lambda x: x.add_(1), "writes its input 'x', which is not declared in place"),
        (lambda x: x.t()[0].zero_(), "writes its input 'x'"),
        (lambda x: x @ x, "RuntimeError"),
        (lambda x: x.undefined, "AttributeError"),
        (lambda x: 3, "output: the reference returns a int"),
        (lambda x: (), "returns nothing"),
        (lambda x: {"a": x, "b": None}, "b: the reference returns a NoneType"),
    ],
)
def test_refusals_say_why(run, reason: str) -> None:
    with pytest.raises(ExtractionError, match=reason):
        extract(run, X)


@pytest.mark.parametrize(
    ("inputs", "options", "reason"),
    [
        ({"x": Input((-1,), "float32")}, {}, "inputs.x: negative extent"),
        ({"x": Input((2,), "float31")}, {}, "x: no dtype 'float31'"),
        ({"x": Input((2,), "int64", values=(1, 2, 3))}, {}, "inputs.x.values"),
        ({"x": Input(None, "float32")}, {}, "inputs.x: a Python scalar needs its value"),
        ({"x": Input(None, "float32", value=1.0, values=(1,))}, {}, "inputs.x: values belong to a tensor"),
        (X, {"in_place": ["y"]}, "in_place: 'y' is not a tensor input"),
        (X, {"outputs": ["a", "b"]}, "returns 1 tensors, 2 outputs are declared"),
    ],
)
def test_bad_declarations(inputs, options, reason: str) -> None:
    with pytest.raises(ExtractionError, match=reason):
        extract(lambda x: x, inputs, **options)


def test_sixteen_gibibytes_are_traced_without_them() -> None:
    n = 2**15
    inputs = {name: Input((n, n), "float32") for name in "abcd"}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    graph = extract(lambda a, b, c, d: F.layer_norm(F.softmax(a @ b + torch.tril(c), 1) @ d, (n,)), inputs)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert sum(4 * n * n for _ in graph.inputs) == 2**34
    assert grown_kib < 200_000


PROGRAM = """
import json, torch, torch.nn.functional as F
from solar.extract.aten import extract
from solar.convert import convert
from solar.einsum import to_dict as einsum_dict
from solar.graph import Input, to_dict
def run(q, w, c):
    y = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    y = F.conv2d(y, c, padding=1) + F.linear(q, w)[..., :1]
    return torch.softmax(F.gelu(y), -1), torch.nn.functional.layer_norm(y, (16,))
graph = extract(run, {"q": Input((2, 4, 16, 16), "bfloat16"), "w": Input((8, 16), "bfloat16"),
                      "c": Input((4, 4, 3, 3), "bfloat16")})
print(json.dumps([to_dict(graph), einsum_dict(convert(graph))], sort_keys=True))
"""


@pytest.mark.slow
def test_the_same_on_another_processor_and_environment() -> None:
    def traced(**variables: str) -> str:
        environment = {**os.environ, **variables}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    plain = traced()
    assert json.loads(plain)[1]["ops"]
    other = traced(
        ATEN_CPU_CAPABILITY="default",
        ONEDNN_MAX_CPU_ISA="SSE41",
        OMP_NUM_THREADS="1",
        PYTHONHASHSEED="7",
        TORCH_ALLOW_TF32_CUBLAS_OVERRIDE="1",
    )
    assert other == plain
