import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solbench.errors import InputError
from solbench.model.definition import Definition, TensorSpec, resolve_shape, storage_bytes

FIELDS: dict[str, Any] = {
    "name": "pair_sum",
    "op_type": "elementwise",
    "axes": {
        "M": {"type": "var"},
        "D": {"type": "const", "value": 6},
        "H": {"type": "expr", "expression": "D // 2"},
        "MH": {"type": "expr", "expression": "M * H"},
    },
    "inputs": {
        "x": {"shape": ["M", "D"], "dtype": "float32"},
        "scale": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["M", "H", 1], "dtype": "bfloat16"}},
    "reference": "def run(x, scale):\n    return x\n",
}


def fields(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(FIELDS), **changes}


def test_loads_and_resolves() -> None:
    definition = Definition.load(fields(), "d")
    axes = definition.resolve_axes({"M": 5}, "w")
    assert axes == {"M": 5, "D": 6, "H": 3, "MH": 15}
    assert resolve_shape(definition.outputs["y"], axes) == (5, 3, 1)
    assert storage_bytes(definition.outputs["y"], axes) == 30
    assert storage_bytes(definition.inputs["scale"], axes) == 0
    assert Definition.load(definition.as_dict(), "again") == definition


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extra": 1}, "d: extra: Extra inputs are not permitted"),
        ({"name": "../up"}, "d: name: "),
        ({"op_type": ""}, "d: op_type: "),
        ({"outputs": {}}, "d: outputs: "),
        ({"axes": {"M": {"type": "const", "value": -1}}}, "d: axes.M.const.value: .*greater than or equal to 0"),
        ({"axes": {"M": {"type": "odd"}}}, "d: axes.M: "),
        ({"axes": {**FIELDS["axes"], "Z": {"type": "expr", "expression": "Q + 1"}}}, "d: axes.Z: unknown axis 'Q'"),
        ({"axes": {**FIELDS["axes"], "Z": {"type": "expr", "expression": "1 +"}}}, "d: axes.Z: .*not an expression"),
        ({"inputs": {**FIELDS["inputs"], "x": {"shape": ["M", "Q"], "dtype": "float32"}}}, "inputs.x.shape: .*'Q'"),
        ({"inputs": {**FIELDS["inputs"], "x": {"shape": ["²"], "dtype": "float32"}}}, "inputs.x.shape: unknown axis"),
        ({"inputs": {**FIELDS["inputs"], "x": {"shape": ["M"], "dtype": "float33"}}}, "d: inputs.x.dtype: "),
        ({"outputs": {"x": {"shape": ["M"], "dtype": "float32"}}}, "outputs.x: is also the name of an input"),
        ({"outputs": {"M": {"shape": ["M"], "dtype": "float32"}}}, "outputs.M: is also the name of an axis"),
        ({"outputs": {"y": {"shape": None, "dtype": "float32"}}}, "outputs.y.shape: an output is a tensor"),
        ({"in_place": ["scale"]}, "in_place: 'scale' is not a tensor input"),
        ({"persistent": ["nope"]}, "persistent: 'nope' is not a tensor input"),
        ({"reference": "def run(x, scale)\n"}, "reference: line 1"),
        ({"reference": "def other(x, scale):\n    pass\n"}, "no top-level function 'run'"),
        ({"reference": "def run(scale, x):\n    pass\n"}, r"run\(scale, x\) must take the inputs x, scale in order"),
        ({"reference": "def run(x, scale, *more):\n    pass\n"}, "must take the inputs"),
        ({"custom_inputs_entrypoint": "make"}, "no top-level function 'make'"),
    ],
)
def test_rules(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Definition.load(fields(**changes), "d")


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ({}, "w: axes.M: is not bound"),
        ({"M": 1, "D": 6}, "w: axes.D: is constant"),
        ({"M": 1, "H": 3}, "w: axes.H: is computed"),
        ({"M": 1, "Q": 3}, "w: axes.Q: unknown axis; pair_sum has M, D, H, MH"),
        ({"M": -1}, "w: axes.M: is -1; a size is not negative"),
    ],
)
def test_axis_bindings(bound: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Definition.load(fields(), "d").resolve_axes(bound, "w")


@given(st.integers(0, 10**6), st.integers(0, 10**4))
def test_bytes_are_elements_times_width(rows: int, columns: int) -> None:
    spec = TensorSpec(shape=("M", "N"), dtype="float16")
    assert storage_bytes(spec, {"M": rows, "N": columns}) == 2 * rows * columns
    half = TensorSpec(shape=("M", "N"), dtype="float4_e2m1")
    assert storage_bytes(half, {"M": rows, "N": columns}) == -(-rows * columns // 2)
    pair = TensorSpec(shape=("M", "N"), dtype="float4_e2m1fn_x2")
    assert storage_bytes(pair, {"M": rows, "N": columns}) == rows * columns
