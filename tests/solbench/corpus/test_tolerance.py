"""Shares of a tolerance: closed forms, and the same side as the check's verdict."""

import math
from typing import Any

import pytest
import torch

from solbench.checks import check_outputs
from solbench.corpus.reduce import Instance
from solbench.corpus.tolerance import step_shares, used_shares
from solbench.model.definition import Definition
from solbench.model.trace import Status
from solbench.model.workload import Workload


def instance(dtype: str, check: dict[str, Any], count: int = 4) -> Instance:
    definition = Definition.load(
        {
            "name": "d",
            "axes": {"N": {"type": "var"}},
            "inputs": {"x": {"shape": ["N"], "dtype": "float32"}},
            "outputs": {"y": {"shape": ["N"], "dtype": dtype}},
            "reference": "def run(x):\n    return x\n",
        },
        "d",
    )
    fields = {
        "uuid": "w",
        "axes": {"N": count},
        "inputs": {"x": {"type": "normal"}},
        "checks": [{**check, "output": "y"}],
    }
    workload = Workload.load(fields, "w")
    return Instance(definition, workload, workload.validate_against(definition, "w"))


def share(made: Instance, expected: torch.Tensor, actual: torch.Tensor) -> float:
    """Of the only output; the verdict must be on the same side."""
    (found,) = used_shares(made, {}, {"y": expected}, {"y": actual}).values()
    status, _, _ = check_outputs(made.definition, made.workload, made.axes, {}, {"y": expected}, {"y": actual})
    assert (found <= 1) == (status is Status.PASSED)
    return found


NUMERIC = {"type": "numeric", "atol": 0.5, "rtol": 0.25}
EXPECTED = torch.tensor([0.0, 2.0, -2.0, 6.0])


@pytest.mark.parametrize(
    ("check", "error", "expected"),
    [
        ({}, [0.0, 0.0, 0.0, 0.0], 0.0),
        ({}, [0.25, 0.0, 0.0, 0.0], 0.5),
        ({}, [0.0, 0.0, -1.0, 1.0], 1.0),
        ({}, [1.0, 0.0, 0.0, 0.0], 2.0),
        ({"mode": "normalized_max"}, [1.0, 0.0, 0.0, 0.0], 0.5),
        ({"required_matched_ratio": 0.75}, [1.0, 0.5, 0.0, 0.0], 0.5),
        ({"required_matched_ratio": 0.75}, [1.0, 3.0, 0.0, 0.0], 2.0),
        ({"required_matched_ratio": 0.75, "max_error_cap": 0.5}, [1.0, 0.0, 0.0, 0.0], 2.0),
        ({}, [math.nan, 0.0, 0.0, 0.0], math.inf),
        ({"atol": 0}, [1e-9, 0.0, 0.0, 0.0], math.inf),
        ({"atol": 0}, [0.0, 0.25, 0.0, 0.0], 0.5),
    ],
)
def test_numeric(check: dict[str, Any], error: list[float], expected: float) -> None:
    made = instance("float32", {**NUMERIC, **check})
    assert share(made, EXPECTED, EXPECTED + torch.tensor(error)) == pytest.approx(expected)


def test_negative_infinities() -> None:
    both = torch.tensor([-torch.inf, 1.0, 1.0, 1.0])
    assert share(instance("float32", {**NUMERIC, "allow_negative_inf": True}), both, both) == 0
    assert share(instance("float32", NUMERIC), both, both) == math.inf


@pytest.mark.parametrize("sigma", [0.01, 0.1, 0.3, 1.0])
def test_the_verdict_is_on_the_same_side(sigma: float) -> None:
    generator = torch.Generator().manual_seed(3)
    made = instance("float32", {**NUMERIC, "required_matched_ratio": 0.9}, 1000)
    expected = torch.randn(1000, generator=generator)
    found = share(made, expected, expected + sigma * torch.randn(1000, generator=generator))
    assert 0 < found < 10


@pytest.mark.parametrize(
    ("check", "actual", "expected"),
    [
        ({"max_distance": 4}, [0, 1, 2, 3], 0.0),
        ({"max_distance": 4}, [2, 1, 2, 3], 0.5),
        ({"max_distance": 0}, [0, 1, 2, 4], math.inf),
        ({"max_distance": 4, "min_identical_fraction": 0.5}, [1, 1, 2, 3], 0.5),
        ({"max_distance": 4, "min_identical_fraction": 0.75}, [1, 2, 2, 3], 2.0),
    ],
)
def test_codes(check: dict[str, Any], actual: list[int], expected: float) -> None:
    made = instance("int8", {"type": "code_distance", "mode": "value", **check})
    assert share(made, torch.tensor([0, 1, 2, 3]).to(torch.int8), torch.tensor(actual).to(torch.int8)) == expected


