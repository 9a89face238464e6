import json
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from solbench import checks
from solbench.checks import Outcome, check_outputs
from solbench.errors import InputError
from solbench.model.definition import Definition
from solbench.model.trace import CheckResult, Status
from solbench.model.workload import Workload

NAN, INF = math.nan, math.inf


def judge(check: dict[str, Any], expected: torch.Tensor, actual: torch.Tensor, **axes: int) -> Outcome:
    """Compare two tensors as the one output ``y``."""
    fields = {
        "name": "one",
        "axes": {name: {"type": "var"} for name in axes},
        "inputs": {},
        "outputs": {"y": {"shape": list(expected.shape), "dtype": str(expected.dtype).removeprefix("torch.")}},
        "reference": "def run():\n    pass\n",
    }
    definition = Definition.load(fields, "d")
    workload = Workload.load({"uuid": "w", "axes": axes, "inputs": {}, "checks": [{"output": "y", **check}]}, "w")
    resolved = workload.validate_against(definition, "w")
    return check_outputs(definition, workload, resolved, {}, {"y": expected}, {"y": actual})


def numeric(expected: list[float], actual: list[float], atol: Any = 0.0, rtol: Any = 0.0, **more: Any) -> CheckResult:
    axes = more.pop("axes", {})
    check = {"type": "numeric", "atol": atol, "rtol": rtol, **more}
    status, reason, (result,) = judge(check, torch.tensor(expected), torch.tensor(actual), **axes)
    assert (status is Status.PASSED) == result.passed == (reason is None)
    json.dumps(result.as_dict(), allow_nan=False)
    return result


@pytest.mark.parametrize(
    ("actual", "atol", "rtol", "passes"),
    [
        ([1.0, -100.0], 0, 0, True),
        ([1.25, -100.0], 0.25, 0, True),
        ([1.25, -100.0], 0.2499, 0, False),
        ([1.0, -101.0], 0, 0.01, True),
        ([1.0, -101.0], 0, 0.0099, False),
        ([1.5, -101.0], 0.5, 0.01, True),
        ([1.25, -100.0], "1/K", 0, True),
        ([1.25, -100.0], "0.9/K", 0, False),
    ],
)
def test_elementwise_band(actual: list[float], atol: Any, rtol: Any, passes: bool) -> None:
    assert numeric([1.0, -100.0], actual, atol, rtol, axes={"K": 4}).passed is passes


def test_errors_are_reported() -> None:
    result = numeric([1.0, -100.0, 0.0, 8.0], [1.5, -100.0, 0.25, 8.0], 0.1)
    assert (result.compared, result.mismatched) == (4, 2)
    assert (result.max_absolute_error, result.max_relative_error) == (0.5, 0.5)


def test_relative_error_needs_a_nonzero_reference() -> None:
    assert numeric([0.0, 0.0], [0.0, 0.0]).max_relative_error is None


def test_reason_names_output_and_counts() -> None:
    check = {"type": "numeric", "atol": 0, "rtol": 0}
    status, reason, _ = judge(check, torch.tensor([1.0, 2.0]), torch.tensor([1.0, NAN]))
    assert status is Status.INCORRECT_NUMERICAL
    assert reason is not None and "y: 1 of 2 elements fail the numeric check" in reason and "NaN" in reason


@pytest.mark.parametrize(
    ("expected", "actual"),
    [(1.0, NAN), (NAN, 1.0), (NAN, NAN), (1.0, INF), (INF, INF), (INF, 1.0), (-INF, -INF), (-INF, INF), (1.0, -INF)],
)
def test_nothing_infinite_passes(expected: float, actual: float) -> None:
    result = numeric([expected, *[1.0] * 99], [actual, *[1.0] * 99], 1e30, 1e30, required_matched_ratio=0.5)
    assert not result.passed and result.mismatched == 1
    assert result.has_nan == math.isnan(actual) and result.has_inf == math.isinf(actual)
    assert not numeric([expected], [actual], 1e30, 1e30, mode="normalized_max").passed


@pytest.mark.parametrize(
    ("expected", "actual", "passes"), [(-INF, -INF, True), (-INF, INF, False), (-INF, 1.0, False), (1.0, -INF, False)]
)
def test_negative_infinity_where_it_is_allowed(expected: float, actual: float, passes: bool) -> None:
    assert numeric([expected, 1.0], [actual, 1.0], 1, 1, allow_negative_inf=True).passed is passes


