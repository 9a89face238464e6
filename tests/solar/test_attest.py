"""Attestation: a true conversion passes, every kind of false one is found; the statement holds no measured number."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from solar.attest import attest, patterned, same_structure
from solar.convert import convert
from solar.einsum import Op, Program
from solar.errors import ReplayError
from solar.extract.aten import extract
from solar.graph import Input


def norm(x, w):
    return F.layer_norm(x.float(), (x.shape[1],), w).bfloat16()


def program(rows: int = 6, width: int = 40, run: Any = norm, **options: Any) -> Program:
    inputs = {"x": Input((rows, width), "bfloat16"), "w": Input((width,), "float32")}
    return convert(extract(run, inputs, **options))


def drawn(rows: int = 6, width: int = 40) -> Any:
    def inputs_for(seed: int, kind: str) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn((rows, width), generator=generator).bfloat16()
        return patterned({"x": x, "w": torch.randn(width, generator=generator)}, kind)

    return inputs_for


def digest(value: Any) -> str:
    return "sha256:" + hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def statement(made: Program, run: Any = norm, inputs_for: Any = None, **options: Any) -> dict[str, Any]:
    return attest(made, run, inputs_for or drawn(), subject={"reference": "sha256:00"}, digest=digest, **options)


def test_statement_shape() -> None:
    made = program()
    value = statement(made)
    assert value["schema"] == "solar.attestation.v1"
    assert value["_type"] == "https://in-toto.io/Statement/v1"
    assert [entry["name"] for entry in value["subject"]] == ["reference", "einsum-graph"]
    assert value["subject"][0]["digest"] == {"sha256": "00"}
    assert set(value["subject"][1]["digest"]) == {"sha256"}
    predicate = value["predicate"]
    assert predicate["verdict"] == "passed"
    assert predicate["seeds"] == [11, 29, 47]
    assert predicate["kinds"] == ["random", "zeros", "boundary"]
    assert predicate["shapes"]["outputs"] == {"output": [6, 40]}
    # bf16 has a unit roundoff of 2^-8: one flipped rounding, and little more.
    assert 2 * 2**-8 <= predicate["tolerance"]["output"]["relative"] < 3 * 2**-8
    assert json.dumps(value, allow_nan=False)


def test_the_same_bytes_whatever_the_rounding() -> None:
    made = program()
    perturbed = statement(made, lambda x, w: (norm(x, w).float() * (1 + 2.0**-9)).bfloat16())
    assert perturbed == statement(made)


def test_small_program_stands_for_a_large_one() -> None:
    value = statement(program(), analysed=program(4096, 8192))
    assert value["predicate"]["sizes"] == "small"
    names = [entry["name"] for entry in value["subject"]]
    assert names == ["reference", "einsum-graph", "einsum-graph at small sizes"]
    assert value["subject"][1]["digest"] != value["subject"][2]["digest"]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda x, w: norm(x, w) * 1.1, "output: values differ beyond the tolerance"),
        (lambda x, w: norm(x, w)[:3], "output: shape"),
        (lambda x, w: norm(x, w).float(), r"output: torch\.float32, the replay gives torch\.bfloat16"),
        (lambda x, w: norm(x, w.add_(1)), "the reference changed its input 'w'"),
        (lambda x, w: norm(x, w)[9], "the reference fails: IndexError"),
        (lambda x, w: (norm(x, w), x), "the reference returns 2 tensors"),
    ],
)
def test_a_reference_that_differs(wrong, reason: str) -> None:
    with pytest.raises(ReplayError, match=reason):
        statement(program(), wrong)


def edited(change: Any) -> Program:
    made = program()
    return replace(made, ops=tuple(change(op) for op in made.ops))


def _other_eps(op: Op) -> Op:
    if op.function == "add" and op.attributes.get("scalars") == {"1": 1e-5}:
        return replace(op, attributes={**op.attributes, "scalars": {"1": 0.3}})
    return op


def _maximum_for_sum(op: Op) -> Op:
    return replace(op, function="amax") if op.function == "sum" else op


def _other_dimension(op: Op) -> Op:
    return replace(op, attributes={**op.attributes, "dims": [0]}) if op.kind == "reduce" else op


@pytest.mark.parametrize("change", [_other_eps, _maximum_for_sum])
def test_a_program_that_differs(change) -> None:
    with pytest.raises(ReplayError, match="seed 11, random: output: values differ"):
        statement(edited(change))


def test_quantised_codes_may_differ_where_a_rounding_decides_them() -> None:
    def quantise(x, w, scale=1.0):
        return torch.trunc(x.float().softmax(1) * 100 * w.abs() * scale).to(torch.int8)

    made = program(run=quantise)
    assert statement(made, quantise)["predicate"]["tolerance"]["output"]["rule"] == "one code"
    statement(made, lambda x, w: quantise(x, w, 1 + 2.0**-23))
    with pytest.raises(ReplayError, match="beyond the tolerance"):
        statement(made, lambda x, w: quantise(x, w) + (torch.arange(40) < 9).to(torch.int8))
    with pytest.raises(ReplayError, match="more than one code"):
        statement(made, lambda x, w: quantise(x, w) + 2 * (torch.arange(40) == 0).to(torch.int8))
    # One code, far from where it changes.
    with pytest.raises(ReplayError, match="further from the value in float64"):
        statement(made, lambda x, w: quantise(x, w) + (torch.arange(240).reshape(6, 40) == 7).to(torch.int8))


def test_data_movement_of_integers_is_exact() -> None:
    made = convert(extract(lambda i: i.t().contiguous(), {"i": Input((3, 4), "int64")}))
    ids = lambda seed, kind: {"i": torch.arange(12).reshape(3, 4) * seed}  # noqa: E731
    assert statement(made, lambda i: i.t(), ids)["predicate"]["tolerance"]["output"] == {"rule": "equal"}
    with pytest.raises(ReplayError, match="values differ"):
        statement(made, lambda i: i.t() + 1, ids)


def test_positions_of_ties_are_not_compared_on_patterned_inputs() -> None:
    def run(x, w):
        return (x.float() * w).topk(3, 1)

    value = statement(program(run=run), run)
    assert value["predicate"]["tolerance"]["output.1"]["rule"] == "positions"
    with pytest.raises(ReplayError, match=r"random: output\.1"):
        statement(program(run=run), lambda x, w: (run(x, w)[0], run(x, w)[1].flip(1)))


def test_known_values_must_be_the_ones_drawn() -> None:
    inputs = {"x": Input((5, 4), "float32"), "i": Input((2,), "int64", values=(4, 1))}
    made = convert(extract(lambda x, i: x[i], inputs))
    good = lambda seed, kind: {"x": torch.ones(5, 4), "i": torch.tensor([4, 1])}  # noqa: E731
    statement(made, lambda x, i: x[i], good)
    with pytest.raises(ReplayError, match=r"inputs\.i: differs from the values"):
        statement(made, lambda x, i: x[i], lambda seed, kind: {"x": torch.ones(5, 4), "i": torch.tensor([4, 2])})


def test_in_place_inputs_are_compared_after_the_call() -> None:
    def run(x, w):
        w.mul_(2)
        return x.float() + w

    made = program(run=run, in_place=["w"], outputs=["y"])
    value = statement(made, run)
    assert value["predicate"]["in_place"] == {"w": "w"}
    with pytest.raises(ReplayError, match="random: w: values differ"):
        statement(made, lambda x, w: run(x, w) if w.mul_(1.5) is None else x.float() + 2 * w / 1.5)


def test_patterns() -> None:
    drawn_ = {"x": torch.ones(4), "i": torch.arange(3), "n": 2}
    assert patterned(drawn_, "zeros")["x"].tolist() == [0.0] * 4
    assert patterned(drawn_, "boundary")["x"].tolist() == [-1.0, 0.0, 1.0, -1.0]
    assert patterned(drawn_, "boundary")["i"].tolist() == [0, 1, 2]
    assert patterned(drawn_, "zeros")["n"] == 2
    with pytest.raises(ReplayError, match="no inputs of kind"):
        patterned(drawn_, "ones")


@pytest.mark.parametrize(
    ("small", "reason"),
    [
        (lambda: program(run=lambda x, w: norm(x, w) * 2), "inputs or outputs"),
        (lambda: program(run=lambda x, w: norm(x, -w)), "operations"),
        (lambda: program(run=lambda x, w: norm(x, w), outputs=["y"]), "inputs or outputs"),
        (lambda: edited(_maximum_for_sum), "differs from the operation"),
        (lambda: edited(_other_dimension), "differs from the operation"),
    ],
)
def test_another_structure_is_refused(small, reason: str) -> None:
    same_structure(program(4096, 8192), program())
    with pytest.raises(ReplayError, match=reason):
        same_structure(program(4096, 8192), small())
