"""The operator graph: validation, and the way to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from solar.errors import GraphError
from solar.graph import Node, OperatorGraph, Ref, Tensor, from_dict, to_dict, validate


def graph() -> OperatorGraph:
    """relu of x into a new tensor, then the first row of that, scaled in place."""
    return OperatorGraph(
        path="aten",
        tensors={
            "in.x": Tensor((2, 3), "float32", (3, 1), 0),
            "in.i": Tensor((2,), "int64", (1,), 1, values=(0, 2**60)),
            "relu": Tensor((2, 3), "float32", (3, 1), 2),
            "select": Tensor((3,), "float32", (1,), 2),
        },
        inputs=(("x", "in.x"), ("i", "in.i")),
        outputs=(("output", "relu"),),
        nodes=(
            Node("relu", "aten.relu.default", {"self": Ref("in.x")}, ("relu",)),
            Node("select", "aten.select.int", {"self": Ref("relu"), "dim": 0, "index": 0}, ("select",)),
            Node("mul_", "aten.mul_.Tensor", {"self": Ref("select"), "other": float("-inf")}, (), ("select",)),
            Node("cat", "aten.cat.default", {"tensors": (Ref("select"), Ref("in.x")), "dims": (None, 1)}, (None,)),
        ),
        scalars={"eps": 1e-5},
    )


def test_round_trip_through_json() -> None:
    text = json.dumps(to_dict(validate(graph())), sort_keys=True, allow_nan=False)
    assert from_dict(json.loads(text)) == graph()


def test_what_json_cannot_hold_is_spelled_out() -> None:
    value = to_dict(graph())
    assert value["nodes"][2]["arguments"]["other"] == {"float": "-inf"}
    assert value["tensors"]["in.i"]["values"] == [0, {"int": str(2**60)}]


def test_aliases_group_tensors_by_storage() -> None:
    assert graph().aliases() == {2: ("relu", "select")}


def test_contiguous() -> None:
    assert Tensor((2, 3), "float32", (3, 1), 0).contiguous
    assert Tensor((1, 3), "float32", (99, 1), 0).contiguous
    assert not Tensor((3, 2), "float32", (1, 3), 0).contiguous


def edited(**fields: object) -> OperatorGraph:
    return replace(graph(), **fields)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (edited(path="fx"), "path: 'fx' is none of aten, torchview"),
        (edited(inputs=(("x", "in.y"),)), "inputs.x: unknown tensor 'in.y'"),
        (edited(outputs=(("output", "nothing"),)), "outputs.output: 'nothing' is never written"),
        (edited(nodes=graph().nodes[::-1]), "nodes.cat: 'select' is used before it is defined"),
        (edited(nodes=(graph().nodes[0], graph().nodes[0])), "nodes.relu: this name is used twice"),
        (
            edited(nodes=(Node("a", "aten.relu.default", {"self": Ref("in.x")}, ("in.x",)),)),
            "nodes.a: 'in.x' is defined twice",
        ),
        (
            edited(nodes=(Node("a", "aten.relu_.default", {"self": Ref("in.x")}, (), ("in.x",)),)),
            "nodes.a: writes input 'x', which is not declared in place",
        ),
        (
            edited(tensors={**graph().tensors, "relu": Tensor((2, 3), "float32", (1,), 2)}),
            "tensors.relu: rank 2, 1 strides",
        ),
        (
            edited(tensors={**graph().tensors, "in.i": Tensor((2,), "int64", (1,), 1, values=(1,))}),
            r"tensors.in.i: 1 values for shape \[2\]",
        ),
    ],
)
def test_broken_graphs_name_the_place(broken: OperatorGraph, reason: str) -> None:
    with pytest.raises(GraphError, match=reason):
        validate(broken)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "solar.operator-graph.v0"},
        {"nodes": [{"name": "a"}]},
        {"tensors": []},
        {"tensors": {"in.x": {"shape": [2.5]}}},
    ],
)
def test_broken_json_is_a_graph_error(change: dict[str, object]) -> None:
    with pytest.raises(GraphError):
        from_dict({**to_dict(graph()), **change})