@pytest.mark.parametrize(("ratio", "passes"), [(1.0, False), (0.91, False), (0.9, True), (0.5, True)])
def test_matched_ratio(ratio: float, passes: bool) -> None:
    assert numeric([0.0] * 10, [1.0] + [0.0] * 9, required_matched_ratio=ratio).passed is passes


@pytest.mark.parametrize(("cap", "passes"), [(1.0, True), (0.99, False)])
def test_error_cap(cap: float, passes: bool) -> None:
    assert numeric([0.0] * 10, [1.0] + [0.0] * 9, required_matched_ratio=0.5, max_error_cap=cap).passed is passes


@pytest.mark.parametrize(("rtol", "passes"), [(0.1, True), (0.0999, False)])
def test_normalized_max(rtol: float, passes: bool) -> None:
    assert numeric([0.0, -10.0], [1.0, -10.0], 0, rtol, mode="normalized_max").passed is passes


def test_errors_below_float32_resolution_are_seen_in_float64() -> None:
    expected, actual = torch.tensor([1e8]), torch.tensor([1e8 + 8])
    assert judge({"type": "numeric", "atol": 7.9, "rtol": 0}, expected, actual)[0] is Status.INCORRECT_NUMERICAL
    assert judge({"type": "numeric", "atol": 8, "rtol": 0}, expected, actual)[0] is Status.PASSED


_floats = st.floats(-1e3, 1e3, width=32) | st.sampled_from([NAN, INF, -INF, 0.0, -0.0])
_pairs = st.lists(st.tuples(_floats, _floats | st.none()), min_size=1, max_size=12)


@given(_pairs, st.floats(0, 10), st.floats(0, 1))
@settings(deadline=None)
def test_agrees_with_the_definition_element_by_element(pairs: list[Any], atol: float, rtol: float) -> None:
    expected = [left for left, _ in pairs]
    actual = [left if right is None else right for left, right in pairs]
    wrong = 0
    for r, o in zip(expected, actual):
        if not (math.isfinite(r) and math.isfinite(o)):
            wrong += 1
        else:
            wrong += abs(o - r) > atol + rtol * abs(r)
    result = numeric(expected, actual, atol, rtol)
    assert result.mismatched == wrong and result.passed == (wrong == 0)


def test_chunks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHUNK_ELEMENTS", 7)
    actual = [0.0] * 50
    actual[6], actual[7], actual[49] = 1.0, 2.0, NAN
    result = numeric([0.0] * 50, actual)
    assert (result.compared, result.mismatched, result.max_absolute_error, result.has_nan) == (50, 3, 2.0, True)
    assert not numeric([1.0] * 49 + [100.0], [1.0] * 49 + [106.0], 0, 0.05, mode="normalized_max").passed
    assert numeric([1.0] * 49 + [100.0], [5.0] * 49 + [104.0], 0, 0.05, mode="normalized_max").passed


@pytest.mark.parametrize("kind", ["numeric", "exact", "code_distance"])
def test_comparing_nothing_is_an_error(kind: str) -> None:
    check: dict[str, Any] = {"type": kind}
    check |= {"atol": 0, "rtol": 0} if kind == "numeric" else {}
    check |= {"mode": "value", "max_distance": 0} if kind == "code_distance" else {}
    empty = torch.empty(0, 3, dtype=torch.int8)
    with pytest.raises(InputError, match=r"one: w: checks\.y: compares no element"):
        judge(check, empty, empty)


EXACT = {"type": "exact"}


