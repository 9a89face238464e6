"""Oracles of both forms on inputs of ours: what is matched by name, form and position, and what is not."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
import torch

from solbench.corpus.oracle import Unmatched, answers, matched

# The shape of a task of the arena: sizes and switches in the constructor, a weight that the module keeps.
ROUTER = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, count, picks, factor=1.0, shifted=True):
        super().__init__()
        self.picks, self.factor = picks, factor
        self.shift = nn.Parameter(torch.randn(count)) if shifted else None

    def forward(self, logits):
        share = logits.float().softmax(-1)
        ids = (share if self.shift is None else share + self.shift).topk(self.picks).indices
        return share.gather(-1, ids) * self.factor, ids.int()


def get_inputs():
    yield [torch.rand(16, 4, dtype=torch.bfloat16)]


def get_init_inputs():
    return [4, 1]
"""
GATE = torch.tensor([[0.0, 1.0, 2.0, 3.0], [3.0, 0.0, 1.0, 2.0]]).bfloat16()
ROUTED: dict[str, Any] = {"gate": GATE, "bias": torch.tensor([9.0, 0.0, 0.0, 0.0]), "picks": 2, "factor": 2.5}

LAYERS = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, wide, slope):
        super().__init__()
        self.first = nn.Linear(wide, wide)
        self.norm = nn.BatchNorm1d(wide)
        self.slope = slope

    def forward(self, x, y, act=torch.relu):
        return act(self.norm(self.first(x))) * self.slope + y


def get_inputs():
    return [torch.rand(2, 3), torch.rand(2, 3)]


def get_init_inputs():
    return [3, 0.5]
"""
WIDE: dict[str, Any] = {
    "x": torch.randn(5, 3), "first_weight": torch.randn(3, 3), "first_bias": torch.randn(3),
    "norm_weight": torch.ones(3), "norm_bias": torch.zeros(3), "norm_running_mean": torch.randn(3),
    "norm_running_var": torch.rand(3) + 1, "y": torch.randn(5, 3), "slope": 3.0,
}  # fmt: skip


def module(source: str) -> types.ModuleType:
    made = types.ModuleType("oracle")
    exec(source, made.__dict__)  # noqa: S102
    return made


def called(source: str, inputs: dict[str, Any]) -> Any:
    model, arguments = matched(module(source), inputs)
    return model(**arguments)


def test_a_constructor_a_parameter_and_a_position() -> None:
    # gate is logits by position, bias is shift by its form, picks and factor are the constructor's.
    weights, ids = called(ROUTER, ROUTED)
    assert ids.tolist() == [[0, 3], [0, 3]]  # the first by its bias, whatever the shift that the constructor drew
    parts = torch.tensor([[0.0, 3.0], [3.0, 2.0]]).exp() / sum(torch.tensor([0.0, 1.0, 2.0, 3.0]).exp())
    torch.testing.assert_close(weights, 2.5 * parts)


def test_weights_and_arguments_by_name_in_evaluation_mode() -> None:
    result = called(LAYERS, WIDE)
    hidden = WIDE["x"] @ WIDE["first_weight"].T + WIDE["first_bias"]
    scaled = (hidden - WIDE["norm_running_mean"]) / (WIDE["norm_running_var"] + 1e-5).sqrt()
    torch.testing.assert_close(result, torch.relu(scaled) * 3 + WIDE["y"])


def without(inputs: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if name not in names}


@pytest.mark.parametrize(
    ("source", "inputs", "reason"),
    [
        (
            ROUTER,
            {**ROUTED, "bias": torch.zeros(8)},
            r"inputs gate bfloat16 \[2, 4\], bias float32 \[8\] is left, of the oracle logits, shift float32 \[4\]$",
        ),
        (ROUTER, {**ROUTED, "bias": torch.zeros(4).half()}, r"bias float16 \[4\] is left, of .* shift float32 \[4\]"),
        (ROUTER, without(ROUTED, "bias"), r"of the inputs none is left, of the oracle shift float32 \[4\]"),
        (ROUTER, without(ROUTED, "gate", "bias"), r"none is left, of the oracle logits, shift float32 \[4\]"),
        (ROUTER, {**ROUTED, "gate": GATE.float()}, "gate is float32 of 2 .*, the oracle's logits is bfloat16 of 2"),
        (ROUTER, {**ROUTED, "gate": GATE[0]}, "gate is bfloat16 of 1 dimensions"),
        (ROUTER, {**ROUTED, "epsilon": 1e-5}, r"gate .*, epsilon float is left, of the oracle logits$"),
        (LAYERS, {**WIDE, "first_bias": torch.ones(6)}, r"\[6\], the oracle's first.bias is float32 \[3\]"),
        # Two inputs of one form, two weights of that form: which is which?
        (
            LAYERS,
            {**without(WIDE, "first_bias", "norm_bias"), "a": torch.ones(3), "b": torch.ones(3)},
            r"a float32 \[3\], b float32 \[3\] is left, of .* first.bias float32 \[3\], norm.bias float32 \[3\]",
        ),
    ],
)  # fmt: skip
def test_what_is_not_the_same_is_named(source: str, inputs: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unmatched, match=reason):
        called(source, inputs)


def test_one_weight_is_found_by_its_form() -> None:
    inputs = {("renamed" if name == "first_weight" else name): value for name, value in WIDE.items()}
    torch.testing.assert_close(called(LAYERS, inputs), called(LAYERS, WIDE))


@pytest.mark.parametrize(
    ("source", "dtype"),
    [
        ("def module_fn(x, other=None):\n    return x + 0\n", "float32"),  # widened
        (
            "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + 0\n\n\n"
            "def get_init_inputs():\n    return []\n",
            "bfloat16",
        ),
    ],
)
def test_only_functions_get_sixteen_bits_widened(source: str, dtype: str, tmp_path: Path) -> None:
    (tmp_path / "oracle.py").write_text(source)
    torch.save({"x": GATE}, tmp_path / "inputs-0")
    assert list(answers({"cases": 1}, tmp_path)) == [{"tensors": [[dtype, [2, 4]]]}]
    data = bytearray((tmp_path / "output-0-0").read_bytes())
    assert torch.equal(torch.frombuffer(data, dtype=getattr(torch, dtype)).view(2, 4), GATE.to(getattr(torch, dtype)))


def test_a_file_with_neither_says_so(tmp_path: Path) -> None:
    (tmp_path / "oracle.py").write_text("def run(x):\n    return x\n")
    torch.save({"x": GATE}, tmp_path / "inputs-0")
    assert list(answers({"cases": 1}, tmp_path)) == [{"reason": "the oracle has neither module_fn nor Model"}]
