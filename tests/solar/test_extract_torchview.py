"""Path ``torchview``: what is recorded, what torchview has to confirm, what is refused."""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
from types import SimpleNamespace

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torchview.computation_node import FunctionNode, TensorNode

import solar
from solar.errors import ExtractionError, GraphError
from solar.extract import extract as extract_by
from solar.extract import torchview as path
from solar.extract.public import function_of, name_of, read_arguments, written_arguments
from solar.extract.torchview import extract
from solar.graph import Input, OperatorGraph, Ref, from_dict, to_dict

X = {"x": Input((4, 8), "float32")}
OFFSETS = Input((4,), "int32", values=(0, 3, 7, 10))
HELD = torch.arange(8.0)
EMPTY = torch.empty(8, device="meta")


def ops(graph: OperatorGraph) -> list[str]:
    return [node.op for node in graph.nodes]


def test_records_public_names_and_exact_arguments() -> None:
    graph = extract(lambda x: F.softmax(x * 2.0, dim=1, dtype=torch.float16), X, outputs=["p"])
    first, second = graph.nodes
    assert (first.op, dict(first.arguments)) == ("torch.Tensor.mul", {"0": Ref("in.x"), "1": "@2.0"})
    assert second.op == "torch.nn.functional.softmax"
    given = {"0": Ref("mul"), "dim": 1, "_stacklevel": 3, "dtype": "@float16"}
    assert {name: second.arguments[name] for name in given} == given
    assert graph.path == "torchview"
    assert graph.inputs == (("x", "in.x"),) and graph.outputs == (("p", "softmax"),)
    assert graph.tensors["softmax"].dtype == "float16"


def test_a_call_inside_a_call_belongs_to_the_outer_one() -> None:
    graph = extract(lambda x: F.group_norm(F.cross_entropy(x, x, reduction="none")[:, None], 1), X)
    assert ops(graph) == [
        "torch.nn.functional.cross_entropy",
        "torch.Tensor.__getitem__",
        "torch.nn.functional.group_norm",
    ]


def test_properties_methods_and_multiple_results() -> None:
    graph = extract(lambda x: (x.T.contiguous(), *torch.topk(x, k=2), x.chunk(2, 1)[1]), X)
    assert ops(graph) == ["torch.Tensor.T.__get__", "torch.Tensor.contiguous", "torch.topk", "torch.Tensor.chunk"]
    assert [name for _, name in graph.outputs] == ["contiguous", "topk.0", "topk.1", "chunk.1"]
    assert graph.nodes[2].outputs == ("topk.0", "topk.1")


def test_nested_results_are_named_depth_first() -> None:
    graph = extract(lambda x: {"a": x + 1, "b": [x * 2, (x * 3,)]}, X)
    assert [name for name, _ in graph.outputs] == ["a", "b.0", "b.1.0"]
    swapped = extract(lambda x: {"a": x + 1, "b": x * 2}, X, outputs=["b", "a"])
    assert swapped.outputs == (("b", "mul"), ("a", "add"))
    assert extract(lambda x: x, X).outputs == (("output", "in.x"),)


def test_scalars_are_python_numbers_of_their_dtype() -> None:
    inputs = {**X, "eps": Input(None, "float32", value=1), "n": Input(None, "int32", value=3.0)}
    graph = extract(lambda x, eps, n: x.flatten()[:n] + eps, inputs)
    assert graph.scalars == {"eps": 1.0, "n": 3}
    assert graph.nodes[1].arguments["1"] == ("@slice", None, 3, None)
    assert graph.nodes[2].arguments["1"] == "@1.0"


def test_views_share_storages_and_writes_are_effects() -> None:
    def run(x):
        y = x.t()
        y[0] = 1
        y.add_(2, alpha=3)
        return y, torch.empty_like(x)

    graph = extract(run, X, in_place=["x"])
    assert [(node.name, node.mutates) for node in graph.nodes] == [
        ("t", ()),
        ("setitem", ("t",)),
        ("add", ("t",)),
        ("empty_like", ()),
    ]
    assert graph.tensors["t"].storage == graph.tensors["in.x"].storage != graph.tensors["empty_like"].storage
    assert graph.tensors["t"].strides == (1, 8)


def test_a_shape_changed_in_place_is_a_new_tensor() -> None:
    graph = extract(lambda x: x.clone().unsqueeze_(0), X)
    assert graph.nodes[1].outputs == ("unsqueeze",) and not graph.nodes[1].mutates
    assert graph.tensors["clone"].shape == (4, 8) and graph.tensors["unsqueeze"].shape == (1, 4, 8)


