"""The IR's own rules: what validates, what does not, and the way to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from solar.einsum import Op, Program, Tensor, from_dict, to_dict, validate
from solar.errors import GraphError


def form(*terms: tuple[str, int], offset: int = 0) -> dict[str, Any]:
    return {"terms": [list(term) for term in terms], "offset": offset}


def program() -> Program:
    """y = sum_k a[m,k] b[k,n], then its maximum over n."""
    attributes = {
        "indices": {"m": 2, "n": 3, "k": 4},
        "operands": [[form(("m", 1)), form(("k", 1))], [form(("k", 1)), form(("n", 1))]],
        "output": ["m", "n"],
    }
    return Program(
        path="aten",
        tensors={
            "in.a": Tensor((2, 4), "bfloat16"),
            "in.b": Tensor((4, 3), "bfloat16"),
            "mm": Tensor((2, 3), "bfloat16"),
            "top": Tensor((2,), "bfloat16"),
        },
        inputs=(("a", "in.a"), ("b", "in.b")),
        outputs=(("output", "top"),),
        ops=(
            Op("mm", "einsum", "matmul", ("in.a", "in.b"), ("mm",), attributes),
            Op("top", "reduce", "amax", ("mm",), ("top",), {"dims": [1], "keepdim": False}),
        ),
        values={},
    )


def test_valid_and_back_from_json() -> None:
    assert from_dict(json.loads(json.dumps(to_dict(validate(program())), sort_keys=True))) == program()


def test_bytes_count_by_storage_bits() -> None:
    assert Tensor((2, 4), "bfloat16").bytes == 16
    assert Tensor((5,), "float4_e2m1fn_x2").bytes == 5


def test_producers_and_consumers() -> None:
    assert program().producers()["top"].name == "top"
    assert [op.name for op in program().consumers()["mm"]] == ["top"]


def with_op(position: int, **fields: Any) -> Program:
    ops = list(program().ops)
    ops[position] = replace(ops[position], **fields)
    return replace(program(), ops=tuple(ops))


def with_attributes(**fields: Any) -> Program:
    return with_op(0, attributes={**program().ops[0].attributes, **fields})


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (with_op(1, kind="magic"), "ops.top: unknown kind 'magic'"),
        (with_op(1, operands=("gone",)), "ops.top: unknown operand 'gone'"),
        (with_op(0, operands=("in.a", "top")), "ops.mm: operand 'top' is used before it is defined"),
        (with_op(1, outputs=("mm",)), "ops.top: 'mm' is defined twice"),
        (with_op(0, operands=("in.a",)), "ops.mm: 1 operands, 2 index maps"),
        (with_attributes(output=["n", "m"]), r"ops.mm: output indices give \(3, 2\), tensor has \(2, 3\)"),
        (with_attributes(operands=[[form(("m", 1))], [form(), form()]]), "operand 'in.a' has rank 2, its map 1"),
        (
            with_attributes(operands=[[form(("q", 1)), form()], [form(), form()]]),
            "ops.mm: unknown index 'q'",
        ),
        (with_attributes(indices={"m": 2, "n": 3, "k": 4.5}), "ops.mm: index 'k' has extent 4.5"),
        (replace(program(), outputs=(("output", "gone"),)), "outputs.output: 'gone' is never written"),
        (replace(program(), inputs=(("a", "gone"),)), "inputs.a: unknown tensor 'gone'"),
        (
            replace(program(), tensors={**program().tensors, "top": Tensor((2,), "complex64")}),
            "tensors.top: unknown dtype 'complex64'",
        ),
        (
            replace(program(), tensors={**program().tensors, "top": Tensor((-2,), "bfloat16")}),
            "tensors.top: negative extent",
        ),
    ],
)
def test_broken_programs_name_the_place(broken: Program, reason: str) -> None:
    with pytest.raises(GraphError, match=reason):
        validate(broken)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "solar.einsum-graph.v9"},
        {"ops": [{}]},
        {"tensors": {"x": 3}},
        {"ops": 7},
        {"inputs": [["a", ["b"]]]},
        {"tensors": {"in.a": {"shape": "ab", "dtype": "int8"}}},
    ],
)
def test_broken_json_is_a_graph_error(change: dict[str, Any]) -> None:
    with pytest.raises(GraphError):
        from_dict({**to_dict(program()), **change})