def test_raw_bits() -> None:
    made = instance("float8_e4m3fn", {"type": "code_distance", "mode": "raw_bits", "max_distance": 2})
    codes = torch.tensor([0x00, 0x7E, 0x80, 0xFE], dtype=torch.uint8)
    moved = codes + torch.tensor([0, 1, 0, 0], dtype=torch.uint8)
    assert share(made, codes.view(torch.float8_e4m3fn), moved.view(torch.float8_e4m3fn)) == 0.5


def test_exact_checks_have_no_share() -> None:
    made = instance("float32", {"type": "exact"})
    assert used_shares(made, {}, {"y": EXPECTED}, {"y": EXPECTED + 1}) == {}
    assert step_shares(made, {"y": EXPECTED}) == {}


def test_a_step() -> None:
    """bfloat16 has a step of 2^-7 relative at most: 6 * 2^-7 of 0.5 + 0.25 * 6."""
    made = instance("bfloat16", NUMERIC)
    assert step_shares(made, {"y": EXPECTED.bfloat16()}) == {"y": pytest.approx(6 * 2**-7 / 2)}
    codes = instance("int8", {"type": "code_distance", "mode": "value", "max_distance": 4})
    assert step_shares(codes, {"y": torch.zeros(4, dtype=torch.int8)}) == {"y": 0.25}
    nothing = instance("int8", {"type": "code_distance", "mode": "value", "max_distance": 0})
    assert step_shares(nothing, {"y": torch.zeros(4, dtype=torch.int8)}) == {"y": 0.0}


def routing(kind: str, **fields: Any) -> Instance:
    definition = Definition.load(
        {
            "name": "d",
            "axes": {"T": {"type": "var"}, "E": {"type": "const", "value": 3}, "K": {"type": "const", "value": 1}},
            "inputs": {
                "logits": {"shape": ["T", "E"], "dtype": "float32"},
                "bias": {"shape": ["E"], "dtype": "float32"},
            },
            "outputs": {
                "gate": {"shape": ["T", "E"], "dtype": "float32"},
                "weights": {"shape": ["T", "K"], "dtype": "float32"},
                "ids": {"shape": ["T", "K"], "dtype": "int32"},
            },
            "reference": "def run(logits, bias):\n    return logits\n",
        },
        "d",
    )
    check = {
        "type": kind, "ids_output": "ids", "weights_output": "weights", "bias_input": "bias", "topk": "K",
        "tie_atol": 0.25, "weight_atol": 0.125, **fields,
    }  # fmt: skip
    exact = {"type": "exact", "output": "gate"}
    inputs = {"logits": {"type": "normal"}, "bias": {"type": "normal"}}
    workload = Workload.load({"uuid": "w", "axes": {"T": 1}, "inputs": inputs, "checks": [exact, check]}, "w")
    return Instance(definition, workload, workload.validate_against(definition, "w"))


@pytest.mark.parametrize(
    ("kind", "fields", "chosen"),
    [
        ("topk_routing", {"gating_input": "logits"}, [0.5, 0.25, 0.25]),
        ("sigmoid_routing", {"logits_output": "gate"}, [1.0, 1.0, 1.0]),
    ],
)
def test_routing(kind: str, fields: dict[str, Any], chosen: list[float]) -> None:
    """Softmax gives 1/2, 1/4, 1/4; a bias of 1/8 lifts the third, so that its score is 1/8 short of the first's. The
    sigmoids of log 1, log 1/3, log 1/3 are 1/2, 1/4, 1/4 as well, and a single weight is 1 over itself."""
    made = routing(kind, **fields)
    odds = [2.0, 1.0, 1.0] if kind == "topk_routing" else [1.0, 1 / 3, 1 / 3]
    logits, bias = torch.tensor([odds]).log(), torch.tensor([0.0, 0.0, 0.125])
    inputs = {"logits": logits, "bias": bias}

    def outputs(expert: int, error: float) -> dict[str, torch.Tensor]:
        weights = torch.tensor([[chosen[expert] + error]])
        return {"gate": logits, "weights": weights, "ids": torch.tensor([[expert]], dtype=torch.int32)}

    for expert, error, of_ids, of_weights in [(0, 0.0, 0, 0), (2, 0.0625, 0.5, 0.5), (1, 0.25, 1.0, 2.0)]:
        actual = outputs(expert, error)
        found = used_shares(made, inputs, outputs(0, 0.0), actual)
        assert found == {"ids": pytest.approx(of_ids, abs=1e-6), "weights": pytest.approx(of_weights, abs=1e-5)}