@pytest.mark.parametrize(
    ("expected", "actual", "passes"),
    [
        ([0.0], [-0.0], True),
        ([NAN], [NAN], True),
        ([NAN], [0.0], False),
        ([0.0], [NAN], False),
        ([INF], [INF], True),
        ([INF], [-INF], False),
        ([1.0], [1.0000001], False),
        ([1.0, 2.0], [1.0, 2.0], True),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_floats(expected: list[float], actual: list[float], passes: bool, dtype: torch.dtype) -> None:
    status, _, (result,) = judge(EXACT, torch.tensor(expected, dtype=dtype), torch.tensor(actual, dtype=dtype))
    assert (status is Status.PASSED) is passes is result.passed


def test_exact_keeps_large_integers_apart() -> None:
    large = torch.tensor([2**62])
    assert judge(EXACT, large, large + 1)[0] is Status.INCORRECT_NUMERICAL
    assert judge(EXACT, large, large.clone())[0] is Status.PASSED


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_exact_dtypes(dtype: torch.dtype) -> None:
    ones, zeros = torch.ones(3).to(dtype), torch.zeros(3).to(dtype)
    assert judge(EXACT, ones, ones.clone())[0] is Status.PASSED
    assert judge(EXACT, ones, zeros)[0] is Status.INCORRECT_NUMERICAL


def codes(expected: torch.Tensor, actual: torch.Tensor, **check: Any) -> CheckResult:
    _, _, (result,) = judge({"type": "code_distance", **check}, expected, actual)
    return result


def int8(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int8)


def test_distance_of_values() -> None:
    assert codes(int8(5, -7, 127), int8(6, -8, 127), mode="value", max_distance=1).passed
    assert not codes(int8(5, -7, 127), int8(6, -9, 127), mode="value", max_distance=1).passed
    assert codes(int8(127), int8(-128), mode="value", max_distance=255).max_absolute_error == 255


def test_identical_fraction() -> None:
    right, near = int8(*range(10)), int8(1, *range(1, 10))
    assert codes(right, near, mode="value", max_distance=1, min_identical_fraction=0.9).passed
    result = codes(right, near, mode="value", max_distance=1, min_identical_fraction=0.91)
    assert not result.passed and result.mismatched == 0


def test_distance_of_raw_bits() -> None:
    eight = torch.tensor([0x00, 0x38, 0x7E], dtype=torch.uint8).view(torch.float8_e4m3fn)
    next_up = torch.tensor([0x00, 0x39, 0x7E], dtype=torch.uint8).view(torch.float8_e4m3fn)
    minus_zero = torch.tensor([0x80, 0x38, 0x7E], dtype=torch.uint8).view(torch.float8_e4m3fn)
    assert codes(eight, eight.clone(), mode="raw_bits", max_distance=0).passed
    assert not codes(eight, next_up, mode="raw_bits", max_distance=0).passed
    assert codes(eight, next_up, mode="raw_bits", max_distance=1).passed
    assert codes(eight, minus_zero, mode="raw_bits", max_distance=128).max_absolute_error == 128
    assert not codes(eight, minus_zero, mode="raw_bits", max_distance=127).passed


def test_raw_bits_are_unsigned() -> None:
    left, right = torch.tensor([0x7FFF], dtype=torch.int16), torch.tensor([-0x8000], dtype=torch.int16)
    assert codes(left, right, mode="raw_bits", max_distance=1).passed
    assert codes(int8(-1), int8(0), mode="raw_bits", max_distance=255).max_absolute_error == 255


def test_code_distance_of_what_has_no_codes() -> None:
    with pytest.raises(InputError, match="needs integer codes"):
        codes(torch.ones(2), torch.ones(2), mode="value", max_distance=0)
    with pytest.raises(InputError, match="at most 32 bits"):
        codes(torch.ones(2).double(), torch.ones(2).double(), mode="raw_bits", max_distance=0)


CHECK = {"type": "numeric", "atol": 10, "rtol": 10}


@pytest.mark.parametrize(
    ("actual", "status", "words"),
    [
        (torch.ones(3, 2), Status.INCORRECT_SHAPE, r"y: shape is \[3, 2\], declared is \[2, 3\]"),
        (torch.ones(6), Status.INCORRECT_SHAPE, "shape"),
        (torch.ones(2, 3).double(), Status.INCORRECT_DTYPE, "y: dtype is float64, declared is float32"),
        (torch.ones(3, 2).double(), Status.INCORRECT_SHAPE, "shape"),
        (torch.ones(3, 2).T, Status.INCORRECT_SHAPE, r"strides are \[1, 2\], an output is contiguous"),
        (torch.ones(1, 3).expand(2, 3), Status.INCORRECT_SHAPE, "strides"),
        (torch.ones(2, 3).to_sparse(), Status.INCORRECT_SHAPE, "plain dense tensor"),
        (torch.ones(2, 3, device="meta"), Status.INCORRECT_SHAPE, "plain dense tensor"),
        (torch.nn.Parameter(torch.ones(2, 3)), Status.INCORRECT_SHAPE, "plain dense tensor"),
        ([[1.0] * 3] * 2, Status.INCORRECT_SHAPE, "plain dense tensor"),
        (None, Status.INCORRECT_SHAPE, "plain dense tensor"),
    ],
)
def test_form_comes_first(actual: Any, status: Status, words: str) -> None:
    found, reason, results = judge(CHECK, torch.ones(2, 3), actual)
    assert found is status and results == ()
    assert reason is not None
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(reason)


def test_names_of_outputs() -> None:
    definition = Definition.load(
        {
            "name": "two",
            "axes": {},
            "inputs": {},
            "outputs": {name: {"shape": [2], "dtype": "float32"} for name in ("y", "z")},
            "reference": "def run():\n    pass\n",
        },
        "d",
    )
    both = [{"type": "exact", "output": name} for name in ("y", "z")]
    workload = Workload.load({"uuid": "w", "axes": {}, "inputs": {}, "checks": both}, "w")
    one = torch.ones(2)
    right = {"y": one, "z": one}
    assert check_outputs(definition, workload, {}, {}, right, {"y": one})[0] is Status.INCORRECT_SHAPE
    assert check_outputs(definition, workload, {}, {}, right, {**right, "q": one})[0] is Status.INCORRECT_SHAPE
    status, reason, results = check_outputs(definition, workload, {}, {}, right, {"y": one, "z": one + 1})
    assert status is Status.INCORRECT_NUMERICAL and [result.passed for result in results] == [True, False]
    assert reason is not None and reason.startswith("z: 2 of 2")
    with pytest.raises(InputError, match="two: w: expected: z: shape"):
        check_outputs(definition, workload, {}, {}, {"y": one, "z": torch.ones(3)}, right)


ROUTE = Definition.load(
    {
        "name": "route",
        "axes": {"T": {"type": "var"}, "E": {"type": "var"}, "K": {"type": "var"}},
        "inputs": {
            "gating": {"shape": ["T", "E"], "dtype": "float32"},
            "bias": {"shape": ["E"], "dtype": "float32"},
            "scale": {"shape": None, "dtype": "float32"},
        },
        "outputs": {
            "weights": {"shape": ["T", "K"], "dtype": "float32"},
            "ids": {"shape": ["T", "K"], "dtype": "int32"},
        },
        "reference": "def run(gating, bias, scale):\n    pass\n",
    },
    "d",
)
# Probabilities 1/16, 2/16, 5/16, 8/16 in both rows; the bias lifts expert 0 above expert 1.
GATING = torch.log(torch.tensor([[1.0, 2.0, 5.0, 8.0]] * 2))
BIAS = torch.tensor([0.1, 0.0, 0.0, 0.0])


def route(ids: list[list[int]], weights: list[list[float]] | None = None, tie: float = 1e-6, scale: float = 2.0) -> Any:
    ids_tensor = torch.tensor(ids, dtype=torch.int32)
    if weights is None:
        safe = ids_tensor.long().clamp(0, 3)
        weights_tensor = scale * torch.softmax(GATING, 1).gather(1, safe)
    else:
        weights_tensor = torch.tensor(weights)
    check = {
        "type": "topk_routing", "ids_output": "ids", "weights_output": "weights", "gating_input": "gating",
        "bias_input": "bias", "scale_input": "scale", "topk": "K", "tie_atol": tie, "weight_atol": 1e-6,
    }  # fmt: skip
    inputs = {name: {"type": "constant", "value": 0.0} for name in ("gating", "bias", "scale")}
    workload = Workload.load({"uuid": "w", "axes": {"T": 2, "E": 4, "K": 3}, "inputs": inputs, "checks": [check]}, "w")
    axes = workload.validate_against(ROUTE, "w")
    expected = {"weights": torch.zeros(2, 3), "ids": torch.zeros(2, 3, dtype=torch.int32)}
    given = {"gating": GATING, "bias": BIAS, "scale": scale}
    actual = {"weights": weights_tensor, "ids": ids_tensor}
    status, _, results = check_outputs(ROUTE, workload, axes, given, expected, actual)
    assert (status is Status.PASSED) == all(result.passed for result in results)
    return {result.output: result.passed for result in results}


@pytest.mark.parametrize("ids", [[[3, 2, 0], [3, 2, 0]], [[0, 2, 3], [2, 0, 3]]])
def test_topk_in_any_order(ids: list[list[int]]) -> None:
    assert route(ids) == {"weights": True, "ids": True}


@pytest.mark.parametrize("row", [[3, 2, 1], [3, 3, 2], [3, 2, 4], [3, 2, -1], [3, 0, 1], [3, 2, 2**31 - 1]], ids=str)
def test_topk_wrong_ids(row: list[int]) -> None:
    assert not route([[3, 2, 0], row])["ids"]


def test_topk_ties_within_the_tolerance() -> None:
    # Scores: 0.1625 (expert 0) and 0.125 (expert 1).
    assert route([[3, 2, 1]] * 2, tie=0.0376)["ids"]
    assert not route([[3, 2, 1]] * 2, tie=0.0374)["ids"]
    assert not route([[3, 0, 1]] * 2, tie=0.0376)["ids"], "the second best cannot be left out"


def test_topk_weights_belong_to_their_id() -> None:
    right = [[1.0, 0.625, 0.125]] * 2
    assert route([[3, 2, 0]] * 2, right) == {"weights": True, "ids": True}
    assert route([[2, 3, 0]] * 2, right) == {"weights": False, "ids": True}
    assert not route([[3, 2, 0]] * 2, [[0.5, 0.3125, 0.0625]] * 2)["weights"], "the scale counts"
    assert not route([[3, 2, 0]] * 2, [[1.0, 0.625, 0.125 + 0.2]] * 2)["weights"], "the bias does not"
    assert not route([[3, 2, 0]] * 2, [[1.0, 0.625, NAN]] * 2)["weights"]
    assert not route([[3, 2, 0]] * 2, [[0.0] * 3] * 2)["weights"]


def sigmoid_route(ids: list[list[int]], weights: list[list[float]], logits: torch.Tensor | None = None) -> Any:
    """Sigmoids 0.2, 0.4, 0.6, 0.8; the bias lifts expert 0 to 0.5."""
    fields = ROUTE.as_dict()
    fields["outputs"]["logits"] = {"shape": ["T", "E"], "dtype": "float32"}
    fields["order"] = {**fields["order"], "outputs": [*fields["order"]["outputs"], "logits"]}
    definition = Definition.load(fields, "route")
    checks = [
        {"type": "numeric", "output": "logits", "atol": 1e-3, "rtol": 0},
        {
            "type": "sigmoid_routing", "ids_output": "ids", "weights_output": "weights", "logits_output": "logits",
            "bias_input": "bias", "topk": "K", "scale": 2.5, "tie_atol": 1e-4, "weight_atol": 1e-4,
        },
    ]  # fmt: skip
    inputs = {name: {"type": "constant", "value": 0.0} for name in ("gating", "bias", "scale")}
    workload = Workload.load({"uuid": "w", "axes": {"T": 1, "E": 4, "K": 2}, "inputs": inputs, "checks": checks}, "w")
    axes = workload.validate_against(definition, "w")
    right = torch.logit(torch.tensor([[0.2, 0.4, 0.6, 0.8]]))
    blank = {"weights": torch.zeros(1, 2), "ids": torch.zeros(1, 2, dtype=torch.int32)}
    given = {"gating": right * 0, "bias": torch.tensor([0.3, 0.0, 0.0, 0.0]), "scale": 1.0}
    actual = {"weights": torch.tensor(weights), "ids": torch.tensor(ids, dtype=torch.int32)}
    actual["logits"] = right if logits is None else logits
    _, _, results = check_outputs(definition, workload, axes, given, {**blank, "logits": right}, actual)
    return {result.output: result.passed for result in results}


def test_sigmoid_routing_normalises_over_its_own_ids() -> None:
    high, low = 2.5 * 0.8 / 1.4, 2.5 * 0.6 / 1.4
    passed = {"logits": True, "weights": True, "ids": True}
    assert sigmoid_route([[3, 2]], [[high, low]]) == passed
    assert sigmoid_route([[2, 3]], [[low, high]]) == passed
    assert sigmoid_route([[2, 3]], [[high, low]]) == {**passed, "weights": False}
    assert not sigmoid_route([[3, 2]], [[2.0, 1.5]])["weights"], "weights are normalised"
    assert sigmoid_route([[3, 0]], [[2.0, 0.5]]) == {**passed, "ids": False}
    assert not sigmoid_route([[3, 3]], [[1.25, 1.25]])["ids"]


def test_sigmoid_routing_reads_the_expected_logits() -> None:
    # Wrong logits that would justify a wrong choice: both outputs fail.
    wrong = torch.logit(torch.tensor([[0.9, 0.4, 0.6, 0.8]]))
    ids = sigmoid_route([[0, 3]], [[2.5 * 0.9 / 1.7, 2.5 * 0.8 / 1.7]], wrong)
    assert ids == {"logits": False, "weights": False, "ids": False}


def test_sigmoid_routing_names_an_output() -> None:
    check = {
        "type": "sigmoid_routing", "ids_output": "ids", "weights_output": "weights", "logits_output": "gating",
        "topk": "K", "tie_atol": 1e-4, "weight_atol": 1e-4,
    }  # fmt: skip
    inputs = {name: {"type": "constant", "value": 0.0} for name in ("gating", "bias", "scale")}
    workload = Workload.load({"uuid": "w", "axes": {"T": 1, "E": 4, "K": 2}, "inputs": inputs, "checks": [check]}, "w")
    with pytest.raises(InputError, match="logits_output: unknown output 'gating'"):
        workload.validate_against(ROUTE, "w")
