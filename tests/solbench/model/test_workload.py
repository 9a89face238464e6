import copy
import json
from typing import Any

import pytest

from solbench.errors import InputError
from solbench.model.definition import Definition
from solbench.model.workload import Workload, checked_outputs

DEFINITION = Definition.load(
    {
        "name": "route",
        "axes": {"T": {"type": "var"}, "E": {"type": "const", "value": 8}, "K": {"type": "var"}},
        "inputs": {
            "gating": {"shape": ["T", "E"], "dtype": "float32"},
            "index": {"shape": ["K"], "dtype": "int32"},
            "scale": {"shape": None, "dtype": "float32"},
        },
        "outputs": {
            "weights": {"shape": ["T", "K"], "dtype": "float32"},
            "ids": {"shape": ["T", "K"], "dtype": "int32"},
        },
        "reference": "def run(gating, index, scale):\n    pass\n",
    },
    "d",
)
NUMERIC = {"type": "numeric", "output": "weights", "atol": "1/E", "rtol": 0}
EXACT = {"type": "exact", "output": "ids"}
TOPK = {
    "type": "topk_routing", "ids_output": "ids", "weights_output": "weights", "gating_input": "gating", "topk": "K",
    "tie_atol": 0.0, "weight_atol": 0.0,
}  # fmt: skip
FIELDS: dict[str, Any] = {
    "uuid": "w0",
    "axes": {"T": 4, "K": 2},
    "inputs": {
        "gating": {"type": "normal", "std": "1/sqrt(E)"},
        "index": {"type": "integer", "high": "E"},
        "scale": {"type": "constant", "value": 2.0},
    },
    "checks": [NUMERIC, EXACT],
}


def load(**changes: Any) -> Workload:
    fields = {**copy.deepcopy(FIELDS), **changes}
    fields["inputs"] = {**FIELDS["inputs"], **changes.get("inputs", {})}
    return Workload.load(fields, "w")


def test_valid() -> None:
    workload = load()
    assert workload.validate_against(DEFINITION, "w") == {"T": 4, "E": 8, "K": 2}
    assert Workload.load(workload.as_dict(), "again") == workload
    json.dumps(workload.as_dict(), allow_nan=False)


def test_one_check_may_cover_two_outputs() -> None:
    workload = load(checks=[TOPK])
    workload.validate_against(DEFINITION, "w")
    assert checked_outputs(workload.checks[0]) == ("weights", "ids")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"uuid": "a/b"}, "w: uuid: "),
        ({"axes": {"T": 4.0, "K": 2}}, "w: axes.T: "),
        ({"axes": {"T": True, "K": 2}}, "w: axes.T: "),
        ({"checks": []}, "w: checks: "),
        ({"checks": [NUMERIC, NUMERIC]}, "output 'weights' is checked twice"),
        ({"checks": [{**NUMERIC, "atol": float("nan")}, EXACT]}, "w: checks.0"),
        ({"checks": [{**NUMERIC, "atol": float("inf")}, EXACT]}, "w: checks.0"),
        ({"checks": [{**NUMERIC, "required_matched_ratio": 0}, EXACT]}, "w: checks.0"),
        ({"inputs": {"gating": {"type": "normal", "std": float("inf")}}}, "w: inputs.gating"),
        ({"inputs": {"gating": {"type": "nosuch"}}}, "w: inputs.gating"),
        ({"inputs": {"gating": {"type": "normal", "sigma": 1}}}, "w: inputs.gating.normal.sigma"),
        ({"rejected_formats": ["tf32"]}, "w: rejected_formats.0"),
    ],
)
def test_form(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axes": {"T": 4}}, "axes.K: is not bound"),
        ({"axes": {"T": -4, "K": 2}}, "axes.T: is -4"),
        ({"axes": {"T": 4, "K": 2, "Q": 1}}, "axes.Q: unknown axis"),
        ({"inputs": {"other": {"type": "normal"}}}, "inputs.other: unknown input"),
        ({"inputs": {"scale": {"type": "normal"}}}, "inputs.scale: a Python scalar takes a constant"),
        ({"inputs": {"gating": {"type": "custom"}}}, "needs a custom_inputs_entrypoint"),
        ({"inputs": {"gating": {"type": "normal", "std": "E - 8"}}}, "gating.std: must be positive"),
        ({"inputs": {"gating": {"type": "normal", "std": "Q"}}}, "gating.std: .*unknown axis 'Q'"),
        ({"inputs": {"gating": {"type": "uniform", "low": 1, "high": 1}}}, "gating.high: must be above low"),
        ({"inputs": {"gating": {"type": "bernoulli", "probability": 1.5}}}, r"probability: must lie in \[0, 1\]"),
        ({"inputs": {"index": {"type": "integer", "low": 8, "high": "E"}}}, "index.high: must be above low"),
        ({"inputs": {"index": {"type": "values", "values": [1, 2, 3]}}}, "index.values: 3 numbers do not fill"),
        ({"checks": [NUMERIC]}, "output 'ids' has no check"),
        ({"checks": [NUMERIC, {**EXACT, "output": "nope"}]}, "unknown output 'nope'"),
        ({"checks": [{**NUMERIC, "atol": "0 - E"}, EXACT]}, "weights.atol: must not be negative"),
        ({"checks": [{**TOPK, "gating_input": "nope"}]}, "gating_input: unknown input 'nope'"),
        (
            {"stress_rounds": [{"label": "far", "inputs": {"nope": {"type": "normal"}}}]},
            "stress_rounds.far.nope: unknown input",
        ),
    ],
)
def test_cross_rules(changes: dict[str, Any], message: str) -> None:
    workload = load(**changes)
    with pytest.raises(InputError, match=message):
        workload.validate_against(DEFINITION, "w")


def test_missing_generator() -> None:
    fields = copy.deepcopy(FIELDS)
    del fields["inputs"]["index"]
    with pytest.raises(InputError, match=r"inputs\.index: has no generator"):
        Workload.load(fields, "w").validate_against(DEFINITION, "w")