def test_running_statistics_and_out_arguments_are_written() -> None:
    def run(x, mean, var):
        y = torch.zeros(4, 8)
        torch.add(x, 1, out=y)
        return F.batch_norm(y, mean, var, training=True)

    inputs = {**X, "mean": Input((8,), "float32"), "var": Input((8,), "float32")}
    graph = extract(run, inputs, in_place=["mean", "var"])
    assert [node.mutates for node in graph.nodes] == [(), ("zeros",), ("in.mean", "in.var")]


def test_known_values_resolve_loops_branches_and_limits() -> None:
    def run(x, offsets):
        parts = []
        for start, stop in itertools.pairwise(offsets):
            if stop - start > 3:
                parts.append(x[start:stop].sum(0))
        return torch.stack(parts) * int(offsets.max())

    graph = extract(run, {"x": Input((10, 8), "float32"), "offsets": OFFSETS})
    assert graph.tensors[graph.outputs[0][1]].shape == (1, 8)
    assert graph.tensors["in.offsets"].values == (0, 3, 7, 10)
    assert graph.nodes[-1].arguments["1"] == 10
    limits = [node.arguments["1"] for node in graph.nodes if node.arguments.get("0") == Ref("in.x")]
    assert limits == [("@slice", 3, 7, None)]


def test_literals_and_tensors_from_outside_are_constants() -> None:
    def run(x):
        return x * torch.tensor([2.0, 0.5]).sum() + HELD + torch.from_numpy(numpy.ones(8, "float32")) + HELD

    graph = extract(run, X)
    constants = [node for node in graph.nodes if node.op == "solar.constant"]
    assert [node.arguments["values"] for node in constants] == [(2.0, 0.5), tuple(range(8)), (1.0,) * 8]


def test_modules_inside_are_their_functions() -> None:
    model = nn.Sequential(nn.Linear(8, 8, device="meta"), nn.ReLU(inplace=True), nn.Identity(), nn.Linear(8, 2))

    def run(x, weight, bias):
        return torch.func.functional_call(model, {"0.weight": weight, "0.bias": bias}, (x,)) + x[:, :2]

    graph = extract(run, {**X, "weight": Input((8, 8), "float32"), "bias": Input((8,), "float32")})
    assert [op.rpartition(".")[2] for op in ops(graph)] == [
        "linear", "relu", "constant", "constant", "linear", "__getitem__", "add",
    ]  # fmt: skip
    assert nn.Module.__call__.__module__ == "torch.nn.modules.module"


def test_torch_is_left_as_it_was() -> None:
    before = {name: getattr(torch, name) for name in ("zeros", "ones_like", "as_tensor", "randn")}

    def run(x):
        raise RuntimeError("no")

    with pytest.raises(ExtractionError, match="RuntimeError: no"):
        extract(run, X)
    extract(lambda x: torch.arange(8.0) + torch.ones_like(x), X)
    assert before == {name: getattr(torch, name) for name in before}


def test_the_graph_survives_json_and_does_not_depend_on_the_run() -> None:
    def run(x):
        y = x[[0, 2], ..., 1:] * 3.0 + float("-inf")
        return y.to(torch.float8_e4m3fn), torch.full((2,), 2**60).to(x.device)

    graph = extract(run, X)
    assert graph.nodes[0].arguments["1"] == (("@list", 0, 2), "@...", ("@slice", 1, None, None))
    text = json.dumps(to_dict(graph), sort_keys=True, allow_nan=False)
    assert from_dict(json.loads(text)) == graph
    assert json.dumps(to_dict(extract(run, X)), sort_keys=True) == text


def test_arguments_are_written_and_read() -> None:
    tensor = torch.zeros(2)
    args = (tensor, [1, 2.0, None, True], slice(0, None), (..., torch.strided), "mean", torch.channels_last)
    kwargs = {"dtype": torch.bfloat16, "other": (tensor, tensor)}
    written = written_arguments(args, kwargs, {id(tensor): "t"}, index=True)
    shuffled = dict(sorted(written.items(), reverse=True))
    read_args, read_kwargs = read_arguments(shuffled, {"t": tensor})
    assert read_args[0] is tensor and read_args[1:] == list(args[1:])
    assert read_kwargs["dtype"] is torch.bfloat16 and read_kwargs["other"][1] is tensor
    assert [type(item) for item in read_args[1]] == [int, float, type(None), bool]
    for value in (object(), "@x", {"a": 1}, lambda: 0):
        with pytest.raises(ExtractionError, match="cannot be recorded"):
            written_arguments((value,), {}, {}, index=False)
    with pytest.raises(GraphError, match="no such value"):
        read_arguments({"0": "@nothing"}, {})
    with pytest.raises(GraphError, match="not numbered from 0"):
        read_arguments({"1": 3}, {})


