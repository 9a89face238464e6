"""Error bounds against closed forms, and gradients that are and are not the reference's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from solar.convert import convert
from solar.einsum import Program
from solar.errors import ReplayError
from solar.extract.aten import extract
from solar.gradients import compare_gradients
from solar.graph import Input
from solar.replay import replay
from solar.rounding import UNIT_ROUNDOFF, Bounded, bounded_outputs

U = UNIT_ROUNDOFF["float32"]


def program(run: Any, **inputs: torch.Tensor) -> Program:
    return convert(extract(run, {n: Input(tuple(x.shape), str(x.dtype)[6:]) for n, x in inputs.items()}))


def bounded(run: Any, **inputs: torch.Tensor) -> Bounded:
    (found,) = bounded_outputs(program(run, **inputs), inputs).values()
    return found


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


def test_a_product_has_the_textbook_bound() -> None:
    a, b = normal(4, 100), normal(100, 3)
    found = bounded(lambda a, b: a @ b, a=a, b=b)
    torch.testing.assert_close(found.exact, a.double() @ b.double())
    gamma = 100 * U / (1 - 100 * U)
    torch.testing.assert_close(found.error, gamma * (a.abs().double() @ b.abs().double()), rtol=0.05, atol=0)


def test_movement_and_selection_are_exact() -> None:
    found = bounded(lambda x: torch.cat((x.t().flip(0), x.t()))[1:].amax(0), x=normal(4, 5))
    assert not found.error.any()


def test_errors_add_up_and_cancellation_shows() -> None:
    x = torch.full((3,), 1.0)
    found = bounded(lambda x: (x + 1e4) - 1e4, x=x)
    # Each step may be off by a roundoff of 1e4, though the result is 1.
    assert bool((found.error >= 2 * 1e4 * U).all()) and bool((found.error <= 7 * 1e4 * U).all())


def test_a_comparison_is_uncertain_where_roundings_decide_it() -> None:
    x = torch.tensor([0.1, 0.5])
    found = bounded(lambda x: x * 3 > 0.1 * 3, x=x)
    assert found.error.tolist() == [1.0, 0.0]


def test_positions_are_never_certain() -> None:
    positions = bounded_outputs(program(lambda x: x.topk(2), x=normal(6)), {"x": normal(6)})["output.1"]
    assert bool(torch.isinf(positions.error).all())


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x.softmax(1),
        lambda x: torch.nn.functional.layer_norm(x, (9,)),
        lambda x: torch.nn.functional.gelu(x).sum(1) / x.exp().mean(1),
        lambda x: (x @ x.t()).tanh().cumsum(0).sqrt().nan_to_num(),
        lambda x: torch.where(x > 0, x.log1p(), x.abs().rsqrt()).bfloat16(),
    ],
)
def test_what_is_computed_lies_inside(run: Any) -> None:
    x = normal(7, 9)
    found = bounded(run, x=x)
    (computed,) = replay(program(run, x=x), {"x": x}).values()
    inside = (computed.double() - found.exact).abs() <= found.error
    assert bool((inside | torch.isnan(computed)).all())


def gradients(run: Any, reference: Any) -> dict[str, Any]:
    x = normal(7, 9)
    return compare_gradients(program(run, x=x), reference, lambda seed, kind: {"x": x.clone()}, 1, 1e-4)


def test_gradients_of_a_replay_are_the_references_own() -> None:
    run = lambda x: torch.nn.functional.layer_norm(x, (9,)).sigmoid()  # noqa: E731
    assert gradients(run, run) == {"seed": 1, "outputs": ["output"], "inputs": ["x"], "relative": 1e-4}
    with pytest.raises(ReplayError, match="gradient to x: differs"):
        gradients(run, lambda x: run(x + x.sin()))


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (lambda x: x - x.detach().mean(), "cuts its gradients"),
        (lambda x: (x > 0).float(), "no output of the reference carries"),
        (lambda x: x.mul_(2), "does not run on inputs that ask for gradients"),
    ],
)
def test_what_is_not_compared_says_why(reference: Any, reason: str) -> None:
    assert reason in gradients(lambda x: x - x.mean(), reference)["reason"]
