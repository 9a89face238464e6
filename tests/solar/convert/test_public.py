"""Calls of public functions taken apart: the same program as path ``aten`` gives, attested; refusals name the call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from solar.attest import attest, patterned
from solar.bound import bound
from solar.convert import convert
from solar.convert.public import expanded
from solar.einsum import Program
from solar.errors import ConversionError
from solar.extract import extract
from solar.graph import Input, Node, OperatorGraph, Ref, from_dict, to_dict
from solar.hardware import load

GFX1200 = load("gfx1200")
X = {"x": Input((4, 8), "float32")}


def stored(graph: OperatorGraph) -> OperatorGraph:
    return from_dict(json.loads(json.dumps(to_dict(graph), sort_keys=True, allow_nan=False)))


def agreed(run: Callable[..., Any], inputs: Mapping[str, Input], *, in_place: tuple[str, ...] = ()) -> Program:
    """The program of path torchview, attested, with the bound that path aten gives."""
    programs = {
        path: convert(stored(extract(run, inputs, path=path, in_place=in_place))) for path in ("aten", "torchview")
    }
    first, second = (bound(program, GFX1200) for program in programs.values())
    for name in ("t_sol_s", "binds", "macs", "dense_macs", "coverage", "compute", "memory"):
        assert first[name] == second[name], name

    def inputs_for(seed: int, kind: str) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(seed)
        drawn: dict[str, Any] = {}
        for name, spec in inputs.items():
            if spec.shape is None:
                drawn[name] = spec.value
            elif spec.values is not None:
                drawn[name] = torch.tensor(spec.values, dtype=getattr(torch, spec.dtype)).reshape(spec.shape)
            else:
                drawn[name] = torch.randn(spec.shape, generator=generator).to(getattr(torch, spec.dtype))
        return patterned(drawn, kind)

    program = programs["torchview"]
    assert program.path == "torchview"
    statement = attest(program, run, inputs_for, subject={"run": "none:0"}, digest=lambda value: "none:0", seeds=(1,))
    assert statement["predicate"]["verdict"] == "passed" and statement["predicate"]["path"] == "torchview"
    return program


def test_names_of_parts_begin_with_the_call() -> None:
    program = agreed(lambda x: F.softmax(F.layer_norm(x, (8,)), 1) + F.softmax(x, 0), X)
    assert {op.name.partition(".")[0] for op in program.ops} == {"layer_norm", "softmax", "softmax_1", "add"}
    assert len({op.name for op in program.ops}) == len(program.ops)
    assert all(op.attributes["source"].startswith("aten.") for op in program.ops)
    sources = [op.attributes["source"] for op in program.ops if op.name.startswith("layer_norm")]
    assert set(sources) == {"aten.native_layer_norm.default"}


def test_a_call_of_several_operators_numbers_them() -> None:
    inputs = {**X, "w": Input((3, 8), "float32"), "b": Input((3,), "float32")}
    graph = expanded(extract(F.linear, inputs, path="torchview"))
    assert [(node.name, node.op) for node in graph.nodes] == [
        ("linear.1", "aten.t.default"),
        ("linear.2", "aten.addmm.default"),
    ]
    assert graph.path == "torchview"
    assert agreed(F.linear, inputs).ops[0].name == "linear.1"


def _on_views(x: torch.Tensor) -> Any:
    y = x + 1
    view = y[1:3]
    view.mul_(2)
    y[0] = 3
    turned = y.t()
    turned += view.sum()
    return y, turned.diagonal(), y.chunk(2, 1)[1]


def _in_place(x: torch.Tensor) -> torch.Tensor:
    x[:, ::2].mul_(0.5)
    F.relu(x, inplace=True)
    return x.add_(torch.ones(8))


def _spliced(x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    pieces = [F.softmax(x[start:stop], 0) for start, stop in zip(offsets.tolist(), offsets[1:].tolist(), strict=False)]
    return torch.cat(pieces).index_select(0, offsets[:-1]) * offsets.diff()[:, None]


def _attention(q: torch.Tensor, scale: float) -> torch.Tensor:
    scores = torch.einsum("bhid,bhjd->bhij", q, q) * scale
    mask = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).tril()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ q + F.scaled_dot_product_attention(q, q, q)


@pytest.mark.parametrize(
    ("run", "inputs", "in_place"),
    [
        (_on_views, X, ()),
        (_in_place, X, ("x",)),
        (_spliced, {"x": Input((7, 8), "float32"), "offsets": Input((4,), "int64", values=(0, 2, 3, 7))}, ()),
        (_attention, {"q": Input((1, 2, 16, 8), "float32"), "scale": Input(None, "float32", value=0.5)}, ()),
        (lambda x: {"values": torch.topk(x, 3)[0], "rest": [x.T, (x[[3, 1], 1:] * 2,)]}, X, ()),
        (lambda x: x.clone().unsqueeze_(0).squeeze_(0).t_().to(torch.float16), X, ()),
        (lambda x: torch.tensor([[1.0, 2.0]]).t() @ x[:1] + torch.tensor(0.5), X, ()),
        (lambda x: torch.add(x, x, alpha=2, out=torch.empty_like(x)), X, ()),
        (lambda x: (x.int() * 2.0).round(), X, ()),
    ],
)
def test_both_paths_agree(run: Any, inputs: Mapping[str, Input], in_place: tuple[str, ...]) -> None:
    agreed(run, inputs, in_place=in_place)


def test_aliases_are_those_of_the_reference() -> None:
    program = agreed(_in_place, X, in_place=("x",))
    assert dict(program.aliases) == {"output": "x"}


def changed(graph: OperatorGraph, **fields: Any) -> OperatorGraph:
    """``graph`` with fields of its first node replaced."""
    return replace(graph, nodes=(replace(graph.nodes[0], **fields), *graph.nodes[1:]))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda g: changed(g, op="torch.load"), r"torch.load \(softmax\): torch.load: no public function of PyTorch"),
        (lambda g: changed(g, op="torch.nn.functional.relu"), r"relu \(softmax\): .*unexpected keyword argument 'dim'"),
        (lambda g: changed(g, op="torch.Tensor.__rsub__"), r"__rsub__ \(softmax\)"),
        (
            lambda g: changed(g, op="torch.Tensor.sum", arguments={"0": Ref("in.x"), "dim": 1}),
            r"sum \(softmax\): softmax: float32 \[4\], strides \[1\], offset 0; recorded is float32 \[4, 8\]",
        ),
        (
            lambda g: changed(g, op="torch.topk", arguments={"0": Ref("in.x"), "k": 8}),
            r"topk \(softmax\): 2 results, recorded are 1",
        ),
        (
            lambda g: changed(g, op="torch.Tensor.view", arguments={"0": Ref("in.x"), "1": 4, "2": 8}),
            r"view \(softmax\): softmax: shares memory with a tensor that it was recorded apart from",
        ),
        (
            lambda g: replace(g, tensors={**g.tensors, "in.x": replace(g.tensors["in.x"], strides=(1, 4))}),
            "inputs.x: an input is laid out row-major",
        ),
        (lambda g: changed(g, op="torch.rand_like", arguments={"0": Ref("in.x")}), "draws random numbers"),
    ],
)
def test_a_graph_that_pytorch_contradicts(change: Any, reason: str) -> None:
    graph = extract(lambda x: F.softmax(x, dim=1), X, path="torchview")
    assert convert(graph).ops
    with pytest.raises(ConversionError, match=reason) as caught:
        convert(change(graph))
    assert "\n" not in str(caught.value)


def test_a_constant_of_any_shape() -> None:
    graph = extract(lambda x: x.sum() + torch.zeros(0, 3).sum(), X, path="torchview")
    name = graph.nodes[1].outputs[0]
    for shape in ((2, 2), (4,), (1, 4, 1)):
        strides = tuple(torch.empty(shape).stride())
        tensor = replace(graph.tensors[name], shape=shape, strides=strides)
        node = Node(graph.nodes[1].name, "solar.constant", {"values": (1.0, 2.0, 3.0, 4.0)}, (name,))
        nodes = (graph.nodes[0], node, *graph.nodes[2:])
        assert expanded(replace(graph, tensors={**graph.tensors, name: tensor}, nodes=nodes)).nodes