def test_functions_have_one_name_each() -> None:
    for function in (F.linear, torch.Tensor.add_, torch.Tensor.T.__get__, torch.zeros, F.hardsigmoid, torch.relu_):
        assert function_of(name_of(function)) == function
    assert name_of(F.gelu) == "torch.nn.functional.gelu"
    for name in ("torch.load", "torch.save", "torch.from_file", "torch.hub.load", "os.system", "torch.Tensor"):
        with pytest.raises(GraphError, match="no public function"):
            function_of(name)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (
            lambda x: torch.autograd.grad((x.requires_grad_() ** 2).sum(), x)[0],
            "grad: path torchview cannot record a b",
        ),
        (
            lambda x: (x.requires_grad_() ** 2).sum().backward(),
            "backward: path torchview cannot record a backward pass",
        ),
        (lambda x: torch.vmap(lambda row: row.sum())(x), "cannot record a transform of torch.func; use path aten"),
        (lambda x: torch.func.grad(lambda y: (y * y).sum())(x), "cannot record a transform of torch.func"),
        (lambda x: torch.ops.aten.mm.default(x, x.t()), "mm.default: is no public function that path torchview can"),
        (lambda x: x * x.sum().item(), "needs the contents of a float32 tensor"),
        (lambda x: x + 1 if x.sum() > 0 else x, "needs the contents of a bool tensor"),
        (lambda x: x.tolist(), "Tensor.tolist: needs the contents"),
        (lambda x: x[x > 0], "a boolean mask of shape"),
        (lambda x: x[: x[0, 0].int()], "__getitem__: the limits of a slice are not known"),
        (lambda x: torch.nonzero(x), "aten.nonzero: needs the contents"),
        (lambda x: x * torch.rand_like(x), "draws random numbers"),
        (lambda x: F.dropout(x), "draws random numbers"),
        (lambda x: torch.complex(x, x), "complex numbers are not supported"),
        (lambda x: x.add_(1), "add_: the reference writes its input 'x', which is not declared in place"),
        (lambda x: x.t()[0].zero_(), "writes its input 'x'"),
        (lambda x: x + HELD.add_(1), "add_: writes a tensor that is not among the inputs"),
        (lambda x: x + EMPTY, "reads a tensor of shape"),
        (lambda x: x @ x, "RuntimeError"),
        (lambda x: x.undefined, "AttributeError"),
        (lambda x: 3, "output: the reference returns a int"),
        (lambda x: (), "returns nothing"),
        (lambda x: {"a": x, "b": None}, "b: the reference returns a NoneType"),
    ],
)
def test_refusals_say_why(run, reason: str) -> None:
    with pytest.raises(ExtractionError, match=reason) as caught:
        extract(run, X)
    assert "\n" not in str(caught.value)


def test_a_tensor_changed_behind_the_calls_is_refused() -> None:
    def run(x):
        y = x.clone()
        y.data = x * 2
        return y + 1

    with pytest.raises(ExtractionError, match="add: reads a tensor that was changed behind the recorded calls"):
        extract(run, X)


@pytest.mark.parametrize(
    ("inputs", "options", "reason"),
    [
        ({"x": Input((-1,), "float32")}, {}, "inputs.x: negative extent"),
        ({"x": Input((2,), "float31")}, {}, "x: no dtype 'float31'"),
        ({"x": Input((2,), "int64", values=(1, 2, 3))}, {}, "inputs.x.values"),
        (X, {"in_place": ["y"]}, "in_place: 'y' is not a tensor input"),
        (X, {"outputs": ["a", "b"]}, "returns 1 tensors, 2 outputs are declared"),
    ],
)
def test_bad_declarations(inputs, options, reason: str) -> None:
    with pytest.raises(ExtractionError, match=reason):
        extract(lambda x: x, inputs, **options)


