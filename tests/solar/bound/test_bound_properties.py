"""What must hold of every program: slicing an output never costs more, names do not matter, bytes move in time."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from bound_programs import Build, machine, programs
from hypothesis import given, settings
from hypothesis import strategies as st

from solar.bound import bound
from solar.einsum import Op, Program, from_dict, to_dict
from solar.errors import GraphError
from solar.hardware import Machine, load

GFX1200 = load("gfx1200")
PLAIN = Machine.from_dict(machine(valu={"float32": 1e12}))


def summary(program: Program) -> dict[str, Any]:
    return bound(program, GFX1200)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(programs(), st.data())
def test_a_slice_of_an_output_never_costs_more(made: tuple[Build, str], data: st.DataObject) -> None:
    b, value = made
    whole = summary(b.program(value))
    dim = data.draw(st.integers(0, 1))
    extent = b.shape(value)[dim]
    start = data.draw(st.integers(0, extent - 1))
    stop = data.draw(st.integers(start + 1, extent))
    part = summary(b.program(b.slice(value, dim, start, stop)))
    assert part["t_sol_s"] <= whole["t_sol_s"]
    assert part["memory"]["live_read_bytes"] <= whole["memory"]["live_read_bytes"]
    assert part["macs"] <= whole["macs"]
    # With one engine of one format all work is comparable.
    program = b.program(value)
    work = [
        math.fsum(c["ops"] for c in bound(each, PLAIN)["compute"])
        for each in (replace(program, outputs=(("out0", value),)), b.program(b.ops[-1].outputs[0]))
    ]
    assert work[1] <= work[0]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(programs())
def test_time_is_positive_and_the_maximum_of_its_terms(made: tuple[Build, str]) -> None:
    b, value = made
    found = summary(b.program(value))
    engines: dict[str, list[float]] = {}
    for entry in found["compute"]:
        engines.setdefault(entry["engine"], []).append(entry["seconds"])
    terms = [found["memory"]["seconds"], *(math.fsum(parts) for parts in engines.values())]
    assert 0 < found["t_sol_s"] == max(terms)
    assert found["memory"]["live_bytes"] <= found["memory"]["declared_bytes"]
    assert found["macs"] <= found["dense_macs"]
    json.dumps(found, allow_nan=False)


def as_written(program: Program) -> int:
    """Operations of a kernel a step: what the reference does, nothing saved."""
    total = 0
    for op in program.ops:
        if op.kind == "einsum":
            total += 2 * math.prod(op.attributes["indices"].values())
        elif op.kind == "reduce":
            total += program.tensors[op.operands[0]].elements
        elif op.kind == "map":
            total += program.tensors[op.outputs[0]].elements
    return total


@settings(max_examples=150, deadline=None, derandomize=True)
@given(programs())
def test_the_reference_itself_is_never_cheaper(made: tuple[Build, str]) -> None:
    b, value = made
    program = b.program(value)
    assert math.fsum(c["ops"] for c in bound(program, PLAIN)["compute"]) <= as_written(program)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(programs())
def test_names_do_not_matter(made: tuple[Build, str]) -> None:
    b, value = made
    program = b.program(value)
    new = {name: f"z{len(program.tensors) - i}" for i, name in enumerate(program.tensors)}

    def renamed(op: Op) -> Op:
        return replace(
            op,
            name=f"op{new[op.outputs[0]]}",
            operands=tuple(new[name] for name in op.operands),
            outputs=tuple(new[name] for name in op.outputs),
        )

    other = replace(
        program,
        tensors={new[name]: tensor for name, tensor in program.tensors.items()},
        inputs=tuple((declared, new[name]) for declared, name in program.inputs),
        outputs=tuple((declared, new[name]) for declared, name in program.outputs),
        ops=tuple(renamed(op) for op in program.ops),
    )
    first, second = summary(program), summary(other)
    for found in (first, second):
        for term in found["terms"]:
            del term["op"]
    assert first == second


@settings(max_examples=40, deadline=None, derandomize=True)
@given(programs())
def test_the_artifact_gives_the_same_bound(made: tuple[Build, str]) -> None:
    b, value = made
    program = b.program(value)
    again = from_dict(json.loads(json.dumps(to_dict(program))))
    assert summary(program) == summary(again)


def test_an_unknown_rejected_format_is_refused() -> None:
    b = Build()
    program = b.program(b.map("exp", b.input("x", 4)))
    assert bound(program, GFX1200, rejected_formats=("float16x2", "int8", "float4_e2m1fn_x2"))["t_sol_s"] > 0
    with pytest.raises(GraphError, match="rejected_formats: unknown format 'nonsense'; there are bfloat16"):
        bound(program, GFX1200, rejected_formats=("nonsense",))


def test_rejecting_a_format_never_makes_it_cheaper() -> None:
    b = Build()
    x, w = b.input("x", 2048, 2048), b.input("w", 2048, 2048)
    program = b.program(b.einsum("ij,jk->ik", x, w))
    times = [
        bound(program, GFX1200, rejected_formats=rejected)["t_sol_s"]
        for rejected in ((), ("float16",), ("float16", "bfloat16"), ("float16", "bfloat16", "float16x2"))
    ]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("function", "attributes"),
    [
        ("permute", {"dims": [0, 5]}),
        ("permute", {}),
        ("slice", {"dim": 0, "start": 0, "stop": 4, "step": 0}),
        ("select", {"dim": 9, "index": 0}),
        ("sideways", {}),
        ("reshape", {}),
    ],
)
def test_an_operation_that_makes_no_sense_is_one_clear_error(function: str, attributes: dict[str, Any]) -> None:
    b = Build()
    made = b.view(function, b.input("x", 4, 5), [4, 7], **attributes)
    with pytest.raises(GraphError):
        bound(b.program(made), GFX1200)


def test_sizes_beyond_any_memory_cost_nothing_to_analyse() -> None:
    b = Build()
    x, w = b.input("x", 1 << 40, 1 << 20), b.input("w", 1 << 20, 1 << 12)
    made = b.einsum("ij,jk->ik", b.slice(x, 0, 5, 1 << 39, 3), w)
    found = summary(b.program(b.relu(b.slice(made, 1, 1, 1 << 12, 2))))
    assert found["macs"] == len(range(5, 1 << 39, 3)) * (1 << 20) * (1 << 11)
    rows = b.input("rows", 4, dtype="int64", values=(1, 2, 4, 1 << 39))
    picked = b.op("index", "index_select", [x, rows], [4, 1 << 20], dim=0)
    assert summary(b.program(picked))["memory"]["live_read_bytes"] == 4 * (1 << 20) * 4 + 32
