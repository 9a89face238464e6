"""The IR's own rules: what validates, what does not, and the way to JSON and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from schema_check import problems

from solar.einsum import JSON_SCHEMA, Op, Program, Tensor, from_dict, to_dict, to_text, validate
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


def test_text_says_what_is_computed() -> None:
    assert to_text(program()) == (
        "program aten\n"
        "%in.a = input a : bf16[2,4]\n"
        "%in.b = input b : bf16[4,3]\n"
        "%mm = einsum[mk,kn->mn] %in.a %in.b : bf16[2,3]\n"
        "%top = reduce.amax %mm {dims=[1], keepdim=False} : bf16[2]\n"
        "output output = %top : bf16[2]\n"
    )


def test_text_of_windows_constants_and_known_contents() -> None:
    windows = {
        "indices": {"y0": 3, "r0": 2},
        "operands": [[form(("y0", 2), ("r0", 1), offset=-1)]],
        "output": ["y0"],
    }
    values = tuple(range(40))
    small = Program(
        path="aten",
        tensors={"x": Tensor((5,), "float32"), "i": Tensor((40,), "int64"), "w": Tensor((3,), "float32"),
                 "c": Tensor((3,), "float32"), "s": Tensor((), "float8_e4m3fn")},
        inputs=(("x", "x"), ("i", "i")),
        outputs=(("x", "c"), ("s", "s")),
        ops=(
            Op("w", "einsum", "window_sum", ("x",), ("w",), windows),
            Op("c", "map", "clamp", ("w",), ("c",), {"scalars": {"2": 6.0}, "source": "aten.clamp.default"}),
            Op("s", "create", "full", (), ("s",), {"value": 1}),
        ),
        values={"i": values},
        aliases={"x": "x"},
    )  # fmt: skip
    lines = to_text(validate(small)).splitlines()
    assert lines[3].startswith("known %i = [40 values, crc32 ")
    assert lines[4] == "%w = einsum.window_sum[(2y0+r0-1)->y0 r0=2] %x : f32[3]"
    assert lines[5] == "%c = map.clamp %w _ 6.0 : f32[3]"
    assert lines[6] == "%s = create.full {value=1} : f8e4m3fn[]"
    assert lines[7] == "output x = %c written to x : f32[3]"
    assert to_text(replace(small, values={"i": (*values[:-1], 7)})) != to_text(small)


def edited(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """The artifact of :func:`program` with an edit by hand."""
    value: dict[str, Any] = json.loads(json.dumps(to_dict(program())))
    change(value)
    return value


def test_the_schema_takes_what_is_written() -> None:
    assert problems(JSON_SCHEMA, edited(lambda value: None)) == []


@pytest.mark.parametrize(
    ("change", "reason", "in_schema"),
    [
        (lambda v: v["ops"][0]["attributes"]["operands"][0].pop(), "operand 'in.a' has rank 2, its map 1", False),
        (lambda v: v["ops"].reverse(), "operand 'mm' is used before it is defined", False),
        (lambda v: v["ops"][1].update(operands=["top"]), "operand 'top' is used before it is defined", False),
        (lambda v: v["ops"][0].update(operands=["in.a"]), "ops.mm: 1 operands, 2 index maps", False),
        (lambda v: v["ops"][0].update(operands=["in.a", "in.z"]), "ops.mm: unknown operand 'in.z'", False),
        (lambda v: v["ops"][1].update(name="mm"), "ops.mm: two operations of this name", False),
        (lambda v: v["values"].update({"in.a": [1]}), "values.in.a: 1 values", False),
        (lambda v: v["aliases"].update(output="b2"), "aliases.output: no output 'output', or no input 'b2'", False),
        (lambda v: v["ops"][1].update(kind="magic"), "ops.top: unknown kind 'magic'", True),
        (lambda v: v["ops"][0]["attributes"]["operands"][0][0]["terms"][0].__setitem__(1, 0.5),
         "ops.mm: coefficient 0.5 of 'm' is not an integer", True),
        (lambda v: v["ops"][0]["attributes"]["operands"][0][0].update(offset="1"),
         "offset '1' is not an integer", True),
        (lambda v: v["ops"][0]["attributes"].pop("output"), "an einsum has indices, operands and output", True),
        (lambda v: v["ops"][0]["attributes"]["indices"].update(k=-4), "index 'k' has extent -4", True),
        (lambda v: v["tensors"]["mm"].update(dtype="float9"), "tensors.mm: unknown dtype 'float9'", True),
        (lambda v: v["tensors"]["mm"].update(shape=[2, -3]), "", True),
        (lambda v: v.pop("outputs"), "einsum-graph: missing field 'outputs'", True),
        (lambda v: v["ops"][0].pop("attributes"), "ops.mm: missing field 'attributes'", True),
        (lambda v: v.update(zzz=1), "einsum-graph: unknown field 'zzz'", True),
        (lambda v: v["ops"][1].update(zzz=1), "ops.top: unknown field 'zzz'", True),
        (lambda v: v.update(ops=7), "einsum-graph: ops: not a list", True),
        (lambda v: v["ops"][0]["attributes"]["operands"][0][0].pop("terms"),
         "ops.mm: attributes: the map of operand 'in.a' is not a list of {terms, offset}", True),
        (lambda v: v["tensors"].update(ghost={"shape": [], "dtype": "int8"}), "tensors.ghost: no input and no", False),
        (lambda v: v.update(schema="solar.einsum-graph.v9"), "schema: 'solar.einsum-graph.v9'", True),
    ],
)  # fmt: skip
def test_an_artifact_edited_by_hand_is_refused_in_one_line(change, reason: str, in_schema: bool) -> None:
    value = edited(change)
    with pytest.raises(GraphError) as caught:
        from_dict(value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert bool(problems(JSON_SCHEMA, value)) is in_schema


def graph_of(kind: str, function: str, operands: int, results: int = 1, **attributes: Any) -> dict[str, Any]:
    """The artifact of one op over inputs of 2 x 3."""
    names, made = [f"x{i}" for i in range(operands)], [f"y{i}" for i in range(results)]
    tensor = {"shape": [2, 3], "dtype": "float32"}
    op = {"name": "op", "kind": kind, "function": function, "operands": names, "outputs": made}
    return {
        "schema": "solar.einsum-graph.v1", "path": "aten", "tensors": {name: tensor for name in names + made},
        "inputs": [[name, name] for name in names], "outputs": [["y", "y0"]],
        "ops": [{**op, "attributes": attributes}], "values": {}, "aliases": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [
        graph_of("map", "add", 2),
        graph_of("map", "sub", 1, scalars={"0": 3}),
        graph_of("map", "clamp", 1, scalars={"2": 3}),
        graph_of("map", "tril", 1, diagonal=0),
        graph_of("reduce", "sum", 1, dims=[], keepdim=False),
        graph_of("view", "permute", 1, dims=[0, 1]),
        graph_of("sort", "sort", 1, 2, dim=1, descending=False, stable=True),
        graph_of("index", "scatter", 2, dim=0, reduce=None, scalars={"2": 0}),
        graph_of("create", "full", 0, value=1),
        graph_of("opaque", "anything", 1),
    ],
)
def test_functions_of_the_catalogue_are_taken(value: dict[str, Any]) -> None:
    assert to_dict(from_dict(value)) == value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (graph_of("map", "add", 1), "ops.op: operands: missing operand: add takes 2, 1 given"),
        (graph_of("map", "sub", 1), "ops.op: operands: missing operand: sub takes 2, 1 given"),
        (graph_of("map", "tril", 0, diagonal=0), "ops.op: operands: missing operand: tril takes 1, 0 given"),
        (graph_of("map", "exp", 2), "ops.op: operands: exp takes 1, 2 given"),
        (graph_of("map", "sub", 1, scalars={"2": 3}), "ops.op: attributes: scalars: no argument '2' of sub"),
        (graph_of("sort", "sort", 1, dim=1), "ops.op: outputs: sort has 2, 1 given"),
        (graph_of("scan", "cumsum", 1), "ops.op: attributes: cumsum needs 'dim'"),
        (graph_of("scan", "cumsum", 1, dim=2), "ops.op: attributes: dim 2 is not a dimension of 2"),
        (graph_of("view", "permute", 1, dims=[9, 9]), "attributes: dims [9, 9] are not distinct dimensions of 2"),
        (graph_of("view", "permute", 1, dims=[1]), "ops.op: attributes: dims [1] is no permutation of 2 dimensions"),
        *(
            (graph_of(kind, "frob", 1), f"ops.op: function: unknown {kind} function 'frob'")
            for kind in ("einsum", "map", "reduce", "view", "copy", "index", "scan", "sort", "create", "cast")
        ),
    ],
)
def test_what_is_not_in_the_catalogue_names_the_op_and_the_field(value: dict[str, Any], reason: str) -> None:
    with pytest.raises(GraphError) as caught:
        from_dict(value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
