"""Evidence that a contraction cannot be computed in a number format."""

import pytest
import torch
from product_problem import computing, problem, reduced_of

from solbench.corpus.formats import FormatEvidence, format_evidence, round_to
from solbench.corpus.load import Problem
from solbench.corpus.reference import load_reference, named_outputs
from solbench.inputs import draw


def evidence(made: Problem) -> dict[str, FormatEvidence]:
    instance = reduced_of(made)
    rounds = []
    for seed in (0, 1, 2):
        inputs = draw(instance.definition, instance.workload, instance.axes, seed)
        outputs = named_outputs(instance.definition, load_reference(instance.definition)(**inputs))
        rounds.append((inputs, outputs))
    return {entry.format: entry for entry in format_evidence(instance, rounds)}


def test_a_product_of_fp32_operands() -> None:
    assert all(evidence(problem())[name].rejects for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"))


def test_operands_that_a_format_holds_admit_it() -> None:
    found = evidence(computing("a.bfloat16().float() @ b.bfloat16().float()"))
    assert not found["bfloat16"].rejects and found["float8_e4m3fn"].rejects


def test_every_contraction_must_reject_a_format() -> None:
    """Here the first product may be rounded (its share of y is tiny), so the format is admitted."""
    assert not evidence(computing("1e-6 * (a @ b) + a @ (2 * b)"))["float16"].rejects


def test_a_contraction_that_decides_nothing_is_no_evidence() -> None:
    assert evidence(computing("torch.where(a[:, :1] > 9, a @ b, a @ (2 * b))"))["float16"].rejects
    assert evidence(computing("torch.where(a[:, :1] > 9, a @ b, a[:, :1] * b[:1])")) == {}


def test_evidence_needs_every_round_and_a_margin() -> None:
    assert FormatEvidence("int8", (0.5, 0.002, 0.9)).rejects
    assert not FormatEvidence("int8", (0.5, 0.0009, 0.9)).rejects
    assert not FormatEvidence("int8", ()).rejects


@pytest.mark.parametrize(
    ("name", "step"), [("bfloat16", 2.0**-8), ("float16", 2.0**-11), ("float8_e4m3fn", 2.0**-4), ("float8_e5m2", 0.125)]
)
def test_rounding_error_of_a_format(name: str, step: float) -> None:
    value = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    error = ((round_to(value, name) - value) / value)[value.abs() > 0.1].abs().max().item()
    assert step / 2 < error <= step * 1.0001


def test_int8_rows_are_scaled() -> None:
    value = torch.tensor([[127.0, 63.4, 0.4], [1.27, 0.634, 0.0], [0.0, 0.0, 0.0]])
    expected = torch.tensor([[127.0, 63.0, 0.0], [1.27, 0.63, 0.0], [0.0, 0.0, 0.0]])
    assert torch.allclose(round_to(value, "int8"), expected)
