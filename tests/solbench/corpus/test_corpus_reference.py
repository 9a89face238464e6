from typing import Any

import pytest
import torch

from solbench.corpus.reference import load_reference, named_outputs
from solbench.errors import InputError
from solbench.model.definition import Definition


def definition(reference: str) -> Definition:
    return Definition.load(
        {
            "name": "two",
            "axes": {"M": {"type": "var"}},
            "inputs": {"x": {"shape": ["M"], "dtype": "float32"}},
            "outputs": {name: {"shape": ["M"], "dtype": "float32"} for name in ("double", "square")},
            "reference": reference,
        },
        "d",
    )


REFERENCE = "factor = 2\n\ndef run(x):\n    return helper(x), x * x\n\ndef helper(x):\n    return factor * x\n"


def test_a_namespace_of_its_own() -> None:
    run = load_reference(definition(REFERENCE))
    other = load_reference(definition(REFERENCE))
    other.__globals__["factor"] = 3
    outputs = named_outputs(definition(REFERENCE), run(torch.tensor([3.0])))
    assert outputs["double"].item() == 6.0 and outputs["square"].item() == 9.0


def test_missing_module() -> None:
    with pytest.raises(InputError, match="two: reference: cannot import"):
        load_reference(definition("import no_such_module_here\n" + REFERENCE))


ONE = torch.ones(1)


@pytest.mark.parametrize("result", [(ONE, ONE), [ONE, ONE], {"square": ONE, "double": ONE}])
def test_outputs_by_name(result: Any) -> None:
    assert list(named_outputs(definition(REFERENCE), result)) == ["double", "square"]


@pytest.mark.parametrize("result", [ONE, (ONE,), (ONE, ONE, ONE), {"double": ONE}, (ONE, 2.0), None, "ab"])
def test_wrong_outputs(result: Any) -> None:
    with pytest.raises(InputError, match="two: result of run"):
        named_outputs(definition(REFERENCE), result)
