"""What is right differs in the last bits only; what accumulates badly is off by what its format loses."""

import math

import pytest
import torch
from product_problem import computing, drawn, problem

from solbench.corpus.reference import load_reference
from solbench.corpus.variants import fused, in_another_order, in_float64
from solbench.corpus.wrong import with_low_accumulation, wrong_outputs

SUMS = [
    "torch.matmul(a, b)",
    "torch.bmm(a[None], b[None])[0]",
    "torch.addmm(torch.ones(24), a, b)",
    "(a[:, :, None] * b[None]).sum(1)",
    "(a[:, :, None] * b[None]).mean(1)",
    "torch.conv1d(a.T[None], b.T[:, :, None], torch.ones(24))[0]",
]


def test_float64_variant_is_more_exact() -> None:
    instance, inputs = drawn(problem())
    exact = inputs["a"].double() @ inputs["b"].double()
    assert torch.equal(in_float64(instance, inputs)["y"], exact.float())


@pytest.mark.parametrize("source", SUMS)
def test_another_order_differs_in_the_last_bits_only(source: str) -> None:
    instance, inputs = drawn(computing(source))
    plain, other = load_reference(instance.definition)(**inputs), in_another_order(instance, inputs)["y"]
    assert not torch.equal(plain, other)
    assert torch.allclose(plain, other, rtol=1e-5, atol=1e-5)


# Sums that an operator holds inside.
COMPOSITE = [
    "torch.softmax(a @ b, dim=1)",
    "torch.log_softmax(a @ b, dim=1)",
    "torch.layer_norm(a @ b, (24,))",
    "torch.group_norm((a @ b)[None], 2)[0]",
    "torch.batch_norm((a @ b)[:, :, None], None, None, None, None, True, 0.1, 1e-5, False)[:, :, 0]",
    "(a @ b).var(1, keepdim=True).expand(24, 24)",
]


@pytest.mark.parametrize("source", COMPOSITE)
def test_operators_are_taken_apart(source: str) -> None:
    # The product is exact in every order and in bfloat16, so what differs comes from the sum inside.
    exact = source.replace("a @ b", "a.sign() @ torch.eye(32, 24) * b[0]")
    instance, inputs = drawn(computing(exact))
    plain, other = load_reference(instance.definition)(**inputs), in_another_order(instance, inputs)["y"]
    assert torch.allclose(plain, other, rtol=1e-5, atol=1e-6)
    low = with_low_accumulation(instance, inputs, torch.bfloat16)["y"]
    assert not torch.allclose(plain, low, rtol=1e-4, atol=1e-5)
    assert torch.allclose(plain, with_low_accumulation(instance, inputs, None)["y"], rtol=1e-5, atol=1e-6)


def test_a_fused_kernel_rounds_once() -> None:
    instance, inputs = drawn(computing("((a @ b).bfloat16() * 3).float()"))
    assert torch.allclose(fused(instance, inputs)["y"], inputs["a"] @ inputs["b"] * 3, rtol=1e-6)
    # A format of less than 16 bits is the formula's own.
    instance, inputs = drawn(computing("(a @ b).to(torch.float8_e4m3fn).float()"))
    assert torch.equal(fused(instance, inputs)["y"], load_reference(instance.definition)(**inputs))


@pytest.mark.parametrize("hidden", ["a > 9", "a[:, :1] > 0", "torch.arange(32) < 16", "torch.arange(32) >= 16"])
def test_online_softmax(hidden: str) -> None:
    instance, inputs = drawn(computing(f"torch.softmax(a.masked_fill({hidden}, -torch.inf), 1)[:, :24].contiguous()"))
    with torch.no_grad():
        plain = load_reference(instance.definition)(**inputs)
    rows = ~plain.isnan().any(1)  # a row of which nothing is seen has no softmax
    assert rows.any() and torch.allclose(fused(instance, inputs)["y"][rows], plain[rows], rtol=1e-6, atol=1e-7)


def test_quotients_and_exponentials() -> None:
    instance, inputs = drawn(computing("torch.exp(a @ b) / (2 + (a @ b).square())"))
    plain, other = load_reference(instance.definition)(**inputs), fused(instance, inputs)["y"]
    assert not torch.equal(plain, other) and torch.allclose(plain, other, rtol=1e-5)


@pytest.mark.parametrize("source", SUMS)
def test_low_accumulation(source: str) -> None:
    """32 roundings of a running sum to 8 bits: each off by at most 2^-9 of it."""
    instance, inputs = drawn(computing(source))
    plain = load_reference(instance.definition)(**inputs)
    error = (with_low_accumulation(instance, inputs, torch.bfloat16)["y"] - plain).abs().max()
    largest = (inputs["a"].abs() @ inputs["b"].abs()).max() / (32 if "mean" in source else 1)
    assert 2**-12 * largest < error < 32 * 2**-9 * largest
    worse = (with_low_accumulation(instance, inputs, torch.float8_e5m2)["y"] - plain).abs().max()
    assert worse > 4 * error


def test_low_accumulation_of_one_sum_by_hand() -> None:
    # 256 + 1 is 256 in bfloat16: a running sum of ones ends there.
    instance, inputs = drawn(computing("torch.ones(24, 24) * torch.ones(32, 32).flatten().sum()"))
    assert with_low_accumulation(instance, inputs, torch.float32)["y"].unique().tolist() == [1024.0]
    assert with_low_accumulation(instance, inputs, torch.bfloat16)["y"].unique().tolist() == [
        1024.0
    ]  # 64 stretches of 16
    instance, inputs = drawn(computing("torch.full((24, 24), 257.0) + torch.zeros(40).sum() * a[0, 0]"))
    assert with_low_accumulation(instance, inputs, torch.bfloat16)["y"].unique().tolist() == [257.0]
    instance, inputs = drawn(computing("torch.ones(24, 24) * torch.tensor([256.0] + [1.0] * 20).sum()"))
    assert with_low_accumulation(instance, inputs, torch.bfloat16)["y"].unique().tolist() == [256.0]


def test_wrong_outputs() -> None:
    right = torch.arange(6.0).reshape(2, 3)
    stale = right + 10
    found = dict(wrong_outputs("y", right, {"x": right * 2, "n": 3, "z": torch.ones(2)}, stale))
    listed = {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in found.items()}
    assert listed == {
        "y: zeros must fail": [[0, 0, 0], [0, 0, 0]],
        "y: a stale output must fail": [[10, 11, 12], [13, 14, 15]],
        "y: the mean must fail": [[2.5] * 3] * 2,
        "y: half the rows must fail": [[0, 1, 2], [13, 14, 15]],
        "y: transposed must fail": [[0, 3, 1], [4, 2, 5]],
        "y: a copy of x must fail": [[0, 2, 4], [6, 8, 10]],
    }


def test_what_is_right_is_no_control() -> None:
    found = dict(wrong_outputs("y", torch.full((1, 4, 1), math.nan), {}, torch.zeros(1, 4, 1)))
    assert found["y: transposed must fail"] == "has one axis"
    assert found["y: the mean must fail"] == "is the right output"
    found = dict(wrong_outputs("y", torch.ones(3, 3), {}, torch.ones(3, 3)))
    assert {name for name, value in found.items() if value == "is the right output"} == {
        f"y: {control} must fail" for control in ("a stale output", "the mean", "half the rows", "transposed")
    }
    found = dict(wrong_outputs("y", torch.ones(()), {}, torch.zeros(())))
    assert found["y: half the rows must fail"] == "has one element"