class TestWiring:
    """torchview's own record is spoilt in one place, and the first difference is named."""

    @staticmethod
    def spoilt(monkeypatch, change) -> None:
        check = path._check_wiring

        def spoil(calls, drawn):
            change(calls, drawn)
            check(calls, drawn)

        monkeypatch.setattr(path, "_check_wiring", spoil)
        extract(lambda x: torch.relu(x).exp() + x.exp().sin(), X)

    def test_nothing_spoilt(self, monkeypatch) -> None:
        self.spoilt(monkeypatch, lambda calls, drawn: None)

    def test_another_function(self, monkeypatch) -> None:
        with pytest.raises(ExtractionError, match="exp: torchview lists tanh in its place"):
            self.spoilt(monkeypatch, lambda calls, drawn: setattr(calls[1].node, "name", "tanh"))

    def test_another_edge(self, monkeypatch) -> None:
        def change(calls, drawn):
            calls[3].node.parents = calls[1].node.parents

        with pytest.raises(ExtractionError, match="sin: reads relu by torchview, exp as it was called"):
            self.spoilt(monkeypatch, change)

    def test_a_lost_edge(self, monkeypatch) -> None:
        with pytest.raises(ExtractionError, match="add: reads inputs alone by torchview, exp, sin as it was called"):
            self.spoilt(monkeypatch, lambda calls, drawn: calls[4].node.parents.clear())

    def test_a_call_that_torchview_lacks(self, monkeypatch) -> None:
        def change(calls, drawn):
            calls[2] = path._Listed("exp", frozenset(), calls[1].node)

        with pytest.raises(ExtractionError, match=r"exp: torchview does not list this call \(number 3\)"):
            self.spoilt(monkeypatch, change)

    def test_a_call_that_nobody_made(self, monkeypatch) -> None:
        def change(calls, drawn):
            (tensor,) = (node for node in calls[0].node.children if isinstance(node, TensorNode))
            tensor.add_child(FunctionNode(torch.cos, 0, tensor, name="cos"))

        with pytest.raises(ExtractionError, match="cos: torchview lists a call that was not seen"):
            self.spoilt(monkeypatch, change)


def test_torchview_failing_is_one_line(monkeypatch) -> None:
    monkeypatch.setattr(path, "forward_prop", lambda *_: SimpleNamespace().missing)
    with pytest.raises(ExtractionError, match="AttributeError"):
        extract(lambda x: x, X)


def test_paths_are_chosen_by_name() -> None:
    assert extract_by(torch.relu, X).path == "aten"
    assert solar.extract_graph(torch.relu, X, path="torchview").path == "torchview"
    with pytest.raises(ExtractionError, match="path: 'fx' is none of aten, torchview"):
        extract_by(torch.relu, X, path="fx")
    # What one path cannot record, the other is not tried for.
    with pytest.raises(ExtractionError, match="backward pass"):
        extract_by(lambda x: torch.autograd.grad(x.requires_grad_().sum(), x)[0], X, path="torchview")


def test_without_torchview_the_path_says_so(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "solar.extract.torchview")
    monkeypatch.setitem(sys.modules, "torchview.computation_graph", None)
    with pytest.raises(ExtractionError, match="is not installed"):
        extract_by(torch.relu, X, path="torchview")


def test_sixteen_gibibytes_are_recorded_without_them() -> None:
    n = 2**15
    inputs = {name: Input((n, n), "float32") for name in "abcd"}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    graph = extract(lambda a, b, c, d: F.layer_norm(F.softmax(a @ b + torch.tril(c), 1) @ d, (n,)), inputs)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert len(graph.nodes) == 6
    assert grown_kib < 200_000


PROGRAM = """
import json, torch, torch.nn.functional as F
from solar import convert_graph, extract_graph
from solar.einsum import to_dict as einsum_dict
from solar.graph import Input, to_dict
def run(q, w, c):
    y = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    y = F.conv2d(y, c, padding=1) + F.linear(q, w)[..., :1]
    return torch.softmax(F.gelu(y), -1), torch.nn.functional.layer_norm(y, (16,))
graph = extract_graph(run, {"q": Input((2, 4, 16, 16), "bfloat16"), "w": Input((8, 16), "bfloat16"),
                            "c": Input((4, 4, 3, 3), "bfloat16")}, path="torchview")
print(json.dumps([to_dict(graph), einsum_dict(convert_graph(graph))], sort_keys=True))
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
    assert traced(ATEN_CPU_CAPABILITY="default", ONEDNN_MAX_CPU_ISA="SSE41", PYTHONHASHSEED="7") == plain
