"""The declared order of axes, inputs and outputs survives canonical JSON, which sorts keys."""

from __future__ import annotations

import pytest

from solbench import canonical, store
from solbench.errors import InputError
from solbench.model.definition import Definition

FIELDS = {
    "name": "p",
    "axes": {"K": {"type": "var"}, "B": {"type": "expr", "expression": "2 * K"}},
    "inputs": {"x": {"shape": ["K"], "dtype": "float32"}, "a": {"shape": ["B"], "dtype": "float32"}},
    "outputs": {"z": {"shape": ["K"], "dtype": "float32"}, "y": {"shape": ["B"], "dtype": "float32"}},
    "reference": "def run(x, a):\n    return x, a\n",
}
ORDER = {"axes": ["K", "B"], "inputs": ["x", "a"], "outputs": ["z", "y"]}


def test_order_survives_the_store():
    definition = Definition.load(FIELDS, "p")
    assert definition.as_dict()["order"] == ORDER
    data = store.encode("definition", definition.as_dict())
    stored = canonical.loads(data)
    assert list(stored["inputs"]) == ["a", "x"]
    del stored["kind"]
    again = Definition.load(stored, "p")
    assert again == definition and store.encode("definition", again.as_dict()) == data
    assert [list(group) for group in (again.axes, again.inputs, again.outputs)] == list(ORDER.values())


@pytest.mark.parametrize(
    "order",
    [
        {**ORDER, "inputs": ["x"]},
        {**ORDER, "inputs": ["x", "a", "a"]},
        {**ORDER, "inputs": ["x", "b"]},
        {**ORDER, "inputs": [["x"], "a"]},
        {**ORDER, "inputs": "xa"},
        {"axes": ["K", "B"], "inputs": ["x", "a"]},
        {**ORDER, "inputs": ["a", "x"]},
        {**ORDER, "more": []},
        ["x", "a"],
    ],
)
def test_a_wrong_order_is_an_input_error(order):
    with pytest.raises(InputError):
        Definition.load({**FIELDS, "order": order}, "p")
